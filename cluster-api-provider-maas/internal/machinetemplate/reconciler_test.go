// SPDX-License-Identifier: Apache-2.0

package machinetemplate_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/identity"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machinetemplate"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// world is a namespace with a Cluster, and a MAAS.
type world struct {
	*WithT
	*simulator.Simulator
	t          *testing.T
	client     client.Client
	namespace  string
	reconciler *machinetemplate.Reconciler
}

func newWorld(t *testing.T, cfg *rest.Config, seed string) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme, infrav1.AddToScheme} {
		utilruntime.Must(add(scheme))
	}
	g := NewWithT(t)
	c := testenv.Client(t, cfg, scheme)
	s, err := simulator.New(simulator.Options{Seed: []byte(seed), RandomSeed: 1})
	g.Expect(err).NotTo(HaveOccurred())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "templates-"}}
	g.Expect(c.Create(t.Context(), namespace)).To(Succeed())
	w := &world{WithT: g, Simulator: s, t: t, client: c, namespace: namespace.Name, reconciler: &machinetemplate.Reconciler{Client: c,
		Identities: identity.NewResolver(identity.Options{Reader: c, Clock: clock.RealClock{}, Template: maas.Config{Retry: maas.RetryPolicy{Attempts: -1}},
			Environment: map[string][]byte{maas.SecretKeyEndpoint: []byte(simtest.Serve(t, s)), maas.SecretKeyAPIKey: []byte(s.Key("alice"))}})}}
	w.create(&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "demo"}, Spec: clusterv1.ClusterSpec{
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "MaasCluster", Name: "demo"}}})
	w.create(&infrav1.MaasCluster{ObjectMeta: metav1.ObjectMeta{Name: "demo"}, Spec: infrav1.MaasClusterSpec{DNSDomain: "maas", FailureDomains: []string{"nowhere", "north", "south"}}})
	return w
}

func (w *world) create(obj client.Object) {
	w.t.Helper()
	obj.SetNamespace(w.namespace)
	w.Expect(w.client.Create(w.t.Context(), obj)).To(Succeed())
}

// template creates a template that belongs to the Cluster, or to none, and reconciles it.
func (w *world) template(cluster string, spec infrav1.MaasMachineSpec) *infrav1.MaasMachineTemplate {
	w.t.Helper()
	spec.Image = "ubuntu/noble"
	if spec.MinCPU == nil {
		spec.MinCPU = ptr.To(1)
	}
	if spec.MinMemory == nil {
		spec.MinMemory = ptr.To(1024)
	}
	template := &infrav1.MaasMachineTemplate{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-"}}
	template.Spec.Template.Spec = spec
	if cluster != "" {
		template.Labels = map[string]string{clusterv1.ClusterNameLabel: cluster}
	}
	w.create(template)
	w.Expect(w.look(template)).To(Succeed())
	return template
}

func (w *world) look(template *infrav1.MaasMachineTemplate) error {
	w.t.Helper()
	key := client.ObjectKeyFromObject(template)
	_, err := w.reconciler.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: key})
	w.Expect(w.client.Get(w.t.Context(), key, template)).To(Succeed())
	return err
}

func told(template *infrav1.MaasMachineTemplate) map[string]string {
	told := map[string]string{}
	for name, quantity := range template.Status.Capacity {
		told[string(name)] = quantity.String()
	}
	return told
}

func TestCapacity(t *testing.T) {
	cfg := testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI)
	third := map[string]string{"cpu": "8", "memory": "16Gi", "ephemeral-storage": "120G"}
	for name, test := range map[string]struct {
		cluster string
		seed    string
		spec    infrav1.MaasMachineSpec
		want    map[string]string
	}{
		"When a machine fits, the capacity should be that of the machine that MAAS would allocate": {
			"demo", simtest.Rack, infrav1.MaasMachineSpec{MinCPU: ptr.To(5), MinDiskSize: ptr.To(100)}, third},
		"When little is requested, the capacity should be that of the cheapest machine in the cluster's zones": {
			"demo", simtest.Rack, infrav1.MaasMachineSpec{}, map[string]string{"cpu": "4", "memory": "8Gi", "ephemeral-storage": "80G"}},
		"When a zone is set, the capacity should be that of a machine in the zone": {
			"demo", simtest.Rack, infrav1.MaasMachineSpec{FailureDomain: ptr.To("default")}, map[string]string{"cpu": "2", "memory": "4Gi", "ephemeral-storage": "40G"}},
		"When a zone is set and a cheaper machine is elsewhere, the capacity should be that of a machine in the zone": {
			"demo", simtest.Rack, infrav1.MaasMachineSpec{FailureDomain: ptr.To("north"), MinCPU: ptr.To(1)}, map[string]string{"cpu": "4", "memory": "8Gi", "ephemeral-storage": "80G"}},
		"When the zone is set to the empty string, the capacity should be that of a machine in the cluster's zones": {
			"demo", simtest.Rack, infrav1.MaasMachineSpec{FailureDomain: ptr.To("")}, map[string]string{"cpu": "4", "memory": "8Gi", "ephemeral-storage": "80G"}},
		"When no machine fits, the capacity should be the requested one": {
			"demo", simtest.Rack, infrav1.MaasMachineSpec{MinCPU: ptr.To(200), MinMemory: ptr.To(1024)}, map[string]string{"cpu": "200", "memory": "1Gi"}},
		"When MAAS does not have the tag, the capacity should be the requested one": {
			"demo", simtest.Rack, infrav1.MaasMachineSpec{MinCPU: ptr.To(2), Tags: []string{"none"}}, map[string]string{"cpu": "2", "memory": "1Gi"}},
		"When the template belongs to no cluster, the capacity should be the requested one": {
			"", simtest.Rack, infrav1.MaasMachineSpec{MinCPU: ptr.To(2), MinMemory: ptr.To(4096), MinDiskSize: ptr.To(40)},
			map[string]string{"cpu": "2", "memory": "4Gi", "ephemeral-storage": "40G"}},
		"When the template requests the minimum, the capacity should be the minimum": {
			"", simtest.Rack, infrav1.MaasMachineSpec{MinCPU: ptr.To(1), MinMemory: ptr.To(1)}, map[string]string{"cpu": "1", "memory": "1Mi"}},
		"When the cluster does not exist yet, the capacity should be the requested one": {
			"other", simtest.Rack, infrav1.MaasMachineSpec{MinCPU: ptr.To(2)}, map[string]string{"cpu": "2", "memory": "1Gi"}},
		"When MAAS could compose machines, the capacity should be that of a Ready machine": {
			"demo", simtest.WithVMHost, infrav1.MaasMachineSpec{MinCPU: ptr.To(8)}, third},
		"When MAAS could compose machines and one Ready machine fits, the capacity should be that of this machine": {
			"demo", simtest.WithVMHost, infrav1.MaasMachineSpec{MinCPU: ptr.To(64)}, map[string]string{"cpu": "64", "memory": "256Gi", "ephemeral-storage": "80G"}},
		"When MAAS would have to compose a machine, the capacity should be the requested one": {
			"demo", simtest.WithVMHost, infrav1.MaasMachineSpec{MinCPU: ptr.To(2), Tags: []string{"virtual"}}, map[string]string{"cpu": "2", "memory": "1Gi"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, cfg, test.seed)
			if diff := cmp.Diff(test.want, told(w.template(test.cluster, test.spec))); diff != "" {
				t.Errorf("capacity (-want +got):\n%s", diff)
			}
			for _, m := range w.Machines() {
				w.Expect(m.Status).To(Equal(status.Ready), "nothing was acquired")
			}
		})
	}
	t.Run("When nothing changes, it should not write anything or list machines", func(t *testing.T) {
		w := newWorld(t, cfg, simtest.Rack)
		template := w.template("demo", infrav1.MaasMachineSpec{MinCPU: ptr.To(5)})
		before := template.ResourceVersion
		w.ResetRequests()
		w.Expect(w.look(template)).To(Succeed())
		w.Expect(template.ResourceVersion).To(Equal(before))
		w.Expect(w.Load.Report().Of("machines.read").Calls).To(BeZero())
		w.Expect(w.Load.Report().Of("machines.allocate").Calls).To(Equal(2), "one zone does not exist")
	})
	t.Run("When the last fitting machine is allocated or MAAS is unreachable, the capacity should stay unchanged", func(t *testing.T) {
		w := newWorld(t, cfg, simtest.Rack)
		template := w.template("demo", infrav1.MaasMachineSpec{MinCPU: ptr.To(5)})
		w.Change("aaaaa3", func(m *inventory.Machine) { m.Status = status.Deployed })
		w.Change("aaaaa5", func(m *inventory.Machine) { m.Status = status.Deployed })
		w.Expect(w.look(template)).To(Succeed())
		w.Expect(told(template)).To(Equal(third))
		simtest.Behind(t, w.Simulator, 502)
		w.Expect(w.look(template)).To(MatchError(ContainSubstring("asking MAAS which machine fits")))
		w.Expect(told(template)).To(Equal(third))
	})
	t.Run("When the template is paused, it should stay unchanged", func(t *testing.T) {
		w := newWorld(t, cfg, simtest.Rack)
		template := w.template("demo", infrav1.MaasMachineSpec{MinCPU: ptr.To(5)})
		template.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
		w.Expect(w.client.Update(t.Context(), template)).To(Succeed())
		w.Change("aaaaa3", func(m *inventory.Machine) { m.CPUCount = 6 })
		w.Expect(w.look(template)).To(Succeed())
		w.Expect(told(template)).To(Equal(third))
	})
	t.Run("When the template is deleted, it should stay unchanged", func(t *testing.T) {
		w := newWorld(t, cfg, simtest.Rack)
		template := w.template("demo", infrav1.MaasMachineSpec{MinCPU: ptr.To(5)})
		template.Finalizers = []string{"example.com/held"}
		w.Expect(w.client.Update(t.Context(), template)).To(Succeed())
		w.Expect(w.client.Delete(t.Context(), template)).To(Succeed())
		w.Change("aaaaa3", func(m *inventory.Machine) { m.CPUCount = 6 })
		w.ResetRequests()
		w.Expect(w.look(template)).To(Succeed())
		w.Expect(told(template)).To(Equal(third))
		w.Expect(w.Requests()).To(BeEmpty())
		template.Finalizers = nil
		w.Expect(w.client.Update(t.Context(), template)).To(Succeed())
	})
	t.Run("When the owner and the label name different Clusters, it should use the owner", func(t *testing.T) {
		w := newWorld(t, cfg, simtest.Rack)
		template := w.template("other", infrav1.MaasMachineSpec{MinCPU: ptr.To(5)})
		owner := &clusterv1.Cluster{}
		w.Expect(w.client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "demo"}, owner)).To(Succeed())
		template.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "demo", UID: owner.UID}}
		w.Expect(w.client.Update(t.Context(), template)).To(Succeed())
		w.Expect(w.look(template)).To(Succeed())
		w.Expect(told(template)).To(Equal(third))
	})
}

// TestRefusals checks that with an API server and a MAAS that fail each request once, each reconcile fails, and the
// next one continues.
func TestRefusals(t *testing.T) {
	cfg := testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI)
	for name, seed := range map[string]string{"chooses": simtest.Rack, "composes": simtest.WithVMHost} {
		t.Run("When a MAAS that "+name+" or the API server refuses a request, the reconcile should fail", func(t *testing.T) {
			w := newWorld(t, cfg, seed)
			server := testenv.NewGrudging(testenv.Client(t, cfg, w.client.Scheme()))
			refusing := server.Transport(http.DefaultTransport)
			transport := testenv.RoundTrip(func(r *http.Request) (*http.Response, error) {
				if strings.Contains(r.URL.Path, "/vm-hosts/") { // Without an answer, MAAS is assumed to compose.
					return http.DefaultTransport.RoundTrip(r)
				}
				return refusing.RoundTrip(r)
			})
			passing := clocktesting.NewFakePassiveClock(time.Now())
			w.reconciler = &machinetemplate.Reconciler{Client: server, Identities: identity.NewResolver(identity.Options{Reader: w.client, Clock: passing,
				Template:    maas.Config{Retry: maas.RetryPolicy{Attempts: -1}, Transport: transport},
				Environment: map[string][]byte{maas.SecretKeyEndpoint: []byte(simtest.Serve(t, w.Simulator)), maas.SecretKeyAPIKey: []byte(w.Key("alice"))}})}
			template := &infrav1.MaasMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "t", Labels: map[string]string{clusterv1.ClusterNameLabel: "demo"}}}
			template.Spec.Template.Spec = infrav1.MaasMachineSpec{Image: "ubuntu/noble", MinCPU: ptr.To(5), MinMemory: ptr.To(1024)}
			w.create(template)
			var again time.Duration
			server.Exhaust(t, func() (ctrl.Result, error) {
				passing.SetTime(passing.Now().Add(time.Minute)) // A failed request is not retried immediately.
				result, err := w.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(template)})
				again = result.RequeueAfter
				return result, err
			}, func() any { return nil })
			w.Expect(w.client.Get(t.Context(), client.ObjectKeyFromObject(template), template)).To(Succeed())
			w.Expect(told(template)).To(HaveKeyWithValue("cpu", "8"))
			w.Expect(again).To(And(BeNumerically(">=", 10*time.Minute), BeNumerically("<=", 12*time.Minute)), "it looks again now and then, not all at once")
		})
	}
}
