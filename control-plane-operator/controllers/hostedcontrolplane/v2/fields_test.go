// SPDX-License-Identifier: Apache-2.0

package v2

import (
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// TestEachFieldWithoutEffect checks that a user that sets one field gets a report about that field only.
func TestEachFieldWithoutEffect(t *testing.T) {
	type config = hyperv1.ClusterConfiguration
	configured := func(c config) func(*hyperv1.HostedControlPlaneSpec) {
		return func(spec *hyperv1.HostedControlPlaneSpec) { spec.Configuration = &c }
	}
	scheduler := func(s configv1.SchedulerSpec) func(*hyperv1.HostedControlPlaneSpec) {
		return configured(config{Scheduler: &s})
	}
	network := func(s configv1.NetworkSpec) func(*hyperv1.HostedControlPlaneSpec) {
		return configured(config{Network: &s})
	}
	diagnosed := func(d configv1.NetworkDiagnostics) func(*hyperv1.HostedControlPlaneSpec) {
		return network(configv1.NetworkSpec{NetworkDiagnostics: d})
	}
	ingress := func(s configv1.IngressSpec) func(*hyperv1.HostedControlPlaneSpec) {
		return configured(config{Ingress: &s})
	}
	image := func(s configv1.ImageSpec) func(*hyperv1.HostedControlPlaneSpec) { return configured(config{Image: &s}) }
	logins := func(s configv1.AuthenticationSpec) func(*hyperv1.HostedControlPlaneSpec) {
		return configured(config{Authentication: &s})
	}
	server := func(s configv1.APIServerSpec) func(*hyperv1.HostedControlPlaneSpec) {
		return configured(config{APIServer: &s})
	}
	nodes, toleration := map[string]string{"a": "b"}, []corev1.Toleration{{Key: "a"}}
	for _, tc := range []struct {
		field string
		edit  func(*hyperv1.HostedControlPlaneSpec)
	}{
		{"updateService", func(s *hyperv1.HostedControlPlaneSpec) { s.UpdateService = "https://updates.example.com" }},
		{"operatorConfiguration", func(s *hyperv1.HostedControlPlaneSpec) { s.OperatorConfiguration = &hyperv1.OperatorConfiguration{} }},
		{"capabilities", func(s *hyperv1.HostedControlPlaneSpec) {
			s.Capabilities = &hyperv1.Capabilities{Disabled: []hyperv1.OptionalCapability{hyperv1.ImageRegistryCapability}}
		}},
		{"capabilities", func(s *hyperv1.HostedControlPlaneSpec) {
			s.Capabilities = &hyperv1.Capabilities{Enabled: []hyperv1.OptionalCapability{hyperv1.ImageRegistryCapability}}
		}},
		{"", func(s *hyperv1.HostedControlPlaneSpec) { s.Capabilities = &hyperv1.Capabilities{} }},
		{"autoNode", func(s *hyperv1.HostedControlPlaneSpec) { s.AutoNode = &hyperv1.AutoNode{} }},
		{"olmCatalogPlacement", func(s *hyperv1.HostedControlPlaneSpec) { s.OLMCatalogPlacement = hyperv1.GuestOLMCatalogPlacement }},
		{"", func(s *hyperv1.HostedControlPlaneSpec) { s.OLMCatalogPlacement = hyperv1.ManagementOLMCatalogPlacement }},
		{"", func(s *hyperv1.HostedControlPlaneSpec) { s.Networking.APIServer = &hyperv1.APIServerNetworking{} }},
		{"platform.kubevirt.storageDriver", func(s *hyperv1.HostedControlPlaneSpec) {
			s.Platform.Kubevirt = &hyperv1.KubevirtPlatformSpec{StorageDriver: &hyperv1.KubevirtStorageDriverSpec{}}
		}},
		{"", func(s *hyperv1.HostedControlPlaneSpec) { s.Platform.Kubevirt = &hyperv1.KubevirtPlatformSpec{} }},
		{"configuration.apiServer.encryption", server(configv1.APIServerSpec{Encryption: configv1.APIServerEncryption{Type: configv1.EncryptionTypeAESCBC}})},
		{"configuration.apiServer.tlsSecurityProfile.custom.groups", server(configv1.APIServerSpec{TLSSecurityProfile: &configv1.TLSSecurityProfile{
			Custom: &configv1.CustomTLSProfile{TLSProfileSpec: configv1.TLSProfileSpec{Groups: []configv1.TLSGroup{"X25519"}}}}})},
		{"", server(configv1.APIServerSpec{TLSSecurityProfile: &configv1.TLSSecurityProfile{Custom: &configv1.CustomTLSProfile{}}})},
		{"configuration.apiServer.tlsAdherence", server(configv1.APIServerSpec{TLSAdherence: "StrictAllComponents"})},
		{"configuration.authentication.oauthMetadata", logins(configv1.AuthenticationSpec{OAuthMetadata: configv1.ConfigMapNameReference{Name: "a"}})},
		{"configuration.authentication.webhookTokenAuthenticators", logins(configv1.AuthenticationSpec{
			WebhookTokenAuthenticators: []configv1.DeprecatedWebhookTokenAuthenticator{{}}})},
		{"configuration.image.allowedRegistriesForImport", image(configv1.ImageSpec{AllowedRegistriesForImport: []configv1.RegistryLocation{{}}})},
		{"configuration.image.externalRegistryHostnames", image(configv1.ImageSpec{ExternalRegistryHostnames: []string{"a"}})},
		{"configuration.image.registrySources.containerRuntimeSearchRegistries", image(configv1.ImageSpec{
			RegistrySources: configv1.RegistrySources{ContainerRuntimeSearchRegistries: []string{"a"}}})},
		{"", image(configv1.ImageSpec{RegistrySources: configv1.RegistrySources{BlockedRegistries: []string{"a"}}})},
		{"configuration.image.imageStreamImportMode", image(configv1.ImageSpec{ImageStreamImportMode: configv1.ImportModeLegacy})},
		{"configuration.ingress.appsDomain", ingress(configv1.IngressSpec{AppsDomain: "a"})},
		{"configuration.ingress.componentRoutes", ingress(configv1.IngressSpec{ComponentRoutes: []configv1.ComponentRouteSpec{{}}})},
		{"configuration.ingress.requiredHSTSPolicies", ingress(configv1.IngressSpec{RequiredHSTSPolicies: []configv1.RequiredHSTSPolicy{{}}})},
		{"configuration.ingress.loadBalancer", ingress(configv1.IngressSpec{LoadBalancer: configv1.LoadBalancer{Platform: configv1.IngressPlatformSpec{Type: "AWS"}}})},
		{"configuration.ingress.loadBalancer", ingress(configv1.IngressSpec{LoadBalancer: configv1.LoadBalancer{Platform: configv1.IngressPlatformSpec{AWS: &configv1.AWSIngressSpec{}}}})},
		{"", ingress(configv1.IngressSpec{Domain: "apps.example.com"})},
		{"configuration.network.clusterNetwork", network(configv1.NetworkSpec{ClusterNetwork: []configv1.ClusterNetworkEntry{{}}})},
		{"configuration.network.serviceNetwork", network(configv1.NetworkSpec{ServiceNetwork: []string{"a"}})},
		{"configuration.network.networkType", network(configv1.NetworkSpec{NetworkType: "a"})},
		{"configuration.network.externalIP", network(configv1.NetworkSpec{ExternalIP: &configv1.ExternalIPConfig{}})},
		{"", network(configv1.NetworkSpec{ServiceNodePortRange: "30000-31000"})},
		{"configuration.network.networkDiagnostics", diagnosed(configv1.NetworkDiagnostics{Mode: configv1.NetworkDiagnosticsAll})},
		{"configuration.network.networkDiagnostics", diagnosed(configv1.NetworkDiagnostics{SourcePlacement: configv1.NetworkDiagnosticsSourcePlacement{NodeSelector: nodes}})},
		{"configuration.network.networkDiagnostics", diagnosed(configv1.NetworkDiagnostics{SourcePlacement: configv1.NetworkDiagnosticsSourcePlacement{Tolerations: toleration}})},
		{"configuration.network.networkDiagnostics", diagnosed(configv1.NetworkDiagnostics{TargetPlacement: configv1.NetworkDiagnosticsTargetPlacement{NodeSelector: nodes}})},
		{"configuration.network.networkDiagnostics", diagnosed(configv1.NetworkDiagnostics{TargetPlacement: configv1.NetworkDiagnosticsTargetPlacement{Tolerations: toleration}})},
		{"configuration.operatorhub", configured(config{OperatorHub: &configv1.OperatorHubSpec{}})},
		{"configuration.scheduler.policy", scheduler(configv1.SchedulerSpec{Policy: configv1.ConfigMapNameReference{Name: "a"}})},
		{"configuration.scheduler.profileCustomizations", scheduler(configv1.SchedulerSpec{
			ProfileCustomizations: configv1.ProfileCustomizations{DynamicResourceAllocation: configv1.DRAEnablementEnabled}})},
		{"configuration.scheduler.defaultNodeSelector", scheduler(configv1.SchedulerSpec{DefaultNodeSelector: "a=b"})},
		{"configuration.scheduler.mastersSchedulable", scheduler(configv1.SchedulerSpec{MastersSchedulable: true})},
		{"", scheduler(configv1.SchedulerSpec{Profile: configv1.NoScoring})},
		{"configuration.proxy.readinessEndpoints", configured(config{Proxy: &configv1.ProxySpec{ReadinessEndpoints: []string{"https://a.example"}}})},
		{"", configured(config{Proxy: &configv1.ProxySpec{HTTPProxy: "http://proxy"}})},
		{"", configured(config{FeatureGate: &configv1.FeatureGateSpec{FeatureGateSelection: configv1.FeatureGateSelection{FeatureSet: configv1.CustomNoUpgrade}}})},
	} {
		name := "what is honoured or empty is set it should be told of nothing"
		want := []string{}
		if tc.field != "" {
			name, want = tc.field+" is set it should be told of it", []string{tc.field}
		}
		t.Run("When "+name, func(t *testing.T) {
			got := WithoutEffect(controlPlane(func(hcp *hyperv1.HostedControlPlane) { tc.edit(&hcp.Spec) }))
			NewWithT(t).Expect(append([]string{}, got...)).To(Equal(want))
		})
	}
}

// TestAllFaultsAreSaid checks that all faults are reported at once, so that the user can fix them together.
func TestAllFaultsAreSaid(t *testing.T) {
	err := Validate(controlPlane(func(hcp *hyperv1.HostedControlPlane) {
		hcp.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.KMS}
		hcp.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform}
		hcp.Spec.Etcd = hyperv1.EtcdSpec{
			ManagementType: hyperv1.Unmanaged, Unmanaged: &hyperv1.UnmanagedEtcdSpec{Endpoint: "etcd.example.com"},
			Managed: &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{RestoreSnapshotURL: []string{"https://a.example"}}},
		}
	}))
	NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("secretEncryption"), ContainSubstring("platform.aws"),
		ContainSubstring("etcd.unmanaged.endpoint"), ContainSubstring("restoreSnapshotURL"))))
}

// TestRefusalsAreOfTheAPIServer checks that Refusals returns the settings that the API server does not get.
func TestRefusalsAreOfTheAPIServer(t *testing.T) {
	hcp := controlPlane(func(hcp *hyperv1.HostedControlPlane) {
		hcp.Spec.AuditWebhook = &corev1.LocalObjectReference{Name: "lost"}
	})
	refusals, err := Refusals(t.Context(), newScope(hcp).Client, hcp)
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(refusals).To(ConsistOf(MatchError(ContainSubstring("auditWebhook: Secret lost"))))
}

// TestUnwantedComponents checks that a component that a cluster no longer needs is deleted, and that the user's own
// objects stay.
func TestUnwantedComponents(t *testing.T) {
	scope := newScope(controlPlane())
	pass := func() []string {
		t.Helper()
		for _, c := range Kubernetes(Config{}) {
			if err := c.Reconcile(t.Context(), scope); err != nil {
				t.Fatal(err)
			}
			if err := scope.Client.Get(t.Context(), keyOf(c.Name), &hyperv1.ControlPlaneComponent{}); err == nil {
				ready(t, scope, c.Name)
			}
		}
		list := &hyperv1.ControlPlaneComponentList{}
		if err := scope.Client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		names := []string{}
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		return names
	}
	g := NewWithT(t)
	g.Expect(pass()).To(Equal([]string{"etcd", "hosted-cluster-config-operator", "ignition-server", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}),
		"the payload brings no autoscaler")
	scope.Images.(payload)["cluster-autoscaler"] = "a.example/a:1"
	g.Expect(pass()).To(ContainElement("cluster-autoscaler"))
	scope.HCP.Annotations = map[string]string{hyperv1.DisableMachineManagement: "", hyperv1.DisableIgnitionServerAnnotation: ""}
	g.Expect(pass()).To(Equal([]string{"etcd", "hosted-cluster-config-operator", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}))
	scope.HCP.Annotations = nil
	scope.HCP.Spec.Services = scope.HCP.Spec.Services[:1]
	scope.HCP.Spec.Etcd = hyperv1.EtcdSpec{ManagementType: hyperv1.Unmanaged, Unmanaged: &hyperv1.UnmanagedEtcdSpec{Endpoint: "https://a.example:2379"}}
	g.Expect(pass()).To(Equal([]string{"cluster-autoscaler", "hosted-cluster-config-operator", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}),
		"nobody could reach an ignition-server that is not published")
}

func keyOf(name string) client.ObjectKey { return client.ObjectKey{Namespace: namespace, Name: name} }
