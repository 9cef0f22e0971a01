// SPDX-License-Identifier: Apache-2.0

package component

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

func TestOutdated(t *testing.T) {
	g := NewWithT(t)
	s := newScope()
	g.Expect(s.Client.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.HCP.Namespace, Name: "web-keys"}, Data: map[string][]byte{"a": []byte("b")},
	})).To(Succeed())
	web := web(func(*Component) {})
	g.Expect(web.Reconcile(t.Context(), s)).To(Succeed())
	template := get(t, s, "web", &appsv1.Deployment{}).Spec.Template
	pod := func(name string, change func(*corev1.Pod)) {
		p := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: template.Spec}
		p.Namespace, p.Name = s.HCP.Namespace, name
		change(p)
		g.Expect(s.Client.Create(t.Context(), p)).To(Succeed())
	}
	pod("fresh", func(*corev1.Pod) {})
	pod("ended", func(p *corev1.Pod) { p.Annotations, p.Status.Phase = nil, corev1.PodFailed })
	pod("of-another", func(p *corev1.Pod) {
		p.Annotations, p.Labels[hyperv1.ControlPlaneComponentLabel] = nil, "capi-provider"
	})
	outdated := func(now time.Time) []string {
		names, err := Outdated(t.Context(), s.Client, s.HCP.Namespace, now)
		g.Expect(err).NotTo(HaveOccurred())
		return names
	}
	g.Expect(outdated(time.Now())).To(BeEmpty())

	pod("leaving", func(p *corev1.Pod) { p.Annotations, p.Finalizers = nil, []string{"test/host"} })
	g.Expect(outdated(time.Now())).To(Equal([]string{"pod leaving"}))
	g.Expect(s.Client.Delete(t.Context(), get(t, s, "leaving", &corev1.Pod{}))).To(Succeed())
	g.Expect(outdated(time.Now())).To(Equal([]string{"pod leaving"}), "it may still serve")
	g.Expect(outdated(time.Now().Add(6*time.Minute))).To(BeEmpty(), "its host is dead")

	later := time.Now().Add(6 * time.Minute)
	keys := get(t, s, "web-keys", &corev1.Secret{})
	keys.Data["a"] = []byte("c")
	g.Expect(s.Client.Update(t.Context(), keys)).To(Succeed())
	g.Expect(outdated(later)).To(Equal([]string{"pod fresh", "web"}))
	g.Expect(Refresh(t.Context(), s.Client, s.HCP.Namespace)).To(Succeed())
	g.Expect(outdated(later)).To(Equal([]string{"pod fresh"}))
	refreshed := get(t, s, "web", &appsv1.Deployment{}).Spec.Template.Annotations
	g.Expect(web.Reconcile(t.Context(), s)).To(Succeed())
	g.Expect(get(t, s, "web", &appsv1.Deployment{}).Spec.Template.Annotations).To(Equal(refreshed), "what was refreshed is as the component has it")
}
