// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Conditions of a NodePool.
const (
	// NodePoolReadyConditionType tells that the pool has its nodes.
	NodePoolReadyConditionType = "Ready"
	// NodePoolValidReleaseImageConditionType tells that the release image is there and its version may run.
	NodePoolValidReleaseImageConditionType = "ValidReleaseImage"
	// NodePoolValidPlatformImageType tells that the platform has the image that the nodes boot.
	NodePoolValidPlatformImageType = "ValidPlatformImage"
	// NodePoolValidMachineConfigConditionType tells that the configuration can be rendered.
	NodePoolValidMachineConfigConditionType = "ValidMachineConfig"
	// NodePoolValidTuningConfigConditionType tells that the tuning configuration can be used.
	NodePoolValidTuningConfigConditionType = "ValidTuningConfig"
	// NodePoolPerformanceProfileConditionPrefix begins the conditions that the node tuning operator reports of the pool's PerformanceProfile:
	// Available, Progressing, Upgradeable and Degraded.
	NodePoolPerformanceProfileConditionPrefix = "performance.operator.openshift.io/"
	// NodePoolAllFieldsHonoredConditionType is only there, and False, while fields are set that change nothing.
	NodePoolAllFieldsHonoredConditionType = "AllFieldsHonored"
	// NodePoolValidGeneratedPayloadConditionType tells that the ignition-server has the nodes' configuration.
	NodePoolValidGeneratedPayloadConditionType = "ValidGeneratedPayload"
	// NodePoolValidPlatformConfigConditionType tells that the platform block can be honoured.
	NodePoolValidPlatformConfigConditionType = "ValidPlatformConfig"
	// NodePoolValidArchPlatform tells that the platform has the architecture.
	NodePoolValidArchPlatform = "ValidArchPlatform"
	// NodePoolValidMachineTemplateConditionType tells that a machine template can be made.
	NodePoolValidMachineTemplateConditionType = "ValidMachineTemplate"
	// NodePoolSupportedVersionSkewConditionType tells that the pool's version fits that of the cluster.
	NodePoolSupportedVersionSkewConditionType = "SupportedVersionSkew"
	// NodePoolAutoscalingEnabledConditionType tells that the autoscaler chooses the number of nodes.
	NodePoolAutoscalingEnabledConditionType = "AutoscalingEnabled"
	// NodePoolAutorepairEnabledConditionType tells that machines that are not well are replaced.
	NodePoolAutorepairEnabledConditionType = "AutorepairEnabled"
	// NodePoolUpdateManagementEnabledConditionType tells that the upgrade settings can be used.
	NodePoolUpdateManagementEnabledConditionType = "UpdateManagementEnabled"
	// NodePoolUpdatingVersionConditionType tells that nodes come to a new version.
	NodePoolUpdatingVersionConditionType = "UpdatingVersion"
	// NodePoolUpdatingConfigConditionType tells that nodes come to a new configuration.
	NodePoolUpdatingConfigConditionType = "UpdatingConfig"
	// NodePoolUpdatingPlatformMachineTemplateConditionType tells that nodes come to a new machine template.
	NodePoolUpdatingPlatformMachineTemplateConditionType = "UpdatingPlatformMachineTemplate"
	// NodePoolReconciliationActiveConditionType tells that nobody has paused the pool.
	NodePoolReconciliationActiveConditionType = "ReconciliationActive"
	// NodePoolReachedIgnitionEndpoint tells that a machine of this configuration has fetched it.
	NodePoolReachedIgnitionEndpoint = "ReachedIgnitionEndpoint"
	// NodePoolIgnitionEndpointAvailableConditionType is there while machines cannot be told where to fetch configuration.
	NodePoolIgnitionEndpointAvailableConditionType = "IgnitionEndpointAvailable"
	// NodePoolAllMachinesReadyConditionType tells that every machine of the pool is ready.
	NodePoolAllMachinesReadyConditionType = "AllMachinesReady"
	// NodePoolAllNodesHealthyConditionType tells that every node of the pool is healthy.
	NodePoolAllNodesHealthyConditionType = "AllNodesHealthy"
	// NodePoolClusterNetworkCIDRConflictType tells that machines have addresses of the cluster network.
	NodePoolClusterNetworkCIDRConflictType = "ClusterNetworkCIDRConflict"
	// NodePoolPodRangesSufficientConditionType is only there, and False, while the cluster's pools ask for more nodes than the
	// cluster networks have ranges for.
	NodePoolPodRangesSufficientConditionType = "PodRangesSufficient"
	// NodePoolKubeVirtLiveMigratableType tells that the virtual machines of a pool can move.
	NodePoolKubeVirtLiveMigratableType = "KubeVirtNodesLiveMigratable"
	// NodePoolAWSSecurityGroupAvailableConditionType and the next tell of pools on AWS.
	NodePoolAWSSecurityGroupAvailableConditionType = "AWSSecurityGroupAvailable"
	NodePoolAWSResourceTagConflictConditionType    = "AWSResourceTagConflict"
)

// Reasons of conditions of a NodePool.
const (
	NodePoolAsExpectedReason              = "AsExpected"
	NodePoolValidationFailedReason        = "ValidationFailed"
	NodePoolInplaceUpgradeFailedReason    = "InplaceUpgradeFailed"
	NodePoolNotFoundReason                = "NotFound"
	NodePoolFailedToGetReason             = "FailedToGet"
	NodePoolInvalidArchPlatform           = "InvalidArchPlatform"
	NodePoolUnsupportedSkewReason         = "UnsupportedSkew"
	NodePoolIgnitionNotReachedReason      = "ignitionNotReached"
	IgnitionEndpointMissingReason         = "IgnitionEndpointMissing"
	IgnitionCACertMissingReason           = "IgnitionCACertMissing"
	InvalidMAASMachineTemplate            = "InvalidMAASMachineTemplate"
	InvalidKubevirtMachineTemplate        = "InvalidKubevirtMachineTemplate"
	DefaultAWSSecurityGroupNotReadyReason = "DefaultSGNotReady"
	CIDRConflictReason                    = "CIDRConflict"
	PodRangesExhaustedReason              = "PodRangesExhausted"
	NodePoolReconciliationPausedReason    = "ReconciliationPaused"
	NodePoolReconciliationActiveReason    = "ReconciliationActive"
	NodePoolInvalidPausedUntilValueReason = "InvalidPausedUntilValue"
)
