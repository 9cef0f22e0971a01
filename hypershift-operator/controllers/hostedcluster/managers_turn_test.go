// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// operatorOf returns the image of the cluster's control-plane-operator.
func (s *world) operatorOf() string {
	s.t.Helper()
	deployment := &appsv1.Deployment{}
	s.get(deployment, controlPlaneOperatorName)
	return deployment.Spec.Template.Spec.Containers[0].Image
}

// rollOut reports each Deployment as Kubernetes does when its pods are replaced.
func (s *world) rollOut() {
	s.t.Helper()
	list := &appsv1.DeploymentList{}
	s.Expect(s.client.List(s.t.Context(), list, client.InNamespace(s.hosted()))).To(Succeed())
	s.Expect(list.Items).NotTo(BeEmpty())
	for i := range list.Items {
		d := &list.Items[i]
		replicas := *d.Spec.Replicas
		d.Status = appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas,
			AvailableReplicas: replicas, Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
			},
		}
		s.Expect(s.client.Status().Update(s.t.Context(), d)).To(Succeed())
	}
}

// TestControlPlanesTakeTurns upgrades the operator under two clusters, of which one may change at a time.
func TestControlPlanesTakeTurns(t *testing.T) {
	const version, before, after = "1.36.0", operatorImage, "registry.example/hypershift:2"
	c := fixture.Start(t)
	first, second := running(t, c, "turns-first", version), running(t, c, "turns-second", version)
	second.Reconciler, second.clock = first.Reconciler, first.clock
	first.Settings.ControlPlaneRollouts = 1
	first.limitTurns()

	first.Settings.OperatorImage = after
	first.mustPass()
	second.mustPass()
	first.Expect(first.operatorOf()).To(Equal(after))
	second.Expect(second.operatorOf()).To(Equal(before))
	second.Expect(second.condition(hyperv1.ReconciliationActive).Message).To(ContainSubstring(
		"the operator changes at most 1 control planes at the same time"))
	second.Expect(second.condition(hyperv1.HostedClusterProgressing).Status).To(Equal(metav1.ConditionFalse))

	third := newWorld(t, c, "turns-third")
	third.Reconciler, third.clock = first.Reconciler, first.clock
	third.start(func(hc *hyperv1.HostedCluster) { hc.Spec.Release.Image = tagged(version) })
	third.mustPass()
	third.Expect(third.operatorOf()).To(Equal(after), "a new control plane does not wait")

	first.mustPass()
	first.clock.Step(time.Minute)
	first.mustPass()
	second.mustPass()
	second.Expect(second.operatorOf()).To(Equal(before), "the components of the first cluster still change")

	first.rollOut()
	first.mustPass()
	first.clock.Step(time.Minute)
	_, err := first.pass()
	first.Expect(err).NotTo(HaveOccurred())
	second.mustPass()
	second.Expect(second.operatorOf()).To(Equal(after))
	second.Expect(second.condition(hyperv1.ReconciliationActive).Message).To(Equal("Reconciliation is active"))
}
