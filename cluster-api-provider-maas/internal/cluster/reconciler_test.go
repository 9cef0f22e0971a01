// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"fmt"
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
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// world is a namespace of a real API server, a simulated MAAS, and a reconciler between the two.
type world struct {
	*WithT
	*simulator.Simulator
	t          *testing.T
	cfg        *rest.Config
	client     client.Client
	namespace  string
	endpoint   string
	clock      *clocktesting.FakePassiveClock
	recorder   *events.FakeRecorder
	reconciler *cluster.Reconciler
	owner      *clusterv1.Cluster
}

func newWorld(t *testing.T, cfg *rest.Config, machines ...simtest.Machine) *world {
	t.Helper()
	return newWorldOf(t, cfg, "", machines...)
}

// newWorldOf returns a fixture with a MAAS of the given version, such as "3.4.3"; "" is the simulator's default.
func newWorldOf(t *testing.T, cfg *rest.Config, version string, machines ...simtest.Machine) *world {
	t.Helper()
	g := NewWithT(t)
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme, infrav1.AddToScheme} {
		utilruntime.Must(add(s))
	}
	c := testenv.Client(t, cfg, s)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "provider-"}}
	g.Expect(c.Create(t.Context(), namespace)).To(Succeed())
	region, err := simulator.New(simulator.Options{
		Seed: []byte(simtest.Seed(machines...)), RandomSeed: 1, Version: version,
		Users: []simulator.User{{Name: provider, Admin: true}, {Name: "alice"}},
	})
	g.Expect(err).NotTo(HaveOccurred())
	w := &world{WithT: g, Simulator: region, t: t, cfg: cfg, client: c, namespace: namespace.Name, endpoint: simtest.Listen(t, region),
		clock: clocktesting.NewFakePassiveClock(time.Now()), recorder: events.NewFakeRecorder(100)}
	w.owner = &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "demo"}, Spec: clusterv1.ClusterSpec{
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "MaasCluster", Name: "demo"}}}
	w.create(w.owner)
	w.credentials(region.Key(provider))
	w.reconciler = &cluster.Reconciler{Client: c, Reader: c, Recorder: w.recorder, Clock: w.clock,
		Identities: identity.NewResolver(identity.Options{Reader: c, Clock: w.clock, Template: maas.Config{Retry: maas.RetryPolicy{Attempts: -1}}})}
	return w
}

// provider is the MAAS user whose API key the provider uses, an administrator.
const provider = "provider"

func (w *world) credentials(key string) {
	w.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "maas"}, Data: map[string][]byte{
		maas.SecretKeyEndpoint: []byte(w.endpoint), maas.SecretKeyAPIKey: []byte(key)}}
	err := w.client.Create(w.t.Context(), secret)
	if apierrors.IsAlreadyExists(err) {
		err = w.client.Update(w.t.Context(), secret)
	}
	w.Expect(err).NotTo(HaveOccurred())
}

// dns returns the DNS names with addresses in MAAS.
func (w *world) dns() map[string][]string {
	names := map[string][]string{}
	for _, r := range w.DB.DNSResources.All() {
		names[r.Name+"."+w.DB.Domains.Get(r.DomainID).Name] = r.IPs
	}
	return names
}

func (w *world) create(obj client.Object) {
	w.t.Helper()
	obj.SetNamespace(w.namespace)
	w.Expect(w.client.Create(w.t.Context(), obj)).To(Succeed())
}

// add creates the MaasCluster.
func (w *world) add(spec infrav1.MaasClusterSpec, annotations map[string]string) {
	w.t.Helper()
	spec.DNSDomain, spec.IdentityRef = "maas", &infrav1.IdentityReference{Name: "maas"}
	w.create(&infrav1.MaasCluster{ObjectMeta: metav1.ObjectMeta{Name: "demo", Annotations: annotations,
		Labels:          map[string]string{clusterv1.ClusterNameLabel: "demo"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "demo", UID: w.owner.UID}}}, Spec: spec})
}

func (w *world) reconcile(after time.Duration) ctrl.Result {
	w.t.Helper()
	w.Life.Tick(w.t.Context())
	w.clock.SetTime(w.clock.Now().Add(after))
	result, err := w.reconciler.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: w.namespace, Name: "demo"}})
	w.Expect(err).NotTo(HaveOccurred())
	return result
}

func (w *world) infra() *infrav1.MaasCluster {
	w.t.Helper()
	infra := &infrav1.MaasCluster{}
	w.Expect(w.client.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "demo"}, infra)).To(Succeed())
	return infra
}

func (w *world) gone() bool {
	return apierrors.IsNotFound(w.client.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "demo"}, &infrav1.MaasCluster{}))
}

func (w *world) expect(kind, want, message string) {
	w.t.Helper()
	c := meta.FindStatusCondition(w.infra().Status.Conditions, kind)
	w.Expect(c).NotTo(BeNil(), kind)
	w.Expect(fmt.Sprintf("%s %s", c.Status, c.Reason)).To(Equal(want), c.Message)
	w.Expect(c.Message).To(ContainSubstring(message))
}

// controlPlane creates a control plane MaasMachine, ready or not.
func (w *world) controlPlane(name string, ready bool, ips ...string) *infrav1.MaasMachine {
	w.t.Helper()
	m := &infrav1.MaasMachine{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: "demo", clusterv1.MachineControlPlaneLabel: ""}},
		Spec: infrav1.MaasMachineSpec{Image: "ubuntu/noble", MinCPU: ptr.To(1), MinMemory: ptr.To(1)}}
	w.create(m)
	w.runs(m, ready, ips...)
	return m
}

func (w *world) runs(m *infrav1.MaasMachine, ready bool, ips ...string) {
	w.t.Helper()
	m.Status.Ready, m.Status.Addresses = ready, nil
	for _, ip := range ips {
		m.Status.Addresses = append(m.Status.Addresses, infrav1.MachineAddress{Type: infrav1.MachineInternalIP, Address: ip}, infrav1.MachineAddress{Type: infrav1.MachineExternalIP, Address: ip})
	}
	w.Expect(w.client.Status().Update(w.t.Context(), m)).To(Succeed())
}

func TestReconciler(t *testing.T) {
	cfg := testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI)
	for name, test := range map[string]func(*testing.T, *rest.Config){
		"When the endpoint is managed externally, it should leave the endpoint unchanged":                              given,
		"When the Cluster sets an endpoint, it should use that endpoint":                                               fromCluster,
		"When no endpoint is set, it should create a DNS name in MAAS":                                                 makesDNS,
		"When the MAAS user may not create DNS names, it should report the missing permission":                         noRight,
		"When MAAS is unusable, it should report the remedy and keep its status":                                       problems,
		"When a machine has no MaasMachine, it should release only that machine":                                       sweeps,
		"When the MaasCluster is deleted, it should wait until its machines are gone":                                  deletes,
		"When MAAS has more zones than the status can hold, the MaasCluster should be Ready":                           manyZones,
		"When ownership annotations are missing or stale, it should use the MAAS event log to find the owner":          sweepsUnmarked,
		"When a MaasMachine has two machines, it should wait before it releases one":                                   sweepsSecond,
		"When the MaasCluster is deleted, it should release the orphans before the finalizer is removed":               orphansFirst,
		"When the MaasCluster is deleted and MAAS rejects the key, it should wait until the check works or is skipped": unasked,
		"When the credentials belong to another MAAS user, it should report that":                                      anotherUser,
		"When the MaasCluster is paused, it should report that and do nothing else":                                    pauses,
		"When lxdConfig is enabled, it should report that the setting has no effect":                                   lxdConfig,
		"When its Cluster is paused, it should do nothing":                                                             pausedByCluster,
		"When its status cannot be written, it should retry":                                                           unwritten,
		"When its Cluster sets a port, the endpoint should use that port":                                              portOfCluster,
		"When its DNS name cannot be removed, the deletion should wait":                                                keepsName,
		"When it crashed before it recorded its DNS name, the deletion should still remove the name":                   losesName,
		"When the DNS name was created by others, the deletion should not remove it":                                   othersName,
		"When the MaasCluster is deleted without credentials, it should report an event and remove the finalizer":      lettingGo,
		"When deployments keep failing on a machine, it should quarantine the machine":                                 quarantines,
		"When the user may not set tags, the quarantine should apply to this cluster only":                             quarantinesByPlainUser,
		"When failures are few, old or caused by the image, it should not quarantine the machine":                      neverQuarantined,
		"When MAAS did not release a machine, it should retry the release until MAAS does":                             takesBack,
		"When the MaasCluster replaces a lost one, it should report which machines run":                                restores,
		"When the MAAS version has a known vulnerability, it should warn":                                              warnsOfHoles,
		"When no successor claims a reserved machine, its reservation should end":                                      keptForNobody,
	} {
		t.Run(name, func(t *testing.T) { test(t, cfg) })
	}
}

func warnsOfHoles(t *testing.T, cfg *rest.Config) {
	w := newWorldOf(t, cfg, "3.4.3", simtest.Machine{ID: "a"})
	w.add(infrav1.MaasClusterSpec{}, map[string]string{infrav1.CustomDNSAnnotation: ""})
	w.reconcile(0)
	w.expect(cluster.ConditionMAAS, "True AsExpected", "MAAS version 3.4.3 has a known vulnerability")
	w.expect(cluster.ConditionMAAS, "True AsExpected", "upgrade to 3.4.4 or later")

	repaired := newWorldOf(t, cfg, "3.4.4", simtest.Machine{ID: "a"})
	repaired.add(infrav1.MaasClusterSpec{}, map[string]string{infrav1.CustomDNSAnnotation: ""})
	repaired.reconcile(0)
	c := meta.FindStatusCondition(repaired.infra().Status.Conditions, cluster.ConditionMAAS)
	repaired.Expect(c.Message).NotTo(ContainSubstring("known vulnerability"))
}

func given(t *testing.T, cfg *rest.Config) {
	for _, annotation := range []string{infrav1.CustomDNSAnnotation, clusterv1.ManagedByAnnotation} {
		w := newWorld(t, cfg, simtest.Machine{ID: "a", Zone: "az2"}, simtest.Machine{ID: "b", Zone: "az1"})
		w.add(infrav1.MaasClusterSpec{}, map[string]string{annotation: ""})
		w.reconcile(0)
		w.expect("LoadBalancerReady", "False WaitForEndpoint", "waiting for the Cluster to set it")
		infra := w.infra()
		w.Expect(infra.Status.Ready).To(BeFalse())
		infra.Spec.ControlPlaneEndpoint = infrav1.APIEndpoint{Host: "api.example.com", Port: 31234}
		w.Expect(w.client.Update(t.Context(), infra)).To(Succeed())
		w.reconcile(time.Second)
		infra = w.infra()
		w.Expect(infra.Spec.ControlPlaneEndpoint).To(Equal(infrav1.APIEndpoint{Host: "api.example.com", Port: 31234}))
		w.Expect(infra.Status.Ready).To(BeTrue())
		w.Expect(infra.Status.Initialization.Provisioned).To(HaveValue(BeTrue()))
		var zones []string
		for _, domain := range infra.Status.FailureDomains {
			zones = append(zones, domain.Name)
		}
		w.Expect(zones).To(Equal([]string{"az1", "az2", "default"}))
		w.expect("Ready", "True Ready", "")
		w.Expect(w.dns()).To(BeEmpty())
		before := infra.ResourceVersion
		for range 5 {
			w.reconcile(time.Minute)
		}
		w.Expect(w.infra().ResourceVersion).To(Equal(before), "settled means no write")
	}
}

func fromCluster(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg)
	w.owner.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "vip.example.com", Port: 443}
	w.Expect(w.client.Update(t.Context(), w.owner)).To(Succeed())
	w.add(infrav1.MaasClusterSpec{FailureDomains: []string{"az9"}}, nil)
	w.reconcile(0)
	w.Expect(w.infra().Spec.ControlPlaneEndpoint).To(Equal(infrav1.APIEndpoint{Host: "vip.example.com", Port: 443}))
	w.Expect(w.infra().Status.FailureDomains).To(HaveLen(1))
	w.Expect(w.dns()).To(BeEmpty())
}

func makesDNS(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg)
	w.add(infrav1.MaasClusterSpec{PreferredSubnets: []string{"10.1.0.0/16", "fd00::/8"}}, nil)
	w.reconcile(0)
	name := w.infra().Status.Network.DNSName
	w.Expect(name).To(MatchRegexp(`^demo-[0-9a-f]{6}\.maas$`))
	w.Expect(w.infra().Spec.ControlPlaneEndpoint).To(Equal(infrav1.APIEndpoint{Host: name, Port: 6443}))
	w.Expect(w.dns()).To(HaveKeyWithValue(name, BeEmpty()))

	one := w.controlPlane("cp-1", true, "192.168.0.4", "10.1.0.4")
	w.controlPlane("cp-2", true, "192.168.0.5", "fd00::5")
	w.ResetRequests()
	w.reconcile(time.Minute)
	w.Expect(w.dns()[name]).To(ConsistOf("10.1.0.4", "fd00::5"))
	w.Expect(w.attached()).To(ConsistOf("cp-1", "cp-2"))
	for range 4 {
		w.reconcile(time.Minute)
	}
	w.Expect(w.Load.Report().Of("dnsresource.update").Calls).To(Equal(1), "it is written only when it changed")

	w.Expect(w.client.Get(t.Context(), client.ObjectKeyFromObject(one), one)).To(Succeed())
	w.runs(one, false)
	w.reconcile(time.Minute)
	w.Expect(w.dns()[name]).To(Equal([]string{"fd00::5"}))
	w.Expect(w.attached()).To(ConsistOf("cp-2"))
	two := &infrav1.MaasMachine{}
	w.Expect(w.client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "cp-2"}, two)).To(Succeed())
	w.runs(two, false)
	w.reconcile(time.Minute)
	w.Expect(w.dns()[name]).To(Equal([]string{"fd00::5"}), "a power flap does not take the cluster off the net")

	w.Expect(w.client.Delete(t.Context(), one)).To(Succeed())
	w.Expect(w.client.Delete(t.Context(), two)).To(Succeed())
	w.Expect(w.client.Delete(t.Context(), w.infra())).To(Succeed())
	w.reconcile(time.Minute)
	w.Expect(w.gone()).To(BeTrue())
	w.Expect(w.dns()).To(BeEmpty(), "the name goes with the cluster")
}

// attached returns the MaasMachines whose status says that they are in DNS.
func (w *world) attached() []string {
	w.t.Helper()
	list := &infrav1.MaasMachineList{}
	w.Expect(w.client.List(w.t.Context(), list, client.InNamespace(w.namespace))).To(Succeed())
	var names []string
	for _, m := range list.Items {
		w.Expect(meta.IsStatusConditionTrue(m.Status.Conditions, "DNSAttached")).To(Equal(m.Status.DNSAttached))
		if m.Status.DNSAttached {
			names = append(names, m.Name)
		}
	}
	return names
}

func noRight(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg)
	w.credentials(w.Key("alice"))
	w.add(infrav1.MaasClusterSpec{}, nil)
	w.reconcile(0)
	w.expect("LoadBalancerReady", "False LoadBalancerFailed", "reserved for admin users")
	w.Expect(w.client.Delete(t.Context(), w.infra())).To(Succeed())
	w.reconcile(time.Minute)
	w.Expect(w.gone()).To(BeTrue())
}

func problems(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "a", Zone: "az1"})
	w.add(infrav1.MaasClusterSpec{ControlPlaneEndpoint: infrav1.APIEndpoint{Host: "h", Port: 1}}, nil)
	w.reconcile(0)
	w.expect("MAASAvailable", "True AsExpected", "every call sends the API key in the clear")
	w.credentials("consumer:token:rotated")
	result := w.reconcile(2 * time.Minute)
	w.Expect(result.RequeueAfter).To(BeNumerically("<=", 30*time.Second))
	w.expect("MAASAvailable", "False MAASUnauthorized", "put a valid API key into the Secret")
	w.expect("Ready", "False MAASUnauthorized", "")
	w.Expect(w.infra().Status.Initialization.Provisioned).To(HaveValue(BeTrue()))
	w.Expect(w.infra().Status.FailureDomains).To(HaveLen(2), "zones do not vanish with the API key")
	w.reconcile(time.Minute)
	w.reconcile(time.Minute)
	w.Expect(w.recorder.Events).To(HaveLen(1), "an event once, not each time")
	w.Expect(w.client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "maas"}})).To(Succeed())
	w.reconcile(time.Minute)
	w.expect("MAASAvailable", "False MAASCredentialsMissing", "does not exist")
	w.Expect(w.client.Delete(t.Context(), w.infra())).To(Succeed())
	w.reconcile(time.Minute)
	w.Expect(w.gone()).To(BeTrue(), "it made nothing in MAAS, so nothing holds it")
}

func sweeps(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg)
	w.add(infrav1.MaasClusterSpec{ControlPlaneEndpoint: infrav1.APIEndpoint{Host: "h", Port: 1}}, nil)
	mine := string(w.infra().UID)
	m := w.controlPlane("m", true)
	m.Spec.SystemID = ptr.To("used")
	w.Expect(w.client.Update(t.Context(), m)).To(Succeed())
	mark := func(cluster, machine string) map[string]string {
		return map[string]string{maas.AnnotationClusterUID: cluster, maas.AnnotationMachineUID: machine}
	}
	uid := string(m.UID)
	for id, held := range map[string]struct {
		key         string
		annotations map[string]string
	}{
		"used":               {maas.AllocationKey(uid), mark(mine, uid)},
		"orphan":             {maas.AllocationKey("gone"), mark(mine, "gone")},
		"second":             {maas.AllocationKey(uid), nil},
		"other-cluster":      {maas.AllocationKey("gone"), mark("another", "gone")},
		"marked-but-keyless": {"", mark(mine, "gone")},
		"by-hand":            {"", nil},
		"pending":            {maas.AllocationKey("not-recorded-yet"), nil},
	} {
		w.addMachine(simtest.Machine{ID: id, Status: status.Allocated, Owner: provider, AgentName: held.key, Annotations: held.annotations})
	}
	w.reconcile(0)
	w.reconcile(10 * time.Minute)
	w.Expect(w.left()).To(ConsistOf("used", "other-cluster", "marked-but-keyless", "by-hand", "pending"))
	w.Expect(w.recorder.Events).To(HaveLen(2))
}

func manyZones(t *testing.T, cfg *rest.Config) {
	var machines []simtest.Machine
	for n := range 120 {
		machines = append(machines, simtest.Machine{ID: fmt.Sprintf("m%d", n), Zone: fmt.Sprintf("az%03d", n)})
	}
	w := newWorld(t, cfg, machines...)
	w.add(infrav1.MaasClusterSpec{ControlPlaneEndpoint: infrav1.APIEndpoint{Host: "h", Port: 1}}, nil)
	w.reconcile(0)
	w.expect("Ready", "True Ready", "")
	w.Expect(w.infra().Status.FailureDomains).To(HaveLen(100))
}

func deletes(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg)
	w.add(infrav1.MaasClusterSpec{ControlPlaneEndpoint: infrav1.APIEndpoint{Host: "h", Port: 1}}, nil)
	w.reconcile(0)
	m := w.controlPlane("m", true)
	w.Expect(w.client.Delete(t.Context(), w.infra())).To(Succeed())
	w.ResetRequests()
	w.Expect(w.reconcile(time.Hour).RequeueAfter).To(BeNumerically(">", 0))
	w.Expect(w.gone()).To(BeFalse())
	w.Expect(w.Requests()).To(BeEmpty(), "while its machines go, MAAS is theirs to ask")
	w.Expect(w.client.Delete(t.Context(), m)).To(Succeed())
	w.Expect(w.client.Delete(t.Context(), w.owner)).To(Succeed(), "a missing parent is no reason to hang")
	w.reconcile(time.Second)
	w.Expect(w.gone()).To(BeTrue())
}

func lxdConfig(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg)
	w.add(infrav1.MaasClusterSpec{ControlPlaneEndpoint: infrav1.APIEndpoint{Host: "h", Port: 1}, LXDConfig: &infrav1.LXDHostConfig{Enabled: ptr.To(true)}}, nil)
	w.reconcile(0)
	w.expect("LXDReady", "False NotSupported", "has no effect")
}

func pauses(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg)
	w.add(infrav1.MaasClusterSpec{}, map[string]string{clusterv1.PausedAnnotation: "true"})
	w.reconcile(0)
	w.expect("Paused", "True Paused", "")
	w.Expect(w.Requests()).To(BeEmpty())
	infra := w.infra()
	delete(infra.Annotations, clusterv1.PausedAnnotation)
	w.Expect(w.client.Update(t.Context(), infra)).To(Succeed())
	w.reconcile(time.Second)
	w.expect("Paused", "False NotPaused", "")
	w.expect("LoadBalancerReady", "True LoadBalancerReady", "")
}
