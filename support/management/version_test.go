// SPDX-License-Identifier: Apache-2.0

package management

import (
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
)

func TestAtLeast(t *testing.T) {
	for name, tc := range map[string]struct {
		answer  string
		status  int
		want    bool
		failure string
	}{
		"When the cluster runs exactly that version, it should return true":                 {answer: `{"gitVersion":"v1.35.0"}`, want: true},
		"When the cluster runs a later version with a vendor suffix, it should return true": {answer: `{"gitVersion":"v1.36.2+rke2r1"}`, want: true},
		"When the cluster runs an older version, it should return false":                    {answer: `{"gitVersion":"v1.34.9"}`},
		"When the cluster runs a vendor build of that version, it should return true":       {answer: `{"gitVersion":"v1.35.0-gke.1001"}`, want: true},
		"When the cluster's version cannot be parsed, it should return an error":            {answer: `{"gitVersion":"latest"}`, failure: "reading the version of the management cluster"},
		"When the API server does not answer, it should return an error":                    {status: http.StatusServiceUnavailable, failure: "asking the management cluster for its version"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if tc.status != 0 {
					w.WriteHeader(tc.status)
				}
				_, _ = w.Write([]byte(tc.answer))
			}))
			defer server.Close()
			is, err := AtLeast(&rest.Config{Host: server.URL}, "1.35")
			g := NewWithT(t)
			if tc.failure != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.failure)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(is).To(Equal(tc.want))
		})
	}
}
