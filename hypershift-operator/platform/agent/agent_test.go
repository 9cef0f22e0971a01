// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	agentv1 "github.com/openshift/hypershift/api/agent/v1beta1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/api/util/contract"
	"github.com/openshift/hypershift/hypershift-operator/platform"
)

func testCluster() platform.Cluster {
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo"}}
	hc.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AgentPlatform, Agent: &hyperv1.AgentPlatformSpec{AgentNamespace: "agents"}}
	return platform.Cluster{HostedCluster: hc, Namespace: "clusters-demo"}
}

// agents returns a namespace whose Agents are for clusters of the given namespaces.
func agents(name, clusters string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{hyperv1.AgentsForAnnotation: clusters}}}
}

func testClient(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := agentv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

func TestInfraCluster(t *testing.T) {
	g := NewWithT(t)
	cluster := testCluster()
	g.Expect((&Platform{}).InfraCluster(cluster)).To(BeNil(), "there is no control plane")
	cluster.ControlPlane = &hyperv1.HostedControlPlane{}
	cluster.ControlPlane.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "10.0.0.1", Port: 6443}
	g.Expect((&Platform{}).InfraCluster(cluster)).To(BeNil(), "hosts could not fetch their configuration")
	cluster.HostedCluster.Status.IgnitionEndpoint = "10.0.0.1:31000"
	object := (&Platform{}).InfraCluster(cluster)
	g.Expect(object.Mutate()).To(Succeed())
	infra := object.Object.(*agentv1.AgentCluster)
	g.Expect(infra.Name).To(Equal("demo"))
	g.Expect(infra.Spec).To(Equal(agentv1.AgentClusterSpec{
		ControlPlaneEndpoint: agentv1.APIEndpoint{Host: "10.0.0.1", Port: 6443},
		IgnitionEndpoint: &agentv1.IgnitionEndpoint{URL: "https://10.0.0.1:31000/ignition",
			CACertificateReference: &agentv1.CACertificateReference{Namespace: "clusters-demo", Name: "ignition-server-ca-cert"}},
	}))
}

func TestAccess(t *testing.T) {
	p, cluster := &Platform{}, testCluster()
	t.Run("When the agents' namespace is missing, it should report it and check again", func(t *testing.T) {
		g := NewWithT(t)
		credentials, err := p.ReconcileCredentials(t.Context(), testClient(t), cluster)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(credentials.Condition.Status).To(Equal(metav1.ConditionFalse))
		g.Expect(credentials.Condition.Message).To(ContainSubstring("no namespace agents"))
		g.Expect(credentials.CheckAgain).To(BeNumerically(">", 0))
	})
	t.Run("When the agents' namespace is being deleted, it should report it as missing", func(t *testing.T) {
		g, going := NewWithT(t), agents("agents", "clusters")
		going.Finalizers, going.DeletionTimestamp = []string{"kubernetes"}, ptr.To(metav1.Now())
		credentials, err := p.ReconcileCredentials(t.Context(), testClient(t, going), cluster)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(credentials.Condition.Message).To(ContainSubstring("no namespace agents"))
	})
	t.Run("When the agents' namespace exists, it should grant the provider access to agents until deletion", func(t *testing.T) {
		g := NewWithT(t)
		c := testClient(t, agents("agents", "others, clusters"))
		credentials, err := p.ReconcileCredentials(t.Context(), c, cluster)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(credentials.Condition.Status).To(Equal(metav1.ConditionTrue))
		role, binding := &rbacv1.Role{ObjectMeta: roleName(cluster, "agents")}, &rbacv1.RoleBinding{ObjectMeta: bindingName(cluster, "agents")}
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(role), role)).To(Succeed())
		g.Expect(role.Rules).To(HaveLen(1))
		g.Expect(role.Rules[0].Resources).To(Equal([]string{"agents"}))
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(binding), binding)).To(Succeed())
		g.Expect(binding.Subjects).To(ConsistOf(rbacv1.Subject{Kind: "ServiceAccount", Namespace: "clusters-demo", Name: "capi-provider"}))
		g.Expect(p.DeleteCredentials(t.Context(), c, cluster)).To(Succeed())
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(role), role)).NotTo(Succeed())
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(binding), binding)).NotTo(Succeed())
	})
	for _, args := range [][]string{{"--leader-elect", "--agent-namespace=agents"}, {"--agent-namespace", "agents", "--leader-elect"}} {
		t.Run("When the cluster sets another namespace, it should revoke access to the previous one", func(t *testing.T) {
			g := NewWithT(t)
			running := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: platform.ProviderName}}
			running.Spec.Template.Spec.Containers = []corev1.Container{{Args: args}}
			c := testClient(t, agents("agents", "clusters"), agents("others", "*"), running)
			_, err := p.ReconcileCredentials(t.Context(), c, cluster)
			g.Expect(err).NotTo(HaveOccurred())
			moved := testCluster()
			moved.HostedCluster.Spec.Platform.Agent.AgentNamespace = "others"
			_, err = p.ReconcileCredentials(t.Context(), c, moved)
			g.Expect(err).NotTo(HaveOccurred())
			former, now := &rbacv1.RoleBinding{ObjectMeta: bindingName(cluster, "agents")}, &rbacv1.RoleBinding{ObjectMeta: bindingName(cluster, "others")}
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(former), former)).NotTo(Succeed())
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(now), now)).To(Succeed())
		})
	}
	t.Run("When the agents are not for the cluster's namespace, it should revoke the provider's access", func(t *testing.T) {
		g := NewWithT(t)
		namespace := agents("agents", "clusters")
		c := testClient(t, namespace)
		_, err := p.ReconcileCredentials(t.Context(), c, cluster)
		g.Expect(err).NotTo(HaveOccurred())
		for _, clusters := range []string{"", "other", "clusters-2,*-clusters"} {
			namespace.Annotations[hyperv1.AgentsForAnnotation] = clusters
			g.Expect(c.Update(t.Context(), namespace)).To(Succeed())
			credentials, err := p.ReconcileCredentials(t.Context(), c, cluster)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(credentials.Condition.Status).To(Equal(metav1.ConditionFalse), clusters)
			g.Expect(credentials.Condition.Message).To(ContainSubstring("hypershift.openshift.io/agents-for=clusters"))
			g.Expect(credentials.CheckAgain).To(BeNumerically(">", 0))
			g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "agents", Name: bindingName(cluster, "agents").Name}, &rbacv1.RoleBinding{})).NotTo(Succeed())
		}
	})
	t.Run("When the agents are in the cluster's namespace, it should not need the agents-for annotation", func(t *testing.T) {
		g, beside := NewWithT(t), testCluster()
		beside.HostedCluster.Spec.Platform.Agent.AgentNamespace = beside.HostedCluster.Namespace
		credentials, err := p.ReconcileCredentials(t.Context(), testClient(t, agents(beside.HostedCluster.Namespace, "")), beside)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(credentials.Condition.Status).To(Equal(metav1.ConditionTrue))
	})
	t.Run("When a Role of that name belongs to another cluster, it should not change it", func(t *testing.T) {
		g := NewWithT(t)
		theirs := &rbacv1.Role{ObjectMeta: roleName(cluster, "agents")}
		theirs.Annotations = map[string]string{hyperv1.HostedClusterAnnotation: "other/cluster"}
		c := testClient(t, agents("agents", "others, clusters"), theirs)
		_, err := p.ReconcileCredentials(t.Context(), c, cluster)
		g.Expect(err).To(HaveOccurred())
		g.Expect(p.DeleteCredentials(t.Context(), c, cluster)).To(Succeed())
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs)).To(Succeed())
	})
}

// TestAccessIsCertain checks that a failed write or deletion is reported, so that the next reconcile tries again.
func TestAccessIsCertain(t *testing.T) {
	cluster, moved := testCluster(), testCluster()
	moved.HostedCluster.Spec.Platform.Agent.AgentNamespace = "others"
	g := NewWithT(t)
	g.Expect(roleName(cluster, "agents")).To(Equal(metav1.ObjectMeta{Namespace: "agents", Name: "capi-provider-role-clusters-demo"}))
	g.Expect(bindingName(cluster, "agents")).To(Equal(metav1.ObjectMeta{Namespace: "agents", Name: "cluster-api-agent-clusters-demo"}), "upstream's operator finds it by that name")
	for _, tc := range []struct {
		name, verb, object string
		wanted             platform.Cluster
	}{
		{"When the Role cannot be created, it should return an error", "create", "capi-provider-role-clusters-demo", cluster},
		{"When the RoleBinding cannot be created, it should return an error", "create", "cluster-api-agent-clusters-demo", cluster},
		{"When access to the previous agents cannot be revoked, it should return an error", "delete", "cluster-api-agent-clusters-demo", moved},
		{"When the previous namespace cannot be determined, it should return an error", "get", platform.ProviderName, moved},
		{"When the agents' namespace cannot be read, it should return an error and not report it as missing", "get", "others", moved},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			running := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: platform.ProviderName}}
			running.Spec.Template.Spec.Containers = []corev1.Container{{Args: []string{"--agent-namespace=agents"}}}
			c := testClient(t, agents("agents", "clusters"), agents("others", "*"), running)
			if tc.verb == "delete" {
				_, err := (&Platform{}).ReconcileCredentials(t.Context(), c, cluster)
				g.Expect(err).NotTo(HaveOccurred())
			}
			fails := func(verb, name string) error {
				if verb == tc.verb && name == tc.object {
					return errors.New("timed out")
				}
				return nil
			}
			failing := interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
					if err := fails("get", key.Name); err != nil {
						return err
					}
					return c.Get(ctx, key, obj, opts...)
				},
				Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
					if err := fails("create", obj.GetName()); err != nil {
						return err
					}
					return c.Create(ctx, obj, opts...)
				},
				Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
					if err := fails("delete", obj.GetName()); err != nil {
						return err
					}
					return c.Delete(ctx, obj, opts...)
				},
			})
			_, err := (&Platform{}).ReconcileCredentials(t.Context(), failing, tc.wanted)
			g.Expect(err).To(MatchError(And(ContainSubstring(tc.object), ContainSubstring("timed out"))))
			_, err = (&Platform{}).ReconcileCredentials(t.Context(), c, tc.wanted)
			g.Expect(err).NotTo(HaveOccurred(), "the next pass ends it")
		})
	}
}

func TestValidate(t *testing.T) {
	g := NewWithT(t)
	cluster := testCluster().HostedCluster
	g.Expect((&Platform{}).ValidateHostedCluster(cluster)).To(Succeed())
	cluster.Spec.Platform.Agent = nil
	g.Expect((&Platform{}).ValidateHostedCluster(cluster)).To(MatchError(ContainSubstring("spec.platform.agent.agentNamespace")))

	pool := platform.Pool{NodePool: &hyperv1.NodePool{}}
	g.Expect((&Platform{}).ValidateNodePool(pool)).To(Succeed())
	pool.NodePool.Spec.Platform.Agent = &hyperv1.AgentNodePoolPlatform{AgentLabelSelector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "rack", Operator: "Near"}}}}
	g.Expect((&Platform{}).ValidateNodePool(pool)).To(MatchError(ContainSubstring("spec.platform.agent.agentLabelSelector")))
}

func TestImage(t *testing.T) {
	for _, tc := range []struct{ name, annotation, chosen, want string }{
		{"When no provider image is set, it should use the published one", "", "", publishedImage},
		{"When the installer sets a provider image, it should use that one", "", "mine:1", "mine:1"},
		{"When the cluster sets a provider image, it should take precedence", "its:1", "mine:1", "its:1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			p, err := Options{}.New(platform.Environment{ProviderImage: tc.chosen})
			g.Expect(err).NotTo(HaveOccurred())
			cluster := testCluster()
			cluster.HostedCluster.Annotations = map[string]string{hyperv1.ClusterAPIAgentProviderImage: tc.annotation}
			g.Expect(p.Provider(cluster).Images).To(HaveKeyWithValue(providerTag, tc.want))
		})
	}
}

func TestMachines(t *testing.T) {
	reserved := metav1.NewTime(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))
	is := func(conditionType string, status metav1.ConditionStatus, reason string) contract.Condition {
		return contract.Condition{Type: conditionType, Status: status, Reason: reason, Message: reason, LastTransitionTime: reserved}
	}
	for _, tc := range []struct {
		name    string
		status  agentv1.AgentMachineStatus
		problem string
		begun   bool
		failed  string
	}{
		{"When the status is empty, it should report nothing", agentv1.AgentMachineStatus{}, "", false, ""},
		{"When no agent is suitable, it should report it and not fail the machine",
			agentv1.AgentMachineStatus{Conditions: []contract.Condition{is("AgentReserved", "False", "NoSuitableAgents"), is("Installed", "False", "InstallationNotStarted")}},
			"NoSuitableAgents", false, ""},
		{"When the host is being installed, it should report the start",
			agentv1.AgentMachineStatus{Conditions: []contract.Condition{is("AgentReserved", "True", ""), is("Installed", "False", "InstallationInProgress")}},
			"InstallationInProgress", true, ""},
		{"When the provider reports a failure, it should report the machine as failed",
			agentv1.AgentMachineStatus{FailureReason: ptr.To("CreateError"), Conditions: []contract.Condition{is("AgentReserved", "True", "")}}, "CreateError", true, "CreateError"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			machine := &agentv1.AgentMachine{Status: tc.status}
			reason, _ := (&Platform{}).MachineProblem(machine)
			g.Expect(reason).To(Equal(tc.problem))
			start := (&Platform{}).MachineStart(machine)
			g.Expect(start.Begun.IsZero()).To(Equal(!tc.begun))
			g.Expect(start.Reason).To(Equal(tc.failed))
		})
	}
	for i, stage := range []string{"AgentReserved", "AgentSpecSynced", "AgentValidated", "AgentRequirementsMet", "Installed"} {
		t.Run("When a machine has passed all stages before "+stage+", it should report that stage", func(t *testing.T) {
			machine := &agentv1.AgentMachine{}
			for j, condition := range stages {
				status := metav1.ConditionTrue
				if j >= i {
					status = metav1.ConditionFalse
				}
				machine.Status.Conditions = append(machine.Status.Conditions, is(condition, status, "Waiting"+condition))
			}
			reason, message := (&Platform{}).MachineProblem(machine)
			NewWithT(t).Expect([]string{reason, message}).To(HaveEach("Waiting" + stage))
		})
	}
	t.Run("When a deletion waits for hosts, it should name one of them", func(t *testing.T) {
		g := NewWithT(t)
		cluster := testCluster()
		c := testClient(t, &agentv1.AgentMachine{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: "host-1"}})
		why, err := (&Platform{}).OrphanedMachines(t.Context(), c, cluster)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(why).To(ContainSubstring("host-1"))
	})
}
