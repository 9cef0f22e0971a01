// SPDX-License-Identifier: Apache-2.0

package maas_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/openshift/hypershift/support/maas"
)

func FuzzDecodeMachine(f *testing.F) {
	golden, err := os.ReadFile(filepath.Join("testdata", "machine.json"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(golden)
	f.Add([]byte(`{"status": 99, "owner_data": {"n": 1, "o": {"x": null}}, "interface_set": [{"params": ""}], "new_field": [1]}`))
	f.Add([]byte(`{"workload_annotations": null, "pod": {}, "zone": null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var m maas.Machine
		if json.Unmarshal(data, &m) != nil {
			return
		}
		// A decoded machine must survive a round trip: the simulator writes the same types.
		text, err := json.Marshal(&m)
		if err != nil {
			t.Fatalf("a machine that was read can't be written: %v", err)
		}
		var again maas.Machine
		if err := json.Unmarshal(text, &again); err != nil {
			t.Fatalf("a machine that was written can't be read: %v", err)
		}
		if again.SystemID != m.SystemID || again.Status != m.Status || m.Status.String() == "" {
			t.Fatalf("the machine changed: %v, %v", m, again)
		}
	})
}

func FuzzError(f *testing.F) {
	f.Add(400, "application/json", `{"zone": ["No such zone(s): nozone."]}`)
	f.Add(401, "text/html", `Authorization Error: 'Invalid signature. Expected signature base string: &tokensecret'`)
	f.Add(500, "text/plain", "tokensecret")
	f.Fuzz(func(t *testing.T, code int, contentType, text string) {
		if code < 400 || code > 599 || strings.ContainsAny(contentType, "\r\n\x00") {
			return
		}
		var calls atomic.Int32
		c := newClient(t, maas.Config{Retry: maas.RetryPolicy{Attempts: -1}, Endpoint: answers(t, &calls, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(code)
			_, _ = w.Write([]byte(text))
		})})
		_, err := c.WhoAmI(t.Context())
		if err == nil {
			t.Fatal("a refusal must be an error")
		}
		if strings.Contains(err.Error(), "tokensecret") {
			t.Fatalf("the error holds the secret: %v", err)
		}
	})
}

// FuzzCredentials parses arbitrary content of a tenant's Secret.
func FuzzCredentials(f *testing.F) {
	f.Add("https://maas.example.com:5443/MAAS", "consumer:token:secret")
	f.Add(" http://[::1]:5240/MAAS/api/2.0/ ", "a:b:c\n")
	f.Add("https://user:hunter2@maas/MAAS?x=1#y", "hunter2")
	f.Add("http://maas\x7f", "::")
	f.Fuzz(func(t *testing.T, endpoint, apiKey string) {
		cfg, err := maas.ConfigFromSecret(map[string][]byte{maas.SecretKeyEndpoint: []byte(endpoint), maas.SecretKeyAPIKey: []byte(apiKey)})
		if err != nil {
			if !strings.Contains(err.Error(), maas.SecretKeyEndpoint) && !strings.Contains(err.Error(), maas.SecretKeyAPIKey) {
				t.Fatalf("the error does not name the key of the Secret: %v", err)
			}
			return
		}
		c, err := maas.NewClient(cfg)
		if err != nil {
			t.Fatalf("what was accepted makes no client: %v", err)
		}
		if c.PlainHTTP() != maas.PlainHTTP(cfg.Endpoint) {
			t.Fatalf("%q is plain http or is not", cfg.Endpoint)
		}
	})
}

// recorder answers all calls, and records the last URL.
type recorder struct{ url string }

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	r.url = req.URL.String()
	return &http.Response{StatusCode: http.StatusNotFound, Body: http.NoBody, Request: req, Header: http.Header{}}, nil
}

// FuzzSystemID reads machines with arbitrary system IDs: they come from users, backups and MAAS.
func FuzzSystemID(f *testing.F) {
	for _, id := range []string{"wq4h8c", "", ".", "..", "../users", "a/b", "a?op=release", "a#b", "%2e%2e", "\x00"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		var asked recorder
		c := newClient(t, maas.Config{Endpoint: "https://maas/MAAS", Transport: &asked, Retry: maas.RetryPolicy{Attempts: -1}})
		if _, err := c.GetMachine(t.Context(), id); err == nil {
			t.Fatal("nobody has that machine")
		}
		if asked.url == "" {
			return // The client refused the ID before it sent a request.
		}
		name, ours := strings.CutPrefix(asked.url, "https://maas/MAAS/api/2.0/machines/")
		name, whole := strings.CutSuffix(name, "/")
		if got, err := url.PathUnescape(name); !ours || !whole || err != nil || got != id || strings.ContainsAny(name, "/?#") {
			t.Fatalf("machine %q was asked for at %s", id, asked.url)
		}
	})
}

// FuzzGuard parses the ranges of a flag.
func FuzzGuard(f *testing.F) {
	f.Add("10.0.0.0/8, fd00::/8", "127.0.0.0/8")
	f.Add("10.0.0.1", ",,")
	f.Add("::ffff:10.0.0.0/104", "0.0.0.0/0")
	f.Fuzz(func(t *testing.T, allow, refuse string) {
		guard, err := maas.NewGuard(allow, refuse)
		if err != nil {
			return
		}
		for _, p := range append(guard.Allow, guard.Refuse...) {
			if !p.IsValid() || p != p.Masked() {
				t.Fatalf("%s is no range", p)
			}
		}
	})
}
