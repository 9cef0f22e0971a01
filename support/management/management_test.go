// SPDX-License-Identifier: Apache-2.0

package management

import (
	"errors"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// serving is a management cluster that serves some kinds, and returns an error for the group broken.
type serving struct {
	meta.RESTMapper
	kinds  []schema.GroupKind
	broken string
}

var errBusy = errors.New("the server is currently unable to handle the request")

func (s serving) RESTMapping(kind schema.GroupKind, _ ...string) (*meta.RESTMapping, error) {
	switch {
	case kind.Group == s.broken:
		return nil, errBusy
	case slices.Contains(s.kinds, kind):
		return &meta.RESTMapping{}, nil
	}
	return nil, &meta.NoKindMatchError{GroupKind: kind}
}

func TestDiscover(t *testing.T) {
	of := func(group, kind string) schema.GroupKind { return schema.GroupKind{Group: group, Kind: kind} }
	for name, tc := range map[string]struct {
		cluster serving
		want    APIs
		fails   bool
	}{
		"is plain Kubernetes": {serving{}, nil, false},
		"is OpenShift": {serving{kinds: []schema.GroupKind{of(Routes, "Route"), of(Security, "SecurityContextConstraints"), of(Configuration, "Proxy"), of(Monitoring, "ServiceMonitor")}},
			Groups(), false},
		"has a Prometheus operator":                       {serving{kinds: []schema.GroupKind{of(Monitoring, "ServiceMonitor")}}, APIs{Monitoring}, false},
		"has a group of the name with other kinds":        {serving{kinds: []schema.GroupKind{of(Monitoring, "Prometheus")}}, nil, false},
		"does not report one of them":                     {serving{kinds: []schema.GroupKind{of(Routes, "Route")}, broken: Security}, nil, true},
		"does not report the first of them":               {serving{broken: Configuration}, nil, true},
		"has an unrelated group":                          {serving{kinds: []schema.GroupKind{of("example.com", "Route")}}, nil, false},
		"is a MicroShift, with routes and without others": {serving{kinds: []schema.GroupKind{of(Routes, "Route")}}, APIs{Routes}, false},
	} {
		t.Run("When the management cluster "+name+", it should return the available API groups or an error", func(t *testing.T) {
			g := NewWithT(t)
			got, err := Discover(tc.cluster)
			if tc.fails {
				g.Expect(err).To(MatchError(errBusy))
				g.Expect(got).To(BeNil(), "one that does not answer must not pass for one that lacks it")
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
			for _, group := range Groups() {
				g.Expect(got.Has(group)).To(Equal(slices.Contains(tc.want, group)))
			}
		})
	}
	g := NewWithT(t)
	g.Expect(slices.IsSorted(Groups())).To(BeTrue())
	_, err := Serves(serving{broken: Routes}, of(Routes, "Route"))
	g.Expect(err).To(MatchError(ContainSubstring("whether it serves Route.route.openshift.io")))
}

func TestVersionsThatAreNone(t *testing.T) {
	g := NewWithT(t)
	_, err := AtLeast(&rest.Config{Host: "http://[::1"}, "1.35")
	g.Expect(err).To(MatchError(ContainSubstring("management cluster")))
}
