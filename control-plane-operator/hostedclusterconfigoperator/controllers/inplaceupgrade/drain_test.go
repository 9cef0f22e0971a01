// SPDX-License-Identifier: Apache-2.0

package inplaceupgrade

import (
	"context"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

func ownedBy(kind string, controller bool) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "owner", Controller: ptr.To(controller)}}
	}
}

func labelled(value string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Labels = map[string]string{clusterv1.PodDrainLabel: value} }
}

func inPhase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Phase = phase }
}

func ending(pod *corev1.Pod) {
	pod.DeletionTimestamp, pod.Finalizers = &metav1.Time{Time: noon}, []string{"example.com/finalizer"}
}

func TestStays(t *testing.T) {
	for name, tc := range map[string]struct {
		edit  func(*corev1.Pod)
		stays bool
	}{
		"runs":                   {inPhase(corev1.PodRunning), false},
		"is Pending":             {inPhase(corev1.PodPending), false},
		"has an unknown state":   {inPhase(corev1.PodUnknown), false},
		"has succeeded":          {inPhase(corev1.PodSucceeded), true},
		"has failed":             {inPhase(corev1.PodFailed), true},
		"belongs to a DaemonSet": {ownedBy("DaemonSet", true), true},
		"has a DaemonSet as owner but not controller": {ownedBy("DaemonSet", false), false},
		"belongs to a ReplicaSet":                     {ownedBy("ReplicaSet", true), false},
		"is a static pod":                             {func(pod *corev1.Pod) { pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: ""} }, true},
		"has the drain label skip":                    {labelled("skip"), true},
		"has the drain label Skip":                    {labelled("Skip"), true},
		"has the drain label drain":                   {labelled("drain"), false},
	} {
		t.Run("When a pod "+name+" it should report whether it stays", func(t *testing.T) {
			NewWithT(t).Expect(stays(podOn("a", "app", tc.edit))).To(Equal(tc.stays))
		})
	}
}

// TestDrainAnswers covers the API server's answers to an eviction: a disruption budget, a pod that is gone already, or
// an unexpected error.
func TestDrainAnswers(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, tc := range map[string]struct {
		answer error
		pod    []func(*corev1.Pod)
		left   []leftover
		fails  bool
		asks   bool
	}{
		"accepts it":                               {nil, nil, []leftover{{pod: "default/app"}}, false, true},
		"finds no pod":                             {apierrors.NewNotFound(pods, "app"), nil, nil, false, true},
		"finds a new pod of that name":             {apierrors.NewConflict(pods, "app", errRefused), nil, []leftover{{pod: "default/app"}}, false, true},
		"blocks it by a budget":                    {apierrors.NewTooManyRequests("the budget web needs 2 healthy pods.", 10), nil, []leftover{{"default/app", "the budget web needs 2 healthy pods"}}, false, true},
		"forbids it":                               {apierrors.NewForbidden(pods, "app", errRefused), nil, []leftover{{"default/app", `pods "app" is forbidden: refused`}}, false, true},
		"does not answer":                          {errRefused, nil, nil, true, true},
		"is not asked, since the pod ends already": {errRefused, []func(*corev1.Pod){ending}, []leftover{{pod: "default/app"}}, false, false},
		"is not asked, since the pod will complete": {errRefused, []func(*corev1.Pod){labelled("Wait-Completed")},
			[]leftover{{"default/app", "its label " + clusterv1.PodDrainLabel + " asks to wait until it has completed"}}, false, false},
	} {
		t.Run("When the API server "+name+" it should return which pods are left", func(t *testing.T) {
			m, asked := newMember("a"), false
			b := newBench(t, []*member{m}, podOn("a", "app", tc.pod...))
			b.GuestLive = interceptor.NewClient(b.GuestLive.(client.WithWatch), interceptor.Funcs{
				SubResourceCreate: func(_ context.Context, _ client.Client, sub string, obj, content client.Object, _ ...client.SubResourceCreateOption) error {
					eviction := content.(*policyv1.Eviction)
					b.Expect(sub).To(Equal("eviction"))
					b.Expect(client.ObjectKeyFromObject(eviction)).To(Equal(client.ObjectKeyFromObject(obj)))
					b.Expect(eviction.DeleteOptions.Preconditions.UID).To(HaveValue(BeEquivalentTo("uid")), "never another pod of that name")
					asked = true
					return tc.answer
				},
			})
			left, err := b.drain(t.Context(), m)
			b.Expect(err != nil).To(Equal(tc.fails))
			b.Expect(left).To(Equal(tc.left))
			b.Expect(asked).To(Equal(tc.asks))
			if tc.fails {
				b.Expect(err).To(MatchError(ContainSubstring("evicting Pod default/app")))
			}
		})
	}
}

func TestDrainOfASilentNode(t *testing.T) {
	m := newMember("a", notReady)
	b := newBench(t, []*member{m}, podOn("a", "ends", ending), podOn("a", "runs", inPhase(corev1.PodRunning)))
	left, err := b.drain(t.Context(), m)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(left).To(Equal([]leftover{{pod: "default/runs"}}), "nobody says of a node that is not Ready that its pods have stopped")
}

// TestDrainOrder checks that pods that need an action of the user come first, and that the others follow by name.
func TestDrainOrder(t *testing.T) {
	m := newMember("a")
	b := newBench(t, []*member{m}, podOn("a", "a", ending), podOn("a", "c", labelled("wait-completed")), podOn("a", "d", ending), podOn("a", "b", labelled("wait-completed")))
	left, err := b.drain(t.Context(), m)
	b.Expect(err).NotTo(HaveOccurred())
	names := []string{}
	for _, l := range left {
		names = append(names, strings.TrimPrefix(l.pod, "default/"))
	}
	b.Expect(names).To(Equal([]string{"b", "c", "a", "d"}))
	b.Expect(describe(left)).To(HavePrefix(": 4 pods are left, Pod default/b: its label "))
	b.Expect(describe(left[2:3])).To(Equal(": waiting for Pod default/a"))
}

func TestDrainCannotList(t *testing.T) {
	m := newMember("a")
	b := newBench(t, []*member{m}, podOn("a", "app"))
	b.GuestLive = interceptor.NewClient(b.GuestLive.(client.WithWatch), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errRefused
		},
	})
	b.Expect(b.empty(t.Context(), newRollout(newSet()), m)).To(MatchError(ContainSubstring("listing the Pods of Node a: refused")))
	b.Expect(b.node("a").Annotations).NotTo(HaveKey(hyperv1.DesiredNodeConfigAnnotation))
	b.Expect(b.marked("a").step).To(BeEmpty(), "a node whose pods nobody knows is not asked")
}
