// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"sync"
	"testing"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/test/devcluster/lifecycle"
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

// fleet holds hosted clusters in the states in which an upgrade of the operator may find them. The command of 0.1.0
// encrypts the Secrets of each of them.
type fleet struct {
	// steady has one replica and pools of all kinds: replaced, updated in place, autoscaled and virtual.
	steady *suite
	// available is a highly available cluster that is written as for CAPMAAS. It has a certificate of the user, and
	// its pull secret rotates.
	available *suite
	// paused is a paused cluster of platform None.
	paused *suite
	// changing is in the middle of a change of release. Its failingPool has the machines of the second zone, in which
	// deployments fail.
	changing *suite
	// leaving is being deleted, and MAAS cannot release its machine.
	leaving *suite
	// healFailing and healLeaving end the faults of MAAS.
	healFailing, healLeaving func()
}

// running returns the clusters that must not notice the upgrade.
func (f *fleet) running() []*suite { return []*suite{f.steady, f.available, f.paused} }

// all returns all clusters.
func (f *fleet) all() []*suite {
	return append(f.running(), f.changing, f.leaving)
}

// newFleet creates the clusters with a release's own command and payloads. They are removed together with the
// environment.
func (s *suite) newFleet(t *testing.T, published lifecycle.Published) *fleet {
	t.Helper()
	own := func(name string) *suite {
		one := s.withUser(t, scenario{name: name, admin: name == "steady"}, &sync.RWMutex{})
		one.Hypershift = published.Command
		return one
	}
	f := &fleet{steady: own("steady"), available: own("available"), paused: own("paused"), changing: own("changing"),
		leaving: own("leaving")}
	previous, err := s.PublishPrevious(t.Context(), published)
	s.must(t, err)
	// Two processors start one control plane after another in less time than all at once.
	f.available.createAsOfCAPMAAS(t, published.Payload)
	f.steady.createMetal(t, published.Payload)
	f.steady.createPools(t)
	f.paused.createNone(t, published.Payload)
	f.changing.createMetal(t, previous, "--zone", firstZone)
	f.leaving.createMetal(t, published.Payload)
	f.settle(t)
	f.disturb(t)
	return f
}

// createPools adds a pool of each kind to a cluster. The test scales the autoscaled pool, since no autoscaler runs.
func (s *suite) createPools(t *testing.T) {
	t.Helper()
	s.createPool(t, steadyPool, "--image", ignitionImage, "--node-upgrade-type", "InPlace", "--resource-pool", workers)
	s.must(t, s.CreateVirtualPool(t.Context(), s.cluster, virtualPool, 1))
	s.autoscaledPool(t, "--resource-pool", workers)
	s.ask(t, 1)
}

// settle waits for the nodes and control planes of all clusters, and starts workloads.
func (f *fleet) settle(t *testing.T) {
	t.Helper()
	f.paused.reach(t, "node of the user's machine ready", long, journey.All(
		f.paused.letIn(f.paused.cluster), f.paused.NodesReady(f.paused.cluster, 1)))
	f.steady.reach(t, "nodes of all pools ready", long, f.steady.NodesReady(f.steady.cluster, 4))
	for _, one := range []*suite{f.available, f.changing, f.leaving} {
		one.reach(t, "node ready", long, one.NodesReady(one.cluster, 1))
	}
	f.available.reach(t, "all replicas of the control plane available", long, f.available.complete)
	for _, one := range []*suite{f.steady, f.available} {
		one.must(t, one.RunWorkload(t.Context(), one.cluster))
	}
}

// disturb pauses a cluster, makes deployments of a pool fail, and begins a deletion that MAAS cannot complete.
func (f *fleet) disturb(t *testing.T) {
	t.Helper()
	f.paused.patch(t, `{"spec":{"pausedUntil":"true"}}`)
	_, f.healFailing = f.changing.fault(t, faults.Rule{Kind: faults.DeployFails, Machine: inSecondZone})
	f.changing.createPool(t, failingPool, "--image", ignitionImage, "--resource-pool", workers, "--zone", secondZone)
	f.changing.reach(t, "a deployment failed", long, f.changing.hasEvent("DeployFailed"))
	_, f.healLeaving = f.leaving.fault(t, faults.Rule{Kind: faults.Error, Operation: "machine.release"})
	f.leaving.must(t, f.leaving.Type(t.Context(), "kubectl", "delete", "hostedcluster", f.leaving.cluster,
		"-n", journey.Namespace, "--wait=false"))
	f.leaving.reach(t, "machines are being deleted", long, f.leaving.machinesLeave)
	f.paused.reach(t, "cluster is paused", soon, journey.ClusterCondition(f.paused.c, f.paused.cluster,
		string(hyperv1.ReconciliationActive), "False", hyperv1.ReconciliationPausedReason))
}
