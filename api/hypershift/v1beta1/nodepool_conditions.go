// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Conditions of a NodePool.
const (
	// NodePoolReadyConditionType reports whether the pool has its nodes.
	NodePoolReadyConditionType = "Ready"
	// NodePoolValidReleaseImageConditionType reports whether the release image is there and its version may run.
	NodePoolValidReleaseImageConditionType = "ValidReleaseImage"
	// NodePoolValidPlatformImageType reports whether the platform has the image that the nodes boot.
	NodePoolValidPlatformImageType = "ValidPlatformImage"
	// NodePoolValidMachineConfigConditionType reports whether the configuration can be rendered.
	NodePoolValidMachineConfigConditionType = "ValidMachineConfig"
	// NodePoolValidTuningConfigConditionType reports whether the tuning configuration can be used.
	NodePoolValidTuningConfigConditionType = "ValidTuningConfig"
	// NodePoolPerformanceProfileConditionPrefix begins the conditions that the node tuning operator reports of the pool's PerformanceProfile:
	// Available, Progressing, Upgradeable and Degraded.
	NodePoolPerformanceProfileConditionPrefix = "performance.operator.openshift.io/"
	// NodePoolAllFieldsHonoredConditionType is only there, and False, while fields are set that change nothing.
	NodePoolAllFieldsHonoredConditionType = "AllFieldsHonored"
	// NodePoolValidGeneratedPayloadConditionType reports whether the ignition-server has the nodes' configuration.
	NodePoolValidGeneratedPayloadConditionType = "ValidGeneratedPayload"
	// NodePoolValidPlatformConfigConditionType reports whether the platform block can be honoured.
	NodePoolValidPlatformConfigConditionType = "ValidPlatformConfig"
	// NodePoolValidArchPlatform reports whether the platform has the architecture.
	NodePoolValidArchPlatform = "ValidArchPlatform"
	// NodePoolValidMachineTemplateConditionType reports whether a machine template can be made.
	NodePoolValidMachineTemplateConditionType = "ValidMachineTemplate"
	// NodePoolSupportedVersionSkewConditionType reports whether the pool's version fits that of the cluster.
	NodePoolSupportedVersionSkewConditionType = "SupportedVersionSkew"
	// NodePoolAutoscalingEnabledConditionType reports whether the autoscaler chooses the number of nodes.
	NodePoolAutoscalingEnabledConditionType = "AutoscalingEnabled"
	// NodePoolAutorepairEnabledConditionType reports whether machines that are not well are replaced.
	NodePoolAutorepairEnabledConditionType = "AutorepairEnabled"
	// NodePoolRepairAllowedConditionType is only there while a machine of a pool with autoRepair fails. It is True while
	// the machine is replaced. It is False, with what holds the repair back, while it is not.
	NodePoolRepairAllowedConditionType = "RepairAllowed"
	// NodePoolUpdateManagementEnabledConditionType reports whether the upgrade settings can be used.
	NodePoolUpdateManagementEnabledConditionType = "UpdateManagementEnabled"
	// NodePoolUpdatingVersionConditionType reports whether nodes come to a new version.
	NodePoolUpdatingVersionConditionType = "UpdatingVersion"
	// NodePoolUpdatingConfigConditionType reports whether nodes come to a new configuration.
	NodePoolUpdatingConfigConditionType = "UpdatingConfig"
	// NodePoolUpdatingPlatformMachineTemplateConditionType reports whether nodes come to a new machine template.
	NodePoolUpdatingPlatformMachineTemplateConditionType = "UpdatingPlatformMachineTemplate"
	// NodePoolReconciliationActiveConditionType reports whether the pool is not paused.
	NodePoolReconciliationActiveConditionType = "ReconciliationActive"
	// NodePoolReachedIgnitionEndpoint reports whether a machine of this configuration has fetched it.
	NodePoolReachedIgnitionEndpoint = "ReachedIgnitionEndpoint"
	// NodePoolIgnitionEndpointAvailableConditionType is there while machines cannot be told where to fetch configuration.
	NodePoolIgnitionEndpointAvailableConditionType = "IgnitionEndpointAvailable"
	// NodePoolAllMachinesReadyConditionType reports whether every machine of the pool is ready.
	NodePoolAllMachinesReadyConditionType = "AllMachinesReady"
	// NodePoolAllNodesHealthyConditionType reports whether every node of the pool is healthy.
	NodePoolAllNodesHealthyConditionType = "AllNodesHealthy"
	// NodePoolClusterNetworkCIDRConflictType reports whether machines have addresses of the cluster network.
	NodePoolClusterNetworkCIDRConflictType = "ClusterNetworkCIDRConflict"
	// NodePoolPodRangesSufficientConditionType is only there, and False, while the cluster's pools ask for more nodes than the
	// cluster networks have ranges for.
	NodePoolPodRangesSufficientConditionType = "PodRangesSufficient"
	// NodePoolKubeVirtLiveMigratableType reports whether the virtual machines of a pool can move.
	NodePoolKubeVirtLiveMigratableType = "KubeVirtNodesLiveMigratable"
	// NodePoolAWSSecurityGroupAvailableConditionType and the next tell of pools on AWS.
	NodePoolAWSSecurityGroupAvailableConditionType = "AWSSecurityGroupAvailable"
	NodePoolAWSResourceTagConflictConditionType    = "AWSResourceTagConflict"
)

// MachineFailedCondition is True on a Machine while its platform reports that the machine will never become a Node.
const MachineFailedCondition = "hypershift.openshift.io/Failed"

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
	NodePoolSharedCauseReason             = "SharedCause"
	NodePoolTooManyUnhealthyReason        = "TooManyUnhealthy"
	NodePoolNoHealthyNodeReason           = "NoHealthyNode"
	NodePoolRepairedRecentlyReason        = "RepairedRecently"
	NodePoolWaitingForRepairReason        = "WaitingForRepair"
	NodePoolReconciliationPausedReason    = "ReconciliationPaused"
	NodePoolReconciliationActiveReason    = "ReconciliationActive"
	NodePoolInvalidPausedUntilValueReason = "InvalidPausedUntilValue"
)
