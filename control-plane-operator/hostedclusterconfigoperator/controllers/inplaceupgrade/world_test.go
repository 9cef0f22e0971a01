// SPDX-License-Identifier: Apache-2.0

package inplaceupgrade

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/pause"
	"github.com/openshift/hypershift/support/testenv"
)

// before and after are the configurations of an update, each with its kubelet version.
const (
	before, beforeKubelet = "aaaa1111", "v1.36.3"
	after, afterKubelet   = "bbbb2222", "v1.36.4"
)

// servers are the API servers of a management cluster and of a guest.
type servers struct{ management, guest client.WithWatch }

func start(t *testing.T) servers {
	t.Helper()
	scheme := clientgoscheme.Scheme
	for _, add := range []error{hyperv1.AddToScheme(scheme), clusterv1.AddToScheme(scheme)} {
		if add != nil {
			t.Fatal(add)
		}
	}
	connect := func(folders ...string) client.WithWatch {
		config := testenv.Start(t, folders...)
		config.QPS = -1 // No limit: the fakes send far more requests than a controller does.
		c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	return servers{management: connect(crds.HyperShift, crds.ClusterAPI), guest: connect()}
}

// world is a pool of nodes with a separate namespace in the management cluster, and a fake node-agent for each node.
type world struct {
	*GomegaWithT
	t *testing.T
	servers
	namespace string
	clock     *clocktesting.FakeClock
	*Reconciler

	// refuses sets how a node's agent ends: a state and a message, or no answer at all with "silent".
	refuses map[string][2]string
	// kubelets sets the version that a node's kubelet reports after the update, if it is not the expected one.
	kubelets map[string]string
	// busiest is the maximum number of nodes that were cordoned or updating at once.
	busiest int
}

func newWorld(t *testing.T, s servers, namespace string, nodes int32) *world {
	t.Helper()
	w := &world{GomegaWithT: NewWithT(t), t: t, servers: s, namespace: namespace, clock: clocktesting.NewFakeClock(time.Now().Add(time.Hour).Truncate(time.Second)),
		refuses: map[string][2]string{}, kubelets: map[string]string{}}
	hcp := fixture.ControlPlane()
	hcp.Namespace = namespace
	w.create(s.management, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, hcp)
	w.Reconciler = w.reconciler(s.management, s.guest)
	ms := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pool", Annotations: map[string]string{
		hyperv1.NodePoolTargetConfigVersionAnnotation: before, hyperv1.NodePoolCurrentConfigVersionAnnotation: before,
		hyperv1.NodePoolMaxUnavailableAnnotation: "1", hyperv1.NodePoolKubeletVersionAnnotation: beforeKubelet[1:]}},
		Spec: clusterv1.MachineSetSpec{ClusterName: "demo", Replicas: ptr.To(nodes), Selector: metav1.LabelSelector{MatchLabels: map[string]string{"pool": "pool"}},
			Template: clusterv1.MachineTemplateSpec{ObjectMeta: clusterv1.ObjectMeta{Labels: map[string]string{"pool": "pool"}}, Spec: machineSpec()}}}
	w.create(s.management, ms)
	for i := range nodes {
		w.join(w.name(int(i)))
	}
	return w
}

func machineSpec() clusterv1.MachineSpec {
	return clusterv1.MachineSpec{ClusterName: "demo", Version: "1.36.4", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("user-data")},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "MaasMachine", Name: "machine"}}
}

func (w *world) reconciler(management, guest client.WithWatch) *Reconciler {
	return &Reconciler{Guest: guest, GuestLive: guest, Management: management, ManagementLive: management, Namespace: w.namespace, Clock: w.clock,
		Pause: pause.Gate{Management: management, ControlPlane: client.ObjectKey{Namespace: w.namespace, Name: "demo"}, Clock: w.clock}}
}

// name returns the name of the i-th node, which is also the name of its Machine.
func (w *world) name(i int) string { return fmt.Sprintf("%s-%d", w.namespace, i) }

func (w *world) create(c client.Client, objects ...client.Object) {
	w.t.Helper()
	for _, obj := range objects {
		w.Expect(c.Create(w.t.Context(), obj)).To(Succeed())
	}
}

// join creates a Machine of the set and its node, which runs the set's previous configuration.
func (w *world) join(name string) {
	w.t.Helper()
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Spec: machineSpec()}
	w.Expect(controllerutil.SetControllerReference(w.set(), machine, w.management.Scheme())).To(Succeed())
	w.create(w.management, machine)
	machine.Status.NodeRef.Name = name
	w.Expect(w.management.Status().Update(w.t.Context(), machine)).To(Succeed())
	w.create(w.guest, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
		hyperv1.CurrentNodeConfigAnnotation: before, hyperv1.NodeConfigStateAnnotation: hyperv1.NodeConfigDone}}})
	w.kubelet(name, true, beforeKubelet)
}

func (w *world) set() *clusterv1.MachineSet {
	w.t.Helper()
	ms := &clusterv1.MachineSet{}
	w.Expect(w.management.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "pool"}, ms)).To(Succeed())
	return ms
}

func (w *world) machine(name string) *clusterv1.Machine {
	w.t.Helper()
	machine := &clusterv1.Machine{}
	w.Expect(w.management.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, machine)).To(Succeed())
	return machine
}

func (w *world) node(name string) *corev1.Node {
	w.t.Helper()
	node := &corev1.Node{}
	w.Expect(w.guest.Get(w.t.Context(), client.ObjectKey{Name: name}, node)).To(Succeed())
	return node
}

// nodes returns the existing nodes of the pool.
func (w *world) nodes() []*corev1.Node {
	w.t.Helper()
	list, all := &corev1.NodeList{}, []*corev1.Node{}
	w.Expect(w.guest.List(w.t.Context(), list)).To(Succeed())
	for i := range list.Items {
		if name := list.Items[i].Name; len(name) > len(w.namespace) && name[:len(w.namespace)+1] == w.namespace+"-" {
			all = append(all, &list.Items[i])
		}
	}
	return all
}

// aim sets the target of the nodes, as the operator does.
func (w *world) aim(config, kubelet string) {
	w.t.Helper()
	ms := w.set()
	if current := ms.Annotations[hyperv1.NodePoolCurrentConfigVersionAnnotation]; current == config {
		ms.Annotations[hyperv1.NodePoolCurrentConfigVersionAnnotation] = ms.Annotations[hyperv1.NodePoolTargetConfigVersionAnnotation]
	}
	ms.Annotations[hyperv1.NodePoolTargetConfigVersionAnnotation], ms.Annotations[hyperv1.NodePoolKubeletVersionAnnotation] = config, kubelet[1:]
	w.Expect(w.management.Update(w.t.Context(), ms)).To(Succeed())
}

func (w *world) limit(nodes int) {
	w.t.Helper()
	ms := w.set()
	ms.Annotations[hyperv1.NodePoolMaxUnavailableAnnotation] = strconv.Itoa(nodes)
	w.Expect(w.management.Update(w.t.Context(), ms)).To(Succeed())
}

// annotates sets annotations on a node; an empty value removes an annotation.
func (w *world) annotates(name string, annotations map[string]string) {
	w.t.Helper()
	node := w.node(name)
	for key, value := range annotations {
		annotate(node, key, value)
		if value == "" {
			delete(node.Annotations, key)
		}
	}
	w.Expect(w.guest.Update(w.t.Context(), node)).To(Succeed())
}

// kubelet sets the status that a node's kubelet reports.
func (w *world) kubelet(name string, ready bool, version string) {
	w.t.Helper()
	node := w.node(name)
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
	node.Status.NodeInfo.KubeletVersion = version
	w.Expect(w.guest.Status().Update(w.t.Context(), node)).To(Succeed())
}

// pod creates a pod on a node.
func (w *world) pod(node, name string, mutate func(*corev1.Pod)) *corev1.Pod {
	w.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: w.namespace + "-" + name, Labels: map[string]string{"app": w.namespace}},
		Spec: corev1.PodSpec{NodeName: node, TerminationGracePeriodSeconds: ptr.To[int64](0), Containers: []corev1.Container{{Name: "app", Image: "registry.example/app"}}}}
	if mutate != nil {
		mutate(pod)
	}
	w.create(w.guest, pod)
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	w.Expect(w.guest.Status().Update(w.t.Context(), pod)).To(Succeed())
	return pod
}

// pods returns the names of the pods on a node.
func (w *world) pods(node string) []string {
	w.t.Helper()
	list, names := &corev1.PodList{}, []string{}
	w.Expect(w.guest.List(w.t.Context(), list, client.MatchingFields{"spec.nodeName": node})).To(Succeed())
	for _, pod := range list.Items {
		names = append(names, pod.Name)
	}
	return names
}

func (w *world) pass() (ctrl.Result, error) {
	return w.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: w.namespace, Name: "pool"}})
}

func (w *world) mustPass() {
	w.t.Helper()
	_, err := w.pass()
	w.Expect(err).NotTo(HaveOccurred())
}

// agents runs one step of the node-agent of each node: it sees a request, works, and ends.
func (w *world) agents() {
	w.t.Helper()
	busy := 0
	for _, node := range w.nodes() {
		desired, current := node.Annotations[hyperv1.DesiredNodeConfigAnnotation], node.Annotations[hyperv1.CurrentNodeConfigAnnotation]
		state, refuses := node.Annotations[hyperv1.NodeConfigStateAnnotation], w.refuses[node.Name]
		if node.Spec.Unschedulable || state == hyperv1.NodeConfigWorking {
			busy++
		}
		switch {
		case desired == "" || refuses[0] == "silent" || state == refuses[0] && state != "":
		case desired == current:
			if state != hyperv1.NodeConfigDone {
				w.annotates(node.Name, map[string]string{hyperv1.NodeConfigStateAnnotation: hyperv1.NodeConfigDone})
			}
		case state != hyperv1.NodeConfigWorking:
			w.Expect(node.Spec.Unschedulable).To(BeTrue(), "a node is cordoned before it is asked")
			w.annotates(node.Name, map[string]string{hyperv1.NodeConfigStateAnnotation: hyperv1.NodeConfigWorking})
		case refuses[0] != "":
			w.annotates(node.Name, map[string]string{hyperv1.NodeConfigStateAnnotation: refuses[0], hyperv1.NodeConfigMessageAnnotation: refuses[1]})
		default:
			version := map[string]string{before: beforeKubelet, after: afterKubelet}[desired]
			if other := w.kubelets[node.Name]; other != "" {
				version = other
			}
			w.kubelet(node.Name, true, version)
			w.annotates(node.Name, map[string]string{hyperv1.NodeConfigStateAnnotation: hyperv1.NodeConfigDone, hyperv1.CurrentNodeConfigAnnotation: desired})
		}
	}
	w.busiest = max(w.busiest, busy)
}

func (w *world) step() {
	w.t.Helper()
	w.mustPass()
	w.agents()
}

// until runs steps until a condition holds.
func (w *world) until(what string, holds func() bool) {
	w.t.Helper()
	for range 40 {
		if w.step(); holds() {
			return
		}
	}
	for _, node := range w.nodes() {
		w.t.Logf("%s: cordoned %v, %v", node.Name, node.Spec.Unschedulable, node.Annotations)
	}
	w.t.Fatalf("%s never came: %v", what, w.set().Annotations)
}

func (w *world) through() bool {
	w.t.Helper()
	a := w.set().Annotations
	return a[hyperv1.NodePoolCurrentConfigVersionAnnotation] == a[hyperv1.NodePoolTargetConfigVersionAnnotation]
}

func (w *world) failure() string {
	w.t.Helper()
	return w.set().Annotations[hyperv1.NodePoolUpgradeInProgressFalseAnnotation]
}

func (w *world) progress() string {
	w.t.Helper()
	return w.set().Annotations[hyperv1.NodePoolUpgradeInProgressTrueAnnotation]
}

// have returns the number of nodes that run a configuration.
func (w *world) have(config string) int {
	w.t.Helper()
	count := 0
	for _, node := range w.nodes() {
		if node.Annotations[hyperv1.CurrentNodeConfigAnnotation] == config {
			count++
		}
	}
	return count
}

// tidy asserts that the update left nothing behind.
func (w *world) tidy() {
	w.t.Helper()
	for _, node := range w.nodes() {
		w.Expect(node.Spec.Unschedulable).To(BeFalse(), node.Name)
		w.Expect(node.Annotations).NotTo(HaveKey(hyperv1.NodeUpdateCordonedAnnotation), node.Name)
		w.Expect(w.machine(node.Name).Annotations).NotTo(HaveKey(markAnnotation), node.Name)
	}
	w.Expect(w.progress()).To(BeEmpty())
	w.Expect(w.failure()).To(BeEmpty())
}

var errKilled = errors.New("killed")

// killed returns a pair of clients whose writes fail from the nth on, as if the process was killed there.
func (w *world) killed(nth int) (management, guest client.WithWatch) {
	writes := 0
	die := func() error {
		if writes++; writes >= nth {
			return errKilled
		}
		return nil
	}
	funcs := interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := die(); err != nil {
				return err
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, sub string, obj, content client.Object, opts ...client.SubResourceCreateOption) error {
			if err := die(); err != nil {
				return err
			}
			return c.SubResource(sub).Create(ctx, obj, content, opts...)
		},
	}
	return interceptor.NewClient(w.management, funcs), interceptor.NewClient(w.guest, funcs)
}
