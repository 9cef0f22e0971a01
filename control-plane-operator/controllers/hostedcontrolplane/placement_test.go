// SPDX-License-Identifier: Apache-2.0

package hostedcontrolplane

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
)

func TestWhyNoNode(t *testing.T) {
	for name, tc := range map[string]struct{ message, want string }{
		"When nodes lack memory and one runs the component already, it should name both rules": {
			"0/3 nodes are available: 1 node(s) didn't match pod anti-affinity rules, 2 Insufficient memory. preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod.",
			"no node fits (1 of 3 nodes: the node runs a pod that it must not share a host with (didn't match pod anti-affinity rules); 2 of 3 nodes: Insufficient memory)"},
		"When a taint contains commas, it should stay one rule": {
			"0/2 nodes are available: 2 node(s) had untolerated taint {a: b, c}. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
			"no node fits (2 of 2 nodes: a taint that spec.tolerations of the HostedCluster do not tolerate (had untolerated taint {a: b, c}))"},
		"When the topology spread fails, it should say what the replicas spread over": {
			"0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints.",
			"no node fits (1 of 1 nodes: replicas are spread over hosts, and this host already has its share (didn't match pod topology spread constraints))"},
		"When the volume is on another node, it should say so": {
			"0/1 nodes are available: 1 node(s) had volume node affinity conflict.",
			"no node fits (1 of 1 nodes: the pod's volume is on another node or in another zone (had volume node affinity conflict))"},
		"When nodes do not match and one is cordoned, it should name both causes": {
			"0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match Pod's node affinity/selector.",
			"no node fits (1 of 3 nodes: cordoned (were unschedulable); 2 of 3 nodes: " +
				"it does not match spec.nodeSelector of the HostedCluster, or is not set aside for it (didn't match Pod's node affinity/selector))"},
		"When the claim is unbound, it should return the scheduler's message": {
			"0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
			"no node: pod has unbound immediate PersistentVolumeClaims"},
		"When another scheduler writes the message, it should return that message": {"no room", "no node: no room"},
		"When that message is very long, it should truncate it":                    {strings.Repeat("no room ", 100), "no node: " + strings.Repeat("no room ", 37) + "n..."},
		"When the scheduler's reason is long, it should truncate it":               {"0/3 nodes are available: " + strings.Repeat("a plugin ", 100), "no node: " + strings.Repeat("a plugin ", 33) + "..."},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, whyNoNode(tc.message)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// anyOrder lists objects in no particular order, as a cache does.
var anyOrder = interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
	err := c.List(ctx, list, opts...)
	if pods, ok := list.(*corev1.PodList); ok {
		slices.Reverse(pods.Items)
	}
	return err
}}

// TestPodsScheduled checks the condition for a namespace with pods of several kinds.
func TestPodsScheduled(t *testing.T) {
	pod := func(name string, status corev1.ConditionStatus, reason string, since time.Duration) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: name}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: status, Reason: reason, Message: "0/1 nodes are available: 1 Insufficient cpu.", LastTransitionTime: metav1.NewTime(now.Add(-since)),
		}}}}
	}
	going := pod("etcd-9", corev1.ConditionFalse, corev1.PodReasonUnschedulable, time.Hour)
	going.DeletionTimestamp, going.Finalizers = &metav1.Time{Time: now}, []string{"example.com/held"}
	stuck := func(names ...string) []client.Object {
		var all []client.Object
		for _, name := range names {
			all = append(all, pod(name, corev1.ConditionFalse, corev1.PodReasonUnschedulable, time.Minute))
		}
		return all
	}
	const noPlace = "no node fits (1 of 1 nodes: Insufficient cpu)"
	before := []metav1.Condition{{Type: string(hyperv1.ControlPlanePodsScheduled), Status: metav1.ConditionFalse, Reason: "Unschedulable"}}
	for name, tc := range map[string]struct {
		pods   []client.Object
		before []metav1.Condition
		want   string
		young  bool
	}{
		"When all Pods have had a node from the start, it should report no condition": {
			pods: []client.Object{pod("etcd-0", corev1.ConditionTrue, "", time.Hour), going}, want: "none"},
		"When Pods wait for a node, it should name them with the rule": {
			pods: stuck("kube-scheduler-x", "kube-apiserver-x"),
			want: "False/Unschedulable: kube-apiserver-x: no node fits (1 of 1 nodes: Insufficient cpu). kube-scheduler-x: no node fits (1 of 1 nodes: Insufficient cpu)"},
		"When a Pod has waited for seconds only, it should not report it yet": {
			pods: []client.Object{pod("etcd-0", corev1.ConditionFalse, corev1.PodReasonUnschedulable, time.Second)}, want: "none", young: true},
		"When a Pod has waited for the full timeout, it should report it": {
			pods: []client.Object{pod("etcd-0", corev1.ConditionFalse, corev1.PodReasonUnschedulable, placing)}, want: "False/Unschedulable: etcd-0: " + noPlace},
		"When a Pod has found a node since, it should not report it": {
			pods: []client.Object{pod("etcd-0", corev1.ConditionTrue, corev1.PodReasonUnschedulable, time.Hour)}, want: "none"},
		"When the waiting Pods are at the limit, it should name all of them": {
			pods: stuck("a", "b", "c", "d", "e"), want: "False/Unschedulable: a: " + strings.Join([]string{noPlace, "b: " + noPlace, "c: " + noPlace, "d: " + noPlace, "e: " + noPlace}, ". ")},
		"When one Pod more than the limit waits, it should count the extra Pod": {
			pods: stuck("a", "b", "c", "d", "e", "f"), want: "False/Unschedulable: a: " + strings.Join([]string{noPlace, "b: " + noPlace, "c: " + noPlace, "d: " + noPlace, "e: " + noPlace, "and 1 more pods"}, ". ")},
		"When a Pod has a scheduling gate, it should not report it": {
			pods: []client.Object{pod("etcd-0", corev1.ConditionFalse, corev1.PodReasonSchedulingGated, time.Hour)}, want: "none"},
		"When waiting Pods have found nodes, it should set the condition to true": {before: before, want: "True/AsExpected: "},
		"When many Pods wait, it should name some and count the rest": {
			pods: stuck("a", "b", "c", "d", "e", "f", "g"), want: "False/Unschedulable: a: no node fits (1 of 1 nodes: Insufficient cpu). b: no node fits (1 of 1 nodes: Insufficient cpu). " +
				"c: no node fits (1 of 1 nodes: Insufficient cpu). d: no node fits (1 of 1 nodes: Insufficient cpu). e: no node fits (1 of 1 nodes: Insufficient cpu). and 2 more pods"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Reconciler{Client: fake.NewClientBuilder().WithScheme(fixture.Scheme()).WithObjects(tc.pods...).WithInterceptorFuncs(anyOrder).Build()}
			waiting, young, err := r.unplaced(t.Context(), fixture.Namespace, now)
			if err != nil {
				t.Fatal(err)
			}
			s, o := healthy()
			s.hcp.Status.Conditions, o.unplaced = tc.before, waiting
			got := "none"
			if c := meta.FindStatusCondition(status(s, o, now).Conditions, string(hyperv1.ControlPlanePodsScheduled)); c != nil {
				got = fmt.Sprintf("%s/%s: %s", c.Status, c.Reason, c.Message)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || young != tc.young {
				t.Errorf("young %t\n%s", young, diff)
			}
		})
	}
}
