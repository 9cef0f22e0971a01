// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope/scopetest"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/testenv"
)

// TestReport checks the status and the events of a reconcile.
func TestReport(t *testing.T) {
	gone := apierrors.NewNotFound(schema.GroupResource{}, fixture.PoolName)
	for name, tc := range map[string]struct {
		failure, answer error
		err             error
		succeeded       corev1.ConditionStatus
		told            []string
	}{
		"When a reconcile succeeds, it should write its conditions, emit events, and clear the failure": {
			told: []string{"Normal AsExpected Ready is True: 2 of 2"}},
		"When a reconcile fails, it should report the failure and emit a warning": {
			failure: errors.New("no etcd leader"), succeeded: "False",
			told: []string{"Normal AsExpected Ready is True: 2 of 2", "Warning ReconciliationError ReconciliationSucceeded is False: no etcd leader"}},
		"When the status cannot be written, it should return an error and emit no event": {answer: testenv.ErrRefused, err: testenv.ErrRefused},
		"When the pool is gone, it should succeed": {
			answer: gone, told: []string{"Normal AsExpected Ready is True: 2 of 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := inMemory(t), scopeWith(condition.True("Ready", "AsExpected", "2 of 2"))
			s.Pool.Status.Conditions = []hyperv1.NodePoolCondition{
				{Type: "ReconciliationSucceeded", Status: "False", Reason: "Earlier", LastTransitionTime: metav1.NewTime(s.Now.Add(-time.Hour))}}
			fixture.Create(t, w.client, s.Pool)
			recorder := events.NewFakeRecorder(10)
			w.Recorder = recorder
			if tc.answer != nil {
				w.Reconciler.Client = scopetest.Answering(w.client, "patch status .*NodePool .*", tc.answer)
			}
			err := w.report(t.Context(), s, tc.failure)
			if tc.err != nil {
				w.Expect(err).To(MatchError(tc.err))
			} else {
				w.Expect(err).NotTo(HaveOccurred())
			}
			var told []string
			for len(recorder.Events) > 0 {
				told = append(told, <-recorder.Events)
			}
			w.Expect(told).To(ConsistOf(tc.told))
			if tc.answer != nil {
				return
			}
			w.Expect(w.condition("Ready").Status).To(Equal(corev1.ConditionTrue))
			succeeded := scope.Find(w.pool().Status.Conditions, "ReconciliationSucceeded")
			w.Expect(succeeded == nil).To(Equal(tc.succeeded == ""))
			if succeeded != nil {
				w.Expect(succeeded.Status).To(Equal(tc.succeeded))
				w.Expect(succeeded.Severity).To(Equal("Warning"))
			}
		})
	}
}

// TestComputeStatus checks that fields that a reconcile did not determine stay unchanged.
func TestComputeStatus(t *testing.T) {
	before := hyperv1.NodePoolStatus{
		Replicas: 3, Version: "1.36.2", Platform: &hyperv1.NodePoolPlatformStatus{}, Selector: "a=b",
		NodesInfo: &hyperv1.NodePoolNodesInfo{}, OSImageStream: &hyperv1.OSImageStreamReference{Name: "rhel-9"},
	}
	found := &hyperv1.NodePoolPlatformStatus{KubeVirt: &hyperv1.KubeVirtNodePoolStatus{CacheName: "cache"}}
	node := scopetest.Machine("a", "wanted", scopetest.Joined)
	node.Spec.Version = ""
	node.Status.NodeInfo = &corev1.NodeSystemInfo{KubeletVersion: "v1.36.3", OSImage: "Red Hat Enterprise Linux CoreOS 10.1.20260101-0"}
	for name, tc := range map[string]struct {
		know func(*reconciliation)
		want func(*hyperv1.NodePoolStatus)
	}{
		"When nothing was determined, it should keep all fields":                          {func(*reconciliation) {}, func(*hyperv1.NodePoolStatus) {}},
		"When no machine is available, it should report zero replicas":                    {func(s *reconciliation) { s.replicas = ptr.To[int32](0) }, func(n *hyperv1.NodePoolStatus) { n.Replicas = 0 }},
		"When all machines have a version, it should report that version":                 {func(s *reconciliation) { s.version = "1.36.3" }, func(n *hyperv1.NodePoolStatus) { n.Version = "1.36.3" }},
		"When the platform status is known, it should report it":                          {func(s *reconciliation) { s.Kept = &platform.Kept{Status: found} }, func(n *hyperv1.NodePoolStatus) { n.Platform = found }},
		"When the platform caches no image any more, it should clear the platform status": {func(s *reconciliation) { s.Kept = &platform.Kept{} }, func(n *hyperv1.NodePoolStatus) { n.Platform = nil }},
		"When the HostedCluster exists, it should report the nodes and their version": {func(s *reconciliation) {
			s.HC, s.Machines, s.version = fixture.HostedCluster("clusters"), []*clusterv1.Machine{node}, "1.36.3"
		}, func(n *hyperv1.NodePoolStatus) {
			n.Version, n.Selector = "1.36.3", "hypershift.openshift.io/nodePool=demo"
			n.OSImageStream = &hyperv1.OSImageStreamReference{Name: "rhel-10"}
			n.NodesInfo = &hyperv1.NodePoolNodesInfo{NodeVersions: []hyperv1.NodeVersion{
				{OCPVersion: "1.36.3", KubeletVersion: "v1.36.3", ReadyNodeCount: ptr.To[int32](0), UnreadyNodeCount: ptr.To[int32](1)}}}
		}},
		"When the pool has no machines, it should clear the node details": {func(s *reconciliation) { s.HC = fixture.HostedCluster("clusters") },
			func(n *hyperv1.NodePoolStatus) {
				n.Selector, n.OSImageStream, n.NodesInfo = "hypershift.openshift.io/nodePool=demo", nil, nil
			}},
	} {
		t.Run(name, func(t *testing.T) {
			s, want := scopeWith(), before.DeepCopy()
			s.Pool.Status = *before.DeepCopy()
			tc.know(s)
			tc.want(want)
			want.Conditions = []hyperv1.NodePoolCondition{}
			if diff := cmp.Diff(*want, computeStatus(s)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestMergedConditions checks that existing conditions keep their order, and that new ones follow, sorted by type.
func TestMergedConditions(t *testing.T) {
	earlier := metav1.NewTime(time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC))
	last := []hyperv1.NodePoolCondition{
		{Type: "Z", Status: "False", Reason: "NoCapacity", Message: "none fits", LastTransitionTime: earlier, ObservedGeneration: 4, Severity: "Info"},
		{Type: "Gone", Status: "True", Reason: "R"},
		{Type: "M", Status: "True", Reason: "R", Message: "as ever", LastTransitionTime: earlier, ObservedGeneration: 4},
		{Type: "Again", Status: "True", Reason: "R", LastTransitionTime: earlier},
	}
	s := scopeWith()
	s.Pool.Generation = 7
	for _, conditionType := range []string{"Gone", "Again"} {
		s.Clear(conditionType)
	}
	for _, conditionType := range []string{"Y", "X", "W", "V", "M", "Again"} {
		s.SetCondition(condition.True(conditionType, "AsExpected", "of "+conditionType))
	}
	s.SetCondition(condition.False("U", "MachineDeploying", "takes its time"))
	s.SetCondition(condition.False("T", "Broken", "trouble"))
	now := metav1.NewTime(s.Now)
	of := func(conditionType string, since metav1.Time) hyperv1.NodePoolCondition {
		return hyperv1.NodePoolCondition{Type: conditionType, Status: "True", Reason: "AsExpected", Message: "of " + conditionType,
			LastTransitionTime: since, ObservedGeneration: 7}
	}
	want := []hyperv1.NodePoolCondition{
		{Type: "Z", Status: "False", Reason: "NoCapacity", Message: "none fits", LastTransitionTime: earlier, ObservedGeneration: 4, Severity: "Warning"},
		of("M", earlier), of("Again", earlier),
		{Type: "T", Status: "False", Reason: "Broken", Message: "trouble", LastTransitionTime: now, ObservedGeneration: 7, Severity: "Warning"},
		{Type: "U", Status: "False", Reason: "MachineDeploying", Message: "takes its time", LastTransitionTime: now, ObservedGeneration: 7},
		of("V", now), of("W", now), of("X", now), of("Y", now),
	}
	if diff := cmp.Diff(want, merged(last, s)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestSeverityOf checks which conditions get the severity Warning.
func TestSeverityOf(t *testing.T) {
	none := newReconciliation(&hyperv1.NodePool{})
	withMAAS := scopeWith()
	for name, tc := range map[string]struct {
		scope      *reconciliation
		conditions []metav1.Condition
		want       string
	}{
		"When a condition is only waiting, it should not warn": {none, reasons("NotFound", "IgnitionEndpointMissing", "IgnitionCACertMissing", "ignitionNotReached",
			"KubeconfigMissing", "Deleting", "NotReady", "ReadyUnknown", "InspectionFailed", "NodeDoesNotExist", "WaitingForCapacity", "Waiting", "Deleting,NotReady"), ""},
		"When the platform is only waiting, it should not warn":                           {withMAAS, reasons("MachineDeploying", "Allocating", "NotFound"), ""},
		"When the platform is unknown, it should warn for the platform's waiting reasons": {none, reasons("MachineDeploying"), "Warning"},
		"When a reason is not a waiting reason, it should warn":                           {withMAAS, reasons("NoCapacity", "", "Awaiting", "NotReady,NoCapacity", "NoCapacity,NotReady"), "Warning"},
		"When a condition may be false in normal operation, it should not warn": {withMAAS, []metav1.Condition{
			condition.False("AutoscalingEnabled", "Any", ""), condition.False("AutorepairEnabled", "Any", ""), condition.False("UpdatingConfig", "Any", ""),
			condition.False("UpdatingVersion", "Any", ""), condition.False("UpdatingPlatformMachineTemplate", "Any", "")}, ""},
		"When an in-place update fails, it should warn":     {withMAAS, []metav1.Condition{condition.False("UpdatingConfig", "InplaceUpgradeFailed", "")}, "Warning"},
		"When a condition is not false, it should not warn": {withMAAS, []metav1.Condition{condition.True("Ready", "NoCapacity", ""), condition.Unknown("Ready", "NoCapacity", "")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range tc.conditions {
				NewWithT(t).Expect(severity(c, tc.scope.underway())).To(Equal(tc.want), "%s %s", c.Type, c.Reason)
			}
		})
	}
}

// reasons returns one false condition for each reason.
func reasons(all ...string) (conditions []metav1.Condition) {
	for _, reason := range all {
		conditions = append(conditions, condition.False("Ready", reason, ""))
	}
	return conditions
}

// told is one call of a recorder.
type told struct {
	Regarding, Related   runtime.Object
	Kind, Reason, Action string
	Note                 string
	Args                 []any
}

type recording []told

func (r *recording) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	*r = append(*r, told{regarding, related, kind, reason, action, note, args})
}

// TestAnnounced checks that an event is emitted only for changes.
func TestAnnounced(t *testing.T) {
	failing := hyperv1.NodePoolCondition{Type: "Ready", Status: "False", Reason: "NoCapacity", Message: strings.Repeat("m", 901), Severity: "Warning"}
	changed := func(change func(*hyperv1.NodePoolCondition)) hyperv1.NodePoolCondition {
		c := failing
		change(&c)
		return c
	}
	well := changed(func(c *hyperv1.NodePoolCondition) {
		c.Status, c.Reason, c.Message, c.Severity = "True", "AsExpected", "2 of 2", ""
	})
	wellOtherwise := well
	wellOtherwise.Reason = "Another"
	quiet := changed(func(c *hyperv1.NodePoolCondition) { c.Severity, c.Message = "", strings.Repeat("m", 900) })
	unnamed := changed(func(c *hyperv1.NodePoolCondition) { c.Reason = "" })
	for name, tc := range map[string]struct {
		before        []hyperv1.NodePoolCondition
		after         hyperv1.NodePoolCondition
		kind, reason  string
		messageLength int
	}{
		"When a new condition is true, it should emit a normal event":                           {nil, well, "Normal", "AsExpected", 6},
		"When a condition fails, it should emit a warning with a truncated message":             {[]hyperv1.NodePoolCondition{well}, failing, "Warning", "NoCapacity", 900},
		"When a condition is only waiting, it should emit a normal event with the full message": {[]hyperv1.NodePoolCondition{well}, quiet, "Normal", "NoCapacity", 900},
		"When a condition recovers, it should emit a normal event":                              {[]hyperv1.NodePoolCondition{failing}, well, "Normal", "AsExpected", 6},
		"When only the reason of a true condition changes, it should emit no event":             {before: []hyperv1.NodePoolCondition{well}, after: wellOtherwise},
		"When only another condition existed before, it should emit a normal event":             {[]hyperv1.NodePoolCondition{{Type: "Other", Status: "True"}}, well, "Normal", "AsExpected", 6},
		"When a condition has no reason, it should emit an event with the reason Unknown":       {nil, unnamed, "Warning", "Unknown", 900},
	} {
		t.Run(name, func(t *testing.T) {
			g, s, made := NewWithT(t), scopeWith(), recording{}
			s.Pool.Status.Conditions = []hyperv1.NodePoolCondition{tc.after}
			(&Reconciler{Recorder: &made}).announce(s, tc.before)
			if tc.kind == "" {
				g.Expect(made).To(BeEmpty())
				return
			}
			g.Expect(made).To(HaveLen(1))
			g.Expect(made[0].Regarding).To(BeIdenticalTo(s.Pool))
			g.Expect([]string{made[0].Kind, made[0].Reason, made[0].Action}).To(Equal([]string{tc.kind, tc.reason, "Ready"}))
			g.Expect(made[0].Args[:2]).To(Equal([]any{"Ready", tc.after.Status}))
			g.Expect(made[0].Args[2]).To(HaveLen(tc.messageLength))
		})
	}
	t.Run("When a reason has the maximum length of an event reason, it should not be truncated", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(eventReason(strings.Repeat("r", 128))).To(Equal(strings.Repeat("r", 128)))
		g.Expect(eventReason(strings.Repeat("r", 129))).To(HaveLen(128))
	})
}
