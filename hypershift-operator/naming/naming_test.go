// SPDX-License-Identifier: Apache-2.0

package naming

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

func TestControlPlaneNamespace(t *testing.T) {
	t.Run("When a cluster's name has dots, it should replace them by dashes", func(t *testing.T) {
		hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "a.b.c"}}
		NewWithT(t).Expect(ControlPlaneNamespace(hc)).To(Equal("clusters-a-b-c"))
	})
}

func TestInfraID(t *testing.T) {
	for _, tc := range []struct{ name, cluster, prefix string }{
		{"When the name is short, it should keep it", "demo", "demo-"},
		{"When the name is long, it should truncate it to 21 characters", strings.Repeat("x", 40), strings.Repeat("x", 21) + "-"},
		{"When the name has other characters, it should replace them", "My.Cluster", "my-cluster-"},
		{"When the truncated name ends in a dash, it should drop the dash", strings.Repeat("y", 20) + "-zz", strings.Repeat("y", 20) + "-"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			id := InfraID(tc.cluster)
			g.Expect(id).To(HavePrefix(tc.prefix))
			g.Expect(id).To(HaveLen(len(tc.prefix) + 5))
			g.Expect(len(id)).To(BeNumerically("<=", 27))
		})
	}
}

func TestJoin(t *testing.T) {
	for _, tc := range []struct {
		name, base, suffix string
		limit              int
		want               string
	}{
		{"When the name fits, it should join the parts", "base", "suffix", 43, "base-suffix"},
		{"When the name is just too long, it should keep the suffix", "abcdefghijklmnop", "suffix", 20, "abcd-" + Hash("abcdefghijklmnop") + "-suffix"},
		{"When the suffix alone is too long, it should hash both parts", "abc", strings.Repeat("s", 30), 20, "abc-" + Hash("abc-"+strings.Repeat("s", 30))},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			got := Join(tc.base, tc.suffix, tc.limit)
			g.Expect(got).To(Equal(tc.want))
			g.Expect(len(got)).To(BeNumerically("<=", tc.limit))
		})
	}
}

func TestHash(t *testing.T) {
	t.Run("When text is hashed, it should use 32-bit FNV-1a", func(t *testing.T) {
		NewWithT(t).Expect(Hash("a")).To(Equal("e40c292c"))
	})
	t.Run("When bytes are hashed, it should hash their list of decimal numbers", func(t *testing.T) {
		NewWithT(t).Expect(HashValue([]byte("hi"))).To(Equal(Hash("[104 105]")))
	})
}
