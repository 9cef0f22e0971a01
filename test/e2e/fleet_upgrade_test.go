// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/test/devcluster/lifecycle"
	"github.com/openshift/hypershift/test/journey"
)

// TestFleetUpgrade upgrades the operator of the last release under clusters in many states. Users of clusters that run
// must not notice it. What was under way must continue and end.
func TestFleetUpgrade(t *testing.T) {
	s := start(t, "--nodes", "3")
	version := s.lastRelease(t)
	published, err := s.Publish(t.Context(), version)
	if errors.Is(err, lifecycle.ErrNotBuilt) {
		t.Skip(err)
	}
	s.must(t, err)
	s.Hypershift = published.Command
	s.must(t, s.InstallImage(t.Context(), published.Product))
	f := s.newFleet(t, published)
	for _, one := range []*suite{s, f.steady, f.available, f.paused, f.failing, f.leaving} {
		one.Hypershift = ""
	}
	f.upgrade(t, s)
	f.finish(t, published)
	s.wayBack(t, published)
}

// upgrade installs this build while it watches the clusters that run.
func (f *fleet) upgrade(t *testing.T, s *suite) {
	t.Helper()
	began, old := time.Now(), map[*suite]*controlPlane{}
	before, watchers := map[*suite]*look{}, map[*suite]*watcher{}
	for _, one := range f.running() {
		old[one], before[one] = one.controlPlane(t), one.look(t)
		watchers[one] = one.watch(t, before[one])
	}
	s.must(t, s.Install(t.Context(), s.standIns(t)...))
	s.reach(t, "the operator has taken over", soon, s.operatorRuns)
	s.reach(t, "control planes have this build's operators", 2*long, journey.All(
		f.steady.rolledOut(old[f.steady]), f.available.rolledOut(old[f.available])))
	f.paused.patch(t, `{"spec":{"pausedUntil":null}}`)
	f.paused.reach(t, "control plane has this build's operators", long, f.paused.rolledOut(old[f.paused]))
	for _, one := range f.running() {
		seen := watchers[one].stop()
		one.Say("%s", seen)
		old[one].printChanges(one.Out, one.controlPlane(t))
		one.unharmed(t, one == f.paused, before[one], seen)
		one.uncontested(t, began)
	}
	NewWithT(t).Expect(watchers[f.available].seen.failed).To(BeZero(), "a write to the highly available cluster failed")
	s.reach(t, "in-place pool without changes", soon, journey.All(
		journey.PoolCondition(s.c, steadyPool, hyperv1.NodePoolUpdatingConfigConditionType, "False"),
		journey.PoolCondition(s.c, steadyPool, hyperv1.NodePoolUpdatingVersionConditionType, "False")))
}

// unharmed checks what a user of a cluster noticed. The test itself changes the spec of a cluster that it resumes.
func (s *suite) unharmed(t *testing.T, resumed bool, before *look, seen watched) {
	t.Helper()
	const ownChange = "spec of the HostedCluster or the NodePool was changed"
	if resumed {
		seen.noticed.Delete(ownChange)
	}
	g := NewWithT(t)
	g.Expect(seen.looks).To(BeNumerically(">", 0))
	g.Expect(seen.noticed).To(BeEmpty(), "a user of cluster %s notices the change of the operator", s.cluster)
	s.reach(t, "conditions as good as before", soon, func(ctx context.Context) (bool, string, error) {
		now, err := s.lookOnce(ctx)
		if err != nil {
			return false, "", err
		}
		worse := before.worse(now)
		return len(worse) == 0, fmt.Sprint(worse), nil
	})
}

// finish ends the faults of MAAS, and waits for what was under way. It uses the release's own command with this build's
// operator.
func (f *fleet) finish(t *testing.T, published lifecycle.Published) {
	t.Helper()
	f.healLeaving()
	f.leaving.Hypershift, f.steady.Hypershift = published.Command, published.Command
	f.leaving.destroy(t)
	f.healFailing()
	// The provider gives up after some machines. The user then replaces the Machine.
	f.failing.scale(t, failingPool, 0)
	f.failing.reach(t, "machines released", long, func(ctx context.Context) (bool, string, error) {
		held, err := f.failing.allocated(ctx)
		return len(held) == 0, fmt.Sprintf("%d machines are allocated", len(held)), err
	})
	f.failing.scale(t, failingPool, 1)
	f.steady.must(t, f.steady.SaveKubeconfig(t.Context(), f.steady.cluster))
	f.steady.reach(t, "node of pool failing ready", long, f.steady.PoolNodesReady(f.steady.cluster, failingPool, 1))
}

// hasEvent checks that the cluster's machines have an event.
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
