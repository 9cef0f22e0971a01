// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
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
	for _, one := range f.all() {
		one.Hypershift = ""
	}
	s.Hypershift = ""
	f.upgrade(t, s)
	f.finish(t, s)
	s.wayBack(t, published)
	for _, one := range f.running() {
		one.destroy(t)
	}
	s.must(t, s.Type(t.Context(), "hypershift", "destroy", "cluster", "none", "--name", f.none.cluster, "--namespace", journey.Namespace))
}

// upgrade installs this build while it watches the clusters that run.
func (f *fleet) upgrade(t *testing.T, s *suite) {
	t.Helper()
	began, old := time.Now(), map[*suite]string{}
	before, watchers := map[*suite]*look{}, map[*suite]*watcher{}
	for _, one := range f.running() {
		image, err := one.controlPlaneOperator(t.Context())
		s.must(t, err)
		old[one], before[one] = image, one.look(t)
		watchers[one] = one.watch(t, before[one])
	}
	s.must(t, s.Install(t.Context(), s.standIns(t)...))
	s.reach(t, "the operator has taken over", soon, s.operatorRuns)
	for _, one := range []*suite{f.steady, f.available} {
		one.reach(t, "control plane has this build's operators", long, one.rolledOut(old[one]))
	}
	s.must(t, s.Type(t.Context(), "kubectl", "patch", "hostedcluster", f.paused.cluster, "-n", journey.Namespace,
		"--type=merge", "-p", `{"spec":{"pausedUntil":null}}`))
	f.paused.reach(t, "control plane of the paused cluster has this build's operators", long, f.paused.rolledOut(old[f.paused]))
	for _, one := range f.running() {
		seen := watchers[one].stop()
		one.Say("%s", seen)
		one.unharmed(t, one == f.paused, before[one], seen)
		one.uncontested(t, began)
	}
	NewWithT(t).Expect(watchers[f.available].seen.failed).To(BeZero(), "a write to the highly available cluster failed")
	s.reach(t, "in-place pool without changes", soon, journey.All(
		journey.PoolCondition(s.c, steadyPool, hyperv1.NodePoolUpdatingConfigConditionType, "False"),
		journey.PoolCondition(s.c, steadyPool, hyperv1.NodePoolUpdatingVersionConditionType, "False")))
	s.reach(t, "control plane of cluster none available", soon, journey.ClusterAvailable(s.c, f.none.cluster))
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

// finish ends the faults of MAAS, and waits for what was under way.
func (f *fleet) finish(t *testing.T, s *suite) {
	t.Helper()
	f.healLeaving()
	hc := &hyperv1.HostedCluster{}
	hc.Namespace, hc.Name = journey.Namespace, f.leaving.cluster
	s.reach(t, "deletion of cluster leaving complete", long, journey.Gone(s.c, hc))
	f.leaving.nothingLeft(t)
	f.healFailing()
	// The provider gives up after some machines. The user then replaces the Machine.
	f.failing.scale(t, f.failing.cluster, 0)
	s.reach(t, "machines of cluster failing released", long, func(ctx context.Context) (bool, string, error) {
		held, err := f.failing.allocated(ctx)
		return len(held) == 0, fmt.Sprintf("%d machines are allocated", len(held)), err
	})
	f.failing.scale(t, f.failing.cluster, 1)
	s.reach(t, "node of cluster failing ready", long, f.failing.NodesReady(f.failing.cluster, 1))
	f.failing.destroy(t)
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

// controlPlaneOperator returns the image of the cluster's control-plane-operator.
func (s *suite) controlPlaneOperator(ctx context.Context) (string, error) {
	deployment := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: journey.HostedNamespace(s.cluster), Name: "control-plane-operator"}
	if err := s.c.Get(ctx, key, deployment); err != nil {
		return "", err
	}
	return deployment.Spec.Template.Spec.Containers[0].Image, nil
}

// rolledOut checks that the control plane has another operator than old, and that all of its pods are current.
func (s *suite) rolledOut(old string) journey.Check {
	return func(ctx context.Context) (bool, string, error) {
		image, err := s.controlPlaneOperator(ctx)
		if err != nil || image == old {
			return false, "the control-plane-operator is the old one", err
		}
		deployments, sets := &appsv1.DeploymentList{}, &appsv1.StatefulSetList{}
		namespace := client.InNamespace(journey.HostedNamespace(s.cluster))
		if err := errors.Join(s.c.List(ctx, deployments, namespace), s.c.List(ctx, sets, namespace)); err != nil {
			return false, "", err
		}
		for _, d := range deployments.Items {
			if d.Status.ObservedGeneration < d.Generation || d.Status.UpdatedReplicas != ptr.Deref(d.Spec.Replicas, 1) ||
				d.Status.Replicas != d.Status.AvailableReplicas {
				return false, "Deployment " + d.Name + " rolls out", nil
			}
		}
		for _, d := range sets.Items {
			if d.Status.ObservedGeneration < d.Generation || d.Status.UpdatedReplicas != ptr.Deref(d.Spec.Replicas, 1) ||
				d.Status.ReadyReplicas != d.Status.UpdatedReplicas {
				return false, "StatefulSet " + d.Name + " rolls out", nil
			}
		}
		return s.available(ctx)
	}
}

// available checks that the HostedCluster is available and does not progress.
func (s *suite) available(ctx context.Context) (bool, string, error) {
	return journey.All(journey.ClusterAvailable(s.c, s.cluster),
		journey.ClusterCondition(s.c, s.cluster, string(hyperv1.HostedClusterProgressing), string(corev1.ConditionFalse)))(ctx)
}
