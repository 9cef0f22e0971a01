// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/pause"
)

const namespace = fixture.Namespace

func machine() *clusterv1.Machine {
	return &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "pool-a",
			Labels: map[string]string{
				"managed.hypershift.openshift.io.disk":            "ssd",
				"managed.hypershift.openshift.io.example.com/row": "7",
				"cluster.x-k8s.io/cluster-name":                   "demo",
			},
			Annotations: map[string]string{
				"hypershift.openshift.io/nodePool":       "clusters/pool",
				"hypershift.openshift.io/nodePoolTaints": `[{"key":"gpu","value":"yes","effect":"NoSchedule"}]`,
			},
		},
		Status: clusterv1.MachineStatus{NodeRef: clusterv1.MachineNodeReference{Name: "worker-1"}},
	}
}

var now = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

// newReconciler returns a reconciler for a guest and a hosted namespace with the given objects.
func newReconciler(hcp *hyperv1.HostedControlPlane, nodes []client.Object, machines []client.Object) *Reconciler {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(clusterv1.AddToScheme(scheme))
	utilruntime.Must(hyperv1.AddToScheme(scheme))
	management := fake.NewClientBuilder().WithScheme(scheme).WithObjects(hcp).WithObjects(machines...).Build()
	clock := clocktesting.NewFakePassiveClock(now)
	return &Reconciler{
		Guest:      fake.NewClientBuilder().WithScheme(scheme).WithObjects(nodes...).Build(),
		Management: management, Live: management, Namespace: namespace, Clock: clock, Deletions: NewDeletions(clock),
		Pause: pause.Gate{Management: management, ControlPlane: client.ObjectKeyFromObject(hcp), Clock: clock},
	}
}

// pass reconciles worker-1 and returns it, nil when it is gone.
func pass(t *testing.T, node *corev1.Node, machines ...client.Object) (*corev1.Node, error) {
	t.Helper()
	r := newReconciler(fixture.ControlPlane(), []client.Object{node}, machines)
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(node)})
	after := &corev1.Node{}
	getErr := r.Guest.Get(t.Context(), client.ObjectKeyFromObject(node), after)
	if apierrors.IsNotFound(getErr) {
		return nil, err
	}
	if getErr != nil {
		t.Fatal(getErr)
	}
	return after, err
}

func newNode() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "worker-1", Labels: map[string]string{"kubernetes.io/os": "linux"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "node.kubernetes.io/not-ready", Effect: corev1.TaintEffectNoSchedule}}},
	}
}

func TestReconcile(t *testing.T) {
	t.Run("When a node belongs to a Machine, it should get the pool's labels and taints and keep its own", func(t *testing.T) {
		g := NewWithT(t)
		node, err := pass(t, newNode(), machine())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(node.Labels).To(Equal(map[string]string{
			"kubernetes.io/os": "linux", "disk": "ssd", "example.com/row": "7", "hypershift.openshift.io/nodePool": "pool",
		}))
		g.Expect(node.Spec.Taints).To(HaveLen(2))
		g.Expect(node.Annotations).To(HaveKeyWithValue("hypershift.openshift.io/labelsSynced", "true"))
	})
	t.Run("When a node already got its labels, it should not set them again", func(t *testing.T) {
		g := NewWithT(t)
		done := newNode()
		done.Annotations = map[string]string{"hypershift.openshift.io/labelsSynced": "true"}
		node, err := pass(t, done, machine())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(node.Labels).NotTo(HaveKey("disk"))
	})
	t.Run("When a node already has a taint, it should not add the taint again", func(t *testing.T) {
		g := NewWithT(t)
		tainted := newNode()
		tainted.Spec.Taints = append(tainted.Spec.Taints, corev1.Taint{Key: "gpu", Value: "other", Effect: corev1.TaintEffectNoSchedule})
		node, err := pass(t, tainted, machine())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(node.Spec.Taints).To(HaveLen(2))
	})
	t.Run("When no Machine matches the node, it should not change the node", func(t *testing.T) {
		g := NewWithT(t)
		node, err := pass(t, newNode())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(node.Annotations).To(BeEmpty())
	})
	t.Run("When the taints annotation is invalid, it should name the Machine and not change the node", func(t *testing.T) {
		g := NewWithT(t)
		wrong := machine()
		wrong.Annotations["hypershift.openshift.io/nodePoolTaints"] = "gpu"
		node, err := pass(t, newNode(), wrong)
		g.Expect(err).To(MatchError(ContainSubstring("Machine pool-a is not a list of taints")))
		g.Expect(node.Labels).NotTo(HaveKey("disk"))
	})
}

func TestNodeOf(t *testing.T) {
	g := NewWithT(t)
	g.Expect(nodeOf(t.Context(), machine())).To(ConsistOf(HaveField("Name", "worker-1")))
	g.Expect(nodeOf(t.Context(), &clusterv1.Machine{})).To(BeEmpty())
}
