// SPDX-License-Identifier: Apache-2.0

package hostedcontrolplane

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	routev1 "github.com/openshift/api/route/v1"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// TestPhases checks which phases a failure skips, and which ones run while a control plane is paused.
func TestPhases(t *testing.T) {
	type flags struct{ critical, whilePaused bool }
	got := map[int]flags{}
	for i, p := range (&Reconciler{}).phases(nil) {
		got[i] = flags{p.Critical, p.WhilePaused}
	}
	want := map[int]flags{0: {critical: true}, 1: {critical: true}, 2: {critical: true}, 3: {whilePaused: true}, 4: {critical: true}, 5: {}, 6: {}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(flags{})); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestPause(t *testing.T) {
	at := func(d time.Duration) *string { return ptr.To(now.Add(d).Format(time.RFC3339)) }
	for name, tc := range map[string]struct {
		until  *string
		ready  bool
		paused bool
		after  time.Duration
	}{
		"When pausedUntil is unset, it should reconcile":                                                          {},
		"When the pause has ended, it should reconcile":                                                           {until: at(-time.Second)},
		"When the control plane is paused indefinitely, it should requeue to check the certificates":              {until: ptr.To("true"), ready: true, paused: true, after: settledRequeue},
		"When the control plane is paused for an hour, it should requeue to check the certificates":               {until: at(time.Hour), ready: true, paused: true, after: settledRequeue},
		"When the control plane is paused for an hour and not ready, it should requeue at the wait interval":      {until: at(time.Hour), paused: true, after: waitRequeue},
		"When the pause ends before the next check, it should requeue at the end of the pause":                    {until: at(50 * time.Second), ready: true, paused: true, after: 50 * time.Second},
		"When the control plane is not ready and the pause ends first, it should requeue at the end of the pause": {until: at(5 * time.Second), paused: true, after: 5 * time.Second},
		"When the control plane is not ready and the pause ends later, it should requeue at the wait interval":    {until: at(50 * time.Second), paused: true, after: waitRequeue},
	} {
		t.Run(name, func(t *testing.T) {
			w := fakeWorld(t)
			s := w.begin()
			s.hcp.Spec.PausedUntil, s.hcp.Status.Ready = tc.until, tc.ready
			state, err := w.r.pause(t.Context(), s)
			g := NewWithT(t)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(s.paused).To(Equal(tc.paused))
			g.Expect(state.Paused).To(Equal(tc.paused))
			g.Expect(state.For).To(Equal(tc.after))
		})
	}
}

func TestReadRelease(t *testing.T) {
	const next, gone, other = "registry.example/release:1.36.4", "registry.example/release:gone", "registry.example/release:openshift"
	const unknown = "404 Not Found (manifest unknown)"
	for name, tc := range map[string]struct {
		controlPlane, guest string
		secret              string
		hosting, running    string
		err, says           string
	}{
		"When the cluster has one release, the control plane and the guest should run it": {guest: next, secret: "pull-secret",
			hosting: "1.36.4", running: "1.36.4"},
		"When the control plane has its own release, the guest should keep the cluster's release": {guest: "registry.example/release:1.36.3",
			controlPlane: next, secret: "pull-secret", hosting: "1.36.4", running: "1.36.3"},
		"When the release does not exist, it should return and report the error": {guest: gone, secret: "pull-secret",
			err: unknown, says: unknown},
		"When only the guest's release does not exist, it should return and report the error": {guest: gone, controlPlane: next,
			secret: "pull-secret", hosting: "1.36.4", err: unknown, says: unknown},
		"When the pull secret is missing, it should name it":                                   {guest: next, secret: "mine", err: "clusters-demo/mine", says: "clusters-demo/mine"},
		"When the release is of another distribution, it should name the annotation to remove": {guest: other, secret: "pull-secret", hosting: "4.20.0", running: "4.20.0", err: phase.ErrStop.Error(), says: "control-plane-operator-image"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := fakeWorld(t)
			s := w.begin()
			s.valid.Spec.ReleaseImage, s.valid.Spec.PullSecret.Name = tc.guest, tc.secret
			if tc.controlPlane != "" {
				s.valid.Spec.ControlPlaneReleaseImage = &tc.controlPlane
			}
			_, err := w.r.readRelease(t.Context(), s)
			if tc.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
				g.Expect(s.releaseErr).To(MatchError(ContainSubstring(tc.says)))
			} else {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(s.releaseErr).NotTo(HaveOccurred())
			}
			versions := []string{"", ""}
			for i, release := range []*releaseinfo.ReleaseImage{s.release, s.guestRelease} {
				if release != nil {
					versions[i] = release.Version()
				}
			}
			g.Expect(versions).To(Equal([]string{tc.hosting, tc.running}))
		})
	}
	t.Run("When it queries the registry, it should use the pull secret", func(t *testing.T) {
		w := fakeWorld(t)
		asked := asking{}
		w.r.Releases = &asked
		_, err := w.r.lookup(t.Context(), w.hcp, "any")
		NewWithT(t).Expect(err).To(MatchError(errRefused))
		NewWithT(t).Expect(asked).To(Equal(asking{image: "any", secret: `{"auths":{}}`}))
	})
}

// asking is a release provider that records the requests to the registry, and fails them.
type asking struct{ image, secret string }

func (a *asking) Lookup(_ context.Context, image string, secret []byte) (*releaseinfo.ReleaseImage, error) {
	a.image, a.secret = image, string(secret)
	return nil, errRefused
}

func TestImages(t *testing.T) {
	r := &Reconciler{StaticImages: map[string]string{"etcd": "ours", "cluster-autoscaler": "ours"}}
	hcp := &hyperv1.HostedControlPlane{}
	lookup := func(tag string) string {
		image, found := images{static: r.staticImages(hcp), release: releaseinfo.New("", kubernetes("1.36.3"))}.ComponentImage(tag)
		if found != (image != "") {
			t.Errorf("%s: found %t, and the image is %q", tag, found, image)
		}
		return image
	}
	for tag, want := range map[string]string{"etcd": "ours", "kube-scheduler": "registry.example/kube-scheduler:1.36.3", "nothing": "", "cluster-autoscaler": "ours"} {
		if got := lookup(tag); got != want {
			t.Errorf("%s is %q, want %q", tag, got, want)
		}
	}
	hcp.Annotations = map[string]string{hyperv1.ClusterAutoscalerImage: "theirs"}
	if got := lookup("cluster-autoscaler"); got != "theirs" {
		t.Errorf("the autoscaler is %q, and the cluster names another", got)
	}
	if got := r.StaticImages["cluster-autoscaler"]; got != "ours" {
		t.Errorf("the autoscaler of one cluster, %q, is that of all", got)
	}
}

func TestRollOut(t *testing.T) {
	rolledOut := func(t *testing.T, w *world, lacks ...string) (*scope, error) {
		t.Helper()
		payload := kubernetes("1.36.3")
		for _, tag := range lacks {
			delete(payload.Components, tag)
		}
		s := w.begin()
		s.infra = &component.Infra{API: component.Endpoint{Host: "192.0.2.10", Port: 30443}, Ignition: component.Endpoint{Host: "ignition.example.com"}}
		s.release = releaseinfo.New("", payload)
		s.valid.Spec.Services[1].ServicePublishingStrategy = hyperv1.ServicePublishingStrategy{Type: hyperv1.Route}
		_, err := w.r.rollOut(t.Context(), s)
		return s, err
	}
	t.Run("When the payload is complete, it should roll out etcd first and the other components should wait", func(t *testing.T) {
		g := NewWithT(t)
		w := fakeWorld(t)
		w.r.PodUID, w.r.MetricsSet = ptr.To[int64](1234), component.TelemetryMetrics
		s, err := rolledOut(t, w)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.missing).To(BeEmpty())
		set := &appsv1.StatefulSet{}
		w.get("etcd", set)
		g.Expect(set.Spec.Template.Spec.SecurityContext.RunAsUser).To(HaveValue(BeEquivalentTo(1234)))
		g.Expect(set.Spec.Template.Spec.Containers[0].Image).To(Equal("registry.example/etcd:1.36.3"))
		reported := &hyperv1.ControlPlaneComponent{}
		w.get("etcd", reported)
		g.Expect(reported.OwnerReferences).To(ConsistOf(HaveField("Name", "demo")))
		monitor := &monitoringv1.ServiceMonitor{}
		w.get("etcd", monitor)
		g.Expect(monitor.Spec.Endpoints[0].MetricRelabelConfigs).NotTo(BeEmpty())
		route := &routev1.Route{}
		w.get("ignition-server", route)
		g.Expect(route.Spec.Host).To(Equal("ignition.example.com"))
		w.rollOut()
		_, err = rolledOut(t, w)
		g.Expect(err).NotTo(HaveOccurred())
		w.get("etcd", reported)
		g.Expect(reported.Status.Version).To(Equal("1.36.3"))
	})
	t.Run("When the payload lacks images, it should name each one once, in order", func(t *testing.T) {
		w := fakeWorld(t)
		delete(w.r.StaticImages, "controlplane-operator")
		s, err := rolledOut(t, w, "etcd")
		NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("etcd"), ContainSubstring("ignition-server"))))
		NewWithT(t).Expect(s.missing).To(Equal([]string{"controlplane-operator", "etcd"}))
	})
	t.Run("When one component fails, it should roll out the others and return the error", func(t *testing.T) {
		w := fakeWorld(t)
		w.refuse("apply StatefulSet")
		_, err := rolledOut(t, w)
		NewWithT(t).Expect(err).To(MatchError(errRefused))
		w.get("ignition-server", &appsv1.Deployment{})
	})
}

func TestPublish(t *testing.T) {
	remembered := func(t *testing.T, s *scope, w *world) {
		t.Helper()
		delete(s.hcp.Annotations, "hypershift.openshift.io/disable-pki-reconciliation")
		s.hcp.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "192.0.2.10", Port: 30443}
		NewWithT(t).Expect(w.r.rememberSpec(t.Context(), s.hcp)).To(Succeed())
	}
	t.Run("When the address is known, it should continue the reconcile", func(t *testing.T) {
		g := NewWithT(t)
		w := fakeWorld(t)
		s := w.begin()
		s.valid.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "192.0.2.9", Port: 30443}
		_, err := w.r.publish(t.Context(), s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.served).To(ConsistOf(HaveField("Host", "192.0.2.9")))
		g.Expect(s.wanted.Host).To(Equal("192.0.2.10"))
		g.Expect(s.infra.APINames).To(ContainElement("192.0.2.10"))
		w.get("kube-apiserver", &corev1.Service{})
	})
	for name, begun := range map[string]bool{"When a new one waits for its address, the reconcile should stop": false, "When one that runs does, its certificates should be kept first": true} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := fakeWorld(t)
			s := w.begin()
			s.valid.Spec.Services[0].ServicePublishingStrategy = hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer}
			want := phase.ErrStop
			if begun {
				remembered(t, s, w)
				w.r.PKI.Client = refusing{w.client}
				want = errNoServices
			}
			_, err := w.r.publish(t.Context(), s)
			g.Expect(err).To(MatchError(want))
			g.Expect(s.waiting).To(ContainSubstring("kube-apiserver"))
			g.Expect(s.infra).To(BeNil())
		})
	}
	t.Run("When the Service cannot be written, it should still reconcile the certificates", func(t *testing.T) {
		g := NewWithT(t)
		w := fakeWorld(t)
		s := w.begin()
		remembered(t, s, w)
		w.refuse("create v1.Service")
		w.r.PKI.Client = refusing{w.client}
		_, err := w.r.publish(t.Context(), s)
		g.Expect(err).To(And(MatchError(errRefused), MatchError(errNoServices)))
		g.Expect(s.infraErr).To(And(MatchError(errRefused), Not(MatchError(errNoServices))))
	})
}

func TestEveryControlPlane(t *testing.T) {
	another := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "another"}}
	elsewhere := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "demo"}}
	w := fakeWorld(t, another, elsewhere)
	g := NewWithT(t)
	g.Expect(w.r.everyControlPlane(t.Context(), secretOf("any", nil))).To(ConsistOf(
		HaveField("NamespacedName", client.ObjectKeyFromObject(w.hcp)), HaveField("NamespacedName", client.ObjectKeyFromObject(another))))
	w.refuse("list v1beta1.HostedControlPlaneList")
	g.Expect(w.r.everyControlPlane(t.Context(), secretOf("any", nil))).To(BeEmpty())
}
