// SPDX-License-Identifier: Apache-2.0

package kubevirt

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	kubevirtv1 "github.com/openshift/hypershift/api/kubevirt/v1alpha1"
	"github.com/openshift/hypershift/api/util/contract"
	"github.com/openshift/hypershift/hypershift-operator/platform"
)

// testCluster returns a cluster with its virtual machines in the hosted control plane namespace, or in an external
// cluster if credentials are given.
func testCluster(credentials *hyperv1.KubevirtPlatformCredentials) platform.Cluster {
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo"}}
	hc.Spec.InfraID = "demo-abcde"
	hc.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.KubevirtPlatform, Kubevirt: &hyperv1.KubevirtPlatformSpec{Credentials: credentials}}
	return platform.Cluster{HostedCluster: hc, Namespace: "clusters-demo"}
}

func elsewhere() *hyperv1.KubevirtPlatformCredentials {
	return &hyperv1.KubevirtPlatformCredentials{InfraNamespace: "vms", InfraKubeConfigSecret: &hyperv1.KubeconfigSecretRef{Name: "infra", Key: "config"}}
}

const goodKubeconfig = `
apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: "https://infra.example.com:6443"}}]
users: [{name: a, user: {token: SECRET}}]
`

func userSecret(key, content string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "infra"}, Data: map[string][]byte{key: []byte(content)}}
}

func testClient(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, hyperv1.AddToScheme, kubevirtv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

func TestInfraCluster(t *testing.T) {
	for _, tc := range []struct {
		name        string
		credentials *hyperv1.KubevirtPlatformCredentials
		want        *corev1.ObjectReference
	}{
		{"When virtual machines are in the hosted namespace, it should reference no kubeconfig", nil, nil},
		{"When virtual machines are in an external cluster, it should reference the copy of its kubeconfig", elsewhere(),
			&corev1.ObjectReference{Kind: "Secret", Namespace: "clusters-demo", Name: "kubevirt-infra-credentials"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, cluster := NewWithT(t), testCluster(tc.credentials)
			g.Expect((&Platform{}).InfraCluster(cluster)).To(BeNil(), "there is no control plane")
			cluster.ControlPlane = &hyperv1.HostedControlPlane{}
			g.Expect((&Platform{}).InfraCluster(cluster)).To(BeNil(), "it has no address")
			cluster.ControlPlane.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "10.0.0.1", Port: 6443}
			object := (&Platform{}).InfraCluster(cluster)
			g.Expect(object.Mutate()).To(Succeed())
			object.MutateStatus()
			infra := object.Object.(*kubevirtv1.KubevirtCluster)
			g.Expect(infra.Name).To(Equal("demo-abcde"))
			g.Expect(infra.Annotations).To(HaveKeyWithValue("cluster.x-k8s.io/managed-by", "external"))
			g.Expect(infra.Spec.ControlPlaneEndpoint).To(HaveValue(Equal(kubevirtv1.APIEndpoint{Host: "10.0.0.1", Port: 6443})))
			g.Expect(infra.Spec.InfraClusterSecretRef).To(Equal(tc.want))
			g.Expect(infra.Status.Ready).To(BeTrue())
		})
	}
}

func TestValidateHostedCluster(t *testing.T) {
	for _, tc := range []struct {
		name        string
		credentials *hyperv1.KubevirtPlatformCredentials
		says        string
	}{
		{"When no credentials are set, it should accept the cluster", nil, ""},
		{"When a kubeconfig and a namespace are set, it should accept the cluster", elsewhere(), ""},
		{"When only a namespace is set, it should ask for a kubeconfig", &hyperv1.KubevirtPlatformCredentials{InfraNamespace: "others"},
			"spec.platform.kubevirt.credentials.infraKubeConfigSecret is missing"},
		{"When the kubeconfig reference has no key, it should ask for the key",
			&hyperv1.KubevirtPlatformCredentials{InfraNamespace: "vms", InfraKubeConfigSecret: &hyperv1.KubeconfigSecretRef{Name: "infra"}}, "and its key"},
		{"When the namespace is invalid, it should report it",
			&hyperv1.KubevirtPlatformCredentials{InfraNamespace: "A_B", InfraKubeConfigSecret: elsewhere().InfraKubeConfigSecret}, `infraNamespace "A_B"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			err := (&Platform{}).ValidateHostedCluster(testCluster(tc.credentials).HostedCluster)
			if tc.says == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tc.says)))
		})
	}
}

func TestIdentify(t *testing.T) {
	g, hc := NewWithT(t), &hyperv1.HostedCluster{}
	(&Platform{}).Identify(hc)
	first := hc.Spec.Platform.Kubevirt.GenerateID
	g.Expect(first).To(HaveLen(10))
	(&Platform{}).Identify(hc)
	g.Expect(hc.Spec.Platform.Kubevirt.GenerateID).To(Equal(first), "it can never change")
}

func TestPassthrough(t *testing.T) {
	g, hc := NewWithT(t), testCluster(nil).HostedCluster
	hc.Spec.Platform.Kubevirt.BaseDomainPassthrough = ptr.To(true)
	g.Expect((&Platform{}).ValidateHostedCluster(hc)).To(MatchError(ContainSubstring("spec.dns.baseDomain")))
	hc.Spec.DNS.BaseDomain = "apps.example.com"
	g.Expect((&Platform{}).ValidateHostedCluster(hc)).To(Succeed())
}

func TestCredentials(t *testing.T) {
	p, copied := &Platform{}, client.ObjectKey{Namespace: "clusters-demo", Name: "kubevirt-infra-credentials"}
	t.Run("When virtual machines are in the hosted namespace, it should need no credentials", func(t *testing.T) {
		g, c := NewWithT(t), testClient(t)
		credentials, err := p.ReconcileCredentials(t.Context(), c, testCluster(nil))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(credentials.Condition.Status).To(Equal(metav1.ConditionTrue))
		g.Expect(p.CredentialsSecret(testCluster(nil).HostedCluster)).To(BeEmpty())
		g.Expect(c.Get(t.Context(), copied, &corev1.Secret{})).NotTo(Succeed())
		g.Expect(p.Provider(testCluster(nil))).NotTo(BeNil())
	})
	for _, tc := range []struct {
		name   string
		secret *corev1.Secret
		says   string
	}{
		{"When the Secret is missing, it should report it", nil, "There is no Secret clusters/infra"},
		{"When the Secret lacks the key, it should report it", userSecret("other", goodKubeconfig), "no key config"},
		{"When the content is not a kubeconfig, it should report it without repeating the content", userSecret("config", "SECRET"), "holds no kubeconfig"},
		{"When the kubeconfig runs a program, it should reject the kubeconfig", userSecret("config", `{"apiVersion":"v1","kind":"Config","current-context":"a",
			"contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],"clusters":[{"name":"a","cluster":{"server":"https://a"}}],
			"users":[{"name":"a","user":{"exec":{"apiVersion":"client.authentication.k8s.io/v1","command":"SECRET","interactiveMode":"Never"}}}]}`), "users[].user.exec runs a program"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, cluster := NewWithT(t), testCluster(elsewhere())
			c := testClient(t)
			if tc.secret != nil {
				g.Expect(c.Create(t.Context(), tc.secret.DeepCopy())).To(Succeed())
			}
			credentials, err := p.ReconcileCredentials(t.Context(), c, cluster)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(credentials.Condition.Status).To(Equal(metav1.ConditionFalse))
			g.Expect(credentials.Condition.Message).To(And(ContainSubstring(tc.says), Not(ContainSubstring("SECRET"))))
			g.Expect(c.Get(t.Context(), copied, &corev1.Secret{})).NotTo(Succeed())
			g.Expect(p.Provider(cluster)).To(BeNil(), "it could only fail")
		})
	}
	t.Run("When the kubeconfig is valid, it should copy it and keep the copy if the kubeconfig becomes invalid", func(t *testing.T) {
		server := infraServer(t, versions("v1.31.0", "v1.2.0"))
		g, cluster, source := NewWithT(t), testCluster(elsewhere()), userSecret("config", kubeconfigOf(server))
		p := &Platform{infra: infraClusters{guard: local(), timeout: patient}}
		source.Data["namespace"] = []byte("others")
		c := testClient(t, source)
		good, err := p.ReconcileCredentials(t.Context(), c, cluster)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(good.Condition.Status).To(Equal(metav1.ConditionTrue))
		g.Expect(good.Hash).NotTo(BeEmpty())
		handed := &corev1.Secret{}
		g.Expect(c.Get(t.Context(), copied, handed)).To(Succeed())
		g.Expect(handed.Data).To(And(HaveLen(3), HaveKey("kubeconfig"), HaveKey("config"), HaveKeyWithValue("namespace", []byte("vms"))))

		source.Data["config"] = []byte("broken")
		g.Expect(c.Update(t.Context(), source)).To(Succeed())
		bad, err := p.ReconcileCredentials(t.Context(), c, cluster)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(bad.Condition.Status).To(Equal(metav1.ConditionFalse))
		g.Expect(bad.Hash).To(Equal(good.Hash))
		g.Expect(c.Get(t.Context(), copied, handed)).To(Succeed())
		g.Expect(handed.Data["kubeconfig"]).To(ContainSubstring(server.URL))
	})
	t.Run("When a Secret of that name belongs to another cluster, it should return an error", func(t *testing.T) {
		g := NewWithT(t)
		theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: copied.Namespace, Name: copied.Name,
			Annotations: map[string]string{hyperv1.HostedClusterAnnotation: "other/cluster"}}}
		_, err := p.ReconcileCredentials(t.Context(), testClient(t, theirs, userSecret("config", goodKubeconfig)), testCluster(elsewhere()))
		g.Expect(err).To(HaveOccurred())
	})
}

func TestImage(t *testing.T) {
	for _, tc := range []struct{ name, annotation, chosen, want string }{
		{"When no provider image is set, it should use the payload's image", "", "", ""},
		{"When the installer sets a provider image, it should use that one", "", "mine:1", "mine:1"},
		{"When the cluster sets a provider image, it should take precedence", "its:1", "mine:1", "its:1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			p, err := (&Options{}).New(platform.Environment{ProviderImage: tc.chosen})
			g.Expect(err).NotTo(HaveOccurred())
			cluster := testCluster(nil)
			cluster.HostedCluster.Annotations = map[string]string{hyperv1.ClusterAPIKubeVirtProviderImage: tc.annotation}
			g.Expect(p.Provider(cluster).Images[providerTag]).To(Equal(tc.want))
		})
	}
}

func TestMachines(t *testing.T) {
	began := metav1.NewTime(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))
	is := func(conditionType string, status metav1.ConditionStatus, reason string) contract.Condition {
		return contract.Condition{Type: conditionType, Status: status, Reason: reason, Message: reason, LastTransitionTime: began}
	}
	for _, tc := range []struct {
		name    string
		status  kubevirtv1.KubevirtMachineStatus
		problem string
		begun   bool
		failed  string
	}{
		{"When the status is empty, it should report nothing", kubevirtv1.KubevirtMachineStatus{}, "", false, ""},
		{"When the virtual machine is unschedulable, it should report it and not fail the machine",
			kubevirtv1.KubevirtMachineStatus{Conditions: []contract.Condition{is("VMProvisioned", "False", "Unschedulable")}}, "Unschedulable", false, ""},
		{"When the virtual machine runs, it should report the start",
			kubevirtv1.KubevirtMachineStatus{Conditions: []contract.Condition{is("VMProvisioned", "True", ""), is("BootstrapExecSucceeded", "False", "Bootstrapping")}},
			"Bootstrapping", true, ""},
		{"When the provider reports a failure, it should report the machine as failed",
			kubevirtv1.KubevirtMachineStatus{FailureReason: ptr.To("CreateError"), Conditions: []contract.Condition{is("VMProvisioned", "True", "")}},
			"CreateError", true, "CreateError"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			machine := &kubevirtv1.KubevirtMachine{Status: tc.status}
			reason, _ := (&Platform{}).MachineProblem(machine)
			g.Expect(reason).To(Equal(tc.problem))
			start := (&Platform{}).MachineStart(machine)
			g.Expect(start.Begun.IsZero()).To(Equal(!tc.begun))
			g.Expect(start.Reason).To(Equal(tc.failed))
		})
	}
	t.Run("When a deletion waits for virtual machines, it should name one and the kubeconfig that deletes it", func(t *testing.T) {
		g, cluster := NewWithT(t), testCluster(elsewhere())
		c := testClient(t, &kubevirtv1.KubevirtMachine{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: "vm-1"}})
		why, err := (&Platform{}).OrphanedMachines(t.Context(), c, cluster)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(why).To(And(ContainSubstring("vm-1"), ContainSubstring("clusters/infra")))
	})
}
