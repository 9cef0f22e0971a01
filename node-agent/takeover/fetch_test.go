// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/node-agent/host"
)

// TestStalledServer has a server that begins to answer, or does not, and then says nothing until it is left.
func TestStalledServer(t *testing.T) {
	for name, begin := range map[string]string{"When a server takes the request and says nothing, it should be left": "", "When a server stops in the middle, it should be left": "half"} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if begin != "" {
					_, _ = io.WriteString(w, begin)
					w.(http.Flusher).Flush()
				}
				<-r.Context().Done()
			}))
			t.Cleanup(server.Close)
			h := &host.Host{Root: t.TempDir(), Log: io.Discard}
			f := fetcher{h, server.Client(), "/", 100 * time.Millisecond}
			_, err := f.fetch(t.Context(), "kernel", Artifact{Location: server.URL + "/kernel", SHA256: strings.Repeat("0", 64)})
			g.Expect(err).To(MatchError(ContainSubstring("/kernel: the server has said nothing for 100ms")))
			g.Expect(h.Exists("/kernel")).To(BeFalse())
		})
	}
}
