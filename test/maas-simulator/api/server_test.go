// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

func TestRouting(t *testing.T) {
	site := simtest.New(t, simtest.Rack)
	story(t, site,
		ask("admin", "GET machines/aaaaa1").is(404, "Unknown API endpoint: /MAAS/api/2.0/machines/aaaaa1."),
		ask("admin", "GET nope/").is(404, "Unknown API endpoint: /MAAS/api/2.0/nope/."),
		ask("admin", "GET machines/aaaaa1/?op=nope").is(400, "Unrecognised signature: method=GET op=nope"),
		ask("admin", "POST machines/?op=nope").is(400, "Unrecognised signature: method=POST op=nope"),
		ask("admin", "POST machines/aaaaa1/").is(400, "Unrecognised signature: method=POST op=None"),
		ask("admin", "POST machines/", "op", "allocate", "name", "two").with("hostname=two"),
		ask("admin", "POST machines/op-allocate", "name", "one").with("hostname=one"),
		ask("admin", "PATCH machines/aaaaa1/").is(405, ""),
		ask("admin", "PUT machines/").is(405, ""),
		ask("admin", "HEAD machines/").is(405, ""),
		ask("admin", "GET /version/").with("version=3.4.10"),
		ask("", "GET machines/").is(400, "Unrecognised signature: method=GET op=None"),
		ask("", "POST machines/?op=allocate").is(400, "Unrecognised signature: method=POST op=allocate"),
		ask("", "GET users/?op=whoami").is(401, "Forbidden"),
		ask("admin", "GET machines/?a=%zz").is(400, ""),
	)
	for path, want := range map[string]int{"/MAAS/api/": 302, "/MAAS/api/version/": 200, "/MAAS/api/1.0/version/": 410, "/elsewhere": 404} {
		answer := site.Send(httptest.NewRequest("GET", path, nil))
		NewWithT(t).Expect(answer.Code).To(Equal(want), path)
	}
	answer := site.Do("admin", "GET", "zones/")
	g := NewWithT(t)
	g.Expect(answer.Header.Get("Content-Type")).To(Equal("application/json; charset=utf-8"))
	g.Expect(answer.Header.Get("X-MAAS-API-Hash")).NotTo(BeEmpty())
	g.Expect(site.Do("admin", "GET", "nope/").Header.Get("Content-Type")).To(Equal("text/plain; charset=utf-8"))
	g.Expect(site.Do("", "GET", "zones/").Header.Get("WWW-Authenticate")).To(HavePrefix("OAuth"))
	g.Expect(site.Do("admin", "DELETE", "zones/x/").Header.Get("Content-Type")).To(Equal("text/plain; charset=utf-8"))
}

func TestBodies(t *testing.T) {
	send := func(site *simtest.Site, contentType string, body io.Reader) simtest.Answer {
		r := httptest.NewRequest("POST", "/MAAS/api/2.0/machines/?op=allocate", body)
		r.Header.Set("Content-Type", contentType)
		r.Header.Set("Authorization", site.Authorization(site.Key("admin")))
		return site.Send(r)
	}
	t.Run("When the body is multipart, it should read every value of a parameter", func(t *testing.T) {
		g := NewWithT(t)
		site := simtest.New(t, simtest.Rack)
		var body bytes.Buffer
		w := multipart.NewWriter(&body)
		for _, tag := range []string{"fast", "gpu"} {
			g.Expect(w.WriteField("tags", tag)).To(Succeed())
		}
		g.Expect(w.Close()).To(Succeed())
		answer := send(site, w.FormDataContentType(), &body)
		g.Expect(answer.Object()).To(HaveKeyWithValue("hostname", "three"))
	})
	t.Run("When the body is JSON, it should fail as in MAAS and change nothing", func(t *testing.T) {
		g := NewWithT(t)
		site := simtest.New(t, simtest.Rack)
		answer := send(site, "application/json", strings.NewReader(`{"name": "one"}`))
		g.Expect(answer.Code).To(Equal(500))
		g.Expect(answer.Body).To(Equal("'dict' object has no attribute 'lists'"))
		g.Expect(site.Has("one").Owner).To(BeEmpty())
	})
	t.Run("When the body is truncated, it should be rejected", func(t *testing.T) {
		g := NewWithT(t)
		site := simtest.New(t, simtest.Rack)
		g.Expect(send(site, "multipart/form-data; boundary=x", strings.NewReader("--x\r\nnothing")).Code).To(Equal(500))
		g.Expect(send(site, ";", strings.NewReader("a=b")).Code).To(Equal(500))
		g.Expect(site.Has("one").Owner).To(BeEmpty())
	})
}

func TestAuthentication(t *testing.T) {
	whoami := func(site *simtest.Site, header string) simtest.Answer {
		r := httptest.NewRequest("GET", "/MAAS/api/2.0/users/?op=whoami", nil)
		r.Header.Set("Authorization", header)
		return site.Send(r)
	}
	site := simtest.New(t, simtest.Rack)
	key := strings.Split(site.Key("alice"), ":")
	good := site.Authorization(site.Key("alice"))
	tests := map[string]struct {
		header string
		code   int
		says   string
	}{
		"the key is good":                     {good, 200, ""},
		"the nonce was used":                  {good, 401, "Authorization Error: 'Nonce already used: "},
		"the secret is wrong":                 {site.Authorization(key[0] + ":" + key[1] + ":wrong"), 401, "Authorization Error: 'Invalid signature. Expected signature base string: "},
		"the token is unknown":                {site.Authorization(key[0] + ":nobody:" + key[2]), 401, "Authorization Error: 'Invalid access token: nobody'"},
		"the consumer is unknown":             {site.Authorization("nobody:" + key[1] + ":" + key[2]), 401, "Authorization Error: Invalid API key."},
		"a parameter is missing":              {`OAuth oauth_consumer_key="a"`, 401, "Forbidden"},
		"the scheme is not OAuth":             {"Basic YTpi", 401, "Forbidden"},
		"the timestamp is old":                {strings.Replace(site.Authorization(site.Key("alice")), `oauth_timestamp="1772600767"`, `oauth_timestamp="1772597167"`, 1), 401, "Authorization Error: 'Expired timestamp: given 1772597167 and now 1772600767 has a greater difference than threshold 300'"},
		"the timestamp is not a number":       {strings.Replace(site.Authorization(site.Key("alice")), `oauth_timestamp="1772600767"`, `oauth_timestamp="soon"`, 1), 401, "Authorization Error: 'invalid literal"},
		"the signature method is unsupported": {strings.Replace(site.Authorization(site.Key("alice")), "PLAINTEXT", "RSA-SHA1", 1), 401, "Authorization Error: 'Signature method RSA-SHA1 not supported."},
	}
	order := []string{
		"the key is good", "the nonce was used", "the secret is wrong", "the token is unknown", "the consumer is unknown", "a parameter is missing",
		"the scheme is not OAuth", "the timestamp is old", "the timestamp is not a number", "the signature method is unsupported",
	}
	for _, name := range order {
		test := tests[name]
		t.Run("When "+name+", the response should be that of MAAS", func(t *testing.T) {
			g := NewWithT(t)
			answer := whoami(site, test.header)
			g.Expect(answer.Code).To(Equal(test.code), answer.Body)
			if test.says != "" {
				g.Expect(answer.Body).To(HavePrefix(test.says))
			}
			g.Expect(answer.Body).NotTo(ContainSubstring(key[2]), "the secret must not be told")
			version := httptest.NewRequest("GET", "/MAAS/api/2.0/version/", nil)
			version.Header.Set("Authorization", test.header)
			g.Expect(site.Send(version).Code).To(Equal(200), "the version is told to everybody, with bad credentials too")
		})
	}
}

// over returns a function that sends requests to the site over a network connection.
func over(t *testing.T, site *simtest.Site) func(operation string) (int, string, error) {
	server := httptest.NewServer(site)
	t.Cleanup(server.Close)
	return func(operation string) (int, string, error) {
		method, path, _ := strings.Cut(operation, " ")
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+"/MAAS/api/2.0/"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", site.Authorization(site.Key("alice")))
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
		if err != nil {
			return 0, "", err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body), err
	}
}

func TestRequestFaults(t *testing.T) {
	setup := func(t *testing.T, r faults.Rule) (*simtest.Site, func(string) (int, string, error)) {
		site := simtest.New(t, simtest.Rack)
		if _, err := site.Faults.Add(r); err != nil {
			t.Fatal(err)
		}
		return site, over(t, site)
	}
	t.Run("When an operation fails, it should have no effect and other operations should work", func(t *testing.T) {
		g := NewWithT(t)
		site, send := setup(t, faults.Rule{Kind: faults.Error, Operation: "machines.allocate", Count: 1})
		code, body, err := send("POST machines/?op=allocate")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(code).To(Equal(503))
		g.Expect(body).To(Equal("The service is unavailable."))
		g.Expect(site.Has("one").Owner).To(BeEmpty())
		code, _, _ = send("GET zones/")
		g.Expect(code).To(Equal(200))
		code, _, _ = send("POST machines/?op=allocate")
		g.Expect(code).To(Equal(200), "the rule counts")
	})
	t.Run("When the response is lost, the operation should have happened", func(t *testing.T) {
		g := NewWithT(t)
		site, send := setup(t, faults.Rule{Kind: faults.LostAnswer, Operation: "machines.*", Status: 500, Message: "oops"})
		code, body, _ := send("POST machines/?op=allocate")
		g.Expect(code).To(Equal(500))
		g.Expect(body).To(Equal("oops"))
		g.Expect(site.Has("one").Owner).To(Equal("alice"))
	})
	t.Run("When the connection drops before the operation, it should not have happened", func(t *testing.T) {
		g := NewWithT(t)
		site, send := setup(t, faults.Rule{Kind: faults.Drop})
		_, _, err := send("POST machines/?op=allocate")
		g.Expect(err).To(HaveOccurred())
		g.Expect(site.Has("one").Owner).To(BeEmpty())
	})
	t.Run("When the connection drops during the response, the operation should have happened", func(t *testing.T) {
		g := NewWithT(t)
		site, send := setup(t, faults.Rule{Kind: faults.DropAfter})
		_, _, err := send("POST machines/?op=allocate")
		g.Expect(err).To(HaveOccurred())
		g.Expect(site.Has("one").Owner).To(Equal("alice"))
	})
	t.Run("When there is latency, it should wait on the simulated clock", func(t *testing.T) {
		g := NewWithT(t)
		site, send := setup(t, faults.Rule{Kind: faults.Latency, Delay: faults.Duration(time.Minute)})
		done := make(chan int, 1)
		go func() {
			code, _, _ := send("GET zones/")
			done <- code
		}()
		g.Eventually(site.Clock.HasWaiters).Should(BeTrue())
		g.Consistently(done, "50ms").ShouldNot(Receive())
		site.Clock.Step(time.Minute)
		g.Eventually(done).Should(Receive(Equal(200)))
	})
}

func TestRequestsAreCounted(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	site.Do("alice", "GET", "machines/")
	site.Do("alice", "GET", "machines/")
	site.Do("alice", "POST", "machines/aaaaa1/?op=deploy", "distro_series", "x")
	site.Do("alice", "GET", "nope/")
	g.Expect(site.Requests()).To(Equal(map[simulator.Count]int{
		{Operation: "machines.read", Status: 200}: 2, {Operation: "machine.deploy", Status: 400}: 1, {Operation: "unknown", Status: 404}: 1,
	}))
	site.ResetRequests()
	g.Expect(site.Requests()).To(BeEmpty())
}
