// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Condition types of MaasMachines. Ready, Paused and Deleting are those of Cluster API.
const (
	// MachineAllocatedCondition reports whether a machine of MAAS is allocated to the MaasMachine.
	MachineAllocatedCondition = "MachineAllocated"
	// MachineDeployedCondition reports whether the machine runs its image.
	MachineDeployedCondition = "MachineDeployed"
	// NodeProviderIDSetCondition reports whether the Node has the provider ID.
	NodeProviderIDSetCondition = "NodeProviderIDSet"
	// MAASCredentialsUsableCondition reports whether the API key belongs to the user who allocated the machine.
	MAASCredentialsUsableCondition = "MAASCredentialsUsable"
	// StaticIPAssignedCondition reports whether the machine has its static address. It is present only with spec.staticIP.
	StaticIPAssignedCondition = "StaticIPAssigned"
	// FailedMachinesReleasedCondition reports whether MAAS has released the machines on which a deployment failed.
	FailedMachinesReleasedCondition = "FailedMachinesReleased"
	// DNSAttachedCondition reports whether an address of a control plane machine is in the DNS name of its cluster. It is present only
	// where the provider maintains that name.
	DNSAttachedCondition = "DNSAttached"
	// LXDHostSelectedCondition reports whether a host is selected for a virtual machine.
	LXDHostSelectedCondition = "LXDHostSelected"
	// LXDResourcesAllocatedCondition reports the resources of the host that a virtual machine uses.
	LXDResourcesAllocatedCondition = "LXDResourcesAllocated"
	// LXDVMCreatedCondition reports whether MAAS composed and commissioned a virtual machine.
	LXDVMCreatedCondition = "LXDVMCreated"
	// LXDVMDeployedCondition reports whether a virtual machine runs its image.
	LXDVMDeployedCondition = "LXDVMDeployed"
)

// Condition types of MaasClusters. Ready, Paused and Deleting are those of Cluster API.
const (
	// LoadBalancerReadyCondition reports whether the API endpoint is known.
	LoadBalancerReadyCondition = "LoadBalancerReady"
	// APIServerAvailableCondition reports whether the control plane has been initialized.
	APIServerAvailableCondition = "APIServerAvailable"
	// MAASAvailableCondition reports whether MAAS is reachable and accepts the API key.
	MAASAvailableCondition = "MAASAvailable"
	// MachinesQuarantinedCondition lists the machines on which deployments failed.
	MachinesQuarantinedCondition = "MachinesQuarantined"
	// MachinesReleasedCondition lists the machines that MAAS has not released although their MaasMachines are gone.
	MachinesReleasedCondition = "MachinesReleased"
	// MachinesRestoredCondition reports whether the machines of a lost MaasCluster have MaasMachines again.
	MachinesRestoredCondition = "MachinesRestored"
	// LXDReadyCondition reports on spec.lxdConfig. It is present only if lxdConfig is enabled.
	LXDReadyCondition = "LXDReady"
)

// Reasons of MaasMachines while no machine can be allocated or MAAS cannot be reached.
const (
	WaitingForClusterInfrastructureReason = "WaitingForClusterInfrastructure"
	WaitingForBootstrapDataReason         = "WaitingForBootstrapData"
	MAASCredentialsMissingReason          = "MAASCredentialsMissing"
	MAASUnauthorizedReason                = "MAASUnauthorized"
	CredentialsOfAnotherUserReason        = "CredentialsOfAnotherUser"
	MAASForbiddenReason                   = "MAASForbidden"
	MAASUnreachableReason                 = "MAASUnreachable"
	MAASUnavailableReason                 = "MAASUnavailable"
	MAASInvalidParameterReason            = "MAASInvalidParameter"
	MAASErrorReason                       = "MAASError"
	NoCapacityReason                      = "NoCapacity"
	AllocationTimedOutReason              = "AllocationTimedOut"
	AllocatingReason                      = "Allocating"
	AllocationUncertainReason             = "AllocationUncertain"
	MachineAllocatedReason                = "MachineAllocated"
	ImageNotFoundReason                   = "ImageNotFound"
	BootstrapFormatNotSupportedReason     = "BootstrapFormatNotSupported"
	MachineLockedReason                   = "MachineLocked"
	MachineNotDeployableReason            = "MachineNotDeployable"
	DeployAttemptsExhaustedReason         = "DeployAttemptsExhausted"
	VMCommissioningReason                 = "VMCommissioning"
	VMCreationFailedReason                = "VMCreationFailed"
	VMDeploymentFailedReason              = "VMDeploymentFailed"
	InterfaceNotFoundReason               = "InterfaceNotFound"
)

// Reasons about the state of a machine in MAAS.
const (
	MachineDeployedReason        = "MachineDeployed"
	MachineDeployingReason       = "MachineDeploying"
	MachineDeployFailedReason    = "MachineDeployFailed"
	MachineDeployAbortedReason   = "MachineDeployAborted"
	MachineDeployTimedOutReason  = "MachineDeployTimedOut"
	MachinePoweredOffReason      = "MachinePoweredOff"
	MachineTerminatedReason      = "MachineTerminatedReason"
	MachineNotFoundReason        = "MachineNotFound"
	MachineBrokenReason          = "MachineBroken"
	MachineTakenOverReason       = "MachineTakenOver"
	MachineInMaintenanceReason   = "MachineInMaintenance"
	MachineTestsFailedReason     = "MachineTestsFailed"
	MachineStateUndefinedReason  = "MachineStateUndefined"
	MachineReleasingReason       = "MachineReleasing"
	MachineReleaseFailedReason   = "MachineReleaseFailed"
	MachineReleaseBlockedReason  = "MachineReleaseBlocked"
	MachineReleaseTimedOutReason = "MachineReleaseTimedOut"
	MachineReleasedReason        = "MachineReleased"
)

// Reasons of NodeProviderIDSet.
const (
	NodeFoundReason                = "NodeFound"
	WaitingForNodeReason           = "WaitingForNode"
	NodeTimedOutReason             = "NodeTimedOut"
	NodeProviderUpdateFailedReason = "NodeProviderUpdateFailed"
)

// Reasons of StaticIPAssigned.
const (
	StaticIPAssignedReason            = "StaticIPAssigned"
	StaticIPPendingReason             = "StaticIPPending"
	MachineDeployedBeforeReason       = "MachineDeployedBefore"
	StaticIPInvalidReason             = "StaticIPInvalid"
	SubnetNotFoundReason              = "SubnetNotFound"
	StaticIPGatewayMismatchReason     = "StaticIPGatewayMismatch"
	StaticIPNameserversMismatchReason = "StaticIPNameserversMismatch"
	StaticIPInUseReason               = "StaticIPInUse"
	StaticIPRangeExhaustedReason      = "StaticIPRangeExhausted"
)

// Reasons of LXDHostSelected and the other conditions of virtual machines.
const (
	HostUnavailableReason       = "HostUnavailable"
	InsufficientResourcesReason = "InsufficientResources"
	ProfileNotFoundReason       = "ProfileNotFound"
	ProjectNotFoundReason       = "ProjectNotFound"
	StoragePoolNotFoundReason   = "StoragePoolNotFound"
	HostSelectedReason          = "HostSelected"
	VMCreatedReason             = "VMCreated"
	WaitingReason               = "Waiting"
)

// Reasons of LoadBalancerReady of MaasClusters.
const (
	LoadBalancerReadyReason  = "LoadBalancerReady"
	LoadBalancerFailedReason = "LoadBalancerFailed"
	WaitForEndpointReason    = "WaitForEndpoint"
	WaitForDNSNameReason     = "WaitForDNSName"
)

// Reasons of DNSAttached.
const (
	DNSAttachedReason = "DNSAttached"
	// DNSAttachPendingReason is for a machine that does not run yet, or has no address in a preferred subnet.
	DNSAttachPendingReason = "DNSAttachPending"
	// DNSDetachPendingReason is for a deleted machine whose address is the last one of the DNS name.
	DNSDetachPendingReason = "DNSDetachPending"
	// DNSDetachedReason is for a deleted machine whose addresses are removed.
	DNSDetachedReason = "DNSDetached"
)
