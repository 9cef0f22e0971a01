// SPDX-License-Identifier: Apache-2.0

package protected

import (
	awsv1 "github.com/openshift/hypershift/api/aws/v1beta2"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/api/util/nodeupdate"
)

// on returns rows of annotations with one writer and one reason.
func on(kinds []Kind, writer Writer, why string, keys ...string) []Row {
	rows := make([]Row, 0, len(keys))
	for _, key := range keys {
		rows = append(rows, Row{Key: key, Form: Annotation, On: kinds, Writer: writer, Why: why})
	}
	return rows
}

// as changes the form of rows.
func as(form Form, rows []Row) []Row {
	for i := range rows {
		rows[i].Form = form
	}
	return rows
}

var (
	clusters = []Kind{HostedCluster}
	pools    = []Kind{NodePool}
	both     = []Kind{HostedCluster, NodePool}
	copies   = []Kind{Secret, ConfigMap}
	spaces   = []Kind{Namespace}
	hosted   = []Kind{Elsewhere}
)

// Table returns all rows. Every key that is a constant of api/ has at least one row.
func Table() []Row {
	var all []Row
	for _, rows := range [][]Row{ownership(), isolation(), state(), images(), choices(), programs(), finalizers()} {
		all = append(all, rows...)
	}
	return all
}

// ownership returns the keys that state to which cluster an object belongs.
func ownership() []Row {
	all := on(copies, Operator, "The cluster that the operator made the copy for.", hyperv1.HostedClusterAnnotation)
	all = append(all, on(spaces, Administrator, "The cluster whose control plane lives in the namespace.",
		hyperv1.HostedClusterAnnotation)...)
	all = append(all, on(spaces, Administrator, "Namespaces whose clusters may use the Agents of this one.",
		hyperv1.AgentsForAnnotation)...)
	all = append(all, on(spaces, Administrator, "Lets the namespace of a control plane be deleted.",
		hyperv1.NamespaceReleasedAnnotation)...)
	all = append(all, on(spaces, Operator, "The namespace and the cluster that the operator served in it, by UID.",
		hyperv1.ServedClusterAnnotation)...)
	all = append(all, on(spaces, Operator, "Since when the cluster of the namespace is gone.",
		hyperv1.OrphanedSinceAnnotation)...)
	all = append(all, on(spaces, Administrator, "What becomes of a namespace whose cluster is gone: `keep` or `delete`.",
		hyperv1.OrphanPolicyAnnotation)...)
	all = append(all, on(clusters, Administrator,
		"The lost infrastructure cluster whose machines the new one takes over.",
		hyperv1.RestoredInfrastructureAnnotation)...)
	return append(all, as(Label, on(spaces, Operator, "Marks namespaces of control planes; policies go by it.",
		hyperv1.ControlPlaneNamespaceLabel))...)
}

// isolation returns the keys with which tenants could weaken the isolation of the installation.
func isolation() []Row {
	all := on(spaces, Administrator, "The Pod Security level of the namespace.",
		hyperv1.PodSecurityAdmissionLabelOverrideAnnotation)
	all = append(all, on(spaces, Operator, "The user that pods of the namespace run as.",
		hyperv1.DefaultSecurityContextUIDAnnotation)...)
	all = append(all, on(clusters, Administrator,
		"Capabilities of the payload's operator; network policies and Pod Security go by them.",
		hyperv1.ControlPlaneOperatorImageLabelsAnnotation)...)
	all = append(all, on(clusters, Administrator,
		"Keeps the namespace when the cluster goes: it would count against no quota.",
		hyperv1.SkipDeleteHostedControlPlaneNamespaceAnnotation)...)
	all = append(all, on(clusters, Administrator, "The platform of the management cluster.",
		hyperv1.ManagementPlatformAnnotation)...)
	return append(all, as(Label, on(clusters, Administrator, "Alerts of the provider.", hyperv1.SilenceClusterAlertsLabel,
		hyperv1.LimitedSupportLabel))...)
}

// state returns the keys in which the operator stores state on objects that tenants may write.
func state() []Row {
	all := on(pools, Operator, "The release that the pull spec was resolved to.",
		hyperv1.NodePoolResolvedReleaseAnnotation)
	all = append(all, on(pools, Operator, "Releases and configurations that the pool had; machines are replaced by these.",
		hyperv1.NodePoolFirstReleaseAnnotation, hyperv1.NodePoolCurrentReleaseAnnotation,
		hyperv1.NodePoolCurrentConfigAnnotation,
		hyperv1.NodePoolCurrentConfigVersionAnnotation, hyperv1.NodePoolTargetConfigVersionAnnotation,
		hyperv1.NodePoolPlatformMachineTemplateAnnotation, hyperv1.NodePoolUserDataFormatAnnotation,
		hyperv1.NodePoolOSImageStreamAnnotation)...)
	all = append(all, on(clusters, Operator, "Nodes and sizes that were chosen for the control plane.",
		hyperv1.HostedClusterScheduledAnnotation, hyperv1.RecommendedClusterSizeAnnotation)...)
	return append(all, as(Label, on(clusters, Operator, "The size of the control plane.",
		hyperv1.HostedClusterSizeLabel))...)
}

// images returns the annotations that replace images. `hypershift-tenant-limits` refuses those that an installation
// does not allow.
func images() []Row {
	const limited = "An image; limited by `--allowed-image-annotations`."
	all := on(clusters, Tenant, limited,
		hyperv1.ControlPlaneOperatorImageAnnotation, hyperv1.ClusterAPIManagerImage, hyperv1.ClusterAPIProviderMAASImage,
		hyperv1.ClusterAPIProviderAWSImage,
		hyperv1.ClusterAPIKubeVirtProviderImage, hyperv1.ClusterAPIAgentProviderImage, hyperv1.ClusterAutoscalerImage,
		hyperv1.MachineApproverImage,
		hyperv1.KonnectivityServerImageAnnotation, hyperv1.KonnectivityAgentImageAnnotation, hyperv1.ImageOverridesAnnotation,
		hyperv1.CertifiedOperatorsCatalogImageAnnotation, hyperv1.CommunityOperatorsCatalogImageAnnotation,
		hyperv1.RedHatMarketplaceCatalogImageAnnotation,
		hyperv1.RedHatOperatorsCatalogImageAnnotation, hyperv1.OLMCatalogsISRegistryOverridesAnnotation,
		hyperv1.AWSKMSProviderImage,
		hyperv1.IBMCloudKMSProviderImage, hyperv1.PortierisImageAnnotation, hyperv1.CanonicalDataPlaneImagesAnnotation)
	all = append(all, on(pools, Tenant, "An image that runs on the tenant's own nodes.",
		hyperv1.HAProxyImageAnnotation)...)
	return append(all, on(clusters, Tenant, "A priority class; limited by `--allowed-priority-classes`.",
		hyperv1.ControlPlanePriorityClass, hyperv1.APICriticalPriorityClass, hyperv1.EtcdPriorityClass)...)
}

// choices returns the settings that users of HyperShift choose for their own clusters and pools.
func choices() []Row {
	all := on(clusters, Tenant, "Certificates of the tenant's own control plane.",
		hyperv1.DisablePKIReconciliationAnnotation, hyperv1.CertificateValidityAnnotation,
		hyperv1.CertificateRenewalAnnotation, hyperv1.SignerOverlapAnnotation)
	all = append(all, on(clusters, Tenant, "Signers to rotate; only administrators may name `"+ProviderSigner+
		"`, and `all` leaves it out.", hyperv1.RotateSignersAnnotation)...)
	all = append(all, on(clusters, Tenant, "How long a previous address of the API is served.",
		hyperv1.AddressOverlapAnnotation)...)
	all = append(all, on(clusters, Tenant, "Upgrades of the tenant's own cluster.",
		hyperv1.SkipReleaseImageValidation, hyperv1.ForceUpgradeToAnnotation, hyperv1.HasBeenAvailableAnnotation)...)
	all = append(all, on(clusters, Tenant, "Restarts, deletion and restore of the tenant's own cluster.",
		hyperv1.RestartDateAnnotation, hyperv1.HCDestroyGracePeriodAnnotation,
		hyperv1.CleanupCloudResourcesAnnotation, hyperv1.HostedClusterRestoredFromBackupAnnotation,
		hyperv1.RestoringAnnotation)...)
	all = append(all, on(clusters, Tenant, "Components of the tenant's own control plane.",
		hyperv1.DisableMachineManagement, hyperv1.DisableIgnitionServerAnnotation,
		hyperv1.DisableClusterAutoscalerAnnotation, hyperv1.DisableProfilingAnnotation,
		hyperv1.DisableMonitoringServices, hyperv1.EnableMetricsForwarding, hyperv1.EnsureExistsPullSecretReconcile,
		hyperv1.PrivateIngressControllerAnnotation,
		hyperv1.IngressControllerLoadBalancerScope, hyperv1.TopologyAnnotation, hyperv1.SkipKASConflicSANValidation,
		hyperv1.DebugDeploymentsAnnotation,
		"hypershift.openshift.io/kube-apiserver-*", hyperv1.ResourceRequestOverrideAnnotationPrefix+"*",
		hyperv1.IdentityProviderOverridesAnnotationPrefix+"*",
		hyperv1.OauthLoginURLOverrideAnnotation, hyperv1.ResourceBasedControlPlaneAutoscalingAnnotation,
		hyperv1.ClusterSizeOverrideAnnotation,
		hyperv1.HostedClusterScopeAnnotation)...)
	all = append(all, on(clusters, Tenant, "A Pod Security level; limited by `--loosest-pod-security-level`.",
		hyperv1.PodSecurityAdmissionLabelOverrideAnnotation)...)
	all = append(all, on(clusters, Tenant, "Nodes of the management cluster; limited by `--allowed-node-labels`.",
		hyperv1.RequestServingNodeAdditionalSelectorAnnotation)...)
	all = append(all, on(both, Tenant, "Health checks of the tenant's own machines.",
		hyperv1.MachineHealthCheckTimeoutAnnotation,
		hyperv1.MachineHealthCheckNodeStartupTimeoutAnnotation, hyperv1.MachineHealthCheckMaxUnhealthyAnnotation,
		hyperv1.MachineDeploymentProgressDeadlineSecondsAnnotation)...)
	all = append(all, on(both, Tenant, "Machines of the tenant's own pools.",
		hyperv1.AWSMachinePublicIPs, hyperv1.EC2InstanceMetadataHTTPTokens, hyperv1.EnableSpotAnnotation,
		hyperv1.AllowUnsupportedKubeVirtRHCOSVariantsAnnotation,
		hyperv1.JSONPatchAnnotation, hyperv1.NodePoolSupportsKubevirtTopologySpreadConstraintsAnnotation)...)
	return append(all, as(Label, on(copies, Tenant, "Objects of the CLI that go with their cluster.",
		hyperv1.SafeToDeleteWithClusterLabel, hyperv1.AutoCreatedForInfraLabel))...)
}

// programs returns the keys on objects that no tenant may write.
func programs() []Row {
	all := on(hosted, Programs, "Components, releases and restarts of a control plane.",
		hyperv1.ReleaseImageAnnotation, hyperv1.ReleaseImageSourceAnnotation,
		hyperv1.ControlPlaneReleaseImageSourceAnnotation, hyperv1.PreviousRestartDateAnnotation,
		hyperv1.HostedClusterSourcedAnnotation, hyperv1.KASServingCertHashAnnotation,
		hyperv1.ReferencedResourceAnnotationPrefix+"*", hyperv1.ComponentConfigHashAnnotation,
		hyperv1.EtcdBackupSlotAnnotation)
	all = append(all, on(hosted, Programs, "Machines, their tokens and their configuration.",
		hyperv1.NodePoolAnnotation, hyperv1.MachineTokensAnnotation, hyperv1.NodeIdentityAnnotation,
		hyperv1.BootstrapMachineAnnotation,
		hyperv1.NodePoolReleaseVersionAnnotation, hyperv1.NodePoolUpgradeInProgressTrueAnnotation,
		hyperv1.NodePoolUpgradeInProgressFalseAnnotation,
		hyperv1.NodePoolMaxUnavailableAnnotation, hyperv1.NodePoolKubeletVersionAnnotation, hyperv1.NodePoolTaintsAnnotation,
		hyperv1.NodeLabelPrefix+"*",
		hyperv1.IgnitionConfigAnnotation, hyperv1.TokenSecretNodePoolUpgradeTypeAnnotation,
		hyperv1.TokenSecretUserDataFormatAnnotation,
		hyperv1.TokenSecretArchitectureAnnotation, hyperv1.TokenSecretLastGenerationTimeAnnotation,
		hyperv1.IgnitionServerTokenExpirationTimestampAnnotation,
		hyperv1.TokenSecretIgnitionReachedAnnotation, infrav1.OwnerAnnotation, infrav1.CustomDNSAnnotation,
		infrav1.RestoredFromAnnotation, infrav1.RestoredAtAnnotation)...)
	all = append(all, on(hosted, Programs, "Updates of a node in place; a Node speaks for itself alone.",
		hyperv1.DesiredNodeConfigAnnotation, hyperv1.CurrentNodeConfigAnnotation, hyperv1.NodeConfigStateAnnotation,
		hyperv1.NodeConfigMessageAnnotation,
		nodeupdate.DesiredAddress, nodeupdate.CurrentAddress, nodeupdate.AddressMessage,
		hyperv1.NodeUpdateCordonedAnnotation)...)
	all = append(all, on(hosted, Programs, "Virtual IPs of management nodes.", hyperv1.APIVirtualIPAnnotation)...)
	all = append(all, on(hosted, Programs, "The version that `install` installed.", hyperv1.InstalledVersionAnnotation)...)
	all = append(all, on(hosted, Programs, "Lets a volume of etcd, the root CA or an encryption key be deleted; administrators set it.",
		hyperv1.AllowDataLossAnnotation)...)
	all = append(all, on(hosted, Programs, "Copies of users' objects.",
		hyperv1.UserCopySourceAnnotation, hyperv1.UserCopyUnusedSinceAnnotation)...)
	return append(all, as(Label, on(hosted, Programs, "Pods, nodes and objects of control planes.",
		hyperv1.UserCopyLabel, hyperv1.OperatorObjectLabel, hyperv1.MinimalCRDLabel,
		hyperv1.SecretGrantLabel, hyperv1.NodeCredentialsLabel, hyperv1.ControlPlaneComponentLabel,
		hyperv1.ClusterMonitoringLabel, hyperv1.ManagedByLabel,
		hyperv1.NeedManagementKASAccessLabel, hyperv1.OperatorComponentLabel, hyperv1.InfraIDLabel,
		hyperv1.NodePoolNameLabel, hyperv1.HostedClusterLabel,
		hyperv1.RequestServingComponentLabel, hyperv1.NodeSizeLabel, hyperv1.RouteVisibilityLabel,
		hyperv1.AllowGuestWebhooksServiceLabel))...)
}

// finalizers returns the finalizers. They keep an object until everything that was created for it is gone.
func finalizers() []Row {
	all := on(both, Operator, "Keeps the object until its machines and its control plane are gone.",
		hyperv1.HostedClusterFinalizer)
	all = append(all, on(clusters, Operator, "Keeps the cluster until the documents of its issuer are gone.",
		hyperv1.AWSOIDCDiscoveryFinalizer)...)
	all = append(all, on(hosted, Programs, "Keeps backups, Deployments, machines and allocations until what they stand for is gone.",
		hyperv1.EtcdBackupFinalizer, hyperv1.ControlPlaneComponentFinalizer, infrav1.MachineFinalizer,
		infrav1.ClusterFinalizer, awsv1.MachineFinalizer)...)
	return as(Finalizer, all)
}
