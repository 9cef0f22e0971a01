// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/test/journey"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
)

// steadyPool is the pool of cluster steady that is updated in place. failingPool is the pool of cluster changing whose
// machines fail.
const steadyPool, failingPool = "inplace", "failing"

// Zones of the simulated MAAS. inSecondZone matches the names of the machines in the second one.
const (
	firstZone, secondZone = "az1", "az2"
	inSecondZone          = "[bdfh]*"
)

// upgradePools has a cluster with pools of all kinds: replaced, updated in place, autoscaled and virtual. Another is in
// the middle of a change of release, and deployments fail on all machines of one of its pools.
func upgradePools(t *testing.T) {
	f := newFleet(t)
	steady, changing := f.own(t, "steady"), f.own(t, "changing")
	previous, err := f.PublishPrevious(t.Context(), f.published)
	f.must(t, err)
	steady.createMetal(t, f.published.Payload)
	steady.createPools(t)
	changing.createMetal(t, previous, "--zone", firstZone)
	steady.reach(t, "nodes of all pools ready", long, steady.NodesReady(steady.cluster, 4))
	changing.reach(t, "node ready", long, changing.NodesReady(changing.cluster, 1))
	steady.must(t, steady.RunWorkload(t.Context(), steady.cluster))
	repair := changing.breakPool(t)

	f.useThisBuild()
	steady.commands(t)
	release := changing.beginRelease(t, f.published.Payload)
	NewWithT(t).Expect(release.underWay()).To(BeTrue(), "the release changes when the operator does")
	f.upgrade(t, func(before map[*suite]*controlPlane) { steady.rollsOut(t, before[steady]) }, steady)
	upgraded := steady.generations(t)
	release.complete(t)
	steady.Hypershift = f.published.Command
	steady.commands(t)
	repair()
	changing.replaceFailed(t)
	steady.noTurns(t, upgraded)
	f.wayBack(t, f.published)
}

// upgradeControlPlanes has a highly available cluster that is written as for CAPMAAS, with a certificate of the user
// and a pull secret that rotates. The others are a paused cluster of platform None, and one that is being deleted while
// MAAS cannot release its machine.
func upgradeControlPlanes(t *testing.T) {
	f := newFleet(t, "--nodes", "3")
	available, paused, leaving := f.own(t, "available"), f.own(t, "paused"), f.own(t, "leaving")
	f.resumed = paused
	available.createAsOfCAPMAAS(t, f.published.Payload)
	paused.createNone(t, f.published.Payload)
	leaving.createMetal(t, f.published.Payload)
	for _, one := range []*suite{available, leaving} {
		one.reach(t, "node ready", long, one.NodesReady(one.cluster, 1))
	}
	paused.reach(t, "node of the user's machine ready", long, journey.All(
		paused.letIn(paused.cluster), paused.NodesReady(paused.cluster, 1)))
	available.reach(t, "all replicas of the control plane available", long, available.complete)
	available.must(t, available.RunWorkload(t.Context(), available.cluster))
	paused.pause(t)
	repair := leaving.leave(t)

	f.useThisBuild()
	saw := f.upgrade(t, func(before map[*suite]*controlPlane) {
		available.rotatePullSecret(t)
		available.rollsOut(t, before[available])
		paused.unchanged(t, before[paused])
		leaving.stillLeaving(t)
		paused.patch(t, `{"spec":{"pausedUntil":null}}`)
		paused.rollsOut(t, before[paused])
	}, available, paused)
	NewWithT(t).Expect(saw[available].failed).To(BeZero(), "a write to the highly available cluster failed")
	available.reach(t, "the user's certificate served", soon, available.servesUserCertificate())
	repair()
	leaving.Hypershift = f.published.Command
	leaving.destroy(t)
}

// createPools adds a pool of each kind to a cluster. The test scales the autoscaled pool, since no autoscaler runs.
func (s *suite) createPools(t *testing.T) {
	t.Helper()
	s.createPool(t, steadyPool, "--image", ignitionImage, "--node-upgrade-type", "InPlace", "--resource-pool", workers)
	s.must(t, s.CreateVirtualPool(t.Context(), s.cluster, virtualPool, 1))
	s.autoscaledPool(t, "--resource-pool", workers)
	s.ask(t, 1)
}

// breakPool creates failingPool, whose deployments fail until the returned function is called.
func (s *suite) breakPool(t *testing.T) (repair func()) {
	t.Helper()
	_, repair = s.fault(t, faults.Rule{Kind: faults.DeployFails, Machine: inSecondZone})
	s.createPool(t, failingPool, "--image", ignitionImage, "--resource-pool", workers, "--zone", secondZone)
	s.reach(t, "a deployment failed", long, s.hasEvent("DeployFailed"))
	return repair
}

// replaceFailed replaces the Machine of failingPool, as a user does when the provider has stopped retrying after
// several failed machines.
func (s *suite) replaceFailed(t *testing.T) {
	t.Helper()
	s.scale(t, failingPool, 0)
	s.reach(t, "failed machines released", long, func(ctx context.Context) (bool, string, error) {
		held, err := s.allocated(ctx)
		return len(held) == 1, fmt.Sprintf("%d machines are allocated", len(held)), err
	})
	s.scale(t, failingPool, 1)
	s.reach(t, "node of pool failing ready", long, s.PoolNodesReady(s.cluster, failingPool, 1))
}

func (s *suite) pause(t *testing.T) {
	t.Helper()
	s.patch(t, `{"spec":{"pausedUntil":"true"}}`)
	s.reach(t, "cluster is paused", soon, journey.ClusterCondition(s.c, s.cluster,
		string(hyperv1.ReconciliationActive), "False", hyperv1.ReconciliationPausedReason))
}

// leave begins a deletion that MAAS cannot complete until the returned function is called.
func (s *suite) leave(t *testing.T) (repair func()) {
	t.Helper()
	_, repair = s.fault(t, faults.Rule{Kind: faults.Error, Operation: "machine.release"})
	s.must(t, s.Type(t.Context(), "kubectl", "delete", "hostedcluster", s.cluster, "-n", journey.Namespace,
		"--wait=false"))
	s.reach(t, "machines are being deleted", long, s.machinesLeave)
	return repair
}

// unchanged checks that a paused cluster has its old control plane.
func (s *suite) unchanged(t *testing.T, before *controlPlane) {
	t.Helper()
	now := s.controlPlane(t)
	NewWithT(t).Expect(image(now)).To(Equal(image(before)), "the control plane of a paused cluster was changed")
	NewWithT(t).Expect(now.uids()).To(Equal(before.uids()), "pods of a paused cluster were replaced")
}

// stillLeaving checks that the cluster whose machine MAAS does not release is not deleted.
func (s *suite) stillLeaving(t *testing.T) {
	t.Helper()
	NewWithT(t).Expect(s.allocations(t)).To(HaveLen(1))
	hc := &hyperv1.HostedCluster{}
	s.must(t, s.c.Get(t.Context(), client.ObjectKey{Namespace: journey.Namespace, Name: s.cluster}, hc))
	NewWithT(t).Expect(hc.DeletionTimestamp).NotTo(BeNil())
}

// rollsOut waits until the control plane has this build's operators.
func (s *suite) rollsOut(t *testing.T, before *controlPlane) {
	t.Helper()
	s.reach(t, "control plane has this build's operators", 2*long, s.rolledOut(before))
}

// unharmed checks that a user of a cluster noticed nothing. If the test has resumed the cluster, a changed spec is
// expected.
func (s *suite) unharmed(t *testing.T, resumed bool, before *look, seen watched) {
	t.Helper()
	if resumed {
		seen.noticed.Delete(clusterChanged)
	}
	g := NewWithT(t)
	g.Expect(seen.looks).To(BeNumerically(">", 0))
	g.Expect(seen.noticed).To(BeEmpty(), "a user of cluster %s notices the change of the operator", s.cluster)
	s.reach(t, "conditions as good as before", 2*time.Minute, func(ctx context.Context) (bool, string, error) {
		now, err := s.lookOnce(ctx)
		if err != nil {
			return false, "", err
		}
		worse := before.worse(now)
		return len(worse) == 0, fmt.Sprint(worse), nil
	})
}

// commands runs the suite's hypershift command against an operator of a different version. It creates a pool without
// machines, removes it, dumps the cluster and gets its kubeconfig.
func (s *suite) commands(t *testing.T) {
	t.Helper()
	const empty = "empty"
	s.createPool(t, empty, "--replicas", "0", "--image", ignitionImage)
	s.removePool(t, empty)
	folder := t.TempDir()
	s.must(t, s.Type(t.Context(), "hypershift", "dump", "cluster", "--name", s.cluster, "--artifact-dir", folder))
	dumped, err := os.ReadDir(folder)
	s.must(t, err)
	NewWithT(t).Expect(dumped).NotTo(BeEmpty())
	s.must(t, s.SaveKubeconfig(t.Context(), s.cluster))
	s.reach(t, "nodes seen with the new kubeconfig", soon, func(ctx context.Context) (bool, string, error) {
		nodes, err := s.nodes(ctx)
		return err == nil && len(nodes.Items) > 0, "no nodes", err
	})
}

// hasEvent checks that the cluster's machines have an Event with this reason.
func (s *suite) hasEvent(reason string) journey.Check {
	return func(ctx context.Context) (bool, string, error) {
		found, err := s.events(ctx, reason)
		return found.Len() > 0, "no event " + reason, err
	}
}

// machinesLeave checks that all Machines of the cluster are being deleted.
func (s *suite) machinesLeave(ctx context.Context) (bool, string, error) {
	machines := &clusterv1.MachineList{}
	if err := s.c.List(ctx, machines, client.InNamespace(journey.HostedNamespace(s.cluster))); err != nil {
		return false, "", err
	}
	leaving := 0
	for i := range machines.Items {
		if !machines.Items[i].DeletionTimestamp.IsZero() {
			leaving++
		}
	}
	return leaving > 0 && leaving == len(machines.Items), fmt.Sprintf("%d of %d", leaving, len(machines.Items)), nil
}
