// SPDX-License-Identifier: Apache-2.0

package health

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// good returns an Expectation for each type, with the same good status.
func good[T ~string](status metav1.ConditionStatus, types ...T) []Expectation {
	var all []Expectation
	for _, t := range types {
		all = append(all, Expectation{Type: string(t), Good: status})
	}
	return all
}

// progress returns an Expectation of progress for each type.
func progress[T ~string](status metav1.ConditionStatus, types ...T) []Expectation {
	all := good(status, types...)
	for i := range all {
		all[i].Progress = true
	}
	return all
}

// HostedCluster returns the conditions of a HostedCluster. Causes precede their effects.
func HostedCluster() []Expectation {
	all := good(metav1.ConditionTrue,
		hyperv1.ReconciliationActive, hyperv1.ValidHostedClusterConfiguration, hyperv1.SupportedHostedCluster,
		hyperv1.ValidReleaseImage, hyperv1.PlatformCredentialsFound, hyperv1.PlatformProviderSupported,
		hyperv1.ValidProxyConfiguration, hyperv1.UnmanagedEtcdAvailable, hyperv1.ValidHostedControlPlaneConfiguration,
		hyperv1.ValidReleaseInfo, hyperv1.ValidOIDCConfiguration, hyperv1.ValidIDPConfiguration,
		hyperv1.ValidAWSIdentityProvider, hyperv1.ValidAWSKMSConfig, hyperv1.AWSDefaultSecurityGroupCreated,
		hyperv1.ValidKubeVirtInfraNetworkMTU, hyperv1.ValidKubeVirtInfraNetworkPolicyRBAC,
		hyperv1.HostedClusterRestoredFromBackup, hyperv1.InfrastructureReady, hyperv1.ExternalDNSReachable,
		hyperv1.ControlPlaneDataRetained, hyperv1.ControlPlanePodsScheduled, hyperv1.EtcdAvailable,
		hyperv1.EtcdMembersHealthy, hyperv1.KMSPluginAvailable, hyperv1.KubeAPIServerAvailable,
		hyperv1.IgnitionEndpointAvailable, hyperv1.IgnitionServerValidReleaseInfo, hyperv1.HostedClusterAvailable)
	all = append(all, good(metav1.ConditionFalse, hyperv1.HostedClusterDegraded)...)
	all = append(all, good(metav1.ConditionTrue,
		hyperv1.ReconciliationSucceeded, hyperv1.ConfigOperatorReconciliationSucceeded, hyperv1.CertificatesValid)...)
	all = append(all,
		Expectation{Type: string(hyperv1.DataPlaneConnectionAvailable), Good: metav1.ConditionTrue, Normal: noNodes()},
		Expectation{Type: string(hyperv1.ControlPlaneConnectionAvailable), Good: metav1.ConditionTrue, Normal: noNodes()})
	all = append(all, good(metav1.ConditionTrue,
		hyperv1.EtcdBackupSucceeded, hyperv1.EtcdDiskFast, hyperv1.EtcdVolumesResized, hyperv1.KubeVirtNodesLiveMigratable,
		hyperv1.ClusterVersionReleaseAccepted, hyperv1.ClusterVersionSucceeding, hyperv1.ClusterVersionAvailable)...)
	all = append(all, good(metav1.ConditionFalse, hyperv1.ClusterVersionFailing)...)
	all = append(all, Expectation{
		Type: string(hyperv1.HostedClusterProgressing), Good: metav1.ConditionFalse, Progress: true,
		Faults: []string{hyperv1.BlockedReason},
	})
	all = append(all, progress(metav1.ConditionFalse, hyperv1.ClusterVersionProgressing, hyperv1.EtcdRecoveryActive)...)
	return append(all, progress(metav1.ConditionTrue,
		hyperv1.EtcdDataEncryptionUpToDate, hyperv1.SignersUpToDate, hyperv1.PublishedAddressUpToDate,
		hyperv1.ClusterVersionUpgradeable, hyperv1.CloudResourcesDestroyed)...)
}

// noNodes are the reasons of connections that cannot be checked because the cluster has no nodes.
func noNodes() []string { return []string{hyperv1.NoWorkerNodesAvailableReason} }

// NodePool returns the conditions of a NodePool with a desired number of nodes. Causes precede their effects.
func NodePool(nodes int32) []Expectation {
	all := good(metav1.ConditionTrue,
		hyperv1.NodePoolReconciliationActiveConditionType, hyperv1.NodePoolValidReleaseImageConditionType,
		hyperv1.NodePoolSupportedVersionSkewConditionType, hyperv1.NodePoolValidPlatformConfigConditionType,
		hyperv1.NodePoolValidPlatformImageType, hyperv1.NodePoolValidArchPlatform,
		hyperv1.NodePoolValidMachineConfigConditionType, hyperv1.NodePoolValidTuningConfigConditionType,
		hyperv1.NodePoolValidMachineTemplateConditionType, hyperv1.NodePoolUpdateManagementEnabledConditionType,
		hyperv1.NodePoolValidGeneratedPayloadConditionType, hyperv1.NodePoolAllFieldsHonoredConditionType,
		hyperv1.NodePoolPodRangesSufficientConditionType, hyperv1.NodePoolAWSSecurityGroupAvailableConditionType,
		hyperv1.NodePoolIgnitionEndpointAvailableConditionType, string(hyperv1.ReconciliationSucceeded))
	all = append(all, good(metav1.ConditionFalse, hyperv1.NodePoolClusterNetworkCIDRConflictType)...)
	for _, t := range []string{hyperv1.NodePoolAutoscalingEnabledConditionType, hyperv1.NodePoolAutorepairEnabledConditionType} {
		all = append(all, Expectation{Type: t, Faults: []string{hyperv1.NodePoolValidationFailedReason}})
	}
	if nodes > 0 {
		all = append(all, good(metav1.ConditionTrue,
			hyperv1.NodePoolAllMachinesReadyConditionType, hyperv1.NodePoolReachedIgnitionEndpoint,
			hyperv1.NodePoolAllNodesHealthyConditionType)...)
	}
	all = append(all, good(metav1.ConditionTrue,
		hyperv1.NodePoolReadyConditionType, hyperv1.NodePoolRepairAllowedConditionType,
		hyperv1.NodePoolKubeVirtLiveMigratableType)...)
	for _, t := range []string{
		hyperv1.NodePoolUpdatingVersionConditionType, hyperv1.NodePoolUpdatingConfigConditionType,
		hyperv1.NodePoolUpdatingPlatformMachineTemplateConditionType,
	} {
		all = append(all, Expectation{
			Type: t, Good: metav1.ConditionFalse, Progress: true, Faults: []string{hyperv1.NodePoolInplaceUpgradeFailedReason},
		})
	}
	return all
}

// Machine returns the conditions of a Machine of Cluster API. Causes precede their effects.
func Machine() []Expectation {
	all := progress(metav1.ConditionFalse, clusterv1.PausedCondition)
	all = append(all, good(metav1.ConditionTrue,
		clusterv1.BootstrapConfigReadyCondition, clusterv1.InfrastructureReadyCondition,
		clusterv1.MachineHealthCheckSucceededCondition, clusterv1.MachineNodeHealthyCondition,
		clusterv1.MachineNodeReadyCondition, clusterv1.ReadyCondition)...)
	return append(all, progress(metav1.ConditionFalse, clusterv1.DeletingCondition, clusterv1.MachineUpdatingCondition)...)
}

// DeletingMachine returns the conditions of a Machine that is being deleted: the others report what is gone already.
func DeletingMachine() []Expectation {
	return progress(metav1.ConditionFalse, clusterv1.DeletingCondition)
}
