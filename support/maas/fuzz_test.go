package maas_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/openshift/hypershift/support/maas"
)

func FuzzDecodeMachine(f *testing.F) {
	golden, err := os.ReadFile(filepath.Join("maastest", "testdata", "machine.json"))
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
		// What was read once must survive a round trip: the simulator writes with the same types.
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
