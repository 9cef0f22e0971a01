// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MAASPlatformSpec says how a cluster as a whole uses MAAS.
//
// +kubebuilder:validation:XValidation:rule="has(self.dnsDomain) == has(oldSelf.dnsDomain) && (!has(self.dnsDomain) || self.dnsDomain == oldSelf.dnsDomain)",message="dnsDomain is immutable: create a new HostedCluster to change it"
type MAASPlatformSpec struct {
	// identityRef names the Secret with the MAAS credentials. The Secret's content may change at any time; its name may
	// change too, e.g. when another team takes over.
	//
	// +required
	IdentityRef MAASIdentityReference `json:"identityRef"`

	// dnsDomain is the MAAS domain that machines are named in, e.g. "maas". Empty means the domain that MAAS gives them.
	//
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="dnsDomain must be a domain name in lower case, such as \"maas\" or \"dc1.example.com\""
	// +optional
	DNSDomain string `json:"dnsDomain,omitempty"`

	// zone is the MAAS zone of machines whose NodePool names none.
	//
	// +optional
	Zone MAASName `json:"zone,omitempty"`

	// resourcePool is the MAAS resource pool of machines whose NodePool names none.
	//
	// +optional
	ResourcePool MAASName `json:"resourcePool,omitempty"`

	// failureDomains are the MAAS zones over which machines may be spread. Empty means all zones of the server.
	//
	// +kubebuilder:validation:MaxItems=50
	// +listType=set
	// +optional
	FailureDomains []MAASName `json:"failureDomains,omitempty"`
}

// MAASIdentityReference names a Secret in the namespace of the HostedCluster. Its keys are MAAS_ENDPOINT (the URL up to and
// including /MAAS), MAAS_API_KEY (consumer:token:secret) and, where the server's certificate is signed privately,
// MAAS_CA_BUNDLE (PEM).
type MAASIdentityReference struct {
	// name of the Secret.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="identityRef.name must be the name of a Secret: lower case letters, digits, '-' and '.'"
	// +required
	Name string `json:"name"`
}

// MAASName is the name of a zone or a resource pool as MAAS accepts it.
//
// +kubebuilder:validation:MaxLength=255
// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^[A-Za-z0-9]([A-Za-z0-9 _-]*[A-Za-z0-9_-])?$')",message="must be a name that MAAS accepts: letters, digits, spaces, '-' and '_', beginning with a letter or digit"
type MAASName string

// MAASTag is the name of a tag as MAAS accepts it.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=255
// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_-]+$')",message="must be a tag that MAAS accepts: letters, digits, '-' and '_'"
type MAASTag string

// UserDataFormat is what a first-boot configuration is written as.
//
// +kubebuilder:validation:Enum=Ignition;CloudConfig
type UserDataFormat string

const (
	// UserDataIgnition is for images that run Ignition.
	UserDataIgnition UserDataFormat = "Ignition"
	// UserDataCloudConfig is for images that run cloud-init, as Ubuntu's and Debian's do.
	UserDataCloudConfig UserDataFormat = "CloudConfig"
)

// MAASNodePoolPlatform says which machines of MAAS serve a pool and how they are deployed. A change rolls the pool, except
// where a field says otherwise.
//
// +kubebuilder:validation:XValidation:rule=`(!(has(self.ephemeral) && self.ephemeral && has(self.diskWipe) && has(self.diskWipe.enabled) && self.diskWipe.enabled)) || oldSelf.optMap(o, !(!(has(o.ephemeral) && o.ephemeral && has(o.diskWipe) && has(o.diskWipe.enabled) && o.diskWipe.enabled))).orValue(false)`,message="diskWipe.enabled must not be true with ephemeral: a machine that runs from memory has no installed disk",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule=`(!has(self.tags) || !has(self.notTags) || self.tags.all(t, !(t in self.notTags))) || (oldSelf.hasValue() && has(oldSelf.value().tags) && has(oldSelf.value().notTags) && self.tags == oldSelf.value().tags && self.notTags == oldSelf.value().notTags)`,message="notTags must not name a tag that tags asks for",optionalOldSelf=true
type MAASNodePoolPlatform struct {
	// identityRef names a Secret with MAAS credentials for this pool. Absent means the HostedCluster's. Another Secret is
	// accepted if it is of the same MAAS and user; the machines are made with the credentials of the HostedCluster. Condition
	// ValidPlatformConfig refuses one of another MAAS or user, since one provider serves a cluster.
	//
	// +optional
	IdentityRef *MAASIdentityReference `json:"identityRef,omitempty"`

	// machineType is a MAAS tag that stands for a kind of machine, e.g. "r650". It is asked for beside tags.
	//
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^[A-Za-z0-9_-]+$')",message="machineType must be a tag that MAAS accepts: letters, digits, '-' and '_'"
	// +optional
	MachineType string `json:"machineType,omitempty"`

	// zone is the MAAS zone of the machines. Empty means failureDomain, the HostedCluster's zone, or any.
	//
	// +optional
	Zone MAASName `json:"zone,omitempty"`

	// failureDomain is Cluster API's word for the zone. MAAS has zones only: where zone is set too and differs, zone counts,
	// and condition AllFieldsHonored reports that.
	//
	// +optional
	FailureDomain MAASName `json:"failureDomain,omitempty"`

	// tags are the MAAS tags that a machine must have, all of them.
	//
	// +kubebuilder:validation:MaxItems=10
	// +listType=set
	// +optional
	Tags []MAASTag `json:"tags,omitempty"`

	// notTags are the MAAS tags of which a machine must have none.
	//
	// +kubebuilder:validation:MaxItems=10
	// +listType=set
	// +optional
	NotTags []MAASTag `json:"notTags,omitempty"`

	// resourcePool is the MAAS resource pool of the machines. Empty means the HostedCluster's, or any.
	//
	// +optional
	ResourcePool MAASName `json:"resourcePool,omitempty"`

	// minCpu is the least number of CPU cores. Absent means 2 with a Kubernetes payload and 4 with an OpenShift one.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	// +optional
	MinCPU *int32 `json:"minCpu,omitempty"`

	// minMemory is the least memory in MiB. Absent means 2048 with a Kubernetes payload and 8192 with an OpenShift one.
	//
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=134217728
	// +optional
	MinMemory *int32 `json:"minMemory,omitempty"`

	// minDiskSize is the least size of the root disk in GB (10^9 bytes). Absent asks for nothing.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1048576
	// +optional
	MinDiskSize *int32 `json:"minDiskSize,omitempty"`

	// image is what MAAS installs: "<osystem>/<series>", or the name of a custom image with or without "custom/" before it.
	// With an OpenShift payload it is the RHCOS image made after docs/how-to/rhcos-image.md and must be named. With a
	// Kubernetes payload it is Ubuntu as MAAS provides it, such as "ubuntu/noble", or an image that
	// docs/reference/node-configuration.md describes. The default is "custom/kubernetes-node".
	//
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?$')",message="image must be \"<osystem>/<series>\" or the name of a custom image, such as \"custom/rhcos-4.20\""
	// +optional
	Image string `json:"image,omitempty"`

	// userDataFormat is what the image reads its first-boot configuration as. Absent means, with a Kubernetes payload, what MAAS
	// reports about the image. It is CloudConfig for those that it brings itself and for custom ones whose base image is Ubuntu or Debian,
	// else Ignition. While MAAS cannot be asked, the name of the image decides. The choice stays with the image; condition
	// ValidPlatformConfig says it, and why. An OpenShift payload has Ignition only.
	//
	// +optional
	UserDataFormat UserDataFormat `json:"userDataFormat,omitempty"`

	// lxd makes the machines virtual machines that MAAS composes on its LXD hosts.
	//
	// +optional
	LXD *MAASLXDNodePool `json:"lxd,omitempty"`

	// staticIP gives machines addresses that MAAS does not choose. It needs the API key of a MAAS administrator.
	//
	// +optional
	StaticIP *MAASStaticIP `json:"staticIP,omitempty"`

	// diskWipe removes the helper partition that an image carries for MAAS's sake, at the first boot. A change does not roll
	// the pool.
	//
	// +optional
	DiskWipe *MAASDiskWipe `json:"diskWipe,omitempty"`

	// ephemeral runs the image from memory and leaves the disks alone. The machine is new after each power cycle.
	//
	// +optional
	Ephemeral *bool `json:"ephemeral,omitempty"`

	// erase specifies how the disks of a released machine are erased. None leaves it to MAAS's settings. Absent means Quick,
	// which wipes the beginning and the end of each disk, but for an ephemeral pool and one on LXD. Secure asks the disks
	// themselves to erase all. A change does not roll the pool.
	//
	// +kubebuilder:validation:Enum=None;Quick;Secure;Full
	// +optional
	Erase string `json:"erase,omitempty"`

	// allocateTimeout bounds the wait for a machine that fits before that is reported as a failure. Absent means 10m. A change
	// of this and the other time-outs does not roll the pool.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self != '' && self.matches(r'^([0-9]{1,5}(\.[0-9]+)?h)?([0-9]{1,6}(\.[0-9]+)?m)?([0-9]{1,8}(\.[0-9]+)?s)?([0-9]{1,9}(\.[0-9]+)?(ms|us|µs|ns)){0,3}$')`,message=`allocateTimeout must be a duration of at most 99999h, such as 30m or 1h30m`
	AllocateTimeout *metav1.Duration `json:"allocateTimeout,omitempty"`

	// deployTimeout bounds the installation of a machine by MAAS before another is tried. Absent means 60m; real metal takes
	// 20 to 35 minutes.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self != '' && self.matches(r'^([0-9]{1,5}(\.[0-9]+)?h)?([0-9]{1,6}(\.[0-9]+)?m)?([0-9]{1,8}(\.[0-9]+)?s)?([0-9]{1,9}(\.[0-9]+)?(ms|us|µs|ns)){0,3}$')`,message=`deployTimeout must be a duration of at most 99999h, such as 30m or 1h30m`
	DeployTimeout *metav1.Duration `json:"deployTimeout,omitempty"`

	// bootTimeout is the part for booting and fetching the configuration of the time that a machine may take from Deployed until its
	// Node is there; joinTimeout is the rest. It also bounds how long a machine that is switched off may take to come on.
	// Absent means 20m.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self != '' && self.matches(r'^([0-9]{1,5}(\.[0-9]+)?h)?([0-9]{1,6}(\.[0-9]+)?m)?([0-9]{1,8}(\.[0-9]+)?s)?([0-9]{1,9}(\.[0-9]+)?(ms|us|µs|ns)){0,3}$')`,message=`bootTimeout must be a duration of at most 99999h, such as 30m or 1h30m`
	BootTimeout *metav1.Duration `json:"bootTimeout,omitempty"`

	// joinTimeout is the other part, from then until the machine's Node is there. Absent means 15m.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self != '' && self.matches(r'^([0-9]{1,5}(\.[0-9]+)?h)?([0-9]{1,6}(\.[0-9]+)?m)?([0-9]{1,8}(\.[0-9]+)?s)?([0-9]{1,9}(\.[0-9]+)?(ms|us|µs|ns)){0,3}$')`,message=`joinTimeout must be a duration of at most 99999h, such as 30m or 1h30m`
	JoinTimeout *metav1.Duration `json:"joinTimeout,omitempty"`
}

// MAASLXDNodePool shapes the virtual machines of a pool.
//
// +kubebuilder:validation:XValidation:rule="self.enabled || !(has(self.storagePool) || has(self.network) || has(self.profile) || has(self.project) || has(self.vmHost) || has(self.diskSize) || has(self.bridge) || has(self.devices) || has(self.antiAffinity))",message="lxd.enabled must be true for the other fields of lxd to have an effect: set it, or remove them"
type MAASLXDNodePool struct {
	// enabled composes virtual machines instead of allocating machines.
	//
	// +kubebuilder:default=false
	// +optional
	Enabled bool `json:"enabled"`

	// storagePool of the LXD host. Empty means its default one.
	//
	// +kubebuilder:validation:MaxLength=255
	// +optional
	StoragePool string `json:"storagePool,omitempty"`

	// network is the MAAS subnet that the virtual machines hang on, or several with commas in between.
	//
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Network string `json:"network,omitempty"`

	// profile of LXD that the virtual machines are made with. By default, MAAS chooses it: "maas" where the project of the host has one of
	// that name, else "default". Any other is reported as not found.
	//
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Profile string `json:"profile,omitempty"`

	// project of LXD: only hosts that MAAS composes in that project on are taken. Empty means any host, and its project.
	//
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Project string `json:"project,omitempty"`

	// vmHost is the name of the MAAS VM host to compose on. Empty means the best that fits.
	//
	// +kubebuilder:validation:MaxLength=255
	// +optional
	VMHost string `json:"vmHost,omitempty"`

	// bridge is the bridge or interface of the LXD host that the first network interface hangs on. Empty leaves it to MAAS.
	//
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Bridge string `json:"bridge,omitempty"`

	// devices are bridges or interfaces of the LXD host, each for one network interface of the virtual machines, after those of the
	// bridge and of the network.
	//
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=255
	// +listType=atomic
	// +optional
	Devices []string `json:"devices,omitempty"`

	// antiAffinity specifies whether two machines of the pool may share a host: with Required they never do, with Preferred only where no other
	// host fits. Empty means Preferred.
	//
	// +kubebuilder:validation:Enum=Preferred;Required
	// +optional
	AntiAffinity string `json:"antiAffinity,omitempty"`

	// diskSize of the root disk in GB. Absent means 60, or minDiskSize where that is more.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1048576
	// +optional
	DiskSize *int32 `json:"diskSize,omitempty"`
}

// MAASStaticIP gives the machines of a pool their addresses: ip for a pool of one, range for more.
//
// +kubebuilder:validation:XValidation:rule="has(self.ip) != has(self.range)",message="staticIP needs either ip, for a pool of one machine, or range"
// +kubebuilder:validation:XValidation:rule="!has(self.ip) || !isIP(self.ip) || !isCIDR(self.cidr) || cidr(self.cidr).containsIP(self.ip)",message="staticIP.ip must lie inside staticIP.cidr"
// +kubebuilder:validation:XValidation:rule="!has(self.gateway) || !isIP(self.gateway) || !isCIDR(self.cidr) || cidr(self.cidr).containsIP(self.gateway)",message="staticIP.gateway must lie inside staticIP.cidr"
// +kubebuilder:validation:XValidation:rule="!has(self.range) || !isCIDR(self.cidr) || !isIP(self.range.start) || !isIP(self.range.end) || (cidr(self.cidr).containsIP(self.range.start) && cidr(self.cidr).containsIP(self.range.end))",message="staticIP.range must lie inside staticIP.cidr"
type MAASStaticIP struct {
	// ip is the address of the one machine of the pool. A machine that is made before the one that it replaces is gone would wait for
	// it: let spec.management.replace.rollingUpdate have maxSurge 0 and maxUnavailable 1.
	//
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="isIP(self)",message="staticIP.ip must be an IP address, such as \"10.0.0.17\""
	// +optional
	IP string `json:"ip,omitempty"`

	// range is a run of addresses from which each machine takes a free one, and keeps it. It needs one for each machine, and one more
	// for each that is made before the one that it replaces is gone (maxSurge).
	//
	// +optional
	Range *MAASIPRange `json:"range,omitempty"`

	// cidr is the subnet of the addresses; MAAS must know it.
	//
	// +kubebuilder:validation:MinLength=4
	// +kubebuilder:validation:MaxLength=49
	// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="staticIP.cidr must be a subnet, such as \"10.0.0.0/24\""
	// +required
	CIDR string `json:"cidr"`

	// gateway of the subnet, which becomes the machines' default gateway. It must be the one that MAAS has for the subnet. Empty leaves
	// the choice to MAAS.
	//
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="isIP(self)",message="staticIP.gateway must be an IP address"
	// +optional
	Gateway string `json:"gateway,omitempty"`

	// nameservers of the machines. They must be those that MAAS has for the subnet. Empty means those that MAAS has.
	//
	// +kubebuilder:validation:MaxItems=3
	// +listType=set
	// +optional
	Nameservers []MAASNameserver `json:"nameservers,omitempty"`
}

// MAASNameserver is the address of a name server.
//
// +kubebuilder:validation:MinLength=2
// +kubebuilder:validation:MaxLength=45
// +kubebuilder:validation:XValidation:rule="isIP(self)",message="a nameserver must be an IP address"
type MAASNameserver string

// MAASIPRange is a run of addresses, both ends included.
//
// +kubebuilder:validation:XValidation:rule=`!isIP(self.start) || !isIP(self.end) || (ip(self.start).family() == ip(self.end).family() && (ip(self.start).family() == 6 || [0, 1, 2, 3].map(i, int(self.start.split('.')[i]) - int(self.end.split('.')[i])).filter(d, d != 0).all(d, d < 0) || [0, 1, 2, 3].map(i, int(self.start.split('.')[i]) - int(self.end.split('.')[i])).filter(d, d != 0)[0] < 0))`,message=`staticIP.range.start must not come after staticIP.range.end, and both must be of one IP family`
type MAASIPRange struct {
	// start is the first address.
	//
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="isIP(self)",message="staticIP.range.start must be an IP address"
	// +required
	Start string `json:"start"`

	// end is the last address.
	//
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="isIP(self)",message="staticIP.range.end must be an IP address"
	// +required
	End string `json:"end"`
}

// MAASDiskWipe removes the helper partition of an image at a machine's first boot.
type MAASDiskWipe struct {
	// enabled switches the wipe. Absent means on with an OpenShift payload, whose RHCOS image carries a helper partition, and
	// off with a Kubernetes payload.
	//
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// device that the image was installed on.
	//
	// +kubebuilder:default=/dev/sda
	// +kubebuilder:validation:MinLength=6
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^/dev/[A-Za-z0-9/._:-]+$')",message="diskWipe.device must be the path of a disk, such as \"/dev/sda\" or \"/dev/nvme0n1\""
	// +optional
	Device string `json:"device,omitempty"`

	// partition is the number of the helper partition.
	//
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=128
	// +optional
	Partition int32 `json:"partition,omitempty"`
}
