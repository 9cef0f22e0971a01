// SPDX-License-Identifier: Apache-2.0

package component

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func guestNode(name string, ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}},
	}
}

func TestGuestHealth(t *testing.T) {
	up, down := corev1.ConditionTrue, corev1.ConditionUnknown
	labels := map[string]string{"app": "x"}
	set := func(wanted, updated, available int32) *appsv1.DaemonSet {
		return &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "x"},
			Spec:       appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}},
			Status:     appsv1.DaemonSetStatus{DesiredNumberScheduled: wanted, UpdatedNumberScheduled: updated, NumberAvailable: available},
		}
	}
	unseen := set(0, 0, 0)
	unseen.Generation = 2
	pending := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "x"},
		Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}},
	}
	crashing := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "x-1", Labels: labels}, Spec: corev1.PodSpec{NodeName: "a"},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Image: "i", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		}}},
	}
	for _, tc := range []struct {
		name           string
		workload       client.Object
		guest          []client.Object
		rollout        string
		messageHas     string
		availableState metav1.ConditionStatus
	}{
		{"there is no node", set(0, 0, 0), nil, "True/AsExpected", "", "True"},
		{"it was not checked yet", unseen, nil, "False/WaitingForRolloutComplete", "0 of 0", "True"},
		{"all nodes run its Pod", set(2, 2, 2), []client.Object{guestNode("a", up), guestNode("b", up)}, "True/AsExpected", "", "True"},
		{"a node does not run its Pod yet", set(2, 1, 2), []client.Object{guestNode("a", up), guestNode("b", up)},
			"False/WaitingForRolloutComplete", "1 of 2 nodes updated", "True"},
		{"the node without its Pod is not Ready", set(2, 1, 1), []client.Object{guestNode("a", up), guestNode("b", down)}, "True/AsExpected", "", "True"},
		{"one node is not Ready and another one is outdated", set(3, 1, 1), []client.Object{guestNode("a", up), guestNode("b", down), guestNode("c", up)},
			"False/WaitingForRolloutComplete", "not Ready: b", "True"},
		{"no Pod is available", set(1, 1, 0), []client.Object{guestNode("a", up)}, "False/WaitingForRolloutComplete", "0 available", "False"},
		{"a pod crashes", set(1, 1, 0), []client.Object{guestNode("a", up), crashing}, "False/PodsFailing", "pod x-1 on node a: CrashLoopBackOff", "False"},
		{"a Deployment has no Ready node to run on", pending, []client.Object{guestNode("a", down)}, "True/AsExpected", "", "True"},
		{"a Deployment has a Ready node but no Pod", pending, []client.Object{guestNode("a", up)}, "False/WaitingForRolloutComplete", "0 of 1", "False"},
	} {
		t.Run("When "+tc.name+", it should report that in the conditions", func(t *testing.T) {
			g := NewWithT(t)
			c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(tc.guest...).Build()
			guest := &Guest{Client: c, Live: c}
			nodes, err := guest.Nodes(t.Context())
			g.Expect(err).NotTo(HaveOccurred())
			h, err := guestHealth(t.Context(), guest, nodes, tc.workload)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(h.rolledOut.Status) + "/" + h.rolledOut.Reason).To(Equal(tc.rollout))
			g.Expect(h.rolledOut.Message).To(ContainSubstring(tc.messageHas))
			g.Expect(h.available.Status).To(Equal(tc.availableState))
		})
	}
}

func TestGuestWorkload(t *testing.T) {
	t.Run("When a mounted object of a guest component changes, it should roll the Pods and set only its guest label", func(t *testing.T) {
		g, s := NewWithT(t), newScope()
		s.Guest = &Guest{Client: s.Client, Live: s.Client}
		inGuest := func(text string) string {
			return strings.Replace(text, "metadata: {", "metadata: {namespace: kube-system, ", 1)
		}
		pods := func(config string) *appsv1.Deployment {
			c := web(func(c *Component) {
				c.Guest = true
				c.Manifests = manifests(map[string]string{"deployment.yaml": inGuest(deploymentYAML), "config.yaml": inGuest(config)})
			})
			g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
			live := &appsv1.Deployment{}
			g.Expect(s.Client.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "web"}, live)).To(Succeed())
			return live
		}
		before, same, after := pods(configYAML), pods(configYAML), pods(strings.Replace(configYAML, "a: b", "a: c", 1))
		g.Expect(same.ResourceVersion).To(Equal(before.ResourceVersion))
		g.Expect(after.Spec.Template.Annotations).NotTo(Equal(before.Spec.Template.Annotations))
		g.Expect(after.Labels).To(HaveKeyWithValue(GuestLabel, "true"))
		g.Expect(after.OwnerReferences).To(BeEmpty())
		g.Expect(after.Spec.Template.Spec.SecurityContext).To(BeNil())
	})
}
