// SPDX-License-Identifier: Apache-2.0

package kubevirt

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
)

// publishedAt returns demo with its virtual machines in an external cluster, and its services at node ports of these
// addresses.
func publishedAt(addresses ...string) platform.Cluster {
	cluster := testCluster(elsewhere())
	for _, address := range addresses {
		cluster.HostedCluster.Spec.Services = append(cluster.HostedCluster.Spec.Services, hyperv1.ServicePublishingStrategyMapping{
			ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{NodePort: &hyperv1.NodePortPublishingStrategy{Address: address}}})
	}
	return cluster
}

// ownNetwork returns the Network configuration of an OpenShift cluster.
func ownNetwork(spec map[string]any) client.Object {
	network := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	network.SetGroupVersionKind(networks)
	network.SetName("cluster")
	return network
}

func usualNetwork() client.Object {
	return ownNetwork(map[string]any{"clusterNetwork": []any{map[string]any{"cidr": "10.128.0.0/14"}}, "serviceNetwork": []any{"172.30.0.0/16"}})
}

// keptPolicy returns demo's policy in the external cluster; nil for none.
func keptPolicy(t *testing.T, c client.Client) *networkingv1.NetworkPolicy {
	t.Helper()
	policy := &networkingv1.NetworkPolicy{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "vms", Name: "virt-launcher-demo-abcde"}, policy); err != nil {
		return nil
	}
	return policy
}

// connect reconciles once, and returns the condition of the policy.
func (a *abroad) connect(t *testing.T, cluster platform.Cluster) (metav1.Condition, time.Duration, error) {
	t.Helper()
	connection, err := a.Connect(t.Context(), a.here, cluster)
	g := NewWithT(t)
	g.Expect(connection.Gone).To(ConsistOf(hyperv1.KubeVirtNodesLiveMigratable), "no pool told anything")
	g.Expect(connection.Conditions).To(HaveLen(1))
	g.Expect(connection.Conditions[0].Type).To(Equal("ValidKubeVirtInfraNetworkPolicyRBAC"))
	return connection.Conditions[0], connection.CheckAgain, err
}

// TestConnectHere checks that nothing is reported about an external cluster if virtual machines run in the management
// cluster. Other policies apply there.
func TestConnectHere(t *testing.T) {
	g, c := NewWithT(t), testClient(t)
	connection, err := (&Platform{}).Connect(t.Context(), c, testCluster(nil))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(connection.Gone).To(ConsistOf(hyperv1.KubeVirtNodesLiveMigratable, hyperv1.ValidKubeVirtInfraNetworkPolicyRBAC))
	g.Expect(connection.Conditions).To(BeEmpty())
	g.Expect(connection.CheckAgain).To(BeZero())
	g.Expect((&Platform{}).Disconnect(t.Context(), c, testCluster(nil))).To(BeEmpty())
	_, err = (&Platform{}).Connect(t.Context(), failingClient(otherCluster(t), "list", errors.New("etcd is slow")), testCluster(nil))
	g.Expect(err).To(MatchError(And(ContainSubstring("listing NodePools"), ContainSubstring("etcd is slow"))))
}

// TestPolicy checks the egress and ingress of virtual machines in an external cluster.
func TestPolicy(t *testing.T) {
	g, a := NewWithT(t), newAbroad(t, ownNetwork(map[string]any{
		"clusterNetwork": []any{map[string]any{"cidr": "10.129.3.4/14"}, map[string]any{"cidr": "fd01::/48"}, map[string]any{"cidr": "nonsense"}, "nonsense", map[string]any{}},
		"serviceNetwork": []any{"172.30.0.0/16", "fd02::/112"}}))
	said, again, err := a.connect(t, publishedAt("192.0.2.10", "192.0.2.10", "2001:db8::10", "ports.example.com", ""))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(said.Status).To(Equal(metav1.ConditionTrue))
	g.Expect(again).To(Equal(goodFor))
	policy := keptPolicy(t, a.there)
	g.Expect(policy.Labels).To(Equal(map[string]string{"hypershift.openshift.io/infra-id": "demo-abcde"}))
	g.Expect(policy.Annotations).To(HaveKeyWithValue("hypershift.openshift.io/cluster", "clusters/demo"))
	machines := metav1.LabelSelector{MatchLabels: map[string]string{"hypershift.openshift.io/infra-id": "demo-abcde", "kubevirt.io": "virt-launcher"}}
	g.Expect(policy.Spec.PodSelector).To(Equal(machines))
	g.Expect(policy.Spec.PolicyTypes).To(ConsistOf(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress))

	g.Expect(policy.Spec.Ingress).To(HaveLen(1))
	g.Expect(policy.Spec.Ingress[0].From).To(BeEmpty(), "everybody may come in")
	var protocols []corev1.Protocol
	for _, port := range policy.Spec.Ingress[0].Ports {
		g.Expect(port.Port).To(BeNil())
		protocols = append(protocols, *port.Protocol)
	}
	g.Expect(protocols).To(ConsistOf(corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP))

	g.Expect(policy.Spec.Egress).To(HaveLen(3))
	for _, rule := range policy.Spec.Egress {
		g.Expect(rule.Ports).To(BeEmpty())
	}
	g.Expect(policy.Spec.Egress[0].To).To(ConsistOf(
		networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: "0.0.0.0/0", Except: []string{"172.30.0.0/16", "10.128.0.0/14"}}},
		networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: "::/0", Except: []string{"fd02::/112", "fd01::/48"}}},
		networkingv1.NetworkPolicyPeer{PodSelector: &machines},
		networkingv1.NetworkPolicyPeer{
			PodSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"dns.operator.openshift.io/daemonset-dns": "default"}},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "openshift-dns"}}},
		networkingv1.NetworkPolicyPeer{
			PodSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"ingresscontroller.operator.openshift.io/deployment-ingresscontroller": "default"}},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"name": "openshift-ingress"}}},
	))
	// The published services may be at an address of a blocked network.
	g.Expect(policy.Spec.Egress[1].To).To(ConsistOf(networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: "192.0.2.10/32"}}))
	g.Expect(policy.Spec.Egress[2].To).To(ConsistOf(networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: "2001:db8::10/128"}}))
}

// TestPolicyKept checks that a settled cluster makes no calls, and that a third-party change is reverted at the next
// check.
func TestPolicyKept(t *testing.T) {
	g, a := NewWithT(t), newAbroad(t, usualNetwork())
	cluster := publishedAt("192.0.2.10")
	cluster.HostedCluster.Generation = 1
	first, _, err := a.connect(t, cluster)
	g.Expect(err).NotTo(HaveOccurred())
	before := map[string]int{"get": 2, "create": 1}
	g.Expect(a.calls).To(Equal(before))
	said, again, err := a.connect(t, cluster)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(said).To(Equal(first))
	g.Expect(again).To(Equal(goodFor))
	g.Expect(a.calls).To(Equal(before), "it was asked a moment ago")

	moved := publishedAt("192.0.2.20")
	moved.HostedCluster.Generation = 2
	_, _, err = a.connect(t, moved)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(keptPolicy(t, a.there).Spec.Egress[1].To[0].IPBlock.CIDR).To(Equal("192.0.2.20/32"), "a changed cluster does not wait for minutes")

	policy := keptPolicy(t, a.there)
	policy.Spec.Egress, policy.Labels = nil, nil
	g.Expect(a.there.Update(t.Context(), policy)).To(Succeed())
	a.later()
	_, _, err = a.connect(t, moved)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(keptPolicy(t, a.there).Spec.Egress).To(HaveLen(2))
	g.Expect(keptPolicy(t, a.there).Labels).To(HaveKeyWithValue("hypershift.openshift.io/infra-id", "demo-abcde"))
	updates := a.calls["update"]
	a.later()
	_, _, err = a.connect(t, moved)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(a.calls["update"]).To(Equal(updates), "what is right is not written")
}

// TestPolicyRights checks that missing rights of the kubeconfig are reported, and that the rest of the work is done.
func TestPolicyRights(t *testing.T) {
	for _, tc := range []struct {
		name         string
		fails        func(string) error
		networks     bool
		reason, says string
		made         bool
		again        time.Duration
	}{
		{"When the cluster's networks cannot be found, it should create the policy without them", nil, false, "InfraClusterNetworkReadFailed", "grant the user of the kubeconfig get", true, goodFor},
		{"When the kubeconfig may not create policies, it should report the missing permission", only("create", forbidden), true, "InfraClusterNetworkPolicyCreateFailed", "user vms cannot", false, lastWait},
		{"When the namespace does not exist, it should ask for it", only("create", absent), true, "InfraClusterNetworkPolicyCreateFailed", "has no namespace vms: create it", false, lastWait},
		{"When the kubeconfig is rejected, it should report it", only("", unauthorized), true, "InfraClusterUnauthorized", "does not accept", false, firstWait},
		{"When the external cluster does not answer, it should report it", only("", unanswered), true, "InfraClusterUnreachable", "does not answer", false, firstWait},
		{"When the networks are temporarily unavailable, it should wait before it creates the policy", only("get", unavailable), true, "InfraClusterUnreachable", "not available", false, firstWait},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, a := NewWithT(t), newAbroad(t)
			if tc.networks {
				g.Expect(a.there.Create(t.Context(), usualNetwork())).To(Succeed())
			}
			a.fails = tc.fails
			said, again, err := a.connect(t, publishedAt())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(said).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", tc.reason)))
			g.Expect(said.Message).To(ContainSubstring(tc.says))
			g.Expect(again).To(Equal(tc.again))
			policy := keptPolicy(t, a.there)
			g.Expect(policy != nil).To(Equal(tc.made))
			if policy != nil {
				g.Expect(policy.Spec.Egress[0].To[0].IPBlock.Except).To(BeEmpty())
			}
			a.fails = nil
			g.Expect(client.IgnoreAlreadyExists(a.there.Create(t.Context(), usualNetwork()))).To(Succeed())
			a.later()
			said, _, err = a.connect(t, publishedAt())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(said.Status).To(Equal(metav1.ConditionTrue), "it comes by itself")
			g.Expect(keptPolicy(t, a.there).Spec.Egress[0].To[0].IPBlock.Except).To(HaveLen(2))
		})
	}
	t.Run("When only reading the networks is forbidden, it should still create the policy", func(t *testing.T) {
		g, a := NewWithT(t), newAbroad(t)
		first := true
		a.fails = func(string) error {
			if first {
				first = false
				return forbidden
			}
			return nil
		}
		said, _, err := a.connect(t, publishedAt())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(said.Reason).To(Equal("InfraClusterNetworkReadFailed"))
		g.Expect(keptPolicy(t, a.there)).NotTo(BeNil())
	})
	t.Run("When a policy of that name belongs to another owner, it should not change or delete it", func(t *testing.T) {
		g := NewWithT(t)
		theirs := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "vms", Name: "virt-launcher-demo-abcde"}}
		a := newAbroad(t, theirs, usualNetwork())
		said, _, err := a.connect(t, publishedAt())
		g.Expect(err).To(HaveOccurred())
		g.Expect(said).To(And(HaveField("Status", metav1.ConditionUnknown), HaveField("Message", ContainSubstring("was not created"))))
		g.Expect(keptPolicy(t, a.there).Spec.Egress).To(BeEmpty())
		g.Expect(a.Disconnect(t.Context(), a.here, publishedAt())).To(BeEmpty())
		g.Expect(keptPolicy(t, a.there)).NotTo(BeNil())
	})
}

// TestDisconnect checks that the policy is deleted before the cluster. The deletion waits for an unreachable cluster
// unless the user removes its kubeconfig.
func TestDisconnect(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fails func(string) error
		// without deletes the user's Secret.
		without bool
		waits   string
		stays   bool
	}{
		{"When the external cluster answers, it should delete the policy", nil, false, "", false},
		{"When the permission was revoked, it should not wait", only("", forbidden), false, "", true},
		{"When the external cluster does not answer, it should report the wait and how to skip it", only("", unanswered), false,
			"Waiting to delete NetworkPolicy vms/virt-launcher-demo-abcde of virtual machines: the cluster for virtual machines cannot be used: it does not answer: " +
				"check the server in its kubeconfig, and that the management cluster reaches it; delete Secret clusters/infra to leave it behind", true},
		{"When the kubeconfig is rejected, it should wait for a valid one", only("", unauthorized), false, "replace it with a valid one", true},
		{"When the user deleted the kubeconfig, it should not wait", only("", unanswered), true, "", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, a := NewWithT(t), newAbroad(t, usualNetwork())
			_, _, err := a.connect(t, publishedAt())
			g.Expect(err).NotTo(HaveOccurred())
			a.fails = tc.fails
			if tc.without {
				g.Expect(a.here.Delete(t.Context(), userSecret("", ""))).To(Succeed())
			}
			waits, err := a.Disconnect(t.Context(), a.here, publishedAt())
			g.Expect(err).NotTo(HaveOccurred())
			if tc.waits == "" {
				g.Expect(waits).To(BeEmpty())
			} else {
				g.Expect(waits).To(ContainSubstring(tc.waits))
			}
			g.Expect(keptPolicy(t, a.there) != nil).To(Equal(tc.stays))
		})
	}
	t.Run("When the policy is already gone, it should not call the cluster again during the deletion", func(t *testing.T) {
		g, a := NewWithT(t), newAbroad(t)
		for range 3 {
			g.Expect(a.Disconnect(t.Context(), a.here, publishedAt())).To(BeEmpty())
		}
		g.Expect(a.calls).To(Equal(map[string]int{"get": 1}))
	})
	t.Run("When a cluster is created again with the same name, it should get its policy again", func(t *testing.T) {
		g, a := NewWithT(t), newAbroad(t, usualNetwork())
		for range 2 {
			_, _, err := a.connect(t, publishedAt())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(keptPolicy(t, a.there)).NotTo(BeNil())
			g.Expect(a.Disconnect(t.Context(), a.here, publishedAt())).To(BeEmpty())
			g.Expect(keptPolicy(t, a.there)).To(BeNil())
		}
	})
	t.Run("When the policy is not deleted yet, it should keep the connection", func(t *testing.T) {
		g, a := NewWithT(t), newAbroad(t)
		a.fails = only("", unanswered)
		g.Expect(a.Disconnect(t.Context(), a.here, publishedAt())).NotTo(BeEmpty())
		g.Expect(a.infra.known).To(HaveLen(1))
	})
	t.Run("When the user's Secret cannot be read, it should return an error and keep waiting", func(t *testing.T) {
		g, a := NewWithT(t), newAbroad(t)
		a.fails = only("", unanswered)
		_, err := a.Disconnect(t.Context(), failingGet(a.here, "infra"), publishedAt())
		g.Expect(err).To(MatchError(ContainSubstring("timed out")))
	})
	t.Run("When the cluster references no Secret, it should not wait", func(t *testing.T) {
		g, cluster := NewWithT(t), publishedAt()
		cluster.HostedCluster.Spec.Platform.Kubevirt.Credentials.InfraKubeConfigSecret = nil
		g.Expect((&Platform{}).Disconnect(t.Context(), testClient(t), cluster)).To(BeEmpty())
	})
}

// TestPoolsSumUp checks that a cluster summarizes the conditions of its own pools, sorted by name.
func TestPoolsSumUp(t *testing.T) {
	pool := func(namespace, name, cluster string, status corev1.ConditionStatus, conditionType string) client.Object {
		return &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: hyperv1.NodePoolSpec{ClusterName: cluster},
			Status: hyperv1.NodePoolStatus{Conditions: []hyperv1.NodePoolCondition{{Type: conditionType, Status: status, Message: "of " + name}}}}
	}
	const migratableType = hyperv1.NodePoolKubeVirtLiveMigratableType
	for _, tc := range []struct {
		name  string
		pools []client.Object
		want  metav1.ConditionStatus // empty if there is no condition
		says  string
	}{
		{"When another cluster's pool is not migratable, it should ignore that pool", []client.Object{pool("clusters", "a", "other", "False", migratableType)}, "", ""},
		{"When a pool in another namespace is not migratable, it should ignore that pool", []client.Object{pool("others", "a", "demo", "False", migratableType)}, "", ""},
		{"When another condition of a pool is false, it should ignore that condition", []client.Object{pool("clusters", "a", "demo", "False", hyperv1.NodePoolReadyConditionType)}, "", ""},
		{"When one of two pools is not migratable, it should name only that pool", []client.Object{
			pool("clusters", "a", "demo", "True", migratableType), pool("clusters", "b", "demo", "False", migratableType)}, "False", "NodePool b: of b"},
		{"When several pools are not migratable, it should name each once", []client.Object{
			pool("clusters", "b", "demo", "False", migratableType), pool("clusters", "a", "demo", "False", migratableType)}, "False", "NodePool a: of a\nNodePool b: of b"},
		{"When a pool's condition is unknown, it should not report it as not migratable", []client.Object{pool("clusters", "a", "demo", "Unknown", migratableType)}, "True", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			connection, err := migratable(t.Context(), testClient(t, tc.pools...), testCluster(nil).HostedCluster)
			g.Expect(err).NotTo(HaveOccurred())
			if tc.want == "" {
				g.Expect(connection.Conditions).To(BeEmpty())
				return
			}
			g.Expect(connection.Gone).To(BeEmpty())
			g.Expect(connection.Conditions).To(HaveLen(1))
			g.Expect(connection.Conditions[0].Status).To(Equal(tc.want))
			if tc.says != "" {
				g.Expect(connection.Conditions[0].Message).To(Equal(tc.says))
			}
		})
	}
}
