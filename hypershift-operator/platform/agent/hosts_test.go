// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	agentv1 "github.com/openshift/hypershift/api/agent/v1beta1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/api/util/contract"
	"github.com/openshift/hypershift/hypershift-operator/platform"
)

// TestHostsOfPools checks that a pool selects hosts by labels, and that a change of the labels replaces the machines.
func TestHostsOfPools(t *testing.T) {
	g, p := NewWithT(t), &Platform{}
	pool := func(labels map[string]string) platform.Pool {
		pool := &hyperv1.NodePool{}
		if labels != nil {
			pool.Spec.Platform.Agent = &hyperv1.AgentNodePoolPlatform{AgentLabelSelector: &metav1.LabelSelector{MatchLabels: labels}}
		}
		return platform.Pool{NodePool: pool}
	}
	selects := func(pool platform.Pool) *metav1.LabelSelector {
		return p.MachineTemplate(pool).(*agentv1.AgentMachineTemplate).Spec.Template.Spec.AgentLabelSelector
	}
	g.Expect(selects(pool(nil))).To(BeNil(), "any host will do")
	chosen := pool(map[string]string{"size": "large"})
	g.Expect(selects(chosen).MatchLabels).To(Equal(map[string]string{"size": "large"}))
	selects(chosen).MatchLabels["size"] = "small"
	g.Expect(chosen.NodePool.Spec.Platform.Agent.AgentLabelSelector.MatchLabels["size"]).To(Equal("large"), "the pool's own is not shared")
	g.Expect(p.RollingTemplate(p.MachineTemplate(chosen))).NotTo(Equal(p.RollingTemplate(p.MachineTemplate(pool(map[string]string{"size": "small"})))))
}

// TestHostsThatGo checks the message about a deletion that waits for hosts. It contains the provider's message if
// there is one.
func TestHostsThatGo(t *testing.T) {
	host := func(name, namespace string, conditions ...contract.Condition) client.Object {
		return &agentv1.AgentMachine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Status: agentv1.AgentMachineStatus{Conditions: conditions}}
	}
	stuck := contract.Condition{Type: "Ready", Status: "False", Message: "the host does not answer"}
	for _, tc := range []struct {
		name    string
		objects []client.Object
		want    string
	}{
		{"When there are no hosts, it should wait for nothing", nil, ""},
		{"When only another cluster has a host, it should wait for nothing", []client.Object{host("a", "clusters-other")}, ""},
		{"When there is one host, it should name it", []client.Object{host("a", "clusters-demo")}, "Waiting for the assisted service to release 1 host; AgentMachine a"},
		{"When there are several hosts, it should count them and report what blocks one", []client.Object{host("a", "clusters-demo", stuck), host("b", "clusters-demo")},
			"Waiting for the assisted service to release 2 hosts; AgentMachine a: the host does not answer"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect((&Platform{}).OrphanedMachines(t.Context(), testClient(t, tc.objects...), testCluster())).To(Equal(tc.want))
		})
	}
	c := interceptor.NewClient(testClient(t).(client.WithWatch), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("timed out")
		}})
	_, err := (&Platform{}).OrphanedMachines(t.Context(), c, testCluster())
	NewWithT(t).Expect(err).To(MatchError("listing AgentMachines of namespace clusters-demo: timed out"))
	reason, message := (&Platform{}).MachineProblem(&corev1.Pod{})
	NewWithT(t).Expect([]string{reason, message}).To(HaveEach(BeEmpty()), "it is no host")
}

// TestWhomTheRightIsFor checks that the binding grants only the cluster's Role, and only to its own provider.
func TestWhomTheRightIsFor(t *testing.T) {
	g, c, cluster := NewWithT(t), testClient(t, agents("agents", "*")), testCluster()
	_, err := (&Platform{}).ReconcileCredentials(t.Context(), c, cluster)
	g.Expect(err).NotTo(HaveOccurred())
	binding := &rbacv1.RoleBinding{ObjectMeta: bindingName(cluster, "agents")}
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(binding), binding)).To(Succeed())
	g.Expect(binding.RoleRef).To(Equal(rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "capi-provider-role-clusters-demo"}))
	role := &rbacv1.Role{}
	g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "agents", Name: binding.RoleRef.Name}, role)).To(Succeed())
}

// TestFormerNamespace checks that the namespace of agents is read from the provider's arguments, even if they are
// incomplete.
func TestFormerNamespace(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{"When the value is a separate argument, it should return it", []string{"--leader-elect", "--agent-namespace", "agents"}, "agents"},
		{"When the value follows an equals sign, it should return it", []string{"--agent-namespace=agents", "--v=4"}, "agents"},
		{"When the flag has no value, it should return nothing", []string{"--agent-namespace"}, ""},
		{"When another flag has the same prefix, it should return nothing", []string{"--agent-namespaces=agents"}, ""},
		{"When there are no arguments, it should return nothing", nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) { NewWithT(t).Expect(namespaceIn(tc.args)).To(Equal(tc.want)) })
	}
	t.Run("When the running provider has no agent namespace, it should revoke no access", func(t *testing.T) {
		g, cluster := NewWithT(t), testCluster()
		running := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: platform.ProviderName}}
		running.Spec.Template.Spec.Containers = []corev1.Container{{Args: []string{"--leader-elect"}}}
		c := testClient(t, agents("agents", "clusters"), running)
		credentials, err := (&Platform{}).ReconcileCredentials(t.Context(), c, cluster)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(credentials.Condition.Status).To(Equal(metav1.ConditionTrue))
	})
	t.Run("When the cluster sets no agent namespace, it should have nothing to delete", func(t *testing.T) {
		cluster := testCluster()
		cluster.HostedCluster.Spec.Platform.Agent = nil
		NewWithT(t).Expect((&Platform{}).DeleteCredentials(t.Context(), testClient(t), cluster)).To(Succeed())
	})
}

// TestNoHostsBeforeAnAddress checks that there is no AgentCluster before the control plane has an address. Hosts that
// boot too early would find no control plane, and would be installed without effect.
func TestNoHostsBeforeAnAddress(t *testing.T) {
	g, cluster := NewWithT(t), testCluster()
	cluster.HostedCluster.Status.IgnitionEndpoint = "10.0.0.1:31000"
	cluster.ControlPlane = &hyperv1.HostedControlPlane{}
	g.Expect((&Platform{}).InfraCluster(cluster)).To(BeNil())
	cluster.ControlPlane = nil
	g.Expect((&Platform{}).InfraCluster(cluster)).To(BeNil())
}

// TestBindingOfOthers checks that a binding of the same name that belongs to another owner is neither changed nor
// deleted.
func TestBindingOfOthers(t *testing.T) {
	for _, owner := range []string{"", "others/demo"} {
		g, cluster := NewWithT(t), testCluster()
		theirs := &rbacv1.RoleBinding{ObjectMeta: bindingName(cluster, "agents"), RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "theirs"}}
		if owner != "" {
			theirs.Annotations = map[string]string{hyperv1.HostedClusterAnnotation: owner}
		}
		c := testClient(t, agents("agents", "*"), theirs)
		_, err := (&Platform{}).ReconcileCredentials(t.Context(), c, cluster)
		g.Expect(err).To(MatchError(ContainSubstring(theirs.Name)))
		g.Expect((&Platform{}).DeleteCredentials(t.Context(), c, cluster)).To(Succeed())
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs)).To(Succeed())
		g.Expect(theirs.RoleRef.Name).To(Equal("theirs"))
		g.Expect(theirs.Subjects).To(BeEmpty())
	}
}
