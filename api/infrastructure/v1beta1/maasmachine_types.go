// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// MachineFinalizer is kept on a MaasMachine until its machine is back in MAAS.
	MachineFinalizer = "maasmachine.infrastructure.cluster.x-k8s.io"
	// OwnerAnnotation names the MAAS user under whose API key the machine of a MaasMachine was allocated; on a MaasCluster, the one
	// under whose key machines were last asked for. It is written before MAAS is asked. To every other user MAAS shows such a machine
	// as forbidden, which says nothing about the machine.
	OwnerAnnotation = "infrastructure.cluster.x-k8s.io/maas-user"
)

// ProvisioningMode says what kind of machine a MaasMachine is made of.
//
// +kubebuilder:validation:Enum=bare-metal;lxd
type ProvisioningMode string

const (
	// ProvisioningModeBareMetal allocates a machine that MAAS has. It is the default.
	ProvisioningModeBareMetal ProvisioningMode = "bare-metal"
	// ProvisioningModeLXD has MAAS compose a virtual machine on one of its LXD hosts.
	ProvisioningModeLXD ProvisioningMode = "lxd"
)

// MaasMachineSpec describes the desired machine of MAAS and its deployment.
//
// +kubebuilder:validation:XValidation:rule=`self.image == oldSelf.image`,message=`image is immutable: create another machine or template with the new value`
// +kubebuilder:validation:XValidation:rule=`has(self.minCPU) == has(oldSelf.minCPU) && (!has(self.minCPU) || self.minCPU == oldSelf.minCPU) && has(self.minCpu) == has(oldSelf.minCpu) && (!has(self.minCpu) || self.minCpu == oldSelf.minCpu)`,message=`minCPU is immutable: create another machine or template with the new value`
// +kubebuilder:validation:XValidation:rule=`has(self.minMemory) == has(oldSelf.minMemory) && (!has(self.minMemory) || self.minMemory == oldSelf.minMemory) && has(self.minMemoryInMB) == has(oldSelf.minMemoryInMB) && (!has(self.minMemoryInMB) || self.minMemoryInMB == oldSelf.minMemoryInMB)`,message=`minMemory is immutable: create another machine or template with the new value`
// +kubebuilder:validation:XValidation:rule=`(has(self.minCPU) != has(self.minCpu)) || oldSelf.optMap(o, has(o.minCPU) == has(o.minCpu)).orValue(false)`,message=`minCPU is required, the least number of CPU cores; minCpu is another spelling: set one of them`,optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule=`(has(self.minMemory) != has(self.minMemoryInMB)) || oldSelf.optMap(o, has(o.minMemory) == has(o.minMemoryInMB)).orValue(false)`,message=`minMemory is required, the least memory in MiB; minMemoryInMB is another spelling: set one of them`,optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule=`has(self.staticIP) == has(oldSelf.staticIP) && (!has(self.staticIP) || self.staticIP == oldSelf.staticIP)`,message=`staticIP is immutable: create another machine or template with the new value`
// +kubebuilder:validation:XValidation:rule=`(!(has(self.provisioningMode) && self.provisioningMode == 'bare-metal' && has(self.lxd) && has(self.lxd.enabled) && self.lxd.enabled)) || oldSelf.optMap(o, !(!(has(o.provisioningMode) && o.provisioningMode == 'bare-metal' && has(o.lxd) && has(o.lxd.enabled) && o.lxd.enabled))).orValue(false)`,message=`provisioningMode bare-metal and lxd.enabled true contradict each other: set one of them`,optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule=`(!(has(self.provisioningMode) && self.provisioningMode == 'lxd' && has(self.lxd) && has(self.lxd.enabled) && !self.lxd.enabled)) || oldSelf.optMap(o, !(!(has(o.provisioningMode) && o.provisioningMode == 'lxd' && has(o.lxd) && has(o.lxd.enabled) && !o.lxd.enabled))).orValue(false)`,message=`provisioningMode lxd and lxd.enabled false contradict each other: set one of them`,optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule=`(!has(self.lxd) || !has(self.lxd.vmConfig) || !has(self.lxd.vmConfig.storagePool) || !has(self.lxdConfig) || !has(self.lxdConfig.storage) || !has(self.lxdConfig.storage.pool) || self.lxd.vmConfig.storagePool == self.lxdConfig.storage.pool) || (oldSelf.hasValue() && has(oldSelf.value().lxd) && has(oldSelf.value().lxd.vmConfig) && has(oldSelf.value().lxd.vmConfig.storagePool) && has(oldSelf.value().lxdConfig) && has(oldSelf.value().lxdConfig.storage) && has(oldSelf.value().lxdConfig.storage.pool) && self.lxd.vmConfig.storagePool == oldSelf.value().lxd.vmConfig.storagePool && self.lxdConfig.storage.pool == oldSelf.value().lxdConfig.storage.pool)`,message=`lxd.vmConfig.storagePool and lxdConfig.storage.pool contradict each other: set one of them`,optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule=`(!has(self.lxd) || !has(self.lxd.vmConfig) || !has(self.lxd.vmConfig.diskSize) || self.lxd.vmConfig.diskSize == 60 || !has(self.lxdConfig) || !has(self.lxdConfig.storage) || !has(self.lxdConfig.storage.size) || type(self.lxdConfig.storage.size) == string || self.lxd.vmConfig.diskSize == self.lxdConfig.storage.size) || oldSelf.optMap(o, !(!has(o.lxd) || !has(o.lxd.vmConfig) || !has(o.lxd.vmConfig.diskSize) || o.lxd.vmConfig.diskSize == 60 || !has(o.lxdConfig) || !has(o.lxdConfig.storage) || !has(o.lxdConfig.storage.size) || type(o.lxdConfig.storage.size) == string || o.lxd.vmConfig.diskSize == o.lxdConfig.storage.size)).orValue(false)`,message=`lxd.vmConfig.diskSize and lxdConfig.storage.size contradict each other: set one of them`,optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule=`(!has(self.deployInMemory) || !self.deployInMemory || !((has(self.provisioningMode) && self.provisioningMode == 'lxd') || (has(self.lxd) && has(self.lxd.enabled) && self.lxd.enabled))) || oldSelf.optMap(o, !(!has(o.deployInMemory) || !o.deployInMemory || !((has(o.provisioningMode) && o.provisioningMode == 'lxd') || (has(o.lxd) && has(o.lxd.enabled) && o.lxd.enabled)))).orValue(false)`,message=`deployInMemory is for machines that MAAS has, not for composed virtual machines: remove one of them`,optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule=`(!has(self.tags) || !has(self.notTags) || self.tags.all(t, !(t in self.notTags))) || (oldSelf.hasValue() && has(oldSelf.value().tags) && has(oldSelf.value().notTags) && self.tags == oldSelf.value().tags && self.notTags == oldSelf.value().notTags)`,message=`notTags must not name a tag that tags asks for`,optionalOldSelf=true
type MaasMachineSpec struct {
	// failureDomain is the MAAS zone that the machine must be in, unless the Machine names another. Empty means the zones of the
	// MaasCluster's spec.failureDomains, or all of the server, the one with the fewest machines of the same MachineDeployment first.
	//
	// +kubebuilder:validation:MaxLength=255
	// +optional
	FailureDomain *string `json:"failureDomain,omitempty"`

	// systemID is the machine's id in MAAS, e.g. "wq4h8c". The provider writes it.
	//
	// +kubebuilder:validation:MaxLength=64
	// +optional
	SystemID *string `json:"systemID,omitempty"`

	// parent is the system id of the host of a virtual machine. The provider writes it.
	//
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Parent *string `json:"parent,omitempty"`

	// providerID is maas:///<zone>/<systemID>, or maas-lxd:///<zone>/<systemID> with provisioningMode lxd, written once by the provider
	// and never recalculated. Two slashes instead of three are read too.
	//
	// +kubebuilder:validation:MaxLength=512
	// +optional
	ProviderID *string `json:"providerID,omitempty"`

	// resourcePool is the name of the MAAS resource pool that the machine must be in. Empty means any pool.
	//
	// +kubebuilder:validation:MaxLength=255
	// +optional
	ResourcePool *string `json:"resourcePool,omitempty"`

	// minCPU is the least number of CPU cores. It is required, in this spelling or as minCpu.
	//
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinCPU *int `json:"minCPU,omitempty"`

	// minCpu is another spelling of minCPU, as in NodePools.
	//
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinCPUAlias *int `json:"minCpu,omitempty"`

	// minMemory is the least memory in MiB. It is required, in this spelling or as minMemoryInMB.
	//
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinMemory *int `json:"minMemory,omitempty"`

	// minMemoryInMB is another spelling of minMemory, also in MiB.
	//
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinMemoryInMB *int `json:"minMemoryInMB,omitempty"`

	// minDiskSize is the least size of the root disk in GB (10^9 bytes).
	//
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinDiskSize *int `json:"minDiskSize,omitempty"`

	// tags are the MAAS tags that the machine must have, all of them.
	//
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=255
	// +listType=atomic
	// +optional
	Tags []string `json:"tags,omitempty"`

	// notTags are the MAAS tags of which the machine must have none.
	//
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=255
	// +listType=atomic
	// +optional
	NotTags []string `json:"notTags,omitempty"`

	// arch is the architecture as MAAS names it, e.g. "amd64" or "amd64/generic". Empty means any.
	//
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Arch string `json:"arch,omitempty"`

	// image is what MAAS installs: "<osystem>/<series>" such as "ubuntu/noble" or "custom/rhcos-4.20"; a name without a
	// slash is a custom image.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +required
	Image string `json:"image"`

	// deployInMemory runs the image from memory and leaves the disks alone.
	//
	// +kubebuilder:default=false
	// +optional
	DeployInMemory bool `json:"deployInMemory,omitempty"`

	// staticIP gives the machine an address that MAAS does not choose. It needs the API key of a MAAS administrator.
	//
	// +optional
	StaticIP *StaticIPConfig `json:"staticIP,omitempty"`

	// timeouts bound how long each step may take before the machine is replaced.
	//
	// +optional
	Timeouts MachineTimeouts `json:"timeouts,omitempty,omitzero"`

	// erase says what is done to the disks when the machine is released. Empty leaves it to MAAS's own settings.
	//
	// +optional
	Erase *EraseConfig `json:"erase,omitempty"`

	// provisioningMode says what the machine is made of. Empty means bare-metal, unless lxd.enabled is true.
	//
	// +optional
	ProvisioningMode ProvisioningMode `json:"provisioningMode,omitempty"`

	// lxd is upstream's spelling of a composed virtual machine. lxdConfig wins over lxd.vmConfig field by field; the two
	// spellings may not contradict each other.
	//
	// +optional
	LXD *LXDConfig `json:"lxd,omitempty"`

	// lxdConfig shapes the virtual machine that provisioningMode lxd composes.
	//
	// +optional
	LXDConfig *LXDMachineConfig `json:"lxdConfig,omitempty"`
}

// CPUs returns the least number of CPU cores in either spelling; zero for none.
func (s *MaasMachineSpec) CPUs() int { return first(s.MinCPU, s.MinCPUAlias) }

// MemoryMiB returns the least memory in MiB in either spelling; zero for none.
func (s *MaasMachineSpec) MemoryMiB() int { return first(s.MinMemory, s.MinMemoryInMB) }

func first(values ...*int) int {
	for _, value := range values {
		if value != nil {
			return *value
		}
	}
	return 0
}

// MachineAddressType says what an address is.
//
// +kubebuilder:validation:Enum=Hostname;ExternalIP;InternalIP;ExternalDNS;InternalDNS
type MachineAddressType string

// The kinds of addresses, as Cluster API names them.
const (
	MachineHostname    MachineAddressType = "Hostname"
	MachineExternalIP  MachineAddressType = "ExternalIP"
	MachineInternalIP  MachineAddressType = "InternalIP"
	MachineExternalDNS MachineAddressType = "ExternalDNS"
	MachineInternalDNS MachineAddressType = "InternalDNS"
)

// MachineAddress is one address of a machine.
type MachineAddress struct {
	// type of the address.
	//
	// +required
	Type MachineAddressType `json:"type"`

	// address itself.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +required
	Address string `json:"address"`
}

// VMResourceUsage is what a composed virtual machine takes of its host.
type VMResourceUsage struct {
	// allocatedCores is the number of cores.
	//
	// +optional
	AllocatedCores *int `json:"allocatedCores,omitempty"`

	// allocatedMemory in MiB.
	//
	// +optional
	AllocatedMemory *int `json:"allocatedMemory,omitempty"`

	// allocatedDisk in GB.
	//
	// +optional
	AllocatedDisk *int `json:"allocatedDisk,omitempty"`
}

// MaasMachineStatus is what the provider saw of the machine in MAAS.
type MaasMachineStatus struct {
	// ready reports whether the machine runs the image that it was deployed with.
	//
	// +kubebuilder:default=false
	// +required
	Ready bool `json:"ready"`

	// initialization follows the Cluster API contract v1beta2.
	//
	// +optional
	Initialization InitializationStatus `json:"initialization,omitempty,omitzero"`

	// machineState is MAAS's own word for the machine's status, e.g. "Deploying".
	//
	// +optional
	MachineState *string `json:"machineState,omitempty"`

	// machinePowered reports whether MAAS sees the power on.
	//
	// +optional
	MachinePowered bool `json:"machinePowered,omitempty"`

	// hostname of the machine in MAAS.
	//
	// +optional
	Hostname *string `json:"hostname,omitempty"`

	// zone of the machine in MAAS.
	//
	// +optional
	Zone string `json:"zone,omitempty"`

	// failureDomain is the zone once more, where Cluster API reads it for the status of the Machine.
	//
	// +kubebuilder:validation:MaxLength=255
	// +optional
	FailureDomain *string `json:"failureDomain,omitempty"`

	// dnsAttached reports whether the addresses of a control plane machine are in the cluster's DNS resource.
	//
	// +optional
	DNSAttached bool `json:"dnsAttached,omitempty"`

	// addresses of the machine; of more than 128, the first.
	//
	// +kubebuilder:validation:MaxItems=128
	// +listType=atomic
	// +optional
	Addresses []MachineAddress `json:"addresses,omitempty"`

	// attempts counts the machines of MAAS that were tried for this MaasMachine and failed.
	//
	// +optional
	Attempts int32 `json:"attempts,omitempty"`

	// excludedSystemIDs are the machines that failed for this MaasMachine and are not asked for again.
	//
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=64
	// +listType=set
	// +optional
	ExcludedSystemIDs []string `json:"excludedSystemIDs,omitempty"`

	// stateSince is when the machine entered the step that it is in; deadlines count from it.
	//
	// +optional
	StateSince *metav1.Time `json:"stateSince,omitempty"`

	// provisioningMode tells what the machine is made of.
	//
	// +optional
	ProvisioningMode ProvisioningMode `json:"provisioningMode,omitempty"`

	// lxdHost is the VM host of a composed virtual machine.
	//
	// +optional
	LXDHost string `json:"lxdHost,omitempty"`

	// lxdProject is the LXD project of a composed virtual machine.
	//
	// +optional
	LXDProject string `json:"lxdProject,omitempty"`

	// vmResourceUsage is what a composed virtual machine takes of its host.
	//
	// +optional
	VMResourceUsage *VMResourceUsage `json:"vmResourceUsage,omitempty"`

	// conditions tell how the machine is.
	//
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// failureReason is set while the machine is beyond repair, for readers of the older contract.
	//
	// +optional
	FailureReason *string `json:"failureReason,omitempty"`

	// failureMessage says what happened to a machine beyond repair.
	//
	// +optional
	FailureMessage *string `json:"failureMessage,omitempty"`
}

// MaasMachine is one machine of MAAS that serves a cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=maasmachines,scope=Namespaced,categories=cluster-api
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/provider=infrastructure-maas","cluster.x-k8s.io/v1beta1=v1beta1","cluster.x-k8s.io/v1beta2=v1beta1"}
// +kubebuilder:printcolumn:name="Machine",type=string,JSONPath=`.metadata.ownerReferences[?(@.kind=="Machine")].name`,priority=1
// +kubebuilder:printcolumn:name="System ID",type=string,JSONPath=`.spec.systemID`
// +kubebuilder:printcolumn:name="Hostname",type=string,JSONPath=`.status.hostname`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.machineState`
// +kubebuilder:printcolumn:name="Zone",type=string,JSONPath=`.status.zone`
// +kubebuilder:printcolumn:name="LXD Host",type=string,JSONPath=`.status.lxdHost`
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.status.provisioningMode`,priority=1
// +kubebuilder:printcolumn:name="IP",type=string,JSONPath=`.status.addresses[?(@.type=="InternalIP")].address`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type MaasMachine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the machine should be.
	//
	// +optional
	Spec MaasMachineSpec `json:"spec,omitempty"`

	// status is what the machine is.
	//
	// +optional
	Status MaasMachineStatus `json:"status,omitempty"`
}

// GetConditions returns the conditions of the status.
func (m *MaasMachine) GetConditions() []metav1.Condition { return m.Status.Conditions }

// SetConditions replaces the conditions of the status.
func (m *MaasMachine) SetConditions(conditions []metav1.Condition) { m.Status.Conditions = conditions }

// MaasMachineList is a list of MaasMachines.
//
// +kubebuilder:object:root=true
type MaasMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MaasMachine `json:"items"`
}
