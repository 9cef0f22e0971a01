// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/hypershift-operator/platform/registry"
	"github.com/openshift/hypershift/support/maas"
)

func TestMain(m *testing.M) { fixture.Main(m) }

// subjects returns all platforms of the operator.
func subjects(t *testing.T) []Subject {
	kept := metav1.ObjectMeta{Namespace: fixture.OperatorNamespace, Name: "maas-credentials-HOSTED"}
	agents := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "agents", Name: name} }
	return []Subject{
		{
			Type:   hyperv1.AgentPlatform,
			Beside: []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "agents", Annotations: map[string]string{hyperv1.AgentsForAnnotation: "*"}}}},
			Cluster: func(hc *hyperv1.HostedCluster) {
				hc.Spec.Platform.Agent = &hyperv1.AgentPlatformSpec{AgentNamespace: "agents"}
			},
			Pool: func(pool *hyperv1.NodePool) {
				pool.Spec.Platform.Agent = &hyperv1.AgentNodePoolPlatform{AgentLabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"size": "medium"}}}
			},
			Roll: func(pool *hyperv1.NodePool) {
				pool.Spec.Platform.Agent.AgentLabelSelector.MatchLabels["size"] = "large"
			},
			Outside: []client.Object{&rbacv1.Role{ObjectMeta: agents("capi-provider-role-HOSTED")}, &rbacv1.RoleBinding{ObjectMeta: agents("cluster-api-agent-HOSTED")}},
		},
		kubevirt(fixture.InfraHere(t), "conform-kubevirt", "bare-kubevirt"),
		{
			Type:    hyperv1.AWSPlatform,
			Cluster: func(hc *hyperv1.HostedCluster) { hc.Spec.Platform.AWS = awsCluster() },
			Pool: func(pool *hyperv1.NodePool) {
				pool.Spec.Platform.AWS = &hyperv1.AWSNodePoolPlatform{
					InstanceType: "m5.large", AMI: "ami-0123456789abcdef0", Subnet: hyperv1.AWSResourceReference{ID: ptr.To("subnet-0a1")},
					RootVolume: &hyperv1.Volume{Size: 120, Type: "gp3"}, SecurityGroups: []hyperv1.AWSResourceReference{{ID: ptr.To("sg-0a1")}},
				}
			},
			Roll: func(pool *hyperv1.NodePool) { pool.Spec.Platform.AWS.InstanceType = "m5.xlarge" },
		},
		{Type: hyperv1.NonePlatform},
		{
			Type: hyperv1.MAASPlatform,
			Cluster: func(hc *hyperv1.HostedCluster) {
				hc.Spec.Platform.MAAS = &hyperv1.MAASPlatformSpec{IdentityRef: hyperv1.MAASIdentityReference{Name: fixture.Credentials}, Zone: "az1"}
			},
			Pool:    func(pool *hyperv1.NodePool) { pool.Spec.Platform.MAAS = &hyperv1.MAASNodePoolPlatform{} },
			Roll:    func(pool *hyperv1.NodePool) { pool.Spec.Platform.MAAS.MinCPU = ptr.To[int32](8) },
			Rotate:  func(secret *corev1.Secret) { secret.Data[maas.SecretKeyAPIKey] = []byte("consumer:token:other") },
			Outside: []client.Object{&corev1.Secret{ObjectMeta: kept}, &rbacv1.Role{ObjectMeta: kept}, &rbacv1.RoleBinding{ObjectMeta: kept}},
		},
	}
}

// kubevirt returns a subject whose virtual machines run in an external cluster, which it reaches by a kubeconfig.
func kubevirt(infra *fixture.Infra, namespaces ...string) Subject {
	var beside []client.Object
	for _, namespace := range namespaces {
		beside = append(beside, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "infra"}, Data: map[string][]byte{"kubeconfig": infra.Kubeconfig(fixture.InfraUser)}})
	}
	return Subject{
		Type:   hyperv1.KubevirtPlatform,
		Beside: beside,
		Cluster: func(hc *hyperv1.HostedCluster) {
			metav1.SetMetaDataAnnotation(&hc.ObjectMeta, hyperv1.ClusterAPIKubeVirtProviderImage, "registry.example/capk:1")
			hc.Spec.Platform.Kubevirt = &hyperv1.KubevirtPlatformSpec{Credentials: &hyperv1.KubevirtPlatformCredentials{
				InfraNamespace: fixture.InfraNamespace, InfraKubeConfigSecret: &hyperv1.KubeconfigSecretRef{Name: "infra", Key: "kubeconfig"}}}
		},
		Pool: func(pool *hyperv1.NodePool) {
			pool.Spec.Platform.Kubevirt = &hyperv1.KubevirtNodePoolPlatform{RootVolume: &hyperv1.KubevirtRootVolume{
				Image:          &hyperv1.KubevirtDiskImage{ContainerDiskImage: ptr.To("registry.example/disk:1")},
				KubevirtVolume: hyperv1.KubevirtVolume{Persistent: &hyperv1.KubevirtPersistentVolume{}}}}
		},
		Roll: func(pool *hyperv1.NodePool) {
			pool.Spec.Platform.Kubevirt.Compute.Cores = ptr.To[uint32](4)
		},
		Rotate: func(secret *corev1.Secret) {
			secret.Data["kubeconfig"] = bytes.Replace(secret.Data["kubeconfig"], []byte(`"users":[`), []byte(`"users":[{"name":"b","user":{"token":"b"}},`), 1)
		},
		Outside: []client.Object{&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.InfraNamespace, Name: "virt-launcher-" + infraID}}},
	}
}

func awsCluster() *hyperv1.AWSPlatformSpec {
	role := func(name string) string { return "arn:aws:iam::123456789012:role/" + name }
	return &hyperv1.AWSPlatformSpec{
		Region: "eu-west-1", CloudProviderConfig: &hyperv1.AWSCloudProviderConfig{VPC: "vpc-0a1", Zone: "eu-west-1a"},
		ResourceTags: []hyperv1.AWSResourceTag{{Key: "team", Value: "blue"}},
		RolesRef: hyperv1.AWSRolesRef{
			IngressARN: role("ingress"), ImageRegistryARN: role("registry"), StorageARN: role("storage"), NetworkARN: role("network"),
			KubeCloudControllerARN: role("cloud"), NodePoolManagementARN: role("pools"), ControlPlaneOperatorARN: role("operator"),
		},
	}
}

func TestPlatforms(t *testing.T) {
	admin, operator := fixture.Start(t), fixture.AsOperator(t)
	all, plugins := map[hyperv1.PlatformType]bool{}, fixture.Platforms(nil)
	for _, s := range subjects(t) {
		s.Plugin, _ = plugins.For(s.Type)
		all[s.Type] = true
		t.Run("When the platform is "+string(s.Type)+", it should pass the conformance suite", func(t *testing.T) { Run(t, admin, operator, s) })
	}
	for platformType := range registry.All() {
		if !all[platformType] {
			t.Errorf("platform %s is not looked at: give it a subject", platformType)
		}
	}
}

// TestToy adds a platform as docs/how-to/add-a-platform.md describes, and runs the conformance suite on it.
func TestToy(t *testing.T) {
	g := NewWithT(t)
	admin, operator := fixture.Start(t), fixture.AsOperator(t)
	options := &toyOptions{}
	flags := pflag.NewFlagSet("operator", pflag.ContinueOnError)
	options.AddFlags(flags)
	g.Expect(flags.Parse(nil)).To(Succeed())
	plugin, err := options.New(platform.Environment{})
	g.Expect(err).NotTo(HaveOccurred())
	for _, kind := range []string{"ToyCluster", "ToyMachine", "ToyMachineTemplate"} {
		g.Expect(admin.Create(t.Context(), toyCRD(kind))).To(Succeed())
	}
	for _, name := range []string{"hostedclusters", "nodepools"} {
		letToyIn(t, admin, name+".hypershift.openshift.io")
	}
	g.Expect(plugin.AddToScheme(admin.Scheme())).To(Succeed())
	g.Eventually(func(g Gomega) {
		hc := fixture.HostedCluster("default")
		hc.Spec.Platform = hyperv1.PlatformSpec{Type: toyPlatform}
		pool := fixture.NodePool("default")
		pool.Spec.Platform = hyperv1.NodePoolPlatform{Type: toyPlatform}
		g.Expect(admin.Create(t.Context(), hc, client.DryRunAll)).To(Succeed())
		g.Expect(admin.Create(t.Context(), pool, client.DryRunAll)).To(Succeed())
		for _, list := range []client.ObjectList{&toyClusterList{}, plugin.Machines(), plugin.MachineTemplates()} {
			g.Expect(admin.List(t.Context(), list)).To(Succeed())
		}
	}, time.Minute, 100*time.Millisecond).Should(Succeed())
	Run(t, admin, operator, Subject{Type: toyPlatform, Plugin: plugin,
		Roll: func(pool *hyperv1.NodePool) {
			pool.Annotations = map[string]string{toySize: "large"}
		}})
}

func toyCRD(kind string) *apiextensionsv1.CustomResourceDefinition {
	plural := map[string]string{"ToyCluster": "toyclusters", "ToyMachine": "toymachines", "ToyMachineTemplate": "toymachinetemplates"}[kind]
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + toyGroup.Group, Labels: map[string]string{"cluster.x-k8s.io/v1beta2": toyGroup.Version}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: toyGroup.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: toyGroup.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: ptr.To(true)}}}},
		},
	}
}

// letToyIn adds the toy to the platforms that the API accepts, as its author would in
// api/hypershift/v1beta1/platform.go.
func letToyIn(t *testing.T, admin client.Client, name string) {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := admin.Get(t.Context(), client.ObjectKey{Name: name}, crd); err != nil {
		t.Fatal(err)
	}
	for i := range crd.Spec.Versions {
		block := crd.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["spec"].Properties["platform"]
		property := block.Properties["type"]
		raw, err := json.Marshal(toyPlatform)
		if err != nil {
			t.Fatal(err)
		}
		property.Enum = append(property.Enum, apiextensionsv1.JSON{Raw: raw})
		block.Properties["type"] = property
	}
	if err := admin.Update(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
}
