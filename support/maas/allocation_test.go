// SPDX-License-Identifier: Apache-2.0

package maas_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

// TestAllocationIsFoundAgain finds an allocation in the event log, as after a crash between the allocation and its
// record.
func TestAllocationIsFoundAgain(t *testing.T) {
	g := NewWithT(t)
	s, err := simulator.New(simulator.Options{Seed: []byte(simtest.Seed(simtest.Machine{ID: "wq4h8c"})), RandomSeed: 1})
	g.Expect(err).NotTo(HaveOccurred())
	c, ctx := newClient(t, maas.Config{Endpoint: simtest.Listen(t, s), APIKey: s.Key("alice")}), t.Context()
	mine := maas.Allocation{UID: "0d5e", ClusterUID: "77aa"}
	_, err = c.AllocateMachine(ctx, maas.AllocateRequest{Comment: mine.Comment("clusters-demo/workers-1"), AgentName: maas.AllocationKey(mine.UID)})
	g.Expect(err).NotTo(HaveOccurred())

	log, err := c.ListEvents(ctx, maas.EventFilter{SystemIDs: []string{"wq4h8c"}, Level: "DEBUG"})
	g.Expect(err).NotTo(HaveOccurred())
	var found []maas.Allocation
	for _, event := range log.Events {
		if allocation, ok := maas.AllocationOf(event.Description); ok {
			found = append(found, allocation)
		}
	}
	g.Expect(found).To(Equal([]maas.Allocation{mine}))
	held, err := c.ListMachines(ctx, maas.MachineFilter{AgentNames: []string{maas.AllocationKey(mine.UID)}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(held).To(HaveLen(1))
	g.Expect(maas.AllocationKey("0d5f")).NotTo(Equal(maas.AllocationKey(mine.UID)))
	g.Expect(strings.TrimPrefix(maas.AllocationKey(mine.UID), maas.AllocationKeyPrefix)).To(Equal(mine.UID), "who lists by the prefix gets the UID")
}

func TestAllocationOf(t *testing.T) {
	for name, tc := range map[string]struct {
		description string
		want        maas.Allocation
		ok          bool
	}{
		"When MAAS puts the user name before the comment, it should find the allocation": {
			"(alice) - for MaasMachine ns/m-1 (uid u-1, cluster c-1)", maas.Allocation{UID: "u-1", ClusterUID: "c-1"}, true},
		"When the cluster UID is empty, it should find the machine UID": {
			"(alice) - for MaasMachine ns/m-1 (uid u-1, cluster )", maas.Allocation{UID: "u-1"}, true},
		"When the UID is empty, it should find no allocation": {"for MaasMachine ns/m-1 (uid , cluster c-1)", maas.Allocation{}, false},
		"When a user wrote the comment, it should find no allocation": {
			"(bob) - for MaasMachine upgrades (see the wiki)", maas.Allocation{}, false},
		"When the text is truncated, it should find no allocation": {"for MaasMachine ns/m-1 (uid u-1, cluster c-", maas.Allocation{}, false},
		"When the name has a space, it should find no allocation": {
			"for MaasMachine a b (uid u-1, cluster c-1)", maas.Allocation{}, false},
		"When the text is empty, it should find no allocation": {"", maas.Allocation{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := maas.AllocationOf(tc.description)
			if diff := cmp.Diff(tc.want, got); diff != "" || ok != tc.ok {
				t.Fatalf("ok %v, -want +got:\n%s", ok, diff)
			}
		})
	}
}
