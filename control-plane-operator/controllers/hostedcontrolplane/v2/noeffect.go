// SPDX-License-Identifier: Apache-2.0

package v2

import (
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// Only this file may read fields that have no effect. A test in test/integration/fields checks the complete spec: a
// field that no other file reads must be reported here, or rejected by Validate.

// WithoutEffect lists fields that are set and have no effect in the Kubernetes distribution, in the order of the API.
func WithoutEffect(hcp *hyperv1.HostedControlPlane) []string {
	var fields set
	ofControlPlane(&fields, hcp.Spec)
	config := ptr.Deref(hcp.Spec.Configuration, hyperv1.ClusterConfiguration{})
	ofAPIServer(&fields, ptr.Deref(config.APIServer, configv1.APIServerSpec{}))
	ofAuthentication(&fields, ptr.Deref(config.Authentication, configv1.AuthenticationSpec{}))
	features := ptr.Deref(config.FeatureGate, configv1.FeatureGateSpec{}).FeatureSet
	fields.add(features != "" && features != configv1.CustomNoUpgrade, "configuration.featureGate.featureSet")
	ofImage(&fields, ptr.Deref(config.Image, configv1.ImageSpec{}))
	ofIngress(&fields, ptr.Deref(config.Ingress, configv1.IngressSpec{}))
	ofNetwork(&fields, ptr.Deref(config.Network, configv1.NetworkSpec{}))
	fields.add(config.OAuth != nil, "configuration.oauth")
	fields.add(config.OperatorHub != nil, "configuration.operatorhub")
	ofScheduler(&fields, ptr.Deref(config.Scheduler, configv1.SchedulerSpec{}))
	fields.add(len(ptr.Deref(config.Proxy, configv1.ProxySpec{}).ReadinessEndpoints) > 0, "configuration.proxy.readinessEndpoints")
	return fields
}

// set lists names of fields that are set.
type set []string

func (s *set) add(isSet bool, field string) {
	if isSet {
		*s = append(*s, field)
	}
}

func ofControlPlane(fields *set, spec hyperv1.HostedControlPlaneSpec) {
	networking := spec.Networking.APIServer
	fields.add(spec.FIPS, "fips")
	fields.add(networking != nil && networking.Port != nil, "networking.apiServer.port")
	fields.add(spec.UpdateService != "", "updateService")
	fields.add(spec.Channel != "", "channel")
	fields.add(spec.OperatorConfiguration != nil, "operatorConfiguration")
	fields.add(spec.Capabilities != nil && len(spec.Capabilities.Enabled)+len(spec.Capabilities.Disabled) > 0, "capabilities")
	fields.add(spec.AutoNode != nil, "autoNode")
	fields.add(spec.OLMCatalogPlacement != "" && spec.OLMCatalogPlacement != hyperv1.ManagementOLMCatalogPlacement, "olmCatalogPlacement")
	fields.add(spec.Monitoring != hyperv1.MonitoringSpec{}, "monitoring")
	ofKubeVirt(fields, ptr.Deref(spec.Platform.Kubevirt, hyperv1.KubevirtPlatformSpec{}))
}

// ofKubeVirt adds the KubeVirt settings that only the storage driver of an OpenShift release uses.
func ofKubeVirt(fields *set, spec hyperv1.KubevirtPlatformSpec) {
	fields.add(spec.StorageDriver != nil, "platform.kubevirt.storageDriver")
}

func ofAPIServer(fields *set, spec configv1.APIServerSpec) {
	profile := ptr.Deref(spec.TLSSecurityProfile, configv1.TLSSecurityProfile{})
	fields.add(spec.Encryption != configv1.APIServerEncryption{}, "configuration.apiServer.encryption")
	fields.add(profile.Custom != nil && len(profile.Custom.Groups) > 0, "configuration.apiServer.tlsSecurityProfile.custom.groups")
	fields.add(spec.TLSAdherence != "", "configuration.apiServer.tlsAdherence")
}

func ofAuthentication(fields *set, spec configv1.AuthenticationSpec) {
	fields.add(spec.OAuthMetadata.Name != "", "configuration.authentication.oauthMetadata")
	fields.add(len(spec.WebhookTokenAuthenticators) > 0, "configuration.authentication.webhookTokenAuthenticators")
	asked := func(provider configv1.OIDCProvider) bool { return len(provider.OIDCClients) > 0 }
	fields.add(slices.ContainsFunc(spec.OIDCProviders, asked), "configuration.authentication.oidcProviders[].oidcClients")
}

func ofImage(fields *set, spec configv1.ImageSpec) {
	fields.add(len(spec.AllowedRegistriesForImport) > 0, "configuration.image.allowedRegistriesForImport")
	fields.add(len(spec.ExternalRegistryHostnames) > 0, "configuration.image.externalRegistryHostnames")
	fields.add(len(spec.RegistrySources.ContainerRuntimeSearchRegistries) > 0, "configuration.image.registrySources.containerRuntimeSearchRegistries")
	fields.add(spec.ImageStreamImportMode != "", "configuration.image.imageStreamImportMode")
}

func ofIngress(fields *set, spec configv1.IngressSpec) {
	fields.add(spec.AppsDomain != "", "configuration.ingress.appsDomain")
	fields.add(len(spec.ComponentRoutes) > 0, "configuration.ingress.componentRoutes")
	fields.add(len(spec.RequiredHSTSPolicies) > 0, "configuration.ingress.requiredHSTSPolicies")
	fields.add(spec.LoadBalancer.Platform.Type != "" || spec.LoadBalancer.Platform.AWS != nil, "configuration.ingress.loadBalancer")
}

func ofNetwork(fields *set, spec configv1.NetworkSpec) {
	diagnostics := spec.NetworkDiagnostics
	placed := len(diagnostics.SourcePlacement.NodeSelector)+len(diagnostics.SourcePlacement.Tolerations)+
		len(diagnostics.TargetPlacement.NodeSelector)+len(diagnostics.TargetPlacement.Tolerations) > 0
	fields.add(len(spec.ClusterNetwork) > 0, "configuration.network.clusterNetwork")
	fields.add(len(spec.ServiceNetwork) > 0, "configuration.network.serviceNetwork")
	fields.add(spec.NetworkType != "", "configuration.network.networkType")
	fields.add(spec.ExternalIP != nil, "configuration.network.externalIP")
	fields.add(diagnostics.Mode != "" || placed, "configuration.network.networkDiagnostics")
	fields.add(spec.NetworkObservability != configv1.NetworkObservabilitySpec{}, "configuration.network.networkObservability")
}

func ofScheduler(fields *set, spec configv1.SchedulerSpec) {
	fields.add(spec.Policy.Name != "", "configuration.scheduler.policy")
	fields.add(spec.ProfileCustomizations != configv1.ProfileCustomizations{}, "configuration.scheduler.profileCustomizations")
	fields.add(spec.DefaultNodeSelector != "", "configuration.scheduler.defaultNodeSelector")
	fields.add(spec.MastersSchedulable, "configuration.scheduler.mastersSchedulable")
}
