// SPDX-License-Identifier: Apache-2.0

// Package conformance is the test suite that every platform's plugin must pass. It covers the lifecycle of a cluster
// and a pool, with both controllers on a real kube-apiserver. The controllers run as the operator's service account and
// have only its rights. There is no provider, so no machine starts.
package conformance

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/hypershift-operator/platform/registry"
)

// Subject is a platform under test.
type Subject struct {
	// Type is the platform's type, which is in the API and in the table of traits.
	Type hyperv1.PlatformType
	// Plugin is the plugin under test.
	Plugin platform.Platform
	// Cluster and Pool replace the MAAS settings of a cluster and its pool with the platform's settings; nil if it has
	// none.
	Cluster func(*hyperv1.HostedCluster)
	Pool    func(*hyperv1.NodePool)
	// Roll changes a pool so that its machines must be replaced; nil if the platform creates none.
	Roll func(*hyperv1.NodePool)
	// Beside are additional objects of a user, in any namespace.
	Beside []client.Object
	// Rotate changes the content of the user's credentials; nil if the platform has none.
	Rotate func(*corev1.Secret)
	// Outside are objects that the plugin creates outside the hosted control plane namespace, which a deletion must
	// remove.
	Outside []client.Object
}

const (
	infraID       = "demo-abcde"
	operatorImage = "registry.example/hypershift:1"
	// settlingPasses is the number of reconciles that a few events would cause.
	settlingPasses = 3
)

// Run tests a subject. admin may do everything in the management cluster; operator has the operator's rights.
func Run(t *testing.T, admin, operator client.WithWatch, s Subject) {
	NewWithT(t).Expect(s.Plugin.AddToScheme(admin.Scheme())).To(Succeed())
	NewWithT(t).Expect(s.Plugin.AddToScheme(operator.Scheme())).To(Succeed())
	w := newWorld(t, admin, operator, s, "conform")
	w.create()
	for _, scenario := range []struct {
		name string
		run  func(*world)
	}{
		{"When a cluster and a pool are created, it should make what the provider works on", made},
		{"When they are made, the objects should be those of the golden file", golden},
		{"When nothing changes any more, it should write nothing", settled},
		{"When they are paused, Cluster API should be too, and go on after", paused},
		{"When the pool needs other machines, it should make another template and keep the first while it is used", rolled},
		{"When the credentials change, it should tell", rotated},
		{"When the provider gets its rights, they should name what they are for", leastRights},
		{"When pool and cluster are deleted, it should leave nothing", deleted},
	} {
		if !t.Run(scenario.name, func(t *testing.T) { scenario.run(w.in(t)) }) {
			return // The following scenarios depend on this one.
		}
	}
	t.Run("When the platform's kinds are gone, clusters should be told, and still be deleted", func(t *testing.T) {
		withoutKinds(t, admin, operator, s)
	})
}

// world is one cluster of the subject with a pool, in its own namespace.
type world struct {
	*GomegaWithT
	t         *testing.T
	admin     client.WithWatch
	subject   Subject
	namespace string
	clusters  *hostedcluster.Reconciler
	pools     *nodepool.Reconciler
}

func newWorld(t *testing.T, admin, operator client.WithWatch, s Subject, prefix string) *world {
	clock := testingclock.NewFakeClock(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	plugins := registry.Of(map[hyperv1.PlatformType]platform.Platform{s.Type: s.Plugin})
	return &world{
		GomegaWithT: NewWithT(t), t: t, admin: admin, subject: s, namespace: prefix + "-" + lower(s.Type),
		clusters: &hostedcluster.Reconciler{
			Client: operator, LiveReader: operator, Clock: clock, Recorder: &events.FakeRecorder{}, Releases: fixture.Payloads(),
			Platforms: plugins, Settings: hostedcluster.Settings{OperatorImage: operatorImage},
		},
		pools: &nodepool.Reconciler{Client: operator, Clock: clock, Recorder: &events.FakeRecorder{}, Releases: fixture.Payloads(), Platforms: plugins},
	}
}

// in returns the fixture for a subtest.
func (w *world) in(t *testing.T) *world {
	view := *w
	view.t, view.GomegaWithT = t, NewWithT(t)
	return &view
}

// act sets the client of both controllers.
func (w *world) act(c client.Client) { w.clusters.Client, w.pools.Client = c, c }

func (w *world) hosted() string { return fixture.Hosted(w.namespace) }

func (w *world) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: w.namespace, Name: name}
}

// settle reconciles both objects as a few events would, and reports configurations as rendered in between, as the
// ignition-server would.
func (w *world) settle() {
	w.t.Helper()
	for range settlingPasses {
		w.pass()
		w.answer()
	}
}

func (w *world) pass() {
	w.t.Helper()
	_, err := w.clusters.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: w.key(fixture.ClusterName)})
	w.Expect(err).NotTo(HaveOccurred())
	_, err = w.pools.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: w.key(fixture.PoolName)})
	w.Expect(err).NotTo(HaveOccurred())
}

// answer reports the configurations that have no report yet as rendered.
func (w *world) answer() {
	w.t.Helper()
	secrets := &corev1.SecretList{}
	w.Expect(w.admin.List(w.t.Context(), secrets, client.InNamespace(w.hosted()))).To(Succeed())
	for i := range secrets.Items {
		token := &secrets.Items[i]
		if token.Annotations[hyperv1.IgnitionConfigAnnotation] == "" || len(token.Data[hyperv1.TokenSecretReasonKey]) > 0 {
			continue
		}
		token.Data[hyperv1.TokenSecretReasonKey], token.Data[hyperv1.TokenSecretMessageKey] = []byte(hyperv1.AsExpectedReason), []byte("rendered")
		w.Expect(w.admin.Update(w.t.Context(), token)).To(Succeed())
	}
}

// create creates the cluster and the pool, and the objects that a control-plane-operator would create for the cluster.
func (w *world) create() {
	w.t.Helper()
	hc, pool := fixture.HostedCluster(w.namespace), fixture.NodePool(w.namespace)
	hc.Spec.InfraID = infraID
	hc.Spec.Platform, pool.Spec.Platform = hyperv1.PlatformSpec{Type: w.subject.Type}, hyperv1.NodePoolPlatform{Type: w.subject.Type}
	if w.subject.Cluster != nil {
		w.subject.Cluster(hc)
		w.subject.Pool(pool)
	}
	for _, obj := range w.subject.Beside {
		obj := obj.DeepCopyObject().(client.Object)
		if err := w.admin.Create(w.t.Context(), obj); client.IgnoreAlreadyExists(err) != nil {
			w.t.Fatalf("creating what the user has besides: %v", err)
		}
	}
	fixture.Create(w.t, w.admin, append(fixture.Inputs(w.namespace), hc, pool)...)
	w.settle()
	hosted := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: w.hosted(), Name: name} }
	fixture.Create(w.t, w.admin,
		&corev1.Secret{ObjectMeta: hosted("admin-kubeconfig"), Data: map[string][]byte{"kubeconfig": []byte("admin")}},
		&corev1.Secret{ObjectMeta: hosted("ignition-server-ca-cert"), Data: map[string][]byte{"tls.crt": []byte("CA")}},
		&corev1.Service{ObjectMeta: hosted("ignition-server"), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort,
			Ports: []corev1.ServicePort{{Port: 443, NodePort: nodePort(w.namespace)}}}})
	hcp := &hyperv1.HostedControlPlane{}
	w.Expect(w.admin.Get(w.t.Context(), client.ObjectKey{Namespace: w.hosted(), Name: fixture.ClusterName}, hcp)).To(Succeed())
	hcp.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "172.30.240.1", Port: 31443}
	hcp.Status.KubeConfig = &hyperv1.KubeconfigSecretRef{Name: "admin-kubeconfig", Key: "kubeconfig"}
	meta.SetStatusCondition(&hcp.Status.Conditions, metav1.Condition{
		Type: string(hyperv1.HostedControlPlaneAvailable), Status: metav1.ConditionTrue, Reason: hyperv1.AsExpectedReason})
	w.Expect(w.admin.Status().Update(w.t.Context(), hcp)).To(Succeed())
	w.settle()
}

func (w *world) cluster() *hyperv1.HostedCluster {
	w.t.Helper()
	hc := &hyperv1.HostedCluster{}
	w.Expect(w.admin.Get(w.t.Context(), w.key(fixture.ClusterName), hc)).To(Succeed())
	return hc
}

func (w *world) condition(conditionType hyperv1.ConditionType) metav1.Condition {
	w.t.Helper()
	c := meta.FindStatusCondition(w.cluster().Status.Conditions, string(conditionType))
	w.Expect(c).NotTo(BeNil(), "condition %s", conditionType)
	return *c
}
