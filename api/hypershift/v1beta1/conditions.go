// SPDX-License-Identifier: Apache-2.0

package v1beta1

// ConditionType is the type of a condition of a HostedCluster or a HostedControlPlane.
type ConditionType string

// AllIsWellMessage is the message of a condition that is as it should be.
const AllIsWellMessage = "All is well"

// Conditions of a HostedCluster.
const (
	// HostedClusterAvailable reports whether the API of the hosted cluster serves.
	HostedClusterAvailable ConditionType = "Available"
	// HostedClusterProgressing reports whether a version is being rolled out.
	HostedClusterProgressing ConditionType = "Progressing"
	// HostedClusterDegraded reports whether a part of the control plane is not well.
	HostedClusterDegraded ConditionType = "Degraded"
	// HostedClusterDestroyed reports whether only a grace period keeps the HostedCluster.
	HostedClusterDestroyed ConditionType = "HostedClusterDestroyed"
	// HostedClusterRestoredFromBackup reports whether the cluster came back from a backup.
	HostedClusterRestoredFromBackup ConditionType = "HostedClusterRestoredFromBackup"

	// ValidHostedClusterConfiguration reports whether the parts of the spec fit together.
	ValidHostedClusterConfiguration ConditionType = "ValidConfiguration"
	// SupportedHostedCluster reports whether this management cluster can host the cluster.
	SupportedHostedCluster ConditionType = "SupportedHostedCluster"
	// ValidProxyConfiguration reports whether the trust bundle of the proxy can be read.
	ValidProxyConfiguration ConditionType = "ValidProxyConfiguration"
	// ValidReleaseImage reports whether the release image is there and a release payload.
	ValidReleaseImage ConditionType = "ValidReleaseImage"
	// IgnitionEndpointAvailable reports whether machines can fetch their configuration.
	IgnitionEndpointAvailable ConditionType = "IgnitionEndpointAvailable"
	// IgnitionServerValidReleaseInfo reports whether the payload has all that node configurations need.
	IgnitionServerValidReleaseInfo ConditionType = "IgnitionServerValidReleaseInfo"
	// UnmanagedEtcdAvailable reports whether the etcd that the user provides can be used.
	UnmanagedEtcdAvailable ConditionType = "UnmanagedEtcdAvailable"
	// PlatformProviderSupported is only there, and False, while the machines of a cluster are made by another provider than the product's own.
	PlatformProviderSupported ConditionType = "PlatformProviderSupported"
	// PlatformCredentialsFound reports whether the credentials of the platform are there and accepted.
	PlatformCredentialsFound ConditionType = "PlatformCredentialsFound"
	// ReconciliationActive reports whether the HostedCluster is not paused.
	ReconciliationActive ConditionType = "ReconciliationActive"
	// ReconciliationSucceeded reports whether the operator's last reconcile succeeded.
	ReconciliationSucceeded ConditionType = "ReconciliationSucceeded"
	// ValidOIDCConfiguration reports whether the OIDC documents are published.
	ValidOIDCConfiguration ConditionType = "ValidOIDCConfiguration"
	// ControlPlaneDataRetained is only there, and False, while an object of the control plane that cannot be made again is
	// being deleted.
	ControlPlaneDataRetained ConditionType = "ControlPlaneDataRetained"
	// EtcdRecoveryActive reports whether a member of etcd is being replaced.
	EtcdRecoveryActive ConditionType = "EtcdRecoveryActive"
	// ClusterVersionSucceeding is the negation of ClusterVersionFailing.
	ClusterVersionSucceeding ConditionType = "ClusterVersionSucceeding"
	// ClusterVersionUpgradeable reports whether the hosted cluster may come to the next minor version.
	ClusterVersionUpgradeable ConditionType = "ClusterVersionUpgradeable"
	// AutoNodeEnabled reports whether nodes are made on demand.
	AutoNodeEnabled ConditionType = "AutoNodeEnabled"
	// PublicEndpointExposed reports whether the API is reached from the internet.
	PublicEndpointExposed ConditionType = "PublicEndpointExposed"
	// ClusterSizeComputed, ClusterSizeTransitionPending and ClusterSizeTransitionRequired tell of the size class.
	ClusterSizeComputed           ConditionType = "ClusterSizeComputed"
	ClusterSizeTransitionPending  ConditionType = "ClusterSizeTransitionPending"
	ClusterSizeTransitionRequired ConditionType = "ClusterSizeTransitionRequired"
	// ValidKubeVirtInfraNetworkMTU and KubeVirtNodesLiveMigratable tell of clusters on KubeVirt. ValidKubeVirtInfraNetworkPolicyRBAC reports whether
	// their virtual machines in another cluster have a NetworkPolicy there which keeps them off that cluster's own networks.
	ValidKubeVirtInfraNetworkMTU        ConditionType = "ValidKubeVirtInfraNetworkMTU"
	ValidKubeVirtInfraNetworkPolicyRBAC ConditionType = "ValidKubeVirtInfraNetworkPolicyRBAC"
	KubeVirtNodesLiveMigratable         ConditionType = "KubeVirtNodesLiveMigratable"
	// ValidAWSIdentityProvider and its like tell of clusters on AWS.
	ValidAWSIdentityProvider       ConditionType = "ValidAWSIdentityProvider"
	ValidAWSKMSConfig              ConditionType = "ValidAWSKMSConfig"
	AWSDefaultSecurityGroupCreated ConditionType = "AWSDefaultSecurityGroupCreated"
	AWSDefaultSecurityGroupDeleted ConditionType = "AWSDefaultSecurityGroupDeleted"
)

// Conditions of a HostedControlPlane; most are copied to its HostedCluster.
const (
	// HostedControlPlaneAvailable reports whether the API of the hosted cluster serves.
	HostedControlPlaneAvailable ConditionType = "Available"
	// HostedControlPlaneDegraded reports whether a part of the control plane is not well.
	HostedControlPlaneDegraded ConditionType = "Degraded"
	// InfrastructureReady reports whether the addresses of the control plane are known.
	InfrastructureReady ConditionType = "InfrastructureReady"
	// KubeAPIServerAvailable reports whether the kube-apiserver runs.
	KubeAPIServerAvailable ConditionType = "KubeAPIServerAvailable"
	// EtcdAvailable reports whether etcd has its quorum.
	EtcdAvailable ConditionType = "EtcdAvailable"
	// EtcdMembersHealthy reports whether all members of a managed etcd answer and vote.
	EtcdMembersHealthy ConditionType = "EtcdMembersHealthy"
	// EtcdDiskFast is False while the disk of a member is too slow for etcd.
	EtcdDiskFast ConditionType = "EtcdDiskFast"
	// EtcdVolumesResized is False while the volumes of a managed etcd are smaller than the spec asks for. It is only there once they were.
	EtcdVolumesResized ConditionType = "EtcdVolumesResized"
	// ControlPlanePodsScheduled is False while the scheduler finds no node for pods of the control plane. It is only there once it did not.
	ControlPlanePodsScheduled ConditionType = "ControlPlanePodsScheduled"
	// EtcdSnapshotRestored reports whether etcd was filled from a snapshot.
	EtcdSnapshotRestored ConditionType = "EtcdSnapshotRestored"
	// EtcdBackupSucceeded tells of the last backup of etcd.
	EtcdBackupSucceeded ConditionType = "EtcdBackupSucceeded"
	// KMSPluginAvailable reports whether the plugins which encrypt Secrets run beside all API servers and answer.
	KMSPluginAvailable ConditionType = "KMSPluginAvailable"
	// EtcdDataEncryptionUpToDate reports whether all Secrets are encrypted with the active key.
	EtcdDataEncryptionUpToDate ConditionType = "EtcdDataEncryptionUpToDate"
	// CertificatesValid is False when a certificate or an authority of the control plane has expired or will within 30 days.
	CertificatesValid ConditionType = "CertificatesValid"
	// SignersUpToDate is False while an authority, or the key of service account tokens, gives way to another.
	SignersUpToDate ConditionType = "SignersUpToDate"
	// PublishedAddressUpToDate is False while nodes migrate to another address of the control plane, or cannot.
	PublishedAddressUpToDate ConditionType = "PublishedAddressUpToDate"
	// ValidHostedControlPlaneConfiguration reports whether the parts of the spec fit together.
	ValidHostedControlPlaneConfiguration ConditionType = "ValidHostedControlPlaneConfiguration"
	// ValidReleaseInfo reports whether the payload has every image that the control plane needs.
	ValidReleaseInfo ConditionType = "ValidReleaseInfo"
	// ValidIDPConfiguration reports whether the identity providers can be used.
	ValidIDPConfiguration ConditionType = "ValidIDPConfiguration"
	// ExternalDNSReachable reports whether the published names resolve.
	ExternalDNSReachable ConditionType = "ExternalDNSReachable"
	// CloudResourcesDestroyed reports whether what the hosted cluster made outside is gone.
	CloudResourcesDestroyed ConditionType = "CloudResourcesDestroyed"
	// ConfigOperatorReconciliationSucceeded reports whether the config operator's last reconcile succeeded.
	ConfigOperatorReconciliationSucceeded ConditionType = "ConfigOperatorReconciliationSucceeded"
	// DataPlaneConnectionAvailable reports whether the control plane reaches the nodes.
	DataPlaneConnectionAvailable ConditionType = "DataPlaneConnectionAvailable"
	// ControlPlaneConnectionAvailable reports whether the nodes reach the control plane.
	ControlPlaneConnectionAvailable ConditionType = "ControlPlaneConnectionAvailable"
	// CVOScaledDown reports whether the version operator was stopped for the teardown.
	CVOScaledDown ConditionType = "CVOScaledDown"
	// ClusterVersionFailing and its like mirror the hosted cluster's ClusterVersion.
	ClusterVersionFailing          ConditionType = "ClusterVersionFailing"
	ClusterVersionProgressing      ConditionType = "ClusterVersionProgressing"
	ClusterVersionAvailable        ConditionType = "ClusterVersionAvailable"
	ClusterVersionReleaseAccepted  ConditionType = "ClusterVersionReleaseAccepted"
	ClusterVersionRetrievedUpdates ConditionType = "ClusterVersionRetrievedUpdates"
)

// Conditions of a ControlPlaneComponent.
const (
	// ControlPlaneComponentAvailable reports whether the component serves.
	ControlPlaneComponentAvailable ConditionType = "Available"
	// ControlPlaneComponentRolloutComplete reports whether all pods of the component run the desired version.
	ControlPlaneComponentRolloutComplete ConditionType = "RolloutComplete"
)

// Reasons of conditions of a HostedCluster, a HostedControlPlane or a ControlPlaneComponent.
const (
	StatusUnknownReason                   = "StatusUnknown"
	AsExpectedReason                      = "AsExpected"
	NotFoundReason                        = "NotFound"
	WaitingForAvailableReason             = "WaitingForAvailable"
	ControlPlanePodsFailingReason         = "ControlPlanePodsFailing"
	WaitingForDependenciesReason          = "WaitingForDependencies"
	WaitingForRolloutCompleteReason       = "WaitingForRolloutComplete"
	WaitingForOperandsReason              = "WaitingForOperands"
	SecretNotFoundReason                  = "SecretNotFound"
	ConfigMapNotFoundReason               = "ConfigMapNotFound"
	WaitingForGracePeriodReason           = "WaitingForGracePeriod"
	WaitingForBackupReason                = "WaitingForBackup"
	DataTerminatingReason                 = "DataTerminating"
	BlockedReason                         = "Blocked"
	InfraStatusFailureReason              = "InfraStatusFailure"
	WaitingOnInfrastructureReadyReason    = "WaitingOnInfrastructureReady"
	EtcdQuorumAvailableReason             = "QuorumAvailable"
	EtcdWaitingForQuorumReason            = "EtcdWaitingForQuorum"
	EtcdMemberUnhealthyReason             = "MemberUnhealthy"
	EtcdMemberReplacedReason              = "MemberReplaced"
	EtcdQuorumLostReason                  = "QuorumLost"
	EtcdAlarmReason                       = "AlarmRaised"
	UnschedulableReason                   = "Unschedulable"
	EtcdDiskSlowReason                    = "DiskTooSlow"
	EtcdVolumesGrowReason                 = "ExpansionInProgress"
	EtcdVolumesFixedReason                = "ExpansionRefused"
	EtcdStatefulSetNotFoundReason         = "StatefulSetNotFound"
	EtcdRecoveryJobFailedReason           = "EtcdRecoveryJobFailed"
	UnmanagedEtcdMisconfiguredReason      = "UnmanagedEtcdMisconfigured"
	UnmanagedEtcdUnavailableReason        = "UnmanagedEtcdUnavailable"
	UnmanagedEtcdAsExpected               = "UnmanagedEtcdAsExpected"
	FromClusterVersionReason              = "FromClusterVersion"
	InvalidConfigurationReason            = "InvalidConfiguration"
	KubeconfigWaitingForCreateReason      = "KubeconfigWaitingForCreate"
	UnsupportedHostedClusterReason        = "UnsupportedHostedCluster"
	InsufficientClusterCapabilitiesReason = "InsufficientClusterCapabilities"
	OIDCConfigurationInvalidReason        = "OIDCConfigurationInvalid"
	ProxyCABundleInvalidReason            = "ProxyCABundleInvalid"
	PlatformCredentialsNotFoundReason     = "PlatformCredentialsNotFound"
	InvalidImageReason                    = "InvalidImage"
	InvalidIdentityProviderReason         = "InvalidIdentityProvider"
	PayloadArchNotFoundReason             = "PayloadArchNotFound"
	InvalidIAMRoleReason                  = "InvalidIAMRole"
	ExternalDNSHostNotReachableReason     = "ExternalDNSHostNotReachable"
	KASLoadBalancerNotReachableReason     = "KASLoadBalancerNotReachable"
	ControlPlaneComponentsNotAvailable    = "ControlPlaneComponentsNotAvailable"
	MissingReleaseImagesReason            = "MissingReleaseImages"
	ReconciliationPausedReason            = "ReconciliationPaused"
	InvalidPausedUntilValueReason         = "InvalidPausedUntilValue"
	ReconcileErrorReason                  = "ReconcileError"
	ReconciliationErrorReason             = "ReconciliationError"
	ReconcileSuccessReason                = "ReconcileSuccess"
	RecoveryFinishedReason                = "RecoveryFinished"
	CloudResourcesCleanupSkippedReason    = "CloudResourcesCleanupSkipped"
	CloudResourcesDeletionTimedOutReason  = "CloudResourcesDeletionTimedOut"
	NoWorkerNodesAvailableReason          = "NoWorkerNodesAvailable"
	LogsAccessFailedReason                = "LogsAccessFailed"
	KASAccessFailedReason                 = "KASAccessFailed"
	ConnectionCheckStaleReason            = "ConnectionCheckStale"
	KonnectivityAgentPodsNotFoundReason   = "KonnectivityAgentPodsNotFound"
	UnavailableReplicasReason             = "UnavailableReplicas"
	// ReconciliationSucceededReason is misspelt as upstream's is, since dashboards match on it.
	ReconciliationSucceededReason = "ReconciliatonSucceeded"
	// KubeVirtNodesNotLiveMigratableReason means that virtual machines cannot change hosts while they run.
	KubeVirtNodesNotLiveMigratableReason = "KubeVirtNodesNotLiveMigratable"
	// InfraClusterNetworkReadFailedReason means that a kubeconfig may not read the networks of the cluster for virtual machines.
	InfraClusterNetworkReadFailedReason = "InfraClusterNetworkReadFailed"
	// InfraClusterNetworkPolicyCreateFailedReason means that a kubeconfig may not keep NetworkPolicies there.
	InfraClusterNetworkPolicyCreateFailedReason = "InfraClusterNetworkPolicyCreateFailed"
)

// ForeignProviderReason is the one of PlatformProviderSupported.
const ForeignProviderReason = "ForeignProvider"

// Reasons of PlatformCredentialsFound on MAAS, beside PlatformCredentialsNotFound.
const (
	// MAASUnauthorizedReason: MAAS refuses the API key.
	MAASUnauthorizedReason = "MAASUnauthorized"
	// NamespaceNotOwnedReason: the namespace of the control plane was there before and is not the cluster's.
	NamespaceNotOwnedReason = "NamespaceNotOwned"
	// MAASUnreachableReason: MAAS does not answer.
	MAASUnreachableReason = "MAASUnreachable"
)
