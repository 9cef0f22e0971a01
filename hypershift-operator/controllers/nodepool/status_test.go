// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/condition"
)

func scopeWith(conditions ...metav1.Condition) *reconciliation {
	s := newReconciliation(fixture.NodePool("clusters"))
	s.Now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	s.Platform, _ = fixture.Platforms(nil).For(hyperv1.MAASPlatform)
	for _, c := range conditions {
		s.SetCondition(c)
	}
	return s
}

func TestMergeConditions(t *testing.T) {
	earlier := metav1.NewTime(time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC))
	last := []hyperv1.NodePoolCondition{
		{Type: "Ready", Status: "True", Reason: "AsExpected", LastTransitionTime: earlier},
		{Type: "IgnitionEndpointAvailable", Status: "False", Reason: "X", LastTransitionTime: earlier},
	}
	t.Run("When a status does not change, it should keep its transition time", func(t *testing.T) {
		merged := merged(last, scopeWith(condition.True("Ready", "AsExpected", "still")))
		g := NewWithT(t)
		g.Expect(scope.Find(merged, "Ready").LastTransitionTime).To(Equal(earlier))
		g.Expect(scope.Find(merged, "Ready").Message).To(Equal("still"))
	})
	t.Run("When a status changes, it should take the time of the reconcile", func(t *testing.T) {
		s := scopeWith(condition.False("Ready", "NoCapacity", ""))
		NewWithT(t).Expect(scope.Find(merged(last, s), "Ready").LastTransitionTime.Time).To(Equal(s.Now))
	})
	t.Run("When a condition is cleared, it should be removed", func(t *testing.T) {
		s := scopeWith()
		s.Clear("IgnitionEndpointAvailable")
		NewWithT(t).Expect(scope.Find(merged(last, s), "IgnitionEndpointAvailable")).To(BeNil())
	})
	t.Run("When a condition is not set in this reconcile, it should be kept", func(t *testing.T) {
		NewWithT(t).Expect(scope.Find(merged(last, scopeWith()), "Ready")).NotTo(BeNil())
	})
	t.Run("When the same conditions are merged again, the result and its order should not change", func(t *testing.T) {
		s := scopeWith(condition.True("B", "R", ""), condition.True("A", "R", ""), condition.False("C", "R", ""))
		first := merged(nil, s)
		for range 10 {
			NewWithT(t).Expect(merged(nil, s)).To(Equal(first))
		}
		NewWithT(t).Expect(merged(first, s)).To(Equal(first))
	})
}

func TestSeverity(t *testing.T) {
	s := newReconciliation(&hyperv1.NodePool{})
	s.Platform, _ = fixture.Platforms(nil).For(hyperv1.MAASPlatform)
	for _, tc := range []struct {
		name      string
		condition metav1.Condition
		warning   bool
	}{
		{"When MAAS has no machine, it should warn", condition.False("AllMachinesReady", "NoCapacity", ""), true},
		{"When a machine is being installed, it should not warn", condition.False("AllMachinesReady", "MachineDeploying", ""), false},
		{"When one of several reasons is a failure, it should warn", condition.False("AllMachinesReady", "MachineDeploying,MAASUnreachable", ""), true},
		{"When all reasons are waiting reasons, it should not warn", condition.False("AllMachinesReady", "MachineDeploying,ReadyUnknown,WaitingForNode", ""), false},
		{"When a spec is invalid, it should warn", condition.False("ValidReleaseImage", "ValidationFailed", ""), true},
		{"When autoscaling is off, it should not warn", condition.False("AutoscalingEnabled", "AsExpected", ""), false},
		{"When the condition is true, it should not warn", condition.True("Ready", "AsExpected", ""), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect(severity(tc.condition, s.underway()) != "").To(Equal(tc.warning))
		})
	}
}

func TestAnnounce(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	r := &Reconciler{Recorder: recorder}
	announce := func(before, after []hyperv1.NodePoolCondition) []string {
		s := scopeWith()
		s.Pool.Status.Conditions = after
		r.announce(s, before)
		var made []string
		for len(recorder.Events) > 0 {
			made = append(made, <-recorder.Events)
		}
		return made
	}
	ready := hyperv1.NodePoolCondition{Type: "Ready", Status: "True", Reason: "AsExpected", Message: "2 of 2"}
	short := hyperv1.NodePoolCondition{Type: "Ready", Status: "False", Reason: "NoCapacity", Message: "none fits", Severity: "Warning"}
	t.Run("When a condition becomes false, it should warn once", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(announce([]hyperv1.NodePoolCondition{ready}, []hyperv1.NodePoolCondition{short})).To(ConsistOf(HavePrefix("Warning NoCapacity Ready is False: none fits")))
		again := short
		again.Message = "none of 8 fits"
		g.Expect(announce([]hyperv1.NodePoolCondition{short}, []hyperv1.NodePoolCondition{again})).To(BeEmpty())
	})
	t.Run("When the reason of a failure changes, it should emit an event", func(t *testing.T) {
		other := short
		other.Reason = "MAASUnreachable"
		NewWithT(t).Expect(announce([]hyperv1.NodePoolCondition{short}, []hyperv1.NodePoolCondition{other})).To(HaveLen(1))
	})
	t.Run("When many reasons are scopetest.Joined, the reason should still fit an event", func(t *testing.T) {
		long := short
		long.Reason = strings.Repeat("SomeReason,", 40)
		made := announce(nil, []hyperv1.NodePoolCondition{long})
		NewWithT(t).Expect(len(strings.Fields(made[0])[1])).To(BeNumerically("<=", 128))
	})
}

// actions records the actions of events.
type actions []string

func (a *actions) Eventf(_, _ runtime.Object, _, _, action, _ string, _ ...any) {
	*a = append(*a, action)
}

func TestAnnounceKeepsConditionsApart(t *testing.T) {
	s := scopeWith()
	s.Pool.Status.Conditions = []hyperv1.NodePoolCondition{
		{Type: "AutorepairEnabled", Status: "False", Reason: "AsExpected"}, {Type: "AllMachinesReady", Status: "True", Reason: "AsExpected", Message: "all"},
		{Type: "ValidReleaseImage", Status: "True", Reason: "AsExpected"},
	}
	var made actions
	(&Reconciler{Recorder: &made}).announce(s, nil)
	NewWithT(t).Expect(made).To(ConsistOf("AutorepairEnabled", "AllMachinesReady"), "the API shows events of one action and reason as one")
}

func machineWith(name string, conditions ...metav1.Condition) *clusterv1.Machine {
	return &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: name, Annotations: map[string]string{hyperv1.NodePoolAnnotation: "clusters/demo"}},
		Spec:       clusterv1.MachineSpec{InfrastructureRef: clusterv1.ContractVersionedObjectReference{Name: name}, Version: "1.36.3"},
		Status:     clusterv1.MachineStatus{Conditions: conditions},
	}
}

func TestMachineTrouble(t *testing.T) {
	ready := condition.True(clusterv1.MachineReadyCondition, "Ready", "")
	notReady := condition.False(clusterv1.MachineReadyCondition, "NotReady", "* InfrastructureReady: waiting")
	infra := func(reason string) client.Object {
		m := &infrav1.MaasMachine{}
		if reason != "" {
			m.Status.Conditions = []metav1.Condition{condition.False("Ready", reason, "in MAAS's words")}
		}
		return m
	}
	for _, tc := range []struct {
		name    string
		machine *clusterv1.Machine
		infra   client.Object
		want    string
	}{
		{"When the machine is ready, it should report nothing", machineWith("m", ready), infra("NoCapacity"), ""},
		{"When the provider reports a reason, it should repeat that reason", machineWith("m", notReady), infra("NoCapacity"), "NoCapacity"},
		{"When the provider reports no reason, it should report Cluster API's reason", machineWith("m", notReady), infra(""), "NotReady"},
		{"When the provider's machine does not exist, it should report Cluster API's reason", machineWith("m", notReady), nil, "NotReady"},
		{"When Cluster API has not set conditions yet, it should report that it is waiting", machineWith("m"), nil, "WaitingForMachine"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			reason, _ := scopeWith().machineTrouble(tc.machine, tc.infra)
			NewWithT(t).Expect(reason).To(Equal(tc.want))
		})
	}
}

func TestBuckets(t *testing.T) {
	t.Run("When there are no problems, the condition should be true", func(t *testing.T) {
		NewWithT(t).Expect(buckets{}.condition("AllMachinesReady").Status).To(Equal(metav1.ConditionTrue))
	})
	t.Run("When hundreds of machines report problems, the message should stay short", func(t *testing.T) {
		g, b := NewWithT(t), buckets{}
		for i := range 500 {
			for _, reason := range []string{"A", "B", "C", "D", "E"} {
				b.add(reason, strings.Repeat("m", i%7+1), strings.Repeat("word ", 10))
			}
		}
		c := b.condition("AllMachinesReady")
		g.Expect(len(c.Message)).To(BeNumerically("<=", maxMessage))
		g.Expect(c.Reason).To(Equal("A,B,C,D,E"))
	})
	t.Run("When machines come in another order, the message should be the same", func(t *testing.T) {
		one, other := buckets{}, buckets{}
		one.add("A", "m1", "x")
		one.add("A", "m2", "x")
		other.add("A", "m2", "x")
		other.add("A", "m1", "x")
		NewWithT(t).Expect(one.condition("T")).To(Equal(other.condition("T")))
	})
}

func TestNodesInfo(t *testing.T) {
	node := func(name, kubelet string, healthy bool) *clusterv1.Machine {
		m := machineWith(name, condition.False(clusterv1.MachineNodeHealthyCondition, "X", ""))
		if healthy {
			m.Status.Conditions[0].Status = metav1.ConditionTrue
		}
		m.Status.NodeRef = clusterv1.MachineNodeReference{Name: name}
		m.Status.NodeInfo = &corev1.NodeSystemInfo{KubeletVersion: kubelet}
		return m
	}
	t.Run("When nodes run several versions, it should count each version", func(t *testing.T) {
		info := nodesInfo([]*clusterv1.Machine{node("a", "v1.36.3", true), node("b", "v1.36.3", false), node("c", "v1.35.0", true), machineWith("none")}, "1.36.3")
		NewWithT(t).Expect(info.NodeVersions).To(Equal([]hyperv1.NodeVersion{
			{OCPVersion: "1.36.3", KubeletVersion: "v1.35.0", ReadyNodeCount: ptr.To[int32](1), UnreadyNodeCount: ptr.To[int32](0)},
			{OCPVersion: "1.36.3", KubeletVersion: "v1.36.3", ReadyNodeCount: ptr.To[int32](1), UnreadyNodeCount: ptr.To[int32](1)},
		}))
	})
	t.Run("When there are no nodes, it should return nothing", func(t *testing.T) {
		NewWithT(t).Expect(nodesInfo([]*clusterv1.Machine{machineWith("none")}, "1.36.3")).To(BeNil())
	})
}

func TestWithNodeLabels(t *testing.T) {
	t.Run("When a label is removed from the pool, it should remove it from the machine and keep others", func(t *testing.T) {
		got := withNodeLabels(map[string]string{"managed.hypershift.openshift.io.old": "1", "theirs": "1"}, map[string]string{"new": "1"})
		NewWithT(t).Expect(got).To(Equal(map[string]string{"managed.hypershift.openshift.io.new": "1", "theirs": "1"}))
	})
	const global = "hypershift.openshift.io/nodepool-globalps-enabled"
	for _, tc := range []struct {
		name     string
		platform hyperv1.PlatformType
		upgrade  hyperv1.UpgradeType
		want     map[string]string
	}{
		{"When AWS nodes are replaced, it should add the label that enables the guest's global pull secret", hyperv1.AWSPlatform, hyperv1.UpgradeTypeReplace, map[string]string{"rack": "1", global: "true"}},
		{"When nodes are updated in place, it should set only the pool's labels", hyperv1.AWSPlatform, hyperv1.UpgradeTypeInPlace, map[string]string{"rack": "1"}},
		{"When the platform has no labels of its own, it should set only the pool's labels", hyperv1.MAASPlatform, hyperv1.UpgradeTypeReplace, map[string]string{"rack": "1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pool := &hyperv1.NodePool{}
			pool.Spec.Platform.Type, pool.Spec.Management.UpgradeType = tc.platform, tc.upgrade
			pool.Spec.NodeLabels = map[string]string{"rack": "1"}
			NewWithT(t).Expect(newReconciliation(pool).carriedLabels()).To(Equal(tc.want))
		})
	}
}

// merged returns the conditions of a reconcile whose pool had other conditions before.
func merged(last []hyperv1.NodePoolCondition, s *reconciliation) []hyperv1.NodePoolCondition {
	s.Pool.Status.Conditions = last
	return poolConditions(s)
}
