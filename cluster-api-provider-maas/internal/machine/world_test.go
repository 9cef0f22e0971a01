// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
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
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme, infrav1.AddToScheme} {
		utilruntime.Must(add(s))
	}
	return s
}

// patience is the timeout for reconciles. It is long because other tests may keep the computer busy.
const patience = 2 * time.Minute

// world is a namespace of a real API server, a simulated MAAS, and a reconciler between the two.
type world struct {
	*WithT
	*simulator.Simulator
	*wire
	t         *testing.T
	cfg       *rest.Config
	client    client.Client
	namespace string
	// endpoint is the URL of MAAS, transport the connection to it, and kube the connection to the API server.
	endpoint   string
	transport  http.RoundTripper
	kube       client.Client
	clock      *clocktesting.FakePassiveClock
	recorder   *diary
	reconciler *machine.Reconciler
	// clusters reconciles the MaasCluster; nil before the first reconcile.
	clusters *cluster.Reconciler
	ticks    sync.Mutex
}

// newWorld returns a fixture with these machines in MAAS. The provider's MAAS user is not an administrator.
func newWorld(t *testing.T, cfg *rest.Config, machines ...simtest.Machine) *world {
	t.Helper()
	return newWorldOf(t, cfg, "provider", simtest.Seed(machines...))
}

// newRack returns a fixture with the machines of simtest.Rack.
func newRack(t *testing.T, cfg *rest.Config, user string) *world {
	t.Helper()
	return newWorldOf(t, cfg, user, simtest.Rack)
}

func newWorldOf(t *testing.T, cfg *rest.Config, user, seed string) *world {
	t.Helper()
	s, err := simulator.New(simulator.Options{Seed: []byte(seed), Version: "3.5", RandomSeed: 1, Users: []simulator.User{
		{Name: "admin", Admin: true}, {Name: "alice"}, {Name: "bob"}, {Name: "admin2"}, {Name: "provider"}}})
	if err != nil {
		t.Fatal(err)
	}
	return newWorldAt(t, cfg, s, simtest.Listen(t, s), user)
}

// newWorldAt returns a fixture with its own namespace and an existing MAAS.
func newWorldAt(t *testing.T, cfg *rest.Config, s *simulator.Simulator, endpoint, user string) *world {
	t.Helper()
	g := NewWithT(t)
	c := testenv.Client(t, cfg, scheme())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "provider-"}}
	g.Expect(c.Create(t.Context(), namespace)).To(Succeed())
	w := &world{WithT: g, Simulator: s, wire: newWire(t), t: t, cfg: cfg, client: c, kube: c, namespace: namespace.Name, endpoint: endpoint,
		clock: clocktesting.NewFakePassiveClock(time.Now())}
	w.transport = w.wire
	w.credentials(s.Key(user))
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

// restart drops everything that a process keeps in memory.
func (w *world) restart() {
	w.recorder, w.clusters = &diary{}, nil
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
		Data: map[string][]byte{maas.SecretKeyEndpoint: []byte(w.endpoint), maas.SecretKeyAPIKey: []byte(key)}}
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

// add creates a Machine with its MaasMachine, as Cluster API does.
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

// reconcile lets MAAS do the work that is due, advances the clock, and reconciles a MaasMachine.
func (w *world) reconcile(name string, after time.Duration) ctrl.Result {
	w.t.Helper()
	result, err := w.attempt(name, after)
	w.Expect(err).NotTo(HaveOccurred())
	return result
}

// pass runs a reconcile and ignores its result.
func (w *world) pass(name string) {
	_, _ = w.attempt(name, 11*time.Second)
}

func (w *world) attempt(name string, after time.Duration) (ctrl.Result, error) {
	w.tick()
	w.clock.SetTime(w.clock.Now().Add(after))
	return w.reconciler.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: w.namespace, Name: name}})
}

// tick lets MAAS do the work that is due.
func (w *world) tick() {
	w.ticks.Lock()
	defer w.ticks.Unlock()
	w.Life.Tick(w.t.Context())
}

// edit changes a machine in the data of MAAS, and cancels its current operation.
func (w *world) edit(systemID string, change func(*inventory.Machine)) {
	w.Change(systemID, func(m *inventory.Machine) {
		m.Task = nil
		change(m)
	})
}

// slow makes MAAS take a day for an operation, or indefinitely, until the returned function is called.
func (w *world) slow(kind faults.Kind) (accept func()) {
	w.t.Helper()
	return simtest.Fault(w.t, w.Simulator, faults.Rule{Kind: kind, Delay: faults.Duration(24 * time.Hour)})
}

// refuse makes MAAS reject an operation on a machine.
func (w *world) refuse(operation, machine string, code int, message string) (accept func()) {
	w.t.Helper()
	return simtest.Refuse(w.t, w.Simulator, operation, machine, code, message)
}

// held returns the machines with an owner.
func (w *world) held() []*inventory.Machine {
	return slices.DeleteFunc(w.Machines(), func(m *inventory.Machine) bool { return m.Owner == "" })
}

// passes runs several reconciles, each of which reads MAAS again.
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
