// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/inventory"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// TestOwned checks the content and the order of the lists of machines when other users share the MAAS.
func TestOwned(t *testing.T) {
	g := NewWithT(t)
	s, err := simulator.New(simulator.Options{Users: []simulator.User{{Name: "me", Admin: true}, {Name: "bob"}}, Seed: []byte(simtest.Seed(
		simtest.Machine{ID: "cccccc", Status: status.Deployed, Owner: "me", Power: "on"},
		simtest.Machine{ID: "aaaaaa", Status: status.Allocated, Owner: "me"},
		simtest.Machine{ID: "bbbbbb", Status: status.FailedReleasing, Owner: "me"},
		simtest.Machine{ID: "dddddd", Status: status.Allocated, Owner: "bob"},
		simtest.Machine{ID: "eeeeee"},
	))})
	g.Expect(err).NotTo(HaveOccurred())
	c, err := maas.NewClient(maas.Config{Endpoint: simtest.Listen(t, s), APIKey: s.Key("me")})
	g.Expect(err).NotTo(HaveOccurred())
	i := inventory.New(c, clock.RealClock{}, inventory.Ages{})
	names := func(list []maas.Machine, err error) []string {
		g.Expect(err).NotTo(HaveOccurred())
		var ids []string
		for _, m := range list {
			ids = append(ids, m.SystemID)
		}
		return ids
	}
	owned := names(i.Owned(t.Context(), time.Minute))
	g.Expect(cmp.Diff([]string{"aaaaaa", "bbbbbb", "cccccc"}, owned)).To(BeEmpty())
	g.Expect(names(i.Allocated(t.Context(), time.Minute))).To(Equal([]string{"aaaaaa"}), "what runs is not looked at every few minutes")
}
