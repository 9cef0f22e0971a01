// SPDX-License-Identifier: Apache-2.0

package nodelabels_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/nodelabels"
	"github.com/openshift/hypershift/support/testenv"
)

type labels = map[string]string

// cases are labels, each with a part of the message that refuses them; empty for labels that nodes can have.
var cases = map[string]struct {
	labels labels
	says   string
}{
	"an empty value":                          {labels{"rack": ""}, ""},
	"a domain and a name":                     {labels{"example.com/Rack_1.a": "r-1_a.B"}, ""},
	"a key of 31 characters":                  {labels{strings.Repeat("k", 31): "1"}, ""},
	"a key of 32 characters":                  {labels{strings.Repeat("k", 32): "1"}, "keys \"kkkk"},
	"a name of 63 after a domain":             {labels{"a.b/" + strings.Repeat("k", 63): "1"}, ""},
	"a name of 64 after a domain":             {labels{"a.b/" + strings.Repeat("k", 64): "1"}, "keys \"a.b/kkk"},
	"a long domain":                           {labels{strings.Repeat("a.", 110) + "a/k": "1"}, ""},
	"a domain that is too long":               {labels{strings.Repeat("a.", 111) + "a/k": "1"}, "keys \"a.a.a."},
	"a key with a space":                      {labels{"bad key!": "1", "rack": "1"}, "keys \"bad key!\"; use a key of at most 31"},
	"a domain with capitals":                  {labels{"Example.com/rack": "1"}, "keys \"Example.com/rack\""},
	"two slashes":                             {labels{"a/b/c": "1"}, "keys \"a/b/c\""},
	"an empty key":                            {labels{"": "1"}, "keys \"\""},
	"a value of 63 characters":                {labels{"rack": strings.Repeat("v", 63)}, ""},
	"a value of 64 characters":                {labels{"rack": strings.Repeat("v", 64)}, "values of \"rack\"; use at most 63"},
	"a value with a slash":                    {labels{"rack": "a/b"}, "values of \"rack\""},
	"a value that ends in a dash":             {labels{"rack": "a-"}, "values of \"rack\""},
	"several wrong labels beside a valid one": {labels{"b c": "1", "a b": "1", "d": "1"}, "keys \"a b\", \"b c\";"},
}

func TestLabels(t *testing.T) {
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			if tc.says == "" {
				g.Expect(nodelabels.Faults(tc.labels)).To(BeEmpty())
				g.Expect(nodelabels.Valid(tc.labels)).To(Equal(tc.labels))
			} else {
				g.Expect(nodelabels.Faults(tc.labels)).To(ConsistOf(ContainSubstring(tc.says)))
				g.Expect(len(nodelabels.Valid(tc.labels))).To(BeNumerically("<", len(tc.labels)))
			}
			for key, value := range nodelabels.Valid(tc.labels) {
				g.Expect(validation.IsQualifiedName(hyperv1.NodeLabelPrefix+"."+key)).To(BeEmpty(), "the key on a Machine")
				g.Expect(validation.IsQualifiedName(key)).To(BeEmpty(), "the key on a Node")
				g.Expect(validation.IsValidLabelValue(value)).To(BeEmpty())
			}
		})
	}
}

// TestPolicy checks that the API server refuses the labels that Faults refuses.
func TestPolicy(t *testing.T) {
	g := NewWithT(t)
	kinds := runtime.NewScheme()
	g.Expect(errors.Join(scheme.AddToScheme(kinds), hyperv1.AddToScheme(kinds))).To(Succeed())
	c, err := client.New(testenv.Start(t, crds.HyperShift), client.Options{Scheme: kinds})
	g.Expect(err).NotTo(HaveOccurred())
	pool := func(name string, of labels) *hyperv1.NodePool {
		return &hyperv1.NodePool{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec: hyperv1.NodePoolSpec{
				ClusterName: "demo", Release: hyperv1.Release{Image: "registry.example/release:1"}, NodeLabels: of,
				Management: hyperv1.NodePoolManagement{UpgradeType: hyperv1.UpgradeTypeInPlace},
				Platform:   hyperv1.NodePoolPlatform{Type: hyperv1.NonePlatform},
			},
		}
	}
	stored := pool("stored", labels{"bad key!": "1"})
	g.Expect(c.Create(t.Context(), stored)).To(Succeed())
	for _, obj := range nodelabels.Objects() {
		g.Expect(c.Create(t.Context(), obj)).To(Succeed())
	}
	// The API server takes a moment to load a policy.
	g.Eventually(func() error { return c.Create(t.Context(), pool("probe", labels{"bad key!": "1"}), client.DryRunAll) }).
		WithTimeout(time.Minute).Should(MatchError(ContainSubstring("bad key!")))
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := c.Create(t.Context(), pool("new", tc.labels), client.DryRunAll)
			if tc.says == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return
			}
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.says)))
		})
	}
	t.Run("a stored pool with a wrong label can be changed, but gets no other wrong label", func(t *testing.T) {
		g := NewWithT(t)
		stored.Spec.NodeLabels["rack"] = "1"
		g.Expect(c.Update(t.Context(), stored)).To(Succeed())
		stored.Spec.NodeLabels["other key"] = "1"
		g.Expect(c.Update(t.Context(), stored, client.DryRunAll)).To(MatchError(And(ContainSubstring("\"other key\""),
			Not(ContainSubstring("bad key!")))))
		delete(stored.Spec.NodeLabels, "other key")
		g.Expect(c.Delete(t.Context(), stored)).To(Succeed())
	})
}
