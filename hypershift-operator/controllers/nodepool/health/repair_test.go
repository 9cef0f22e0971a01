// SPDX-License-Identifier: Apache-2.0

package health

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope/scopetest"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/condition"
)

func TestOfRepair(t *testing.T) {
	const unready = 16 * time.Minute
	is := func(conditionType string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
		c := condition.True(conditionType, reason, message)
		c.Status, c.LastTransitionTime = status, metav1.NewTime(scopetest.New().Now.Add(-time.Hour))
		return c
	}
	ready := func(status metav1.ConditionStatus, reason string) metav1.Condition {
		return is(clusterv1.MachineNodeReadyCondition, status, reason, "")
	}
	type outcome struct {
		healthy, starting, gone, hostLost, withoutNetwork, due bool
		cause                                                  string
	}
	for name, test := range map[string]struct {
		change func(*clusterv1.Machine, *infrav1.MaasMachine)
		want   outcome
	}{
		"a Ready Node": {func(m *clusterv1.Machine, _ *infrav1.MaasMachine) {
			m.Status.Conditions = []metav1.Condition{ready("True", "NodeReady")}
		}, outcome{healthy: true}},
		"a Node that is not Ready": {func(m *clusterv1.Machine, _ *infrav1.MaasMachine) {
			m.Status.Conditions = []metav1.Condition{ready("False", "NodeNotReady")}
		}, outcome{cause: "NodeNotReady", due: true}},
		"a Node that health checks skip": {func(m *clusterv1.Machine, _ *infrav1.MaasMachine) {
			scope.Annotate(m, clusterv1.MachineSkipRemediationAnnotation, "")
			m.Status.Conditions = []metav1.Condition{ready("False", "NodeNotReady")}
		}, outcome{cause: "NodeNotReady"}},
		"a Node that Cluster API does not reach": {func(m *clusterv1.Machine, _ *infrav1.MaasMachine) {
			m.Status.Conditions = []metav1.Condition{ready("Unknown", "ConnectionDown")}
		}, outcome{cause: "ConnectionDown"}},
		"a Node without a network": {func(m *clusterv1.Machine, _ *infrav1.MaasMachine) {
			m.Status.Conditions = []metav1.Condition{is(clusterv1.MachineNodeReadyCondition, "False", "NodeNotReady",
				"* Node.Ready: container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:cni plugin not initialized")}
		}, outcome{cause: "NodeNotReady", due: true, withoutNetwork: true}},
		"a Node on a lost host": {func(m *clusterv1.Machine, infra *infrav1.MaasMachine) {
			m.Status.Conditions = []metav1.Condition{ready("Unknown", "NodeReadyUnknown")}
			infra.Status.Conditions = []metav1.Condition{is("LXDHostSelected", "False", "HostUnavailable", "")}
		}, outcome{cause: "NodeReadyUnknown", due: true, hostLost: true}},
		"a Node whose machine is gone": {func(m *clusterv1.Machine, _ *infrav1.MaasMachine) {
			m.Status.Conditions = []metav1.Condition{ready("Unknown", "NodeReadyUnknown"), is(failedCondition, "True", "MachineNotFound", "")}
		}, outcome{cause: "MachineNotFound", due: true, gone: true}},
		"a machine that the provider reports as failed": {func(m *clusterv1.Machine, _ *infrav1.MaasMachine) {
			m.Status.NodeRef.Name = ""
			m.Status.Conditions = []metav1.Condition{is(failedCondition, "True", "DeployAttemptsExhausted", "")}
		}, outcome{cause: "DeployAttemptsExhausted", due: true}},
		"a machine that an administrator wants to be replaced": {func(m *clusterv1.Machine, _ *infrav1.MaasMachine) {
			scope.Annotate(m, clusterv1.RemediateMachineAnnotation, "")
			m.Status.Conditions = []metav1.Condition{ready("True", "NodeReady")}
		}, outcome{cause: "HasRemediateAnnotation", due: true, gone: true}},
		"a machine that is being installed": {func(m *clusterv1.Machine, infra *infrav1.MaasMachine) {
			m.Status.NodeRef.Name = ""
			infra.Status.Conditions = []metav1.Condition{is("MachineAllocated", "True", "MachineAllocated", "")}
		}, outcome{starting: true}},
		"a machine that waits for capacity": {func(m *clusterv1.Machine, _ *infrav1.MaasMachine) { m.Status.NodeRef.Name = "" }, outcome{}},
		"a machine that is not a Node in time": {func(m *clusterv1.Machine, infra *infrav1.MaasMachine) {
			m.Status.NodeRef.Name, m.CreationTimestamp = "", metav1.NewTime(scopetest.New().Now.Add(-5*time.Hour))
			infra.Status.Conditions = []metav1.Condition{is("MachineAllocated", "True", "MachineAllocated", "")}
		}, outcome{cause: "NodeStartupTimeout", due: true}},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := NewWithT(t), scopetest.New()
			s.Platform, _ = fixture.Platforms(nil).For(hyperv1.MAASPlatform)
			m, infra := scopetest.Machine("a", "wanted"), &infrav1.MaasMachine{}
			m.CreationTimestamp, m.Status.NodeRef.Name = metav1.NewTime(s.Now.Add(-time.Hour)), "a"
			test.change(m, infra)
			s.Infra = map[string]client.Object{m.Spec.InfrastructureRef.Name: infra}
			got := Check{Scope: s}.ofRepair(m, unready)
			g.Expect(outcome{got.Healthy, got.Starting, got.Gone, got.HostLost, got.WithoutNetwork, !got.Due.IsZero() && !s.Now.Before(got.Due), got.Cause}).To(Equal(test.want))
		})
	}
}
