// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	kubevirtv1 "github.com/openshift/hypershift/api/kubevirt/v1alpha1"
	"github.com/openshift/hypershift/api/util/contract"
)

var (
	noon     = metav1.NewTime(time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC))
	errCloud = errors.New("the cloud is dead")
)

// cloud is a fake Infrastructure that returns the configured results.
type cloud struct {
	machine  Machine
	fails    error
	kept     int
	orders   []Order
	released []string
	// seen reports whether the machine object has its finalizer; safe holds the result at the last order.
	seen func() bool
	safe bool
}

func (c *cloud) Provide(_ context.Context, order Order) (Machine, error) {
	c.orders, c.safe = append(c.orders, order), c.seen()
	return c.machine, c.fails
}

func (c *cloud) Release(_ context.Context, key string) (bool, error) {
	c.released = append(c.released, key)
	c.kept--
	return c.kept < 0, c.fails
}

// world is a fixture: a hosted namespace with one virtual machine, its Machine, and its Cluster.
type world struct {
	*GomegaWithT
	*Machines
	t      *testing.T
	cloud  *cloud
	object *kubevirtv1.KubevirtMachine
	owner  *clusterv1.Machine
	group  *clusterv1.Cluster
	// told holds the arguments of the last lookup of a Node.
	told []string
	node bool
}

func newWorld(t *testing.T, edits ...func(*world)) *world {
	t.Helper()
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "clusters-demo", Name: name} }
	w := &world{GomegaWithT: NewWithT(t), t: t, cloud: &cloud{machine: Machine{ID: "a", Names: []string{"host-a"}, Addresses: []string{"192.0.2.7"}}},
		owner: &clusterv1.Machine{ObjectMeta: meta("owner")}, group: &clusterv1.Cluster{ObjectMeta: meta("demo")}, object: &kubevirtv1.KubevirtMachine{ObjectMeta: meta("vm")}}
	w.object.UID, w.object.Labels = "uid-1", map[string]string{clusterv1.ClusterNameLabel: "demo"}
	w.object.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineSet", Name: "set"}, {Kind: "Machine", Name: "owner"}}
	w.object.Spec.VirtualMachineTemplate.Spec.Raw = []byte(`{"dataVolumeTemplates":[{"spec":{"source":{"registry":{"url":"docker://disk"}}}}]}`)
	w.owner.Spec.Bootstrap.DataSecretName = ptr.To("user-data")
	w.group.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	w.Machines = &Machines{Contract: KubeVirt(), Infrastructure: w.cloud, Clock: clocktesting.NewFakePassiveClock(noon.Time), Root: t.TempDir(),
		Nodes: func(_ context.Context, _ client.ObjectKey, names []string, _ string) (bool, error) {
			w.told = names
			return w.node, nil
		}}
	certificate := filepath.Join(w.Root, webhookCertificate)
	w.Expect(os.MkdirAll(filepath.Dir(certificate), 0o755)).To(Succeed())
	w.Expect(os.WriteFile(certificate, []byte("-----BEGIN CERTIFICATE-----"), 0o600)).To(Succeed())
	for _, edit := range edits {
		edit(w)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme, w.AddToScheme} {
		utilruntime.Must(add(scheme))
	}
	w.Client = fake.NewClientBuilder().WithScheme(scheme).WithTypeConverters(managedfields.NewDeducedTypeConverter()).WithStatusSubresource(w.object).
		WithObjects(w.object, w.owner, w.group, &corev1.Secret{ObjectMeta: meta("user-data"), Data: map[string][]byte{"value": []byte("#cloud-config")}}).Build()
	w.cloud.seen = func() bool { w.read(); return controllerutil.ContainsFinalizer(w.object, w.Finalizer) }
	return w
}

// read reads the virtual machine and reports whether it exists.
func (w *world) read() bool {
	w.t.Helper()
	err := w.Client.Get(w.t.Context(), client.ObjectKeyFromObject(w.object), w.object)
	w.Expect(client.IgnoreNotFound(err)).To(Succeed())
	return !apierrors.IsNotFound(err)
}

func (w *world) pass() (ctrl.Result, error) {
	result, err := w.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.object)})
	w.read()
	return result, err
}

func TestProvide(t *testing.T) {
	t.Run("When a machine is requested, it should get its finalizer before the machine is allocated, and report its progress", func(t *testing.T) {
		w := newWorld(t)
		w.Expect(w.pass()).To(Equal(ctrl.Result{RequeueAfter: Poll}))
		w.Expect(w.cloud.safe).To(BeTrue())
		w.Expect(w.cloud.orders).To(Equal([]Order{{Key: "standin-uid-1", Image: "docker://disk", UserData: []byte("#cloud-config")}}))
		w.Expect(w.object.Spec.ProviderID).To(HaveValue(Equal("kubevirt://vm")))
		w.Expect(w.object.Status.Ready).To(BeFalse())
		w.Expect(contract.Find(w.object.Status.Conditions, "VMProvisioned")).To(HaveValue(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", "VMNotReady"))))
		w.Expect(w.told).To(BeEmpty())

		w.cloud.machine.Running = true
		w.Expect(w.pass()).To(Equal(ctrl.Result{RequeueAfter: Poll}), "its Node is not there yet")
		w.Expect(w.told).To(Equal([]string{"host-a"}))
		w.Expect(w.object.Status.Ready).To(BeTrue())
		version := w.object.ResourceVersion
		w.node = true
		w.Expect(w.pass()).To(Equal(ctrl.Result{RequeueAfter: Settled}))
		w.Expect(w.object.ResourceVersion).To(Equal(version), "a settled system writes nothing")
		w.Expect(w.cloud.orders[2]).To(Equal(w.cloud.orders[0]), "the same machine each time")
	})

	for name, tc := range map[string]struct {
		edit func(*world)
		why  string
	}{
		"the cluster is not ready":   {func(w *world) { w.group.Status.Initialization.InfrastructureProvisioned = nil }, "the infrastructure of the cluster is not ready"},
		"there is no bootstrap data": {func(w *world) { w.owner.Spec.Bootstrap.DataSecretName = nil }, "there is no bootstrap data"},
		"a file is not mounted":      {func(w *world) { w.Expect(os.RemoveAll(filepath.Join(w.Root, "tmp"))).To(Succeed()) }, "no such file or directory"},
		"a file has other content":   {func(w *world) { w.Files = map[string]string{webhookCertificate: "KEY"} }, `tls.crt has no "KEY"`},
		"the cluster is paused":      {func(w *world) { w.group.Spec.Paused = ptr.To(true) }, ""},
		"the machine is paused":      {func(w *world) { w.object.Annotations = map[string]string{clusterv1.PausedAnnotation: ""} }, ""},
		"the owner is unknown":       {func(w *world) { w.object.OwnerReferences = w.object.OwnerReferences[:1] }, ""},
		"its Machine is gone":        {func(w *world) { w.object.OwnerReferences[1].Name = "gone" }, ""},
		"its Cluster is not there":   {func(w *world) { w.object.Labels = nil }, ""},
	} {
		t.Run("When "+name+", no machine should be ordered and no readiness reported", func(t *testing.T) {
			w := newWorld(t, tc.edit)
			w.Expect(w.pass()).To(Equal(ctrl.Result{RequeueAfter: Poll}))
			w.Expect(w.cloud.orders).To(BeEmpty())
			said := contract.Find(w.object.Status.Conditions, clusterv1.ReadyCondition)
			if tc.why == "" {
				w.Expect(said).To(BeNil())
				return
			}
			w.Expect(said).To(HaveValue(And(HaveField("Status", metav1.ConditionFalse), HaveField("Message", ContainSubstring(tc.why)))))
		})
	}

	t.Run("When the cloud returns an error, it should be reported and retried", func(t *testing.T) {
		w := newWorld(t, func(w *world) { w.cloud.fails = errCloud })
		_, err := w.pass()
		w.Expect(err).To(MatchError(errCloud))
		w.Expect(contract.Find(w.object.Status.Conditions, clusterv1.ReadyCondition)).To(HaveValue(HaveField("Message", errCloud.Error())))
		w.Expect(w.object.Spec.ProviderID).To(BeNil())
	})

	t.Run("When a machine fails permanently, it should set the failure message", func(t *testing.T) {
		w := newWorld(t, func(w *world) { w.cloud.machine.Failure = "its disk is broken" })
		_, err := w.pass()
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(w.object.Status.FailureMessage).To(HaveValue(Equal("its disk is broken")))
	})

	for name, raw := range map[string]string{"no volume": `{}`, "two volumes": `{"dataVolumeTemplates":[{},{}]}`, "nonsense": `{"dataVolumeTemplates":{}}`} {
		t.Run("When a virtual machine has "+name+" as its disk, no machine should be ordered", func(t *testing.T) {
			w := newWorld(t, func(w *world) { w.object.Spec.VirtualMachineTemplate.Spec.Raw = []byte(raw) })
			_, err := w.pass()
			w.Expect(err).To(MatchError(ContainSubstring("KubevirtMachine vm")))
			w.Expect(w.cloud.orders).To(BeEmpty())
		})
	}
}

// TestRelease verifies that the object stays until the machine behind it is gone.
func TestRelease(t *testing.T) {
	leaving := func(w *world) {
		w.object.Finalizers = []string{KubeVirt().Finalizer}
		w.object.DeletionTimestamp = ptr.To(noon)
		w.cloud.kept = 1
	}
	t.Run("When a machine is deleted, it should stay until the cloud released it, even without its Machine", func(t *testing.T) {
		w := newWorld(t, leaving, func(w *world) { w.object.OwnerReferences = nil })
		w.Expect(w.pass()).To(Equal(ctrl.Result{RequeueAfter: Poll}))
		w.Expect(w.read()).To(BeTrue())
		w.Expect(w.pass()).To(Equal(ctrl.Result{}))
		w.Expect(w.read()).To(BeFalse())
		w.Expect(w.cloud.released).To(Equal([]string{"standin-uid-1", "standin-uid-1"}))
		w.Expect(w.pass()).To(Equal(ctrl.Result{}), "what is gone needs nothing")
	})
	t.Run("When the cluster is paused, the machine should not be released", func(t *testing.T) {
		w := newWorld(t, leaving, func(w *world) { w.group.Spec.Paused = ptr.To(true) })
		w.Expect(w.pass()).To(Equal(ctrl.Result{RequeueAfter: Poll}))
		w.Expect(w.cloud.released).To(BeEmpty())
	})
	t.Run("When the cloud fails to release the machine, the object should stay", func(t *testing.T) {
		w := newWorld(t, leaving, func(w *world) { w.cloud.fails, w.cloud.kept = errCloud, 0 })
		_, err := w.pass()
		w.Expect(err).To(MatchError(ContainSubstring("releasing the machine of vm")))
		w.Expect(w.read()).To(BeTrue())
	})
}

func TestMark(t *testing.T) {
	g, later := NewWithT(t), metav1.NewTime(noon.Add(time.Hour))
	var conditions []contract.Condition
	mark(&conditions, noon, false, "it starts", stage{"A", "Starting"}, ready("Starting"))
	mark(&conditions, later, false, "it still starts", ready("Starting"))
	g.Expect(conditions).To(HaveLen(2))
	g.Expect(conditions[1]).To(And(HaveField("LastTransitionTime", noon), HaveField("Message", "it still starts")), "it is as it was, with other words")
	mark(&conditions, later, true, "", stage{"A", "Starting"})
	g.Expect(conditions[0]).To(Equal(contract.Condition{Type: "A", Status: metav1.ConditionTrue, LastTransitionTime: later}), "no reason of before is left")
}

func TestTellNode(t *testing.T) {
	node := func(name string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	for name, tc := range map[string]struct {
		names []string
		want  map[string]string
	}{
		"one of its names in another case": {[]string{"Host-A", "host-a.maas"}, map[string]string{"host-a": "id", "host-b": ""}},
		"none of its names":                {[]string{"host"}, map[string]string{"host-a": "", "host-b": ""}},
		"no name":                          {nil, map[string]string{"host-a": "", "host-b": ""}},
	} {
		t.Run("When a Node has "+name+", only a matching Node should get the provider ID", func(t *testing.T) {
			g := NewWithT(t)
			guest := fake.NewClientBuilder().WithTypeConverters(managedfields.NewDeducedTypeConverter()).WithObjects(node("host-a"), node("host-b")).Build()
			there, err := tellNode(t.Context(), guest, tc.names, "id")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(there).To(Equal(tc.want["host-a"] != ""))
			for name, want := range tc.want {
				n := node(name)
				g.Expect(guest.Get(t.Context(), client.ObjectKeyFromObject(n), n)).To(Succeed())
				g.Expect(n.Spec.ProviderID).To(Equal(want))
			}
		})
	}
}
