// SPDX-License-Identifier: Apache-2.0

package management_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/openshift/hypershift/support/management"
)

// countingMapper counts the calls of a RESTMapper.
type countingMapper struct {
	*meta.DefaultRESTMapper
	calls int
}

func (m *countingMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	m.calls++
	return m.DefaultRESTMapper.RESTMapping(kind, versions...)
}

func TestRemembering(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	route := schema.GroupVersionKind{Group: management.Routes, Version: "v1", Kind: "Route"}
	inner := &countingMapper{DefaultRESTMapper: meta.NewDefaultRESTMapper([]schema.GroupVersion{route.GroupVersion()})}
	now := clocktesting.NewFakePassiveClock(time.Now())
	mapper := management.Remembering(inner, now)
	serves := func() bool {
		served, err := management.Serves(mapper, route.GroupKind())
		g.Expect(err).NotTo(HaveOccurred())
		return served
	}

	for range 100 {
		g.Expect(serves()).To(BeFalse())
	}
	g.Expect(inner.calls).To(Equal(1), "a negative answer is remembered")

	inner.Add(route, meta.RESTScopeNamespace)
	now.SetTime(now.Now().Add(14 * time.Second))
	g.Expect(serves()).To(BeFalse())
	now.SetTime(now.Now().Add(time.Second))
	g.Expect(serves()).To(BeTrue(), "a kind that is installed later is found")
}
