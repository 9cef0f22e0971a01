// SPDX-License-Identifier: Apache-2.0

package management_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/hypershift/support/management"
)

// countingMapper counts the questions that a RESTMapper gets.
type countingMapper struct {
	*meta.DefaultRESTMapper
	asked int
}

func (m *countingMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	m.asked++
	return m.DefaultRESTMapper.RESTMapping(kind, versions...)
}

func TestUnserved(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	mapper := &countingMapper{DefaultRESTMapper: meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: management.Routes, Version: "v1"}})}
	route := schema.GroupVersionKind{Group: management.Routes, Version: "v1", Kind: "Route"}
	var unserved management.Unserved
	start := time.Now()
	serves := func(after time.Duration) bool {
		served, err := unserved.Serves(mapper, route.GroupKind(), start.Add(after))
		g.Expect(err).NotTo(HaveOccurred())
		return served
	}
	for range 100 {
		g.Expect(serves(0)).To(BeFalse())
	}
	g.Expect(mapper.asked).To(Equal(1), "a negative answer is remembered")
	mapper.Add(route, meta.RESTScopeNamespace)
	g.Expect(serves(time.Second)).To(BeFalse())
	g.Expect(serves(time.Minute)).To(BeTrue(), "a kind that was installed later is found")
}
