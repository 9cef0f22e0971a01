// SPDX-License-Identifier: Apache-2.0

package address

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/api/util/nodeupdate"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/pause"
	"github.com/openshift/hypershift/support/testenv"
)

const (
	former = "https://192.0.2.10:30443 192.0.2.10"
	next   = "https://192.0.2.99:30443 192.0.2.99"
)

// world is a real API server that is both management cluster and guest, with a control plane that migrates from
// `former` to `next`.
type world struct {
	*GomegaWithT
	t      *testing.T
	client client.WithWatch
	writes *testenv.Writes
	r      *Reconciler
	hcp    *hyperv1.HostedControlPlane
	since  metav1.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	scheme := fixture.Scheme()
	utilruntime.Must(clusterv1.AddToScheme(scheme))
	direct := testenv.Client(t, testenv.Start(t, crds.HyperShift, crds.ClusterAPI), scheme)
	w := &world{GomegaWithT: NewWithT(t), t: t, client: direct, writes: &testenv.Writes{}, hcp: fixture.ControlPlane(), since: metav1.NewTime(time.Now().Add(time.Hour).Truncate(time.Second))}
	for _, obj := range append(fixture.HostedNamespace(), w.hcp) {
		w.create(obj)
	}
	counted := w.writes.Client(direct)
	w.r = &Reconciler{Guest: counted, Management: counted, Pause: pause.Gate{
		Management: direct, ControlPlane: client.ObjectKeyFromObject(w.hcp), Clock: clocktesting.NewFakePassiveClock(time.Now()),
	}}
	return w
}

func (w *world) create(objects ...client.Object) {
	w.t.Helper()
	for _, obj := range objects {
		w.Expect(w.client.Create(w.t.Context(), obj)).To(Succeed())
	}
}

// serves sets the addresses that the control plane serves.
func (w *world) serves(hosts ...string) {
	w.t.Helper()
	w.refresh()
	w.hcp.Status.ServedAddresses = nil
	for _, host := range hosts {
		w.hcp.Status.ServedAddresses = append(w.hcp.Status.ServedAddresses, hyperv1.ServedAddress{
			Type: hyperv1.NodePort, Host: host, Port: 30443, IgnitionHost: host, Since: w.since,
		})
	}
	w.Expect(w.client.Status().Update(w.t.Context(), w.hcp)).To(Succeed())
}

func (w *world) refresh() {
	w.t.Helper()
	w.Expect(w.client.Get(w.t.Context(), client.ObjectKeyFromObject(w.hcp), w.hcp)).To(Succeed())
}

// pass runs a reconcile and returns the status of the HostedControlPlane. During a migration the reconcile must
// requeue, since no watch reports some changes.
func (w *world) pass() string {
	w.t.Helper()
	result, err := w.r.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.hcp)})
	w.Expect(err).NotTo(HaveOccurred())
	w.refresh()
	use := w.hcp.Status.AddressUse
	if use == nil {
		return "nothing"
	}
	w.Expect(use.Since.Equal(&w.since)).To(BeTrue())
	w.Expect(result.RequeueAfter > 0).To(Equal(use.Remaining > 0))
	return strings.TrimSpace(fmt.Sprintf("%d come, %d not: %s", use.Arrived, use.Remaining, use.Message))
}

// node creates a node whose node-agent reports this address.
func (w *world) node(name, current string) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if current != "" {
		node.Annotations = map[string]string{nodeupdate.CurrentAddress: current}
	}
	w.create(node)
}

func (w *world) says(name string, annotations map[string]string) {
	w.t.Helper()
	node := &corev1.Node{}
	w.Expect(w.client.Get(w.t.Context(), client.ObjectKey{Name: name}, node)).To(Succeed())
	for key, value := range annotations {
		node.Annotations[key] = value
	}
	w.Expect(w.client.Update(w.t.Context(), node)).To(Succeed())
}

func (w *world) asked(name string) string {
	w.t.Helper()
	node := &corev1.Node{}
	w.Expect(w.client.Get(w.t.Context(), client.ObjectKey{Name: name}, node)).To(Succeed())
	return node.Annotations[nodeupdate.DesiredAddress]
}

// daemonSet creates a DaemonSet of the guest's components that reaches the API server at host. Its status reports how
// many of its two pods are updated.
func (w *world) daemonSet(host string) *appsv1.DaemonSet {
	labels := map[string]string{"app": "kube-proxy"}
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-proxy", Labels: map[string]string{component.GuestLabel: "true"}},
		Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "kube-proxy", Image: "registry.example/kube-proxy", Env: []corev1.EnvVar{
				{Name: "KUBERNETES_SERVICE_HOST", Value: host}, {Name: "KUBERNETES_SERVICE_PORT", Value: "30443"},
			}}}},
		}},
	}
}

func TestNodesMove(t *testing.T) {
	w := newWorld(t)
	w.node("a", former)
	w.node("b", former)
	w.serves("192.0.2.10")
	w.Expect(w.pass()).To(Equal("nothing"))
	w.Expect(w.asked("a")).To(BeEmpty(), "a cluster that stays where it is asks nobody")

	w.serves("192.0.2.99", "192.0.2.10")
	w.Expect(w.pass()).To(Equal("0 come, 2 not: node a (" + former + "), node b (" + former + ")"))
	w.Expect(w.asked("a")).To(Equal(next))
	writes := w.writes.Count
	w.pass()
	w.Expect(w.writes.Count).To(Equal(writes), "who waits writes nothing")

	w.says("a", map[string]string{nodeupdate.CurrentAddress: next})
	w.says("b", map[string]string{nodeupdate.AddressMessage: "no route to host"})
	w.Expect(w.pass()).To(Equal("1 come, 1 not: node b (" + former + ": no route to host)"))
	w.says("b", map[string]string{nodeupdate.CurrentAddress: next, nodeupdate.AddressMessage: ""})
	w.Expect(w.pass()).To(Equal("2 come, 0 not:"))

	w.node("old", "")
	w.Expect(w.pass()).To(And(HavePrefix("2 come, 1 not: node old has a node-agent that cannot migrate"), ContainSubstring("delete its Machine")))
	w.Expect(w.client.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "old"}})).To(Succeed())

	w.serves("192.0.2.10", "192.0.2.99")
	w.Expect(w.pass()).To(HavePrefix("0 come, 2 not:"), "and back")
	w.Expect(w.asked("a")).To(Equal(former))
}

func TestWhoElseMoves(t *testing.T) {
	w := newWorld(t)
	w.serves("192.0.2.99", "192.0.2.10")
	set := w.daemonSet("192.0.2.10")
	w.create(set)
	w.Expect(w.pass()).To(Equal("0 come, 1 not: DaemonSet kube-proxy (192.0.2.10:30443)"))
	set.Spec = w.daemonSet("192.0.2.99").Spec
	w.Expect(w.client.Update(t.Context(), set)).To(Succeed())
	set.Status = appsv1.DaemonSetStatus{ObservedGeneration: set.Generation - 1, DesiredNumberScheduled: 2, UpdatedNumberScheduled: 2}
	w.Expect(w.client.Status().Update(t.Context(), set)).To(Succeed())
	w.Expect(w.pass()).To(HavePrefix("0 come, 1 not: DaemonSet kube-proxy"), "those two pods are of the set as it was")
	set.Status = appsv1.DaemonSetStatus{ObservedGeneration: set.Generation, DesiredNumberScheduled: 2, UpdatedNumberScheduled: 1}
	w.Expect(w.client.Status().Update(t.Context(), set)).To(Succeed())
	w.Expect(w.pass()).To(Equal("0 come, 1 not: DaemonSet kube-proxy (1 of 2 pods)"))
	set.Status.UpdatedNumberScheduled = 2
	w.Expect(w.client.Status().Update(t.Context(), set)).To(Succeed())
	w.Expect(w.pass()).To(Equal("0 come, 0 not:"))

	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "new"}, Spec: clusterv1.MachineSpec{
		ClusterName: "demo", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("user-data")},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "MaasMachine", Name: "new"},
	}}
	w.create(machine)
	w.Expect(w.pass()).To(Equal("0 come, 1 not: machine new (being installed)"), "it was given the former address")
	w.since = metav1.NewTime(machine.CreationTimestamp.Add(-time.Hour))
	w.serves("192.0.2.99", "192.0.2.10")
	w.Expect(w.pass()).To(Equal("0 come, 0 not:"), "a machine that is made an hour after has the new one")
	w.since = metav1.NewTime(machine.CreationTimestamp.Add(time.Hour))
	w.serves("192.0.2.99", "192.0.2.10")
	machine.Status.NodeRef.Name = "new"
	w.Expect(w.client.Status().Update(t.Context(), machine)).To(Succeed())
	w.Expect(w.pass()).To(Equal("0 come, 0 not:"), "its Node speaks for it")

	machine.Status.NodeRef.Name = ""
	w.Expect(w.client.Status().Update(t.Context(), machine)).To(Succeed())
	machine.Finalizers = []string{"test/held"}
	w.Expect(w.client.Update(t.Context(), machine)).To(Succeed())
	w.Expect(w.pass()).To(HavePrefix("0 come, 1 not: machine new"))
	w.Expect(w.client.Delete(t.Context(), machine)).To(Succeed())
	w.Expect(w.pass()).To(Equal("0 come, 0 not:"), "a machine that goes never joins")
}

func TestPaused(t *testing.T) {
	w := newWorld(t)
	w.node("a", former)
	w.hcp.Spec.PausedUntil = ptr.To("true")
	w.Expect(w.client.Update(t.Context(), w.hcp)).To(Succeed())
	w.serves("192.0.2.99", "192.0.2.10")
	w.Expect(w.pass()).To(Equal("nothing"))
	w.Expect(w.asked("a")).To(BeEmpty())
}

func TestListed(t *testing.T) {
	var many []string
	for i := range 7 {
		many = append(many, fmt.Sprintf("node %d (%s)", i, strings.Repeat("x", 500)))
	}
	for text, want := range map[string]string{listed(nil): "", listed([]string{"a", "b"}): "a, b", listed([]string{"1", "2", "3", "4", "5", "6", "7"}): "1, 2, 3, 4, 5 and 2 more"} {
		if text != want {
			t.Errorf("%q, want %q", text, want)
		}
	}
	if got := len(listed(many)); got > maxMessage+10 {
		t.Errorf("%d characters do not fit into a status", got)
	}
}
