// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/journey"
	"github.com/openshift/hypershift/test/machine/gpt"
)

// create creates a cluster on bare metal, runs a workload in it and destroys it.
func (s *suite) create(t *testing.T) {
	s.Mark()
	s.createCluster(t, 2, "--image", ignitionImage)
	s.PrintMeasures(t.Context())
	machines, err := journey.Machines(t.Context(), s.c, s.cluster, s.cluster)
	s.must(t, err)
	for _, m := range machines {
		programs, err := os.ReadDir(s.Path("machines", *m.Spec.SystemID, "root/opt/hypershift/bin"))
		s.must(t, err)
		NewWithT(t).Expect(programs).To(HaveExactElements(HaveField("Name()", "node-agent")),
			"Ignition fetched the node agent, and no script beside it")
	}
	t.Run("infrastructure", s.infrastructure)
	t.Run("workload", func(t *testing.T) { s.must(t, s.RunWorkload(t.Context(), s.cluster)) })
	t.Run("tunnel", s.tunnel)
	t.Run("metrics", s.metrics)
	s.destroy(t)
}

// infrastructure waits until the guest's Infrastructure has platform None. It may be created after the nodes are Ready.
func (s *suite) infrastructure(t *testing.T) {
	s.reach(t, "Infrastructure", soon, func(ctx context.Context) (bool, string, error) {
		out, err := s.Read(ctx, s.Guest(s.cluster, "get", "infrastructure", "cluster",
			"-o", "jsonpath={.status.platform} {.status.platformStatus.type} {.status.controlPlaneTopology}")...)
		return out == "None None External", out, err
	})
}

// diskWipe checks that node-agent removes partition 5 of the system disk, and no other partition.
func (s *suite) diskWipe(t *testing.T) {
	s.createCluster(t, 1, "--image", ignitionImage, "--disk-wipe")
	machines, err := journey.Machines(t.Context(), s.c, s.cluster, s.cluster)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, m := range machines {
		s.reach(t, "partition 5 gone on "+*m.Status.Hostname, soon, journey.Quick(func() (bool, string, error) {
			numbers, err := s.partitions(*m.Spec.SystemID)
			return fmt.Sprint(numbers) == "[1 2 3 4]", fmt.Sprint(numbers), err
		}))
	}
	s.destroy(t)
}

// partitions lists the partitions on a machine's disk image.
func (s *suite) partitions(systemID string) ([]int, error) {
	disk, err := os.Open(filepath.Join(s.Path("machines", systemID), "sda.img"))
	if err != nil {
		return nil, err
	}
	defer disk.Close()
	table, err := gpt.Read(disk)
	if err != nil {
		return nil, err
	}
	var numbers []int
	for _, p := range table {
		numbers = append(numbers, p.Number)
	}
	return numbers, nil
}

// quiet waits until a minute passes without a write in the management cluster and in the hosted cluster.
func (s *suite) quiet(t *testing.T) {
	s.createCluster(t, 1)
	s.alone(func() {
		s.reach(t, "management cluster and hosted cluster at rest", long, journey.All(
			s.Quiet(s.Path("kubeconfig"), time.Minute), s.Quiet(s.Path(s.cluster+".kubeconfig"), time.Minute)))
	})
	s.destroy(t)
}
