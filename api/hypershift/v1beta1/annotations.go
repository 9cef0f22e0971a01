// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Annotations on a HostedCluster that choose images.
const (
	// ControlPlaneOperatorImageAnnotation replaces the payload's control-plane-operator.
	ControlPlaneOperatorImageAnnotation = "hypershift.openshift.io/control-plane-operator-image"
	// ControlPlaneOperatorImageLabelsAnnotation is a list of key=value that stands for the labels of that image.
	ControlPlaneOperatorImageLabelsAnnotation = "hypershift.openshift.io/control-plane-operator-image-labels"
	// ClusterAPIManagerImage replaces the payload's Cluster API core manager.
	ClusterAPIManagerImage = "hypershift.openshift.io/capi-manager-image"
	// ClusterAPIProviderMAASImage replaces the MAAS provider.
	ClusterAPIProviderMAASImage = "hypershift.openshift.io/capi-provider-maas-image"
	// ClusterAPIProviderAWSImage replaces the AWS provider.
	ClusterAPIProviderAWSImage = "hypershift.openshift.io/capi-provider-aws-image"
	// ClusterAPIKubeVirtProviderImage replaces the KubeVirt provider.
	ClusterAPIKubeVirtProviderImage = "hypershift.openshift.io/capi-provider-kubevirt-image"
	// ClusterAPIAgentProviderImage replaces the Agent provider.
	ClusterAPIAgentProviderImage = "hypershift.openshift.io/capi-provider-agent-image"
	// ClusterAutoscalerImage replaces the payload's autoscaler.
	ClusterAutoscalerImage = "hypershift.openshift.io/cluster-autoscaler-image"
	// MachineApproverImage replaces the payload's machine approver.
	MachineApproverImage = "hypershift.openshift.io/machine-approver-image"
	// KonnectivityServerImageAnnotation and KonnectivityAgentImageAnnotation replace the payload's tunnel.
	KonnectivityServerImageAnnotation = "hypershift.openshift.io/konnectivity-server-image"
	KonnectivityAgentImageAnnotation  = "hypershift.openshift.io/konnectivity-agent-image"
	// HAProxyImageAnnotation on a NodePool replaces the API proxy of the nodes.
	HAProxyImageAnnotation = "hypershift.openshift.io/haproxy-image"
	// ImageOverridesAnnotation is a list of tag=image that replaces images of the payload.
	ImageOverridesAnnotation = "hypershift.openshift.io/image-overrides"
	// CertifiedOperatorsCatalogImageAnnotation and its like replace the images of the operator catalogs.
	CertifiedOperatorsCatalogImageAnnotation           = "hypershift.openshift.io/certified-operators-catalog-image"
	CommunityOperatorsCatalogImageAnnotation           = "hypershift.openshift.io/community-operators-catalog-image"
	RedHatMarketplaceCatalogImageAnnotation            = "hypershift.openshift.io/redhat-marketplace-catalog-image"
	RedHatOperatorsCatalogImageAnnotation              = "hypershift.openshift.io/redhat-operators-catalog-image"
	OLMCatalogsISRegistryOverridesAnnotation           = "hypershift.openshift.io/olm-catalogs-is-registry-overrides"
	AWSKMSProviderImage                                = "hypershift.openshift.io/aws-kms-provider-image"
	IBMCloudKMSProviderImage                           = "hypershift.openshift.io/ibmcloud-kms-provider-image"
	PortierisImageAnnotation                           = "hypershift.openshift.io/portieris-image"
	CanonicalDataPlaneImagesAnnotation                 = "hypershift.openshift.io/canonical-data-plane-images"
	ReleaseImageAnnotation                             = "hypershift.openshift.io/release-image"
	MachineDeploymentProgressDeadlineSecondsAnnotation = "hypershift.openshift.io/machine-deployment-progress-deadline-seconds"
)

// Annotations on a HostedCluster that change how it is run.
const (
	// HasBeenAvailableAnnotation is set once the cluster was Available.
	HasBeenAvailableAnnotation = "hypershift.openshift.io/HasBeenAvailable"
	// AWSMachinePublicIPs gives instances of EC2 public addresses when it is "true".
	AWSMachinePublicIPs = "hypershift.openshift.io/aws-machine-public-ips"
	// EC2InstanceMetadataHTTPTokens on a NodePool is "required" where instances give their metadata to clients with a session token only;
	// it is "optional" otherwise.
	EC2InstanceMetadataHTTPTokens = "hypershift.openshift.io/ec2-instance-metadata-http-tokens"
	// EnableSpotAnnotation on a NodePool, with any value, marks its instances of EC2 as those that EC2 may take back at short notice.
	EnableSpotAnnotation = "hypershift.openshift.io/enable-spot"
	// DisablePKIReconciliationAnnotation leaves certificates alone.
	DisablePKIReconciliationAnnotation = "hypershift.openshift.io/disable-pki-reconciliation"
	// CertificateValidityAnnotation is a Go duration: how long certificates of the control plane last; a year unless it says so.
	CertificateValidityAnnotation = "hypershift.openshift.io/certificate-validity"
	// CertificateRenewalAnnotation is the part of its life after which a certificate is renewed: 0.7, or 70.
	CertificateRenewalAnnotation = "hypershift.openshift.io/certificate-renewal"
	// RotateSignersAnnotation asks for another key of certificate authorities and of service account tokens: a list of
	// <Secret>=<mark>, or all=<mark>. Each new mark rotates once.
	RotateSignersAnnotation = "hypershift.openshift.io/rotate-signers"
	// SignerOverlapAnnotation is a Go duration: how long a rotated signer stays trusted when its successor signs everywhere.
	SignerOverlapAnnotation = "hypershift.openshift.io/former-signer-overlap"
	// AddressOverlapAnnotation is a Go duration: how long a former address of the API is served at least, for kubeconfigs that were handed out.
	AddressOverlapAnnotation = "hypershift.openshift.io/former-address-overlap"
	// ReleaseImageSourceAnnotation is on a HostedControlPlane: the pull spec of the HostedCluster that its spec.releaseImage
	// was resolved from. As long as that stays, the release stays, wherever a tag points to later.
	ReleaseImageSourceAnnotation = "hypershift.openshift.io/release-image-source"
	// ControlPlaneReleaseImageSourceAnnotation is the same of spec.controlPlaneReleaseImage.
	ControlPlaneReleaseImageSourceAnnotation = "hypershift.openshift.io/control-plane-release-image-source"
	// SkipReleaseImageValidation accepts any version.
	SkipReleaseImageValidation = "hypershift.openshift.io/skip-release-image-validation"
	// ForceUpgradeToAnnotation names the one image that is taken although an upgrade is refused.
	ForceUpgradeToAnnotation = "hypershift.openshift.io/force-upgrade-to"
	// RestartDateAnnotation restarts the control plane when it changes.
	RestartDateAnnotation = "hypershift.openshift.io/restart-date"
	// PreviousRestartDateAnnotation remembers the restart date that was passed on last.
	PreviousRestartDateAnnotation = "hypershift.openshift.io/previous-restart-date"
	// HCDestroyGracePeriodAnnotation is a Go duration for which a destroyed HostedCluster is kept.
	HCDestroyGracePeriodAnnotation = "hypershift.openshift.io/destroy-grace-period"
	// CleanupCloudResourcesAnnotation removes what the hosted cluster made outside before it goes.
	CleanupCloudResourcesAnnotation = "hypershift.openshift.io/cleanup-cloud-resources"
	// SkipDeleteHostedControlPlaneNamespaceAnnotation keeps the namespace of the control plane.
	SkipDeleteHostedControlPlaneNamespaceAnnotation = "hypershift.openshift.io/skip-delete-hosted-controlplane-namespace"
	// DisableMachineManagement leaves Cluster API out.
	DisableMachineManagement = "hypershift.openshift.io/disable-machine-management"
	// DisableIgnitionServerAnnotation leaves the ignition-server out.
	DisableIgnitionServerAnnotation = "hypershift.openshift.io/disable-ignition-server"
	// DisableClusterAutoscalerAnnotation stops the autoscaler; the operator sets it when no pool scales by itself.
	DisableClusterAutoscalerAnnotation = "hypershift.openshift.io/disable-cluster-autoscaler"
	// DisableProfilingAnnotation lists components without profiling. A Kubernetes payload profiles none.
	DisableProfilingAnnotation = "hypershift.openshift.io/disable-profiling"
	// DisableMonitoringServices leaves monitors out.
	DisableMonitoringServices = "hypershift.openshift.io/disable-monitoring-services"
	// EnableMetricsForwarding forwards metrics of the control plane into the hosted cluster.
	EnableMetricsForwarding = "hypershift.openshift.io/enable-metrics-forwarding"
	// PodSecurityAdmissionLabelOverrideAnnotation of a HostedCluster asks for a Pod Security level of the control plane's namespace. It
	// tightens the level that the payload gives; it loosens that of an OpenShift payload as far as the installation allows. On the
	// namespace itself it is the level.
	PodSecurityAdmissionLabelOverrideAnnotation = "hypershift.openshift.io/pod-security-admission-label-override"
	// EnsureExistsPullSecretReconcile makes the guest's pull secret once and leaves it alone then.
	EnsureExistsPullSecretReconcile = "hypershift.openshift.io/ensureexists-pullsecret-reconcile"
	// PrivateIngressControllerAnnotation keeps the guest's ingress private.
	PrivateIngressControllerAnnotation = "hypershift.openshift.io/private-ingress-controller"
	// IngressControllerLoadBalancerScope is the scope of the guest's ingress load balancer.
	IngressControllerLoadBalancerScope = "hypershift.openshift.io/ingress-controller-load-balancer-scope"
	// TopologyAnnotation says how request serving pods are placed.
	TopologyAnnotation = "hypershift.openshift.io/topology"
	// DedicatedRequestServingComponentsTopology is the value of TopologyAnnotation for nodes of their own.
	DedicatedRequestServingComponentsTopology = "dedicated-request-serving-components"
	// RequestServingNodeAdditionalSelectorAnnotation narrows those nodes down.
	RequestServingNodeAdditionalSelectorAnnotation = "hypershift.openshift.io/request-serving-node-additional-selector"
	// HostedClusterScheduledAnnotation tells that nodes were chosen.
	HostedClusterScheduledAnnotation = "hypershift.openshift.io/cluster-scheduled"
	// HostedClusterRestoredFromBackupAnnotation tells that the cluster came back from a backup.
	HostedClusterRestoredFromBackupAnnotation = "hypershift.openshift.io/restored-from-backup"
	// RestoringAnnotation, set when a HostedCluster is made that comes back from a backup, has the control-plane-operator of a Kubernetes release make nothing,
	// no key above all, until `hypershift restore cluster` has put keys and data in place and takes it away. Its value does not matter.
	RestoringAnnotation = "hypershift.openshift.io/restoring"
	// RestoredInfrastructureAnnotation holds the UID of the infrastructure cluster (MaasCluster) that was lost with the hosted namespace. The new one
	// takes its place: machines that still run for the lost one become those of the pools that had them. It counts when the new one is made.
	RestoredInfrastructureAnnotation = "hypershift.openshift.io/restored-infrastructure"
	// HostedClusterSourcedAnnotation marks what came from a HostedCluster.
	HostedClusterSourcedAnnotation = "hypershift.openshift.io/hosted-cluster-sourced"
	// SkipKASConflicSANValidation accepts serving certificates that collide with internal names.
	SkipKASConflicSANValidation = "hypershift.openshift.io/skip-kas-conflict-san-validation"
	// ManagementPlatformAnnotation is the platform of the management cluster.
	ManagementPlatformAnnotation = "hypershift.openshift.io/management-platform"
	// DebugDeploymentsAnnotation lists Deployments that are scaled to none.
	DebugDeploymentsAnnotation = "hypershift.openshift.io/debug-deployments"
	// ControlPlanePriorityClass, APICriticalPriorityClass and EtcdPriorityClass replace priority classes.
	ControlPlanePriorityClass = "hypershift.openshift.io/control-plane-priority-class"
	APICriticalPriorityClass  = "hypershift.openshift.io/api-critical-priority-class"
	EtcdPriorityClass         = "hypershift.openshift.io/etcd-priority-class"
	// KubeAPIServerGOGCAnnotation and its like tune the kube-apiserver.
	KubeAPIServerGOGCAnnotation                                 = "hypershift.openshift.io/kube-apiserver-gogc"
	KubeAPIServerGOMemoryLimitAnnotation                        = "hypershift.openshift.io/kube-apiserver-gomemlimit"
	KubeAPIServerVerbosityLevelAnnotation                       = "hypershift.openshift.io/kube-apiserver-verbosity-level"
	KubeAPIServerMaximumRequestsInFlight                        = "hypershift.openshift.io/kube-apiserver-max-requests-inflight"
	KubeAPIServerMaximumMutatingRequestsInFlight                = "hypershift.openshift.io/kube-apiserver-max-mutating-requests-inflight"
	KubeAPIServerGoAwayChance                                   = "hypershift.openshift.io/kube-apiserver-goaway-chance"
	KubeAPIServerServiceAccountTokenMaxExpiration               = "hypershift.openshift.io/kube-apiserver-service-account-token-max-expiration"
	ResourceRequestOverrideAnnotationPrefix                     = "resource-request-override.hypershift.openshift.io"
	IdentityProviderOverridesAnnotationPrefix                   = "idpoverrides.hypershift.openshift.io/"
	OauthLoginURLOverrideAnnotation                             = "oauth.hypershift.openshift.io/login-url-override"
	ResourceBasedControlPlaneAutoscalingAnnotation              = "hypershift.openshift.io/resource-based-cp-auto-scaling"
	RecommendedClusterSizeAnnotation                            = "hypershift.openshift.io/recommended-cluster-size"
	ClusterSizeOverrideAnnotation                               = "hypershift.openshift.io/cluster-size-override"
	KASServingCertHashAnnotation                                = "hypershift.openshift.io/kas-serving-cert-hash"
	DefaultSecurityContextUIDAnnotation                         = "hypershift.openshift.io/default-security-context-uid"
	HostedClusterScopeAnnotation                                = "hypershift.openshift.io/scope"
	ReferencedResourceAnnotationPrefix                          = "referenced-resource.hypershift.openshift.io/"
	ComponentConfigHashAnnotation                               = "component.hypershift.openshift.io/config-hash"
	MachineHealthCheckTimeoutAnnotation                         = "hypershift.openshift.io/machine-health-check-timeout"
	MachineHealthCheckNodeStartupTimeoutAnnotation              = "hypershift.openshift.io/machine-health-check-node-startup-timeout"
	MachineHealthCheckMaxUnhealthyAnnotation                    = "hypershift.openshift.io/machine-health-check-max-unhealthy"
	HostedClusterAnnotation                                     = "hypershift.openshift.io/cluster"
	AllowUnsupportedKubeVirtRHCOSVariantsAnnotation             = "hypershift.openshift.io/allow-unsupported-kubevirt-rhcos-variants"
	JSONPatchAnnotation                                         = "hypershift.openshift.io/kubevirt-vm-jsonpatch"
	NodePoolSupportsKubevirtTopologySpreadConstraintsAnnotation = "hypershift.openshift.io/nodepool-supports-kubevirt-topology-spread-constraints"
)

// Annotations on the namespace of a control plane.
const (
	// NamespaceReleasedAnnotation is on a namespace that may be deleted, with any value. The operator sets it when the
	// machines are gone; an administrator may set it too.
	NamespaceReleasedAnnotation = "hypershift.openshift.io/namespace-released"
	// ServedClusterAnnotation is <UID of the namespace>/<UID of the HostedCluster>. It proves that this namespace was not
	// restored from a backup and that its HostedCluster has existed in this management cluster.
	ServedClusterAnnotation = "hypershift.openshift.io/served-cluster"
	// OrphanedSinceAnnotation is the time in RFC 3339 at which the operator found that the HostedCluster is gone.
	OrphanedSinceAnnotation = "hypershift.openshift.io/orphaned-since"
	// OrphanPolicyAnnotation says what becomes of the namespace when its HostedCluster is gone: OrphanPolicyKeep or
	// OrphanPolicyDelete. Without it the operator deletes a namespace that it has served, after a grace period.
	OrphanPolicyAnnotation = "hypershift.openshift.io/orphan-policy"
)

// Values of OrphanPolicyAnnotation.
const (
	// OrphanPolicyKeep keeps the namespace, its machines and its workloads.
	OrphanPolicyKeep = "keep"
	// OrphanPolicyDelete deletes them without a grace period and without proof that the operator has served the namespace.
	OrphanPolicyDelete = "delete"
)

// Labels and annotations of Secrets and ConfigMaps in a hosted namespace. They say where an object comes from: only the
// programs of the product write there, and they never keep a label or an annotation of an object that a user wrote.
const (
	// UserCopyLabel is "true" on a copy of an object that a user wrote. The programs never read a copy as an object of
	// their own.
	UserCopyLabel = "hypershift.openshift.io/user-copy"
	// UserCopySourceAnnotation is, on such a copy, the name of the object that it was made from.
	UserCopySourceAnnotation = "hypershift.openshift.io/user-copy-source"
	// UserCopyUnusedSinceAnnotation is, on such a copy, since when nothing has used it.
	UserCopyUnusedSinceAnnotation = "hypershift.openshift.io/user-copy-unused-since"
	// MinimalCRDLabel is "true" on a CRD of another product's kind that `hypershift install` brings because no product serves the kind.
	MinimalCRDLabel = "hypershift.openshift.io/minimal-crd"
	// OperatorObjectLabel is "true" on a Secret or ConfigMap that the hypershift-operator writes under a name of its own
	// choice.
	OperatorObjectLabel = "hypershift.openshift.io/operator-object"
)

// Annotations and labels of a NodePool and of what is made for it.
const (
	// NodePoolAnnotation is <namespace>/<name> of the NodePool on what was made for it.
	NodePoolAnnotation = "hypershift.openshift.io/nodePool"
	// MachineTokensAnnotation is "true" on the token Secret of an ignition-server that takes tokens of single machines.
	MachineTokensAnnotation = "hypershift.openshift.io/machine-tokens"
	// NodeIdentityAnnotation is, on a Machine, its node's name and a digest of the key that it got its first certificate for.
	NodeIdentityAnnotation = "hypershift.openshift.io/node-identity"
	// BootstrapMachineAnnotation is, on a bootstrap token of the guest, the Machine that it was made for or used by.
	BootstrapMachineAnnotation = "hypershift.openshift.io/bootstrap-machine"
	// AgentsForAnnotation is, on a namespace of Agents, the namespaces of HostedClusters that may use these, with commas between, or "*"
	// for all. Only who may change namespaces can write it; a cluster of the Agents' own namespace needs no word.
	AgentsForAnnotation = "hypershift.openshift.io/agents-for"
	// SecretGrantLabel is the service account on a Role and a RoleBinding that let it work with one Secret of a NodePool.
	SecretGrantLabel = "hypershift.openshift.io/secret-grant"
	// NodeCredentialsLabel is, on a guest's record of the certificates of one Machine's node, whether these are held, leaving or revoked.
	NodeCredentialsLabel = "hypershift.openshift.io/node-credentials"
	// NodePoolLabel is the name of the NodePool on Nodes and ConfigMaps.
	NodePoolLabel = "hypershift.openshift.io/nodePool"
	// NodePoolReleaseVersionAnnotation is the version that a Machine runs.
	NodePoolReleaseVersionAnnotation = "hypershift.openshift.io/release-version"
	// NodePoolCurrentConfigAnnotation is the hash of the configuration that the pool has come to, without the version.
	NodePoolCurrentConfigAnnotation = "hypershift.openshift.io/nodePoolCurrentConfig"
	// NodePoolCurrentConfigVersionAnnotation is the hash of all that the pool has come to.
	NodePoolCurrentConfigVersionAnnotation = "hypershift.openshift.io/nodePoolCurrentConfigVersion"
	// NodePoolTargetConfigVersionAnnotation is the hash of all that a MachineSet comes to in place.
	NodePoolTargetConfigVersionAnnotation = "hypershift.openshift.io/nodePoolTargetConfigVersion"
	// NodePoolPlatformMachineTemplateAnnotation is the machine template that the pool has come to.
	NodePoolPlatformMachineTemplateAnnotation = "hypershift.openshift.io/nodePoolPlatformMachineTemplate"
	// NodePoolResolvedReleaseAnnotation on a NodePool repeats status.resolvedRelease: spec.release.image and, after a
	// space, the pull spec by digest. It is read only while status has none, as after an upgrade from 0.1.0 or a restore,
	// and only where it names a digest of the repository that spec names.
	NodePoolResolvedReleaseAnnotation = "hypershift.openshift.io/nodePoolResolvedRelease"
	// NodePoolFirstReleaseAnnotation on a NodePool is the digest of the first release that it was seen with. The hash that replaces
	// machines holds the digest of every other one, so that pools from before digests counted keep the hash that they had.
	NodePoolFirstReleaseAnnotation = "hypershift.openshift.io/nodePoolFirstRelease"
	// NodePoolCurrentReleaseAnnotation on a NodePool is the digest of the release that all its machines have come to.
	NodePoolCurrentReleaseAnnotation = "hypershift.openshift.io/nodePoolCurrentRelease"
	// NodePoolUpgradeInProgressTrueAnnotation and NodePoolUpgradeInProgressFalseAnnotation tell of an upgrade in place.
	NodePoolUpgradeInProgressTrueAnnotation  = "hypershift.openshift.io/nodePoolUpgradeInProgressTrue"
	NodePoolUpgradeInProgressFalseAnnotation = "hypershift.openshift.io/nodePoolUpgradeInProgressFalse"
	// NodePoolMaxUnavailableAnnotation bounds how many nodes are upgraded in place at once.
	NodePoolMaxUnavailableAnnotation = "hypershift.openshift.io/nodePoolMaxUnavailable"
	// NodePoolKubeletVersionAnnotation is, on a MachineSet of a Kubernetes release, the version of the kubelet that its nodes come to, without a leading v.
	NodePoolKubeletVersionAnnotation = "hypershift.openshift.io/nodePoolKubeletVersion"
	// NodePoolTaintsAnnotation is a JSON list of the taints of a Machine's node.
	NodePoolTaintsAnnotation = "hypershift.openshift.io/nodePoolTaints"
	// NodeLabelPrefix marks labels of a Machine that belong on its node; the prefix is taken off there.
	NodeLabelPrefix = "managed.hypershift.openshift.io"
	// IgnitionConfigAnnotation marks token Secrets for the ignition-server.
	IgnitionConfigAnnotation = "hypershift.openshift.io/ignition-config"
	// TokenSecretNodePoolUpgradeType is the upgrade type of the token's pool.
	TokenSecretNodePoolUpgradeTypeAnnotation = "hypershift.openshift.io/node-pool-upgrade-type"
	// TokenSecretUserDataFormatAnnotation is the format of the user-data that the token is in, if it is not Ignition: the
	// configuration that the token stands for is rendered for who reads that.
	TokenSecretUserDataFormatAnnotation = "hypershift.openshift.io/user-data-format"
	// NodePoolUserDataFormatAnnotation keeps at a NodePool what the machines of its image read their first-boot configuration as, and why:
	// another format would replace them. Without it, and without machines, the choice is made again.
	NodePoolUserDataFormatAnnotation = "hypershift.openshift.io/nodePoolUserDataFormat"
	// NodePoolOSImageStreamAnnotation on a NodePool is the operating system stream that its nodes were last configured
	// for. A pool without spec.osImageStream keeps it, so that neither an upgrade nor the removal of the field replaces
	// nodes.
	NodePoolOSImageStreamAnnotation = "hypershift.openshift.io/nodePoolOSImageStream"
	// TokenSecretArchitectureAnnotation is the architecture of the machines that the token is for, if it is not amd64: their
	// Ignition is told which program to fetch.
	TokenSecretArchitectureAnnotation = "hypershift.openshift.io/node-architecture"
	// TokenSecretLastGenerationTimeAnnotation is when a token was made, RFC 3339 with nanoseconds.
	TokenSecretLastGenerationTimeAnnotation = "hypershift.openshift.io/last-token-generation-time"
	// IgnitionServerTokenExpirationTimestampAnnotation is when an outdated token ends, RFC 3339.
	IgnitionServerTokenExpirationTimestampAnnotation = "hypershift.openshift.io/ignition-token-expiration-timestamp"
	// APIVirtualIPAnnotation is on the DaemonSet that holds virtual IPs of the management cluster's nodes: their addresses, separated by commas.
	APIVirtualIPAnnotation = "hypershift.openshift.io/api-virtual-ip"
	// TokenSecretIgnitionReachedAnnotation tells that a machine has fetched the configuration of a token.
	TokenSecretIgnitionReachedAnnotation = "hypershift.openshift.io/ignition-reached"
)

// Labels.
const (
	// ControlPlaneComponentLabel names the component on its pods.
	ControlPlaneComponentLabel = "hypershift.openshift.io/control-plane-component"
	// ControlPlaneNamespaceLabel marks namespaces of control planes.
	ControlPlaneNamespaceLabel = "hypershift.openshift.io/hosted-control-plane"
	// ClusterMonitoringLabel has OpenShift's own Prometheus scrape a namespace of the management cluster.
	ClusterMonitoringLabel = "openshift.io/cluster-monitoring"
	// ManagedByLabel tells who manages a workload.
	ManagedByLabel = "hypershift.openshift.io/managed-by"
	// NeedManagementKASAccessLabel marks pods that talk to the management cluster.
	NeedManagementKASAccessLabel = "hypershift.openshift.io/need-management-kas-access"
	// OperatorComponentLabel names the component of the operator.
	OperatorComponentLabel = "hypershift.openshift.io/operator-component"
	// InfraIDLabel is the infrastructure id of a cluster.
	InfraIDLabel = "hypershift.openshift.io/infra-id"
	// NodePoolNameLabel is the name of the NodePool.
	NodePoolNameLabel = "hypershift.openshift.io/nodepool-name"
	// HostedClusterLabel names the cluster that a management node serves.
	HostedClusterLabel = "hypershift.openshift.io/cluster"
	// RequestServingComponentLabel marks nodes and pods that serve requests.
	RequestServingComponentLabel = "hypershift.openshift.io/request-serving-component"
	// HostedClusterSizeLabel and NodeSizeLabel are size classes.
	HostedClusterSizeLabel = "hypershift.openshift.io/hosted-cluster-size"
	NodeSizeLabel          = "hypershift.openshift.io/cluster-size"
	// RouteVisibilityLabel with RouteVisibilityPrivateValue keeps a Route private.
	RouteVisibilityLabel        = "hypershift.openshift.io/route-visibility"
	RouteVisibilityPrivateValue = "private"
	// AllowGuestWebhooksServiceLabel lets guest webhooks call a Service.
	AllowGuestWebhooksServiceLabel = "hypershift.openshift.io/allow-guest-webhooks"
	// SilenceClusterAlertsLabel silences alerts of a cluster.
	SilenceClusterAlertsLabel = "hypershift.openshift.io/silence-cluster-alerts"
	// LimitedSupportLabel marks clusters of limited support.
	LimitedSupportLabel = "api.openshift.com/limited-support"
	// SafeToDeleteWithClusterLabel marks objects of a CLI that go with their cluster.
	SafeToDeleteWithClusterLabel = "hypershift.openshift.io/safe-to-delete-with-cluster"
	// AutoCreatedForInfraLabel marks what a CLI made, with the infrastructure id.
	AutoCreatedForInfraLabel = "hypershift.openshift.io/auto-created-for-infra"
)

// InstalledVersionAnnotation of the operator's Deployment and of HyperShift's CRDs is the version that installed them.
const InstalledVersionAnnotation = "hypershift.openshift.io/installed-version"

// Finalizers and Secret keys.
const (
	// HostedClusterFinalizer is kept on a HostedCluster and a NodePool until what was made for them is gone.
	HostedClusterFinalizer = "hypershift.openshift.io/finalizer"
	// AWSOIDCDiscoveryFinalizer keeps a HostedCluster until the documents of its issuer are gone from the installation's bucket.
	AWSOIDCDiscoveryFinalizer = "hypershift.io/aws-oidc-discovery"
	// EtcdBackupFinalizer keeps an HCPEtcdBackup until what is stored of it is gone, if that is to go with it.
	EtcdBackupFinalizer = "hypershift.openshift.io/etcd-backup"
	// EtcdBackupSlotAnnotation of an HCPEtcdBackup is the time of the schedule that it is of.
	EtcdBackupSlotAnnotation = "hypershift.openshift.io/etcd-backup-slot"
	// ControlPlaneComponentFinalizer keeps the Cluster API Deployments until all machines are gone.
	ControlPlaneComponentFinalizer = "hypershift.openshift.io/component-finalizer"
	// AuditWebhookKubeconfigKey is the key of an audit webhook's Secret.
	AuditWebhookKubeconfigKey = "webhook-kubeconfig"
	// AllowDataLossAnnotation, with any value, lets a volume of etcd, the root CA or an encryption key in the namespace of a
	// control plane be deleted.
	AllowDataLossAnnotation = "hypershift.openshift.io/allow-data-loss"
	// AESCBCKeySecretKey is the key of an encryption key's Secret; its value is 32 bytes.
	AESCBCKeySecretKey = "key"
	// ServiceAccountSigningKeySecretKey is the key of a signing key's Secret, a private key in PEM.
	ServiceAccountSigningKeySecretKey = "key"
	// OldServiceAccountSigningKeySecretKey is the key of public keys that are still accepted.
	OldServiceAccountSigningKeySecretKey = "old-key.pub"
)

// Keys of a token Secret: what the operator asks the ignition-server to render, and what that says of it.
const (
	// TokenSecretTokenKey is what machines show, and TokenSecretOldTokenKey what they showed before the last rotation.
	TokenSecretTokenKey    = "token"
	TokenSecretOldTokenKey = "old_token"
	// UserDataTokenKey is, in a user-data Secret, the token of the pool in it, which a provider replaces by one of each machine.
	UserDataTokenKey = "token"
	// TokenSecretReleaseKey is the release by digest, TokenSecretReleaseVersionKey its version.
	TokenSecretReleaseKey        = "release"
	TokenSecretReleaseVersionKey = "release-version"
	// TokenSecretConfigKey is the configuration, compressed and in base64.
	TokenSecretConfigKey = "config"
	// TokenSecretPullSecretHashKey and the next two change with what a configuration is rendered from besides.
	TokenSecretPullSecretHashKey            = "pull-secret-hash"
	TokenSecretAdditionalTrustBundleHashKey = "additional-trust-bundle-hash"
	TokenSecretHCConfigurationHashKey       = "hc-configuration-hash"
	// TokenSecretOSStreamKey holds the operating system stream that nodes are made of, where the release has a choice.
	TokenSecretOSStreamKey = "os-stream"
	// TokenSecretPayloadKey is the Ignition config, packed, of pools that are upgraded in place.
	TokenSecretPayloadKey = "payload"
	// TokenSecretReasonKey and TokenSecretMessageKey tell how rendering went.
	TokenSecretReasonKey  = "reason"
	TokenSecretMessageKey = "message"
)

// Keys of the Secret that identityRef of a MAAS platform names.
const (
	// MAASEndpointKey is the URL of MAAS up to and including /MAAS.
	MAASEndpointKey = "MAAS_ENDPOINT"
	// MAASAPIKeyKey is the API key, consumer:token:secret.
	MAASAPIKeyKey = "MAAS_API_KEY"
	// MAASCABundleKey is the CA of MAAS in PEM; optional.
	MAASCABundleKey = "MAAS_CA_BUNDLE"
	// MAASServerURLKey and MAASAPIKeyAltKey are other accepted spellings.
	MAASServerURLKey = "maas-server-url"
	MAASAPIKeyAltKey = "maas-api-key"
)
