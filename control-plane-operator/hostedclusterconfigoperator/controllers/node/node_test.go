package node

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

const namespace = "clusters-demo"

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

// pass reconciles worker-1 and returns it, nil when it is gone.
func pass(t *testing.T, node *corev1.Node, machines ...client.Object) (*corev1.Node, error) {
	t.Helper()
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(clusterv1.AddToScheme(scheme))
	r := &Reconciler{
		Guest:      fake.NewClientBuilder().WithScheme(scheme).WithObjects(node).Build(),
		Management: fake.NewClientBuilder().WithScheme(scheme).WithObjects(machines...).Build(),
		Namespace:  namespace,
	}
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
	t.Run("When a node belongs to a machine it should get the labels and taints of its pool, and keep its own", func(t *testing.T) {
		g := NewWithT(t)
		node, err := pass(t, newNode(), machine())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(node.Labels).To(Equal(map[string]string{
			"kubernetes.io/os": "linux", "disk": "ssd", "example.com/row": "7", "hypershift.openshift.io/nodePool": "pool",
		}))
		g.Expect(node.Spec.Taints).To(HaveLen(2))
		g.Expect(node.Annotations).To(HaveKeyWithValue("hypershift.openshift.io/labelsSynced", "true"))
	})
	t.Run("When a node got its labels before it should leave them to the user", func(t *testing.T) {
		g := NewWithT(t)
		done := newNode()
		done.Annotations = map[string]string{"hypershift.openshift.io/labelsSynced": "true"}
		node, err := pass(t, done, machine())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(node.Labels).NotTo(HaveKey("disk"))
	})
	t.Run("When a taint is there already it should not come twice", func(t *testing.T) {
		g := NewWithT(t)
		tainted := newNode()
		tainted.Spec.Taints = append(tainted.Spec.Taints, corev1.Taint{Key: "gpu", Value: "other", Effect: corev1.TaintEffectNoSchedule})
		node, err := pass(t, tainted, machine())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(node.Spec.Taints).To(HaveLen(2))
	})
	t.Run("When no machine knows the node it should wait", func(t *testing.T) {
		g := NewWithT(t)
		node, err := pass(t, newNode())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(node.Annotations).To(BeEmpty())
	})
	t.Run("When the taints cannot be read it should name the machine and touch nothing", func(t *testing.T) {
		g := NewWithT(t)
		wrong := machine()
		wrong.Annotations["hypershift.openshift.io/nodePoolTaints"] = "gpu"
		node, err := pass(t, newNode(), wrong)
		g.Expect(err).To(MatchError(ContainSubstring("Machine pool-a is not a list of taints")))
		g.Expect(node.Labels).NotTo(HaveKey("disk"))
	})
}

func TestNodeOfAMachineThatIsGone(t *testing.T) {
	joined := func(machineName string) *corev1.Node {
		node := newNode()
		node.Annotations = map[string]string{"hypershift.openshift.io/labelsSynced": "true", "hypershift.openshift.io/machine": machineName}
		return node
	}
	byAddress := func() *clusterv1.Machine {
		m := machine()
		m.Status.NodeRef.Name = ""
		m.Status.Addresses = clusterv1.MachineAddresses{{Type: clusterv1.MachineHostName, Address: "Worker-1"}}
		return m
	}
	t.Run("When Cluster API has not learnt of the node yet it should know its machine by the host name", func(t *testing.T) {
		g := NewWithT(t)
		node, err := pass(t, newNode(), byAddress())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(node.Annotations).To(HaveKeyWithValue("hypershift.openshift.io/machine", "pool-a"))
	})
	t.Run("When the machine is gone it should delete its node", func(t *testing.T) {
		g := NewWithT(t)
		node, err := pass(t, joined("pool-a"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(node).To(BeNil())
	})
	t.Run("When the machine was restored without its status it should keep its node", func(t *testing.T) {
		g := NewWithT(t)
		restored := machine()
		restored.Status = clusterv1.MachineStatus{}
		node, err := pass(t, joined("pool-a"), restored)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(node).NotTo(BeNil())
	})
	t.Run("When another machine has the name by now and the node does not run it should delete it, so that the machine can join", func(t *testing.T) {
		g := NewWithT(t)
		left := joined("pool-old")
		left.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
		node, err := pass(t, left, byAddress())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(node).To(BeNil())
	})
	t.Run("When another machine has the name by now and the node runs it should leave it alone", func(t *testing.T) {
		g := NewWithT(t)
		alive := joined("pool-old")
		alive.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		node, err := pass(t, alive, byAddress())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(node).NotTo(BeNil())
	})
	t.Run("When two machines are there under one name it should follow the one that Cluster API says has the node", func(t *testing.T) {
		g := NewWithT(t)
		old := machine()
		old.Name, old.Status = "pool-old", clusterv1.MachineStatus{}
		node, err := pass(t, joined("pool-old"), old, machine())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(node.Annotations).To(HaveKeyWithValue("hypershift.openshift.io/machine", "pool-a"))
		g.Expect(node.Labels).NotTo(HaveKey("disk"), "labels are given once")
	})
	t.Run("When a node never had a machine it should leave it alone", func(t *testing.T) {
		g := NewWithT(t)
		node, err := pass(t, newNode())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(node).NotTo(BeNil())
	})
}

func TestNodeOf(t *testing.T) {
	g := NewWithT(t)
	g.Expect(nodeOf(t.Context(), machine())).To(ConsistOf(HaveField("Name", "worker-1")))
	g.Expect(nodeOf(t.Context(), &clusterv1.Machine{})).To(BeEmpty())
}
