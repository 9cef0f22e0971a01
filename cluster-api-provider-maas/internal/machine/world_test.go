package machine_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/cluster"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/identity"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machine"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/maas/maastest"
)

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme, infrav1.AddToScheme} {
		utilruntime.Must(add(s))
	}
	return s
}

// world is a namespace of a real API server, a MAAS, and a reconciler between the two.
type world struct {
	*WithT
	t         *testing.T
	client    client.Client
	namespace string
	// maas is nil where the world has another MAAS.
	maas *maastest.Server
	// endpoint is where that MAAS is; transport, nil for the usual one, is the way to it, kube the way to the API server.
	endpoint   func() string
	transport  http.RoundTripper
	kube       client.Client
	clock      *clocktesting.FakePassiveClock
	recorder   *events.FakeRecorder
	reconciler *machine.Reconciler
	// clusters looks after the MaasCluster; nil before its first look.
	clusters *cluster.Reconciler
}

func newWorld(t *testing.T, cfg *rest.Config, machines ...*maastest.Machine) *world {
	t.Helper()
	server := maastest.New(t, machines...)
	w := newWorldAt(t, cfg, func() string { return server.URL }, server.APIKey)
	w.maas = server
	return w
}

func newWorldAt(t *testing.T, cfg *rest.Config, endpoint func() string, key string) *world {
	t.Helper()
	g := NewWithT(t)
	c, err := client.New(cfg, client.Options{Scheme: scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "provider-"}}
	g.Expect(c.Create(t.Context(), namespace)).To(Succeed())
	w := &world{WithT: g, t: t, client: c, kube: c, namespace: namespace.Name, endpoint: endpoint,
		clock: clocktesting.NewFakePassiveClock(time.Now())}
	w.credentials(key)
	w.create(&clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "demo"},
		Spec:       clusterv1.ClusterSpec{InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "MaasCluster", Name: "demo"}},
	})
	cluster := &clusterv1.Cluster{}
	w.get("demo", cluster)
	cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	g.Expect(c.Status().Update(t.Context(), cluster)).To(Succeed())
	w.create(&infrav1.MaasCluster{ObjectMeta: metav1.ObjectMeta{Name: "demo"}, Spec: infrav1.MaasClusterSpec{DNSDomain: "maas"}})
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "bootstrap"}, Data: map[string][]byte{"value": []byte("#cloud-config\nx: 1\n")}})
	w.restart()
	return w
}

// restart forgets all that a process keeps in memory.
func (w *world) restart() {
	w.recorder, w.clusters = events.NewFakeRecorder(100), nil
	w.reconciler = &machine.Reconciler{
		Client: w.kube, Reader: w.client, Recorder: w.recorder, Clock: w.clock,
		Identities: identity.NewResolver(identity.Options{
			Reader: w.client, Clock: w.clock, Secret: client.ObjectKey{Namespace: w.namespace, Name: "maas"},
			Template: maas.Config{Transport: w.transport, Retry: maas.RetryPolicy{Attempts: -1}},
		}),
	}
	w.reconciler.Default()
}

func (w *world) credentials(key string) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "maas", Namespace: w.namespace},
		Data: map[string][]byte{maas.SecretKeyEndpoint: []byte(w.endpoint()), maas.SecretKeyAPIKey: []byte(key)}}
	err := w.client.Create(w.t.Context(), secret)
	if apierrors.IsAlreadyExists(err) {
		err = w.client.Update(w.t.Context(), secret)
	}
	w.Expect(err).NotTo(HaveOccurred())
}

func (w *world) create(obj client.Object) {
	w.t.Helper()
	obj.SetNamespace(w.namespace)
	w.Expect(w.client.Create(w.t.Context(), obj)).To(Succeed())
}

func (w *world) get(name string, obj client.Object) {
	w.t.Helper()
	w.Expect(w.client.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, obj)).To(Succeed())
}

// add makes a Machine with its MaasMachine, as Cluster API would.
func (w *world) add(name string, spec infrav1.MaasMachineSpec) {
	w.t.Helper()
	owner := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: clusterv1.MachineSpec{
			ClusterName:       "demo",
			Bootstrap:         clusterv1.Bootstrap{DataSecretName: ptr.To("bootstrap")},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "MaasMachine", Name: name},
		},
	}
	w.create(owner)
	if spec.Image == "" {
		spec.Image = "custom/node-image"
	}
	if spec.MinCPU == nil {
		spec.MinCPU, spec.MinMemory = ptr.To(2), ptr.To(2048)
	}
	w.create(&infrav1.MaasMachine{
		ObjectMeta: metav1.ObjectMeta{
			Name:            name,
			Labels:          map[string]string{clusterv1.ClusterNameLabel: "demo"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: name, UID: owner.UID}},
		},
		Spec: spec,
	})
}

// reconcile runs one pass, the given time after the last one.
func (w *world) reconcile(name string, after time.Duration) ctrl.Result {
	w.t.Helper()
	w.clock.SetTime(w.clock.Now().Add(after))
	result, err := w.reconciler.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: w.namespace, Name: name}})
	w.Expect(err).NotTo(HaveOccurred())
	return result
}

// passes runs several passes, each of which sees MAAS anew.
func (w *world) passes(name string, n int) {
	w.t.Helper()
	for range n {
		w.reconcile(name, 15*time.Second)
	}
}

func (w *world) machine(name string) *infrav1.MaasMachine {
	w.t.Helper()
	m := &infrav1.MaasMachine{}
	w.get(name, m)
	return m
}

func (w *world) gone(name string) bool {
	err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, &infrav1.MaasMachine{})
	return apierrors.IsNotFound(err)
}

func (w *world) remove(name string) {
	w.t.Helper()
	w.Expect(w.client.Delete(w.t.Context(), w.machine(name))).To(Succeed())
}

// expect checks one condition: "Ready False NoCapacity" and a part of its message.
func (w *world) expect(name, want, message string) {
	w.t.Helper()
	var kind string
	_, err := fmt.Sscan(want, &kind)
	w.Expect(err).NotTo(HaveOccurred())
	c := meta.FindStatusCondition(w.machine(name).Status.Conditions, kind)
	w.Expect(c).NotTo(BeNil(), "%s has no condition %s", name, kind)
	w.Expect(fmt.Sprintf("%s %s %s", c.Type, c.Status, c.Reason)).To(Equal(want), c.Message)
	w.Expect(c.Message).To(ContainSubstring(message))
}

// told returns the events since it was last called.
func (w *world) told() []string {
	var all []string
	for {
		select {
		case e := <-w.recorder.Events:
			all = append(all, e)
		default:
			return all
		}
	}
}
