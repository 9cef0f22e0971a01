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
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/test/journey"
	"github.com/openshift/hypershift/test/machine/gpt"
)

// TestJourney is one walk: each part builds on the ones before it. With -short it takes the core parts only, as
// `make test` does; `make test-e2e` takes all.
func TestJourney(t *testing.T) {
	s := start(t)
	for _, part := range parts {
		if testing.Short() && !part.core {
			continue
		}
		ok := t.Run(part.name, func(t *testing.T) { part.run(s, t) })
		if !ok {
			t.Fatalf("stopping here: the next parts build on %q", part.name)
		}
	}
	s.Timeline.Print(s.Out)
}

// parts of the journey. Each core part leaves what the next core part needs, without the others between them.
var parts = []struct {
	name string
	core bool
	run  func(*suite, *testing.T)
}{
	{"When a cluster is created, it should get its nodes out of MAAS", true, (*suite).create},
	{"When the guest is looked at, its Infrastructure should say None", true, (*suite).infrastructure},
	{"When the disk wipe is on, it should remove partition 5 and no other", true, (*suite).diskWipe},
	{"When a workload runs, it should serve, log and exec", true, (*suite).workload},
	{"When the guest sends its API server into the management network, it should find walls", true, (*suite).walls},
	{"When nothing changes, nothing should be written", false, (*suite).quiet},
	{"When a pool has constraints, it should get a machine that satisfies them", false, (*suite).constraints},
	{"When a pool has a stock image of MAAS, cloud-init should make its machines nodes", false, (*suite).ubuntu},
	{"When workers are virtual machines, MAAS should compose them on hosts of different zones", true, (*suite).virtual},
	{"When something is wrong, a condition should say so soon", true, (*suite).mistakes},
	{
		"When an LXD host vanished, its machines should be on the other one, beside metal, and in the end deleted",
		true, (*suite).vanished,
	},
	{"When the release goes up by a minor, status should be true at every moment", true, (*suite).upgradeMinor},
	{
		"When a pool is updated in place, its machine should stay, and go back from what it cannot run",
		false, (*suite).inPlace,
	},
	{
		"When the cluster gets another address, nodes and clients should follow, and no write be lost",
		false, (*suite).goOver,
	},
	{"When images of the same version are given, their digests should tell them apart", false, (*suite).upgradeDigest},
	{
		"When a pool gets a configuration that cannot be used, no machine should be touched",
		false, (*suite).badConfiguration,
	},
	{"When a BMC is dead, another machine should take the place", true, (*suite).deadBMC},
	{"When the key of another user is given, no machine should be lost", true, (*suite).anotherUsersKey},
	{
		"When all that the management cluster had of a cluster is lost, a backup should bring it back, and its nodes and pods run on",
		false, (*suite).restore,
	},
	{"When a pool is scaled up and down, machines should come and go", false, (*suite).scaling},
	{
		"When a pool of no machine tells what the next one has, it should get one, and that go off again",
		false, (*suite).wake,
	},
	{"When a machine fails to deploy, another should take its place", false, (*suite).failedDeployment},
	{"When the provider is killed, no machine should leak", true, (*suite).providerKills},
	{"When MAAS is away for a minute, the pool should scale afterwards", false, (*suite).maasAway},
	{"When operators and the API server are killed, all should recover", true, (*suite).operatorKills},
	{"When the cluster is destroyed, nothing should be left", true, (*suite).destroy},
	{
		"When clusters are of other platforms, each should get a Ready node from its stand-in, and be deleted whole",
		false, (*suite).platforms,
	},
	{"When all of that was done, the operator should have lacked no right, and used each", true, (*suite).rights},
}

func (s *suite) create(t *testing.T) {
	s.must(t, s.Install(t.Context(), s.standIns(t)...))
	s.Mark()
	previous, err := s.PreviousReleaseImage(t.Context())
	s.must(t, err)
	s.must(t, s.CreateCluster(t.Context(), cluster, 2, "--image", ignitionImage, "--disk-wipe", "--release-image", previous))
	s.must(t, s.FollowCluster(t.Context(), cluster, 2))
	s.PrintMeasures(t.Context())
	machines, err := journey.Machines(t.Context(), s.c, cluster, cluster)
	s.must(t, err)
	for _, m := range machines {
		programs, err := os.ReadDir(s.Path("machines", *m.Spec.SystemID, "root/opt/hypershift/bin"))
		s.must(t, err)
		NewWithT(t).Expect(programs).To(HaveExactElements(HaveField("Name()", "node-agent")), "what Ignition fetched, and no script beside it")
	}
}

func (s *suite) infrastructure(t *testing.T) {
	// Nodes do not wait for it.
	s.reach(t, "Infrastructure", soon, func(ctx context.Context) (bool, string, error) {
		out, err := s.Read(ctx, s.Guest(cluster, "get", "infrastructure", "cluster",
			"-o", "jsonpath={.status.platform} {.status.platformStatus.type} {.status.controlPlaneTopology}")...)
		return out == "None None External", out, err
	})
}

func (s *suite) diskWipe(t *testing.T) {
	machines, err := journey.Machines(t.Context(), s.c, cluster, cluster)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, m := range machines {
		s.reach(t, "partition 5 gone on "+*m.Status.Hostname, soon, journey.Quick(func() (bool, string, error) {
			numbers, err := s.partitions(*m.Spec.SystemID)
			return fmt.Sprint(numbers) == "[1 2 3 4]", fmt.Sprint(numbers), err
		}))
	}
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

func (s *suite) workload(t *testing.T) { s.must(t, s.RunWorkload(t.Context(), cluster)) }

// quiet waits for a minute without a write, in the management cluster and in the hosted one.
func (s *suite) quiet(t *testing.T) {
	s.reach(t, "management cluster and hosted cluster at rest", long, journey.All(
		s.Quiet(s.Path("kubeconfig"), time.Minute), s.Quiet(s.Path(cluster+".kubeconfig"), time.Minute)))
}

func (s *suite) constraints(t *testing.T) {
	g := NewWithT(t)
	s.must(t, s.Type(t.Context(), "hypershift", "create", "nodepool", "maas", "--name", "big", "--cluster-name", cluster,
		"--replicas", "1", "--erase", "None", "--min-cpu", "8", "--min-memory", "16384", "--tags", "gpu", "--zone", "az2", "--resource-pool", "accelerated"))
	s.must(t, s.FollowMachines(t.Context(), s.c, cluster, "big", 1))
	machines, err := journey.Machines(t.Context(), s.c, cluster, "big")
	g.Expect(err).NotTo(HaveOccurred())
	m, err := s.maas.GetMachine(t.Context(), *machines[0].Spec.SystemID)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.CPUCount).To(BeNumerically(">=", 8))
	g.Expect(m.MemoryMiB).To(BeNumerically(">=", 16384))
	g.Expect(m.TagNames).To(ContainElement("gpu"))
	g.Expect(m.Zone.Name).To(Equal("az2"))
	g.Expect(m.Pool.Name).To(Equal("accelerated"))
	s.reach(t, "node of the pool ready", long, s.NodesReady(cluster, 3))
	s.must(t, s.Type(t.Context(), "hypershift", "destroy", "nodepool", "--name", "big", "--cluster-name", cluster))
	s.reach(t, "node of the pool gone", soon, s.NodesReady(cluster, 2))
}

func (s *suite) scaling(t *testing.T) {
	s.scale(t, cluster, 3)
	s.must(t, s.FollowMachines(t.Context(), s.c, cluster, cluster, 3))
	s.reach(t, "three nodes ready", long, s.NodesReady(cluster, 3))
	s.scale(t, cluster, 1)
	s.reach(t, "one machine left", long, journey.MachinesDeployed(s.c, cluster, cluster, 1))
	s.reach(t, "one node left", soon, s.NodesReady(cluster, 1))
	guest, err := s.GuestClient(cluster)
	s.must(t, err)
	s.reach(t, "workload moved", soon, journey.DeploymentAvailable(guest, "default", "web", 2))
	s.reach(t, "one machine held", soon, func(ctx context.Context) (bool, string, error) {
		held, err := s.allocated(ctx)
		return len(held) == 1, fmt.Sprintf("%d machines", len(held)), err
	})
}

func (s *suite) destroy(t *testing.T) {
	s.must(t, s.DestroyCluster(t.Context(), cluster))
	s.reach(t, "machines back in MAAS", soon, journey.MAASReady(s.maas))
	g := NewWithT(t)
	g.Expect(s.allocations(t)).To(BeEmpty())
	hosted := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: journey.HostedNamespace(cluster)}}
	g.Expect(apierrors.IsNotFound(s.c.Get(t.Context(), client.ObjectKeyFromObject(hosted), hosted))).To(BeTrue())
	for _, list := range []client.ObjectList{&hyperv1.HostedClusterList{}, &hyperv1.NodePoolList{}, &hyperv1.HostedControlPlaneList{}, &corev1.SecretList{}} {
		g.Expect(s.c.List(t.Context(), list, client.InNamespace(journey.Namespace))).To(Succeed())
		g.Expect(names(list)).To(BeEmpty(), "%T", list)
	}
	for _, kind := range []string{"clusterroles", "clusterrolebindings"} {
		out, err := s.Read(t.Context(), "kubectl", "get", kind, "-o", "name")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).NotTo(ContainSubstring(hosted.Name), "%s of the cluster are left", kind)
	}
}
