// SPDX-License-Identifier: Apache-2.0

package v1beta1

// ConditionType is the type of a condition of a HostedCluster or a HostedControlPlane.
type ConditionType string

// AllIsWellMessage is the message of a condition that is as it should be.
const AllIsWellMessage = "All is well"

// Conditions of a HostedCluster.
const (
	// HostedClusterAvailable tells that the API of the hosted cluster serves.
	HostedClusterAvailable ConditionType = "Available"
	// HostedClusterProgressing tells that a version is being rolled out.
	HostedClusterProgressing ConditionType = "Progressing"
	// HostedClusterDegraded tells that a part of the control plane is not well.
	HostedClusterDegraded ConditionType = "Degraded"
	// HostedClusterDestroyed tells that only a grace period keeps the HostedCluster.
	HostedClusterDestroyed ConditionType = "HostedClusterDestroyed"
	// HostedClusterRestoredFromBackup tells that the cluster came back from a backup.
	HostedClusterRestoredFromBackup ConditionType = "HostedClusterRestoredFromBackup"

	// ValidHostedClusterConfiguration tells that the parts of the spec fit together.
	ValidHostedClusterConfiguration ConditionType = "ValidConfiguration"
	// SupportedHostedCluster tells that this management cluster can host the cluster.
	SupportedHostedCluster ConditionType = "SupportedHostedCluster"
	// ValidProxyConfiguration tells that the trust bundle of the proxy can be read.
	ValidProxyConfiguration ConditionType = "ValidProxyConfiguration"
	// ValidReleaseImage tells that the release image is there and a release payload.
	ValidReleaseImage ConditionType = "ValidReleaseImage"
	// IgnitionEndpointAvailable tells that machines can fetch their configuration.
	IgnitionEndpointAvailable ConditionType = "IgnitionEndpointAvailable"
	// IgnitionServerValidReleaseInfo tells that the payload has all that node configurations need.
	IgnitionServerValidReleaseInfo ConditionType = "IgnitionServerValidReleaseInfo"
	// UnmanagedEtcdAvailable tells that the etcd that somebody else runs can be used.
	UnmanagedEtcdAvailable ConditionType = "UnmanagedEtcdAvailable"
	// PlatformProviderSupported is only there, and False, while the machines of a cluster are made by another provider than the product's own.
	PlatformProviderSupported ConditionType = "PlatformProviderSupported"
	// PlatformCredentialsFound tells that the credentials of the platform are there and accepted.
	PlatformCredentialsFound ConditionType = "PlatformCredentialsFound"
	// ReconciliationActive tells that nobody has paused the HostedCluster.
	ReconciliationActive ConditionType = "ReconciliationActive"
	// ReconciliationSucceeded tells whether the last pass of the operator failed.
	ReconciliationSucceeded ConditionType = "ReconciliationSucceeded"
	// ValidOIDCConfiguration tells that the OIDC documents are published.
	ValidOIDCConfiguration ConditionType = "ValidOIDCConfiguration"
	// ControlPlaneDataRetained is only there, and False, while an object of the control plane that cannot be made again is
	// being deleted.
	ControlPlaneDataRetained ConditionType = "ControlPlaneDataRetained"
	// EtcdRecoveryActive tells that a member of etcd is being replaced.
	EtcdRecoveryActive ConditionType = "EtcdRecoveryActive"
	// ClusterVersionSucceeding is the negation of ClusterVersionFailing.
	ClusterVersionSucceeding ConditionType = "ClusterVersionSucceeding"
	// ClusterVersionUpgradeable tells that the hosted cluster may come to the next minor version.
	ClusterVersionUpgradeable ConditionType = "ClusterVersionUpgradeable"
	// AutoNodeEnabled tells that nodes are made on demand.
	AutoNodeEnabled ConditionType = "AutoNodeEnabled"
	// PublicEndpointExposed tells that the API is reached from the internet.
	PublicEndpointExposed ConditionType = "PublicEndpointExposed"
	// ClusterSizeComputed, ClusterSizeTransitionPending and ClusterSizeTransitionRequired tell of the size class.
	ClusterSizeComputed           ConditionType = "ClusterSizeComputed"
	ClusterSizeTransitionPending  ConditionType = "ClusterSizeTransitionPending"
	ClusterSizeTransitionRequired ConditionType = "ClusterSizeTransitionRequired"
	// ValidKubeVirtInfraNetworkMTU and KubeVirtNodesLiveMigratable tell of clusters on KubeVirt. ValidKubeVirtInfraNetworkPolicyRBAC tells whether
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
	// HostedControlPlaneAvailable tells that the API of the hosted cluster serves.
	HostedControlPlaneAvailable ConditionType = "Available"
	// HostedControlPlaneDegraded tells that a part of the control plane is not well.
	HostedControlPlaneDegraded ConditionType = "Degraded"
	// InfrastructureReady tells that the addresses of the control plane are known.
	InfrastructureReady ConditionType = "InfrastructureReady"
	// KubeAPIServerAvailable tells that the kube-apiserver runs.
	KubeAPIServerAvailable ConditionType = "KubeAPIServerAvailable"
	// EtcdAvailable tells that etcd has its quorum.
	EtcdAvailable ConditionType = "EtcdAvailable"
	// EtcdMembersHealthy tells that all members of a managed etcd answer and vote.
	EtcdMembersHealthy ConditionType = "EtcdMembersHealthy"
	// EtcdDiskFast is False while the disk of a member is too slow for etcd.
	EtcdDiskFast ConditionType = "EtcdDiskFast"
	// EtcdVolumesResized is False while the volumes of a managed etcd are smaller than the spec asks for. It is only there once they were.
	EtcdVolumesResized ConditionType = "EtcdVolumesResized"
	// ControlPlanePodsScheduled is False while the scheduler finds no node for pods of the control plane. It is only there once it did not.
	ControlPlanePodsScheduled ConditionType = "ControlPlanePodsScheduled"
	// EtcdSnapshotRestored tells that etcd was filled from a snapshot.
	EtcdSnapshotRestored ConditionType = "EtcdSnapshotRestored"
	// EtcdBackupSucceeded tells of the last backup of etcd.
	EtcdBackupSucceeded ConditionType = "EtcdBackupSucceeded"
	// KMSPluginAvailable tells that the plugins which encrypt Secrets run beside all API servers and answer.
	KMSPluginAvailable ConditionType = "KMSPluginAvailable"
	// EtcdDataEncryptionUpToDate tells that all Secrets are encrypted with the active key.
	EtcdDataEncryptionUpToDate ConditionType = "EtcdDataEncryptionUpToDate"
	// CertificatesValid is False when a certificate or an authority of the control plane has expired or will within 30 days.
	CertificatesValid ConditionType = "CertificatesValid"
	// SignersUpToDate is False while an authority, or the key of service account tokens, gives way to another.
	SignersUpToDate ConditionType = "SignersUpToDate"
	// PublishedAddressUpToDate is False while nodes go over to another address of the control plane, or cannot.
	PublishedAddressUpToDate ConditionType = "PublishedAddressUpToDate"
	// ValidHostedControlPlaneConfiguration tells that the parts of the spec fit together.
	ValidHostedControlPlaneConfiguration ConditionType = "ValidHostedControlPlaneConfiguration"
	// ValidReleaseInfo tells that the payload has every image that the control plane needs.
	ValidReleaseInfo ConditionType = "ValidReleaseInfo"
	// ValidIDPConfiguration tells that the identity providers can be used.
	ValidIDPConfiguration ConditionType = "ValidIDPConfiguration"
	// ExternalDNSReachable tells that the published names resolve.
	ExternalDNSReachable ConditionType = "ExternalDNSReachable"
	// CloudResourcesDestroyed tells that what the hosted cluster made outside is gone.
	CloudResourcesDestroyed ConditionType = "CloudResourcesDestroyed"
	// ConfigOperatorReconciliationSucceeded tells of the last pass of the config operator.
	ConfigOperatorReconciliationSucceeded ConditionType = "ConfigOperatorReconciliationSucceeded"
	// DataPlaneConnectionAvailable tells that the control plane reaches the nodes.
	DataPlaneConnectionAvailable ConditionType = "DataPlaneConnectionAvailable"
	// ControlPlaneConnectionAvailable tells that the nodes reach the control plane.
	ControlPlaneConnectionAvailable ConditionType = "ControlPlaneConnectionAvailable"
	// CVOScaledDown tells that the version operator was stopped for the teardown.
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
	// ControlPlaneComponentAvailable tells that the component serves.
	ControlPlaneComponentAvailable ConditionType = "Available"
	// ControlPlaneComponentRolloutComplete tells that all of the component runs the wanted version.
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
