// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/cluster"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/identity"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/inventory"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machine"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machinetemplate"
	"github.com/openshift/hypershift/support/maas"
)

const testNamespace = "clusters-demo"

// patience is the timeout for machines to reach their desired state. It is long because other tests may keep the
// computer busy.
const patience = 5 * time.Minute

// world is a management cluster with a Cluster whose machines are created and deleted, and a MAAS.
type world struct {
	*WithT
	t         testing.TB
	cfg       *rest.Config
	client    client.Client
	namespace string
	endpoint  string
	key       string
	next      int
	// vm makes add request virtual machines, with this number of cores; zero means 1.
	vm    bool
	cores int
}

// newWorld creates the fixture and its namespace.
func newWorld(t testing.TB, cfg *rest.Config, namespace, endpoint, key string) *world {
	t.Helper()
	g := NewWithT(t)
	c, err := client.New(cfg, client.Options{Scheme: newScheme()})
	g.Expect(err).NotTo(HaveOccurred())
	b := &world{WithT: g, t: t, cfg: cfg, client: c, namespace: namespace, endpoint: endpoint, key: key}
	g.Expect(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	b.create(&corev1.Secret{ObjectMeta: b.meta("bootstrap"), Data: map[string][]byte{"value": []byte("#cloud-config\n")}})
	owner := &clusterv1.Cluster{ObjectMeta: b.meta("demo"), Spec: clusterv1.ClusterSpec{
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "MaasCluster", Name: "demo"}}}
	b.create(owner)
	owner.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	g.Expect(c.Status().Update(t.Context(), owner)).To(Succeed())
	infra := &infrav1.MaasCluster{ObjectMeta: b.meta("demo"), Spec: infrav1.MaasClusterSpec{DNSDomain: "maas",
		ControlPlaneEndpoint: infrav1.APIEndpoint{Host: "api.example.com", Port: 6443}}}
	infra.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "demo", UID: owner.UID}}
	b.create(infra)
	return b
}

func (b *world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: b.namespace, Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: "demo"}}
}

func (b *world) create(obj client.Object) {
	b.t.Helper()
	b.Expect(b.client.Create(b.t.Context(), obj)).To(Succeed())
}

// add creates a Machine with its MaasMachine, as Cluster API does.
func (b *world) add() {
	b.t.Helper()
	b.next++
	name := fmt.Sprintf("m-%d", b.next)
	owner := &clusterv1.Machine{ObjectMeta: b.meta(name), Spec: clusterv1.MachineSpec{ClusterName: "demo",
		Bootstrap:         clusterv1.Bootstrap{DataSecretName: ptr.To("bootstrap")},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "MaasMachine", Name: name}}}
	b.create(owner)
	m := &infrav1.MaasMachine{ObjectMeta: b.meta(name), Spec: infrav1.MaasMachineSpec{Image: "ubuntu/noble", MinCPU: ptr.To(1), MinMemory: ptr.To(1024)}}
	if b.vm {
		m.Spec.ProvisioningMode, m.Spec.MinCPU = infrav1.ProvisioningModeLXD, ptr.To(max(b.cores, 1))
	}
	m.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: name, UID: owner.UID}}
	b.create(m)
}

func (b *world) machines() []infrav1.MaasMachine {
	b.t.Helper()
	list := &infrav1.MaasMachineList{}
	b.Expect(b.client.List(b.t.Context(), list, client.InNamespace(b.namespace))).To(Succeed())
	return list.Items
}

func (b *world) remove(m infrav1.MaasMachine) {
	b.t.Helper()
	b.Expect(client.IgnoreNotFound(b.client.Delete(b.t.Context(), &m))).To(Succeed())
}

// unready returns the MaasMachines that are not in their desired state: Ready, or gone if deleted.
func (b *world) unready() []string {
	b.t.Helper()
	var all []string
	for _, m := range b.machines() {
		ready := meta.FindStatusCondition(m.Status.Conditions, machine.ConditionReady)
		switch {
		case !m.DeletionTimestamp.IsZero():
			all = append(all, m.Name+" is being deleted")
		case ready == nil:
			all = append(all, m.Name+" has no status")
		case ready.Status != metav1.ConditionTrue:
			all = append(all, fmt.Sprintf("%s: %s: %s", m.Name, ready.Reason, ready.Message))
		case meta.IsStatusConditionFalse(m.Status.Conditions, machine.ConditionOutstanding):
			all = append(all, m.Name+" has a failed machine that is not released yet")
		}
	}
	return all
}

// tempo is the timing of a provider instance.
type tempo struct {
	timing machine.Timing
	ages   inventory.Ages
	// workers is the number of MaasMachines that are reconciled concurrently.
	workers int
	// qps and burst limit the calls to the management cluster; a negative value means no limit.
	qps   float32
	burst int
}

// hasty shortens minutes to fractions of a second.
var hasty = tempo{
	timing: machine.Timing{Poll: 50 * time.Millisecond, Settled: 500 * time.Millisecond, Doubt: time.Second, Compose: time.Second,
		Problem: 50 * time.Millisecond, Deploy: 10 * time.Minute, Allocate: 10 * time.Minute},
	ages:    inventory.Ages{Ready: 30 * time.Millisecond, Names: time.Second, Failure: time.Millisecond},
	workers: 10,
	qps:     -1,
}

// wire holds the connections of a provider instance; nil transports mean the default.
type wire struct {
	kube func(http.RoundTripper) http.RoundTripper
	maas http.RoundTripper
	// watch is shared with providers of other namespaces; nil means separate watches.
	watch cache.NewCacheFunc
}

// incarnate runs a provider instance without prior state until the context ends.
func (b *world) incarnate(ctx context.Context, w wire, pace tempo) error {
	cfg := rest.CopyConfig(b.cfg)
	cfg.QPS, cfg.Burst = pace.qps, pace.burst
	if w.kube != nil {
		cfg.Wrap(w.kube)
	}
	var grace time.Duration // A killed process does not shut down gracefully.
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: newScheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0", GracefulShutdownTimeout: &grace, Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{b.namespace: {}}},
		NewCache: w.watch,
		Client:   managerOptions(defaultOptions(), cfg).Client})
	if err != nil {
		return err
	}
	identities := identity.NewResolver(identity.Options{
		Reader: mgr.GetAPIReader(), Clock: clock.RealClock{}, Ages: pace.ages,
		Environment: map[string][]byte{maas.SecretKeyEndpoint: []byte(b.endpoint), maas.SecretKeyAPIKey: []byte(b.key)},
		Template:    maas.Config{Transport: w.maas, Retry: maas.RetryPolicy{BaseDelay: time.Millisecond, MaxDelay: 5 * time.Millisecond}},
	})
	machines := &machine.Reconciler{Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Identities: identities,
		Recorder: mgr.GetEventRecorder("maasmachine"), Clock: clock.RealClock{}, Timing: pace.timing}
	clusters := &cluster.Reconciler{Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Identities: identities,
		Recorder: mgr.GetEventRecorder("maascluster"), Clock: clock.RealClock{}, Machines: machines}
	options := controller.Options{SkipNameValidation: ptr.To(true), MaxConcurrentReconciles: pace.workers}
	if err := machines.SetupWithManager(mgr, options); err != nil {
		return err
	}
	if err := (&machinetemplate.Reconciler{Client: mgr.GetClient(), Identities: identities}).SetupWithManager(mgr, options); err != nil {
		return err
	}
	if err := clusters.SetupWithManager(ctx, mgr, options); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// converge runs one instance without faults until all objects are in their desired state and the additional conditions
// hold.
func (b *world) converge(w wire, pace tempo, within time.Duration, there ...func() bool) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan error, 1)
	go func() { done <- b.incarnate(ctx, w, pace) }()
	b.Eventually(b.unready, within, 100*time.Millisecond).Should(BeEmpty())
	for _, is := range there {
		b.Eventually(is, within, 100*time.Millisecond).Should(BeTrue())
	}
	cancel()
	b.Expect(<-done).To(Succeed())
}

// expectNoLeak checks that MaasMachines and MAAS allocations, each with the UID of its annotation, match one to one.
func (b *world) expectNoLeak(allocated map[string]string) {
	b.t.Helper()
	want := map[string]string{}
	for _, m := range b.machines() {
		b.Expect(m.Spec.SystemID).NotTo(BeNil(), m.Name)
		b.Expect(want).NotTo(HaveKey(*m.Spec.SystemID), "two MaasMachines hold one machine")
		want[*m.Spec.SystemID] = string(m.UID)
	}
	b.Expect(cmp.Diff(want, allocated)).To(BeEmpty(), "what the MaasMachines hold (-) and what MAAS allocated (+)")
}
