// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/testenv"
)

// member returns a StatefulSet that mounts the Secret web-keys.
func member(managedBy string) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "etcd", Labels: map[string]string{managedByLabel: managedBy}}}
	set.Spec.Template.Labels = map[string]string{componentLabel: "etcd"}
	set.Spec.Template.Spec.Volumes = []corev1.Volume{mountsSecret("web-keys")}
	return set
}

func TestRenewedCertificates(t *testing.T) {
	t.Run("When an etcd member has old certificates, it should be outdated, and Refresh should update it", func(t *testing.T) {
		g, s := NewWithT(t), newScope(member(managedByValue), credentials("web-keys", map[string][]byte{"k": []byte("v")}))
		g.Expect(Outdated(t.Context(), s.Client, namespace, time.Now())).To(Equal([]string{"etcd"}))
		g.Expect(Refresh(t.Context(), s.Client, namespace)).To(Succeed())
		g.Expect(Outdated(t.Context(), s.Client, namespace, time.Now())).To(BeEmpty())
		version := get(t, s, "etcd", &appsv1.StatefulSet{}).ResourceVersion
		g.Expect(Refresh(t.Context(), s.Client, namespace)).To(Succeed())
		g.Expect(get(t, s, "etcd", &appsv1.StatefulSet{}).ResourceVersion).To(Equal(version), "what is fresh is not written")
	})
	t.Run("When a workload belongs to another operator or control plane, it should not be rolled", func(t *testing.T) {
		elsewhere := member(managedByValue)
		elsewhere.Namespace = "clusters-other"
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "etcd-0", Labels: map[string]string{componentLabel: "etcd"}}}
		g, s := NewWithT(t), newScope(member("hypershift-operator"), elsewhere, pod, credentials("web-keys", nil))
		g.Expect(Outdated(t.Context(), s.Client, namespace, time.Now())).To(BeEmpty())
		g.Expect(Refresh(t.Context(), s.Client, namespace)).To(Succeed())
		g.Expect(get(t, s, "etcd", &appsv1.StatefulSet{}).Spec.Template.Annotations).To(BeEmpty())
	})
	for number, name := range []string{"the Deployments", "the StatefulSets", "what a workload mounts", "the pods"} {
		t.Run("When "+name+" cannot be read, it should return an error and not report all as current", func(t *testing.T) {
			g, s := NewWithT(t), newScope(member(managedByValue), credentials("web-keys", nil))
			_, err := Outdated(t.Context(), (&outage{number: number}).through(s.Client), namespace, time.Now())
			g.Expect(err).To(MatchError(errAway))
			if name != "the pods" {
				g.Expect(Refresh(t.Context(), (&outage{number: number}).through(s.Client), namespace)).To(MatchError(errAway))
			}
		})
	}
	t.Run("When a workload cannot be updated, it should name the workload in the error", func(t *testing.T) {
		s := newScope(member(managedByValue), credentials("web-keys", nil))
		NewWithT(t).Expect(Refresh(t.Context(), (&outage{number: 3}).through(s.Client), namespace)).To(
			MatchError("updating the config hash of etcd: the API server is away"))
	})
	t.Run("When an object that a Pod mounts cannot be read, it should return an error", func(t *testing.T) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "etcd-0", Labels: map[string]string{componentLabel: "etcd"}}}
		pod.Spec.Volumes = []corev1.Volume{mountsSecret("web-keys")}
		s := newScope(member(managedByValue), pod, credentials("web-keys", nil))
		_, err := Outdated(t.Context(), (&outage{number: 4}).through(s.Client), namespace, time.Now())
		NewWithT(t).Expect(err).To(MatchError(errAway))
	})
	for name, tc := range map[string]struct {
		phase   corev1.PodPhase
		leaving time.Duration
		counts  bool
	}{
		"runs":                                  {corev1.PodRunning, 0, true},
		"has succeeded":                         {corev1.PodSucceeded, 0, false},
		"has failed":                            {corev1.PodFailed, 0, false},
		"has been terminating for five minutes": {corev1.PodRunning, 5 * time.Minute, true},
		"has been terminating for longer, on a dead host,": {corev1.PodRunning, 5*time.Minute + time.Second, false},
	} {
		t.Run("When a pod "+name+", it should count only while it may still serve", func(t *testing.T) {
			now := time.Now()
			pod := &corev1.Pod{Status: corev1.PodStatus{Phase: tc.phase}}
			if tc.leaving > 0 {
				pod.DeletionTimestamp = &metav1.Time{Time: now.Add(-tc.leaving)}
			}
			NewWithT(t).Expect(ended(pod, now)).To(Equal(!tc.counts))
		})
	}
}

const guestYAML = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: kube-system}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
`

// TestComponentsOfTheGuest checks that only objects that this product created are deleted in a guest cluster: users
// have all rights there.
func TestComponentsOfTheGuest(t *testing.T) {
	inGuest := func(files map[string]string) (*Component, *Scope) {
		s := newScope()
		s.Guest = &Guest{Client: newScope().Client}
		s.Guest.Live = s.Guest.Client
		return web(func(c *Component) { c.Guest, c.Manifests = true, manifests(files) }), s
	}
	unwanted := func(c *Component) { c.Enabled = func(context.Context, *Scope) (bool, error) { return false, nil } }
	live := func(t *testing.T, s *Scope) error {
		t.Helper()
		return s.Guest.Client.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "web"}, &appsv1.Deployment{})
	}
	t.Run("When a guest component is disabled, it should delete its guest objects and its ControlPlaneComponent", func(t *testing.T) {
		g := NewWithT(t)
		c, s := inGuest(map[string]string{"deployment.yaml": guestYAML})
		g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
		g.Expect(live(t, s)).To(Succeed())
		g.Expect(reported(t, s, c, "RolloutComplete")).To(Equal("True/AsExpected"), "a guest without nodes is complete")
		unwanted(c)
		g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
		g.Expect(client.IgnoreNotFound(live(t, s))).To(Succeed())
		g.Expect(live(t, s)).NotTo(Succeed())
	})
	t.Run("When a guest user has an object of that name, it should not delete it", func(t *testing.T) {
		g := NewWithT(t)
		c, s := inGuest(map[string]string{"deployment.yaml": guestYAML})
		own := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "web"}}
		g.Expect(s.Guest.Client.Create(t.Context(), own)).To(Succeed())
		unwanted(c)
		g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
		g.Expect(live(t, s)).To(Succeed())
	})
	t.Run("When the payload lacks an image of a guest component, it should name the image in the error", func(t *testing.T) {
		c, s := inGuest(map[string]string{"deployment.yaml": strings.Replace(guestYAML, "image: web", "image: lost", 1)})
		NewWithT(t).Expect(c.Reconcile(t.Context(), s)).To(MatchError(ContainSubstring("the release payload has no image for lost")))
	})
	t.Run("When objects that guest Pods mount cannot be read, it should not apply the workload", func(t *testing.T) {
		c, s := inGuest(map[string]string{"deployment.yaml": strings.Replace(deploymentYAML, "{name: web}", "{name: web, namespace: kube-system}", 1)})
		s.Guest.Client = (&outage{}).through(s.Guest.Client)
		g := NewWithT(t)
		g.Expect(c.Reconcile(t.Context(), s)).To(MatchError(errAway))
		g.Expect(live(t, s)).NotTo(Succeed())
	})
	t.Run("When guest nodes exist and guest Pods cannot be read, it should return an error", func(t *testing.T) {
		c, s := inGuest(map[string]string{"deployment.yaml": guestYAML})
		s.GuestNodes = []corev1.Node{*guestNode("a", corev1.ConditionTrue)}
		s.Guest.Live = (&outage{}).through(s.Guest.Client)
		NewWithT(t).Expect(c.Reconcile(t.Context(), s)).To(MatchError(errAway))
	})
}

// TestLeftAlone checks that an object that is already being deleted is not deleted again.
func TestLeftAlone(t *testing.T) {
	g, s := NewWithT(t), newScope()
	c := web(func(c *Component) { c.Manifests = manifests(map[string]string{"job.yaml": jobYAML}) })
	g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
	job := get(t, s, "web", &batchv1.Job{})
	job.Finalizers = []string{"foregroundDeletion"}
	g.Expect(s.Client.Update(t.Context(), job)).To(Succeed())
	deletes := 0
	s.Client = testenv.Intercept(s.Client.(client.WithWatch), func(r testenv.Request) error {
		if r.Verb == "delete" {
			deletes++
		}
		return r.Do()
	})
	for range 3 {
		g.Expect(c.remove(t.Context(), s)).To(Succeed())
	}
	g.Expect(deletes).To(Equal(2), "the Job and the report, once each")
	g.Expect(get(t, s, "web", &batchv1.Job{}).DeletionTimestamp).NotTo(BeNil())
}

func TestOfSeveral(t *testing.T) {
	g, s := NewWithT(t), newScope()
	g.Expect(OfSeveral(s)).To(BeFalse())
	highlyAvailable(s)
	g.Expect(OfSeveral(s)).To(BeTrue())
	c := web(func(c *Component) {
		c.Manifests = manifests(map[string]string{"deployment.yaml": deploymentYAML, "account.yaml": accountYAML})
		c.Adapters = map[string]Adapter{"account.yaml": Adapt(func(_ context.Context, _ *Scope, account *corev1.ServiceAccount) error {
			account.Labels = map[string]string{"adapted": "true"}
			return nil
		}).When(OfSeveral)}
	})
	g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
	g.Expect(get(t, s, "web", &corev1.ServiceAccount{}).Labels).To(HaveKey("adapted"))
	s.HCP.Spec.ControllerAvailabilityPolicy = "SingleReplica"
	g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
	g.Expect(gone(t, s, "web", &corev1.ServiceAccount{})).To(BeTrue())
}
