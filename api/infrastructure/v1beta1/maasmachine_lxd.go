// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"k8s.io/apimachinery/pkg/util/intstr"
)

// LXDConfig is upstream's way to ask for a virtual machine.
type LXDConfig struct {
	// enabled composes a virtual machine instead of allocating a machine.
	//
	// +kubebuilder:default=false
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// vmConfig shapes the virtual machine.
	//
	// +optional
	VMConfig *VMConfig `json:"vmConfig,omitempty"`
}

// VMConfig shapes a composed virtual machine.
type VMConfig struct {
	// diskSize is the size of the root disk in GB.
	//
	// +kubebuilder:default=60
	// +optional
	DiskSize *int `json:"diskSize,omitempty"`

	// storagePool of the LXD host.
	//
	// +kubebuilder:validation:MaxLength=255
	// +optional
	StoragePool string `json:"storagePool,omitempty"`

	// network is the MAAS subnet or the comma separated subnets that the virtual machine hangs on.
	//
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule=`!self.contains(";") && !self.contains("=")`,message=`lxd.vmConfig.network must be names of subnets, without ";" and "="`
	// +optional
	Network string `json:"network,omitempty"`

	// interfaceLinkModes maps an interface to auto, dhcp, static or link_up. It has no effect: MAAS links each interface automatically, and
	// staticIP gives an address of one's own.
	//
	// +optional
	InterfaceLinkModes map[string]string `json:"interfaceLinkModes,omitempty"`

	// autoStart starts the virtual machine with its host. It has no effect: a virtual machine that is off is started in any case.
	//
	// +kubebuilder:default=true
	// +optional
	AutoStart *bool `json:"autoStart,omitempty"`
}

// LXDMachineConfig shapes the virtual machine of provisioningMode lxd.
type LXDMachineConfig struct {
	// profile of LXD that the virtual machine is made with. By default, MAAS chooses it: "maas" where the project of the host has one of that
	// name, else "default". Any other is reported as not found.
	//
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Profile string `json:"profile,omitempty"`

	// storage of the root disk. Without a size it has 60 GB, or minDiskSize where that is more.
	//
	// +optional
	Storage *LXDStorage `json:"storage,omitempty"`

	// network of the virtual machine.
	//
	// +optional
	Network *LXDNetwork `json:"network,omitempty"`

	// vmHost is the name of the MAAS VM host to compose on. Empty means the best that fits.
	//
	// +kubebuilder:validation:MaxLength=255
	// +optional
	VMHost string `json:"vmHost,omitempty"`

	// project of LXD: only hosts that MAAS composes in that project on are taken. Empty means any host, and its project.
	//
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Project string `json:"project,omitempty"`

	// antiAffinity specifies whether two machines of one pool may share a host: with Required they never do, with Preferred only where no other
	// host fits. Empty means Preferred.
	//
	// +optional
	AntiAffinity AntiAffinity `json:"antiAffinity,omitempty"`
}

// AntiAffinity says how strictly machines of one pool are kept on different hosts.
//
// +kubebuilder:validation:Enum=Preferred;Required
type AntiAffinity string

const (
	// AntiAffinityPreferred takes the host with the fewest machines of the pool.
	AntiAffinityPreferred AntiAffinity = "Preferred"
	// AntiAffinityRequired waits for a host without a machine of the pool.
	AntiAffinityRequired AntiAffinity = "Required"
)

// LXDStorage is the root disk of a virtual machine.
type LXDStorage struct {
	// size in GB, a number or a text such as 20GB. A text such as 20Gi is in GiB, and rounded up to GB.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule=`type(self) == int ? self >= 1 : self.matches(r'^[1-9][0-9]{0,8}(GB|Gi)?$')`,message=`lxdConfig.storage.size must be a number of GB of at least 1, such as 20, 20GB or 20Gi`
	Size *intstr.IntOrString `json:"size,omitempty"`

	// pool is the storage pool of the LXD host. Empty means its default one, or the one with the most room where that is full.
	//
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Pool string `json:"pool,omitempty"`
}

// LXDNetwork is how a virtual machine is connected.
type LXDNetwork struct {
	// bridge is the bridge or interface of the LXD host that the first network interface hangs on. Empty leaves it to MAAS.
	//
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[A-Za-z0-9._:@-]*$')`,message=`lxdConfig.network.bridge must be the name of an interface, such as br0`
	// +optional
	Bridge string `json:"bridge,omitempty"`

	// devices are bridges or interfaces of the LXD host, each for one network interface of the virtual machine, after those of the
	// bridge and of the subnets.
	//
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=255
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9._:@-]+$`
	// +listType=atomic
	// +optional
	Devices []string `json:"devices,omitempty"`
}

// IsLXD reports whether the machine is a virtual machine to compose: provisioningMode decides, and lxd.enabled where that
// is empty.
func (s *MaasMachineSpec) IsLXD() bool {
	if s.ProvisioningMode != "" {
		return s.ProvisioningMode == ProvisioningModeLXD
	}
	return s.LXD != nil && s.LXD.Enabled != nil && *s.LXD.Enabled
}
