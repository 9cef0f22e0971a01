// SPDX-License-Identifier: Apache-2.0

package journey

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
)

const metricsOfAnAPIServer = `# HELP apiserver_request_total Counter of requests.
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",resource="nodepools",subresource="status",verb="PATCH",version="v1beta1"} 3
apiserver_request_total{code="409",resource="nodepools",subresource="status",verb="PATCH",version="v1beta1"} 1
apiserver_request_total{code="200",resource="nodepools",subresource="",verb="LIST",version="v1beta1"} 9
apiserver_request_total{code="200",resource="leases",subresource="",verb="PUT",version="v1"} 70
apiserver_request_total{code="201",resource="secrets",subresource="",verb="POST",version="v1"} 2
`

func TestWrites(t *testing.T) {
	t.Run("When requests change objects, it should count them, even failed ones, but no reads and no routine writes", func(t *testing.T) {
		got, err := writes(metricsOfAnAPIServer)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		if diff := cmp.Diff(map[string]float64{"PATCH nodepools status": 4, "POST secrets ": 2}, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("When the text is not metrics, it should return an error", func(t *testing.T) {
		_, err := writes("<html>")
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("metrics of a kube-apiserver")))
	})
}

func TestChanged(t *testing.T) {
	g := NewWithT(t)
	before := map[string]float64{"PUT a ": 1, "PUT b ": 1}
	g.Expect(changed(nil, before)).To(BeEmpty())
	g.Expect(changed(before, before)).To(BeEmpty())
	g.Expect(changed(before, map[string]float64{"PUT a ": 2, "PUT b ": 1, "POST c status": 1})).To(Equal([]string{"POST c status", "PUT a"}))
}
