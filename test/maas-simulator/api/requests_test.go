// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

// TestForeignFaults verifies that an injected error has the format of its source: MAAS or a proxy.
func TestForeignFaults(t *testing.T) {
	const plain, asJSON, html = "text/plain; charset=utf-8", "application/json", "text/html"
	tests := map[string]struct {
		rule        faults.Rule
		code        int
		media, body string
		retry       string
		maas        bool
	}{
		"an error without a message":   {faults.Rule{Kind: faults.Error}, 503, plain, "The service is unavailable.", "10", true},
		"an error with a message":      {faults.Rule{Kind: faults.Error, Message: "no rack"}, 503, plain, "no rack", "10", true},
		"an error with another status": {faults.Rule{Kind: faults.Error, Status: 409}, 409, plain, "Conflict", "", true},
		"messages by field":            {faults.Rule{Kind: faults.Error, Status: 400, Message: `{"a": ["b"]}`}, 400, asJSON, `{"a": ["b"]}`, "", true},
		"invalid JSON":                 {faults.Rule{Kind: faults.Error, Status: 400, Message: `{"a": `}, 400, plain, `{"a": `, "", true},
		"a JSON list":                  {faults.Rule{Kind: faults.Error, Status: 400, Message: `["a"]`}, 400, plain, `["a"]`, "", true},
		"a proxy's error page":         {faults.Rule{Kind: faults.Proxy, Status: 502, Message: "<p>down</p>"}, 502, html, "<p>down</p>", "", false},
		"a lost response":              {faults.Rule{Kind: faults.LostAnswer, Status: 504}, 504, plain, "Gateway Timeout", "", true},
	}
	for name, test := range tests {
		t.Run("When the fault is "+name+", the response should have its status, body and headers", func(t *testing.T) {
			g := NewWithT(t)
			site := simtest.New(t, simtest.Rack)
			simtest.Fault(t, site.Simulator, test.rule)
			answer := site.Do("alice", "GET", "zones/")
			g.Expect(answer.Code).To(Equal(test.code))
			g.Expect(answer.Body).To(Equal(test.body))
			g.Expect(answer.Header.Get("Content-Type")).To(Equal(test.media))
			g.Expect(answer.Header.Get("Retry-After")).To(Equal(test.retry))
			g.Expect(answer.Header.Get("X-MAAS-API-Hash") != "").To(Equal(test.maas))
			g.Expect(answer.Header.Get("Vary") != "").To(Equal(test.maas))
		})
	}
}

// TestWhomAFaultHits verifies that a rule for a machine or VM host applies to the requests whose path has its ID. The
// rule may name the ID or the name.
func TestWhomAFaultHits(t *testing.T) {
	hits := func(rule faults.Rule, requests map[string]bool) {
		t.Helper()
		rule.Kind, rule.Status = faults.Error, 418
		site := simtest.New(t, simtest.WithVMHost)
		simtest.Fault(t, site.Simulator, rule)
		for request, hit := range requests {
			method, path, _ := strings.Cut(request, " ")
			answer := site.Do("admin", method, path)
			NewWithT(t).Expect(answer.Code == 418).To(Equal(hit), "%v hits %s: %d", rule, request, answer.Code)
		}
	}
	hits(faults.Rule{Machine: "one"}, map[string]bool{
		"GET machines/aaaaa1/": true, "GET nodes/aaaaa1/interfaces/": true, "GET machines/aaaaa2/": false, "GET machines/": false, "GET zones/north/": false,
	})
	hits(faults.Rule{Machine: "aaaaa*"}, map[string]bool{"GET machines/aaaaa1/": true, "GET machines/aaaaa2/": true, "GET machines/zzzzzz/": false})
	hits(faults.Rule{Machine: "lxd-1"}, map[string]bool{
		"GET vm-hosts/7/": true, "GET pods/7/?op=parameters": true, "GET vm-hosts/8/": false, "GET vm-hosts/": false, "GET virtual-machines/7": false, "GET vm-hosts/lxd-1/": false,
	})
	hits(faults.Rule{Operation: "interface.*"}, map[string]bool{"GET nodes/aaaaa1/interfaces/eth0/": true, "GET nodes/aaaaa1/interfaces/": false})
	hits(faults.Rule{Operation: "machines.allocate"}, map[string]bool{
		"POST machines/?op=allocate": true, "POST machines/op-allocate": true, "POST machines/?op=release": false, "GET machines/?op=allocate": true,
	})
}

// TestConnectionsThatEnd verifies that interrupted responses are not counted, and that an operation is completed if
// its client disconnects.
func TestConnectionsThatEnd(t *testing.T) {
	for _, kind := range []faults.Kind{faults.Drop, faults.DropAfter} {
		t.Run("When the fault is "+string(kind)+", the connection should be closed without a response", func(t *testing.T) {
			g := NewWithT(t)
			site := simtest.New(t, simtest.Rack)
			simtest.Fault(t, site.Simulator, faults.Rule{Kind: kind, Count: 1})
			g.Expect(func() { site.Do("alice", "POST", "machines/?op=allocate", "name", "one") }).To(PanicWith(http.ErrAbortHandler))
			g.Expect(site.Has("one").Owner == "alice").To(Equal(kind == faults.DropAfter))
			g.Expect(site.Requests()).To(BeEmpty())
		})
	}
	t.Run("When a client disconnects before a late response, the operation should still happen", func(t *testing.T) {
		g := NewWithT(t)
		site := simtest.New(t, simtest.Rack)
		simtest.Fault(t, site.Simulator, faults.Rule{Kind: faults.Latency, Delay: faults.Duration(time.Hour)})
		gone, leave := context.WithCancel(t.Context())
		leave()
		r := httptest.NewRequestWithContext(gone, http.MethodPost, "/MAAS/api/2.0/machines/?op=allocate", strings.NewReader("name=one"))
		r.Header.Set("Authorization", site.Authorization(site.Key("alice")))
		g.Expect(site.Send(r).Code).To(Equal(200))
		g.Expect(site.Has("one").Owner).To(Equal("alice"))
	})
}

// TestNothingIsStale verifies that a machine is rendered again when data in its response has changed, in lists and as a
// single object.
func TestNothingIsStale(t *testing.T) {
	site := simtest.New(t, simtest.WithVMHost)
	story(t, site, ask("admin", "POST vm-hosts/7/?op=compose", "hostname", "vm", "skip_commissioning", "true"))
	vm := site.Has("vm").SystemID
	seen := func(field, want string) {
		t.Helper()
		story(t, site, ask("alice", "GET machines/?hostname=vm").with(field+"="+want), ask("alice", "GET machines/"+vm+"/").with(field+"="+want))
	}
	seen("zone.name", "default")
	seen("pod.name", "lxd-1")
	seen("domain.resource_record_count", "0")
	for _, change := range []struct{ request, key, value, field, want string }{
		{"PUT zones/default/", "description", "first", "zone.description", "first"},
		{"PUT resourcepool/1/", "name", "green", "pool.name", "green"},
		{"PUT domains/0/", "ttl", "60", "domain.ttl", "60"},
		{"PUT domains/0/", "name", "prod.example", "fqdn", "vm.prod.example"},
		{"POST dnsresources/", "fqdn", "a.prod.example", "domain.resource_record_count", "1"},
		{"POST dnsresourcerecords/?fqdn=x", "", "", "domain.resource_record_count", "1"},
		{"PUT vm-hosts/7/", "name", "renamed", "pod.name", "renamed"},
		{"PUT machines/" + vm + "/", "description", "mine", "description", "mine"},
		{"POST tags/fast/?op=update_nodes", "add", vm, "tag_names", "[virtual fast]"},
		{"PUT tags/fast/", "name", "quick", "tag_names", "[virtual quick]"},
	} {
		method, path, _ := strings.Cut(change.request, " ")
		site.Do("admin", method, path, change.key, change.value)
		seen(change.field, change.want)
	}
	story(t, site, ask("admin", "POST dnsresourcerecords/", "fqdn", "a.prod.example", "rrtype", "TXT", "rrdata", "hi"))
	seen("domain.resource_record_count", "2")
	site.ChangeVMHost("renamed", func(h *inventory.VMHost) { h.HostSystemID = "aaaaa3" })
	seen("parent.system_id", "aaaaa3")
}

// TestPaths verifies the parsing of paths.
func TestPaths(t *testing.T) {
	site := simtest.New(t, simtest.Rack)
	const unknown = "Unknown API endpoint: /MAAS/api/2.0/"
	story(t, site,
		ask("alice", "GET zones//north/").with("name=north"),
		ask("alice", "GET zones/n%6Frth/").with("name=north"),
		ask("alice", "GET zones/north%2F/").is(404, "No Zone matches the given query."),
		ask("alice", "GET zones/north/more/").is(404, unknown+"zones/north/more/."),
		ask("alice", "GET Zones/").is(404, unknown+"Zones/."),
		ask("alice", "GET zones").is(404, unknown+"zones."),
		ask("alice", "GET zones/op-nope").is(400, "Unrecognised signature: method=GET op=nope"),
		ask("alice", "GET users/op-whoami").with("username=alice"),
		ask("alice", "GET users/op-whoami?op=ignored").with("username=alice"),
		ask("alice", "POST users/?op=whoami").is(400, "Unrecognised signature: method=POST op=whoami"),
		ask("alice", "PUT machines/aaaaa1/?op=deploy").is(400, "Unrecognised signature: method=PUT op=deploy"),
		ask("alice", "DELETE machines/").is(405, ""),
		ask("alice", "DELETE users/?op=whoami").is(405, ""),
		ask("alice", "GET machines/?hostname=one&hostname=%zz").is(400, `reading parameter "hostname": invalid URL escape "%zz"`),
		ask("alice", "GET vlans/one/").is(404, "No VLAN matches the given query."),
		ask("alice", "GET ipranges/one/").is(404, "No IPRange matches the given query."),
		ask("alice", "GET fabrics/fabric-0/vlans/").with("id=1 2"),
		ask("alice", "GET fabrics/9/vlans/").is(404, "No Fabric matches the given query."),
		ask("alice", "GET spaces/1/").with("name=prod"),
		ask("alice", "GET spaces/-1/").with("name=undefined"),
	)
	g := NewWithT(t)
	for path, want := range map[string]int{"/MAAS/api/3.0/zones/": 404, "/MAAS/": 404, "/MAAS/api/2.0/": 404, "/": 404, "/MAAS/api": 404} {
		g.Expect(site.Send(httptest.NewRequest("GET", path, nil)).Code).To(Equal(want), path)
	}
	answer := site.Send(httptest.NewRequest("GET", "/MAAS/api/", nil))
	g.Expect(answer.Header.Get("Location")).To(Equal("/MAAS/docs/api.html"))
	g.Expect(site.Send(httptest.NewRequest("GET", "/MAAS/api/version/", nil)).Body).To(Equal("2.0"))
	head := httptest.NewRequest("HEAD", "/MAAS/api/2.0/version/", nil)
	g.Expect(site.Send(head).Body).To(BeEmpty())
	old := simtest.New(t, simtest.Rack, ofVersion("3.2"))
	story(t, old, ask("alice", "GET users/op-whoami").is(404, unknown+"users/op-whoami."), ask("alice", "GET users/?op=whoami").with("username=alice"))
}

// TestCredentialsElsewhere verifies that credentials may be in the query or the form, and that they are then not read
// as parameters.
func TestCredentialsElsewhere(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	credentials := func() url.Values {
		key := strings.Split(site.Key("alice"), ":")
		return url.Values{
			"oauth_consumer_key": {key[0]}, "oauth_token": {key[1]}, "oauth_signature_method": {"PLAINTEXT"}, "oauth_signature": {"&" + key[2]},
			"oauth_timestamp": {fmt.Sprint(site.Now().Unix())}, "oauth_nonce": {rand.Text()},
		}
	}
	r := httptest.NewRequest("GET", "/MAAS/api/2.0/users/?op=whoami&"+credentials().Encode(), nil)
	g.Expect(site.Send(r).Object()).To(HaveKeyWithValue("username", "alice"))
	body := credentials()
	body.Set("name", "ci")
	r = httptest.NewRequest("POST", "/MAAS/api/2.0/account/?op=create_authorisation_token", strings.NewReader(body.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	g.Expect(site.Send(r).Object()).To(HaveKeyWithValue("name", "ci"))
	wrong := credentials()
	wrong.Set("oauth_signature", "&wrong")
	r = httptest.NewRequest("GET", "/MAAS/api/2.0/users/?op=whoami&"+wrong.Encode(), nil)
	answer := site.Send(r)
	g.Expect(answer.Code).To(Equal(401))
	g.Expect(answer.Header.Get("Content-Type")).To(Equal("text/html; charset=utf-8"))
	g.Expect(answer.Header.Get("WWW-Authenticate")).To(Equal(`OAuth realm="MAAS API"`))
}
