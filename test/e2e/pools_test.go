// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/journey"
)

// constraints creates a pool with constraints that only one MAAS machine satisfies.
func (s *suite) constraints(t *testing.T) {
	g := NewWithT(t)
	s.createCluster(t, 0)
	s.must(t, s.Type(t.Context(), "hypershift", "create", "nodepool", "maas", "--name", "big", "--cluster-name", s.cluster,
		"--replicas", "1", "--erase", "None", "--min-cpu", "8", "--min-memory", "16384", "--tags", "gpu", "--zone", "az2",
		"--resource-pool", "accelerated"))
	s.must(t, s.FollowMachines(t.Context(), s.c, s.cluster, "big", 1))
	machines, err := journey.Machines(t.Context(), s.c, s.cluster, "big")
	g.Expect(err).NotTo(HaveOccurred())
	m, err := s.maas.GetMachine(t.Context(), *machines[0].Spec.SystemID)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.CPUCount).To(BeNumerically(">=", 8))
	g.Expect(m.MemoryMiB).To(BeNumerically(">=", 16384))
	g.Expect(m.TagNames).To(ContainElement("gpu"))
	g.Expect(m.Zone.Name).To(Equal("az2"))
	g.Expect(m.Pool.Name).To(Equal("accelerated"))
	s.reach(t, "node of the pool ready", long, s.NodesReady(s.cluster, 1))
	s.must(t, s.Type(t.Context(), "hypershift", "destroy", "nodepool", "--name", "big", "--cluster-name", s.cluster))
	s.reach(t, "node of the pool gone", soon, s.NodesReady(s.cluster, 0))
	s.destroy(t)
}

// scaling scales a pool from one machine to three and back. The workload moves to the remaining node.
func (s *suite) scaling(t *testing.T) {
	s.createCluster(t, 1)
	s.must(t, s.RunWorkload(t.Context(), s.cluster))
	s.scale(t, s.cluster, 3)
	s.must(t, s.FollowMachines(t.Context(), s.c, s.cluster, s.cluster, 3))
	s.reach(t, "three nodes ready", long, s.NodesReady(s.cluster, 3))
	s.scale(t, s.cluster, 1)
	s.reach(t, "one machine left", long, journey.MachinesDeployed(s.c, s.cluster, s.cluster, 1))
	s.reach(t, "one node left", soon, s.NodesReady(s.cluster, 1))
	guest, err := s.GuestClient(s.cluster)
	s.must(t, err)
	s.reach(t, "workload moved", soon, journey.DeploymentAvailable(guest, "default", "web", 2))
	s.reach(t, "one machine held", soon, func(ctx context.Context) (bool, string, error) {
		held, err := s.allocated(ctx)
		return len(held) == 1, fmt.Sprintf("%d machines", len(held)), err
	})
	s.destroy(t)
}
