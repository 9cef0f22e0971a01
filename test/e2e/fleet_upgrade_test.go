// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/test/devcluster/lifecycle"
	"github.com/openshift/hypershift/test/journey"
)

// TestFleetUpgrade checks that users of running clusters do not notice when the operator of the last release is
// upgraded. Operations that were in progress must continue and complete.
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
	s.Hypershift = ""
	for _, one := range f.all() {
		one.Hypershift = ""
	}
	f.steady.commands(t)
	release := f.changing.beginRelease(t, published.Payload)
	f.upgrade(t, s, release)
	upgraded := f.steady.generations(t)
	release.complete(t)
	f.finish(t, published)
	f.steady.noTurns(t, upgraded)
	s.wayBack(t, published)
}

// upgrade installs this build while it watches the clusters that run.
func (f *fleet) upgrade(t *testing.T, s *suite, release *rollout) {
	t.Helper()
	// Two processors do not answer several control planes in time that replace their pods together.
	flags := append(s.installFlags(t), "--max-control-plane-rollouts", "1")
	s.must(t, s.Install(t.Context(), append(flags, "--dry-run")...))
	began := time.Now()
	var watches []*fleetWatch
	for _, one := range f.running() {
		watches = append(watches, one.watchFleet(t))
	}
	// Print the observations of a failed test too.
	defer printFleet(s.Out, began, watches)
	steady, available, paused := watches[0].pods, watches[1].pods, watches[2].pods
	NewWithT(t).Expect(release.underWay()).To(BeTrue(), "the release changes when the operator does")
	s.must(t, s.Install(t.Context(), flags...))
	f.available.rotatePullSecret(t)
	s.reach(t, "the operator has taken over", soon, s.operatorRuns)
	s.reach(t, "control planes have this build's operators", 2*long, journey.All(
		f.steady.rolledOut(steady), f.available.rolledOut(available)))
	f.stillWaiting(t, paused)
	f.paused.patch(t, `{"spec":{"pausedUntil":null}}`)
	f.paused.reach(t, "control plane has this build's operators", long, f.paused.rolledOut(paused))
	for _, w := range watches {
		seen := w.stop(t.Context())
		w.of.unharmed(t, w.of == f.paused, w.before, seen)
		w.of.uncontested(t, began)
	}
	NewWithT(t).Expect(watches[1].seen.failed).To(BeZero(), "a write to the highly available cluster failed")
	f.available.reach(t, "the user's certificate served", soon, f.available.servesUserCertificate())
}

// stillWaiting checks that the paused cluster has its old control plane, and that the cluster whose machine MAAS does
// not release is not deleted.
func (f *fleet) stillWaiting(t *testing.T, paused *controlPlane) {
	t.Helper()
	g := NewWithT(t)
	now := f.paused.controlPlane(t)
	g.Expect(image(now)).To(Equal(image(paused)), "the control plane of a paused cluster was changed")
	g.Expect(now.uids()).To(Equal(paused.uids()), "pods of a paused cluster were replaced")
	g.Expect(f.leaving.allocations(t)).To(HaveLen(1))
	hc := &hyperv1.HostedCluster{}
	key := client.ObjectKey{Namespace: journey.Namespace, Name: f.leaving.cluster}
	f.leaving.must(t, f.leaving.c.Get(t.Context(), key, hc))
	g.Expect(hc.DeletionTimestamp).NotTo(BeNil())
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

// finish ends the faults of MAAS, and waits for operations that were in progress. It uses the release's own command
// with this build's operator.
func (f *fleet) finish(t *testing.T, published lifecycle.Published) {
	t.Helper()
	f.healLeaving()
	f.leaving.Hypershift, f.steady.Hypershift = published.Command, published.Command
	f.steady.commands(t)
	f.leaving.destroy(t)
	f.healFailing()
	// The provider stops retrying after several failed machines. The user then replaces the Machine.
	f.changing.scale(t, failingPool, 0)
	f.changing.reach(t, "failed machines released", long, func(ctx context.Context) (bool, string, error) {
		held, err := f.changing.allocated(ctx)
		return len(held) == 1, fmt.Sprintf("%d machines are allocated", len(held)), err
	})
	f.changing.scale(t, failingPool, 1)
	f.changing.reach(t, "node of pool failing ready", long,
		f.changing.PoolNodesReady(f.changing.cluster, failingPool, 1))
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
