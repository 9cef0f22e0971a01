// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What a machine gets whose timeouts are absent, and on how many machines of MAAS one MaasMachine is tried. Machine health
// checks derive from them how long a machine may take to become a Node.
const (
	DefaultAllocateTimeout = 10 * time.Minute
	DefaultDeployTimeout   = time.Hour
	DefaultBootTimeout     = 20 * time.Minute
	DefaultJoinTimeout     = 15 * time.Minute
	DefaultDeployAttempts  = 3
	// DefaultCommissionTimeout is how long MAAS may commission a virtual machine, after which MAAS itself gives it up.
	DefaultCommissionTimeout = 30 * time.Minute
)

// MachineTimeouts bound the steps of a machine's way to Ready. A zero value takes the default.
type MachineTimeouts struct {
	// allocate bounds the wait for a machine that fits. Default 10m.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self != '' && self.matches(r'^([0-9]{1,5}(\.[0-9]+)?h)?([0-9]{1,6}(\.[0-9]+)?m)?([0-9]{1,8}(\.[0-9]+)?s)?([0-9]{1,9}(\.[0-9]+)?(ms|us|µs|ns)){0,3}$')`,message=`timeouts.allocate must be a duration of at most 99999h, such as 30m or 1h30m`
	Allocate *metav1.Duration `json:"allocate,omitempty"`

	// deploy bounds the installation by MAAS. Default 60m; real metal takes 20 to 35 minutes.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self != '' && self.matches(r'^([0-9]{1,5}(\.[0-9]+)?h)?([0-9]{1,6}(\.[0-9]+)?m)?([0-9]{1,8}(\.[0-9]+)?s)?([0-9]{1,9}(\.[0-9]+)?(ms|us|µs|ns)){0,3}$')`,message=`timeouts.deploy must be a duration of at most 99999h, such as 30m or 1h30m`
	Deploy *metav1.Duration `json:"deploy,omitempty"`

	// boot is the part for booting and fetching the configuration of the time that a machine may take from Deployed until its Node is
	// there; join is the rest. It also bounds how long a machine that is switched off may take to come on. Default 20m.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self != '' && self.matches(r'^([0-9]{1,5}(\.[0-9]+)?h)?([0-9]{1,6}(\.[0-9]+)?m)?([0-9]{1,8}(\.[0-9]+)?s)?([0-9]{1,9}(\.[0-9]+)?(ms|us|µs|ns)){0,3}$')`,message=`timeouts.boot must be a duration of at most 99999h, such as 30m or 1h30m`
	Boot *metav1.Duration `json:"boot,omitempty"`

	// join is the other part, from then until its Node is there. Default 15m.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self != '' && self.matches(r'^([0-9]{1,5}(\.[0-9]+)?h)?([0-9]{1,6}(\.[0-9]+)?m)?([0-9]{1,8}(\.[0-9]+)?s)?([0-9]{1,9}(\.[0-9]+)?(ms|us|µs|ns)){0,3}$')`,message=`timeouts.join must be a duration of at most 99999h, such as 30m or 1h30m`
	Join *metav1.Duration `json:"join,omitempty"`
}

// EraseConfig says how disks are erased on release.
type EraseConfig struct {
	// mode is None (keep the data), Quick (wipe the start and end of each disk), Secure (the drive's own secure erase, else
	// a full wipe), or Full (overwrite everything).
	//
	// +kubebuilder:validation:Enum=None;Quick;Secure;Full
	// +required
	Mode string `json:"mode"`
}

// StaticIPConfig is an address for one machine.
//
// +kubebuilder:validation:XValidation:rule=`has(self.ip) != has(self.range)`,message=`staticIP needs either ip or range`
// +kubebuilder:validation:XValidation:rule=`!has(self.cidr) || !isCIDR(self.cidr) || !has(self.ip) || !isIP(self.ip) || cidr(self.cidr).containsIP(self.ip)`,message=`staticIP.ip must lie inside staticIP.cidr`
// +kubebuilder:validation:XValidation:rule=`!has(self.cidr) || !isCIDR(self.cidr) || !has(self.gateway) || !isIP(self.gateway) || cidr(self.cidr).containsIP(self.gateway)`,message=`staticIP.gateway must lie inside staticIP.cidr`
// +kubebuilder:validation:XValidation:rule=`!has(self.cidr) || !isCIDR(self.cidr) || !has(self.range) || !isIP(self.range.start) || !isIP(self.range.end) || (cidr(self.cidr).containsIP(self.range.start) && cidr(self.cidr).containsIP(self.range.end))`,message=`staticIP.range must lie inside staticIP.cidr`
type StaticIPConfig struct {
	// ip is the address, e.g. "10.0.0.17".
	//
	// +kubebuilder:validation:MaxLength=45
	// +optional
	// +kubebuilder:validation:XValidation:rule=`isIP(self)`,message=`staticIP.ip must be an IP address, such as 10.0.0.17`
	IP string `json:"ip,omitempty"`

	// cidr is the subnet of the address, e.g. "10.0.0.0/24"; MAAS must know it. Empty means the smallest one of MAAS that has the
	// address.
	//
	// +kubebuilder:validation:MaxLength=49
	// +optional
	// +kubebuilder:validation:XValidation:rule=`isCIDR(self)`,message=`staticIP.cidr must be a subnet, such as 10.0.0.0/24`
	CIDR string `json:"cidr,omitempty"`

	// gateway of the subnet, which becomes the machine's default gateway. It must be the one that MAAS has for the subnet, since MAAS
	// gives machines no other. Empty leaves the choice to MAAS.
	//
	// +kubebuilder:validation:MaxLength=45
	// +optional
	// +kubebuilder:validation:XValidation:rule=`isIP(self)`,message=`staticIP.gateway must be an IP address, such as 10.0.0.1`
	Gateway string `json:"gateway,omitempty"`

	// nameservers of the machine. They must be those that MAAS has for the subnet, since MAAS gives machines no others. Empty means
	// those that MAAS has.
	//
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:MaxLength=45
	// +listType=atomic
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self.all(n, isIP(n))`,message=`staticIP.nameservers must be IP addresses`
	Nameservers []string `json:"nameservers,omitempty"`

	// range is a pool of addresses from which each machine takes a free one, and keeps it. Either ip or range is set.
	//
	// +optional
	Range *IPRange `json:"range,omitempty"`
}

// IPRange is a run of addresses, both ends included.
//
// +kubebuilder:validation:XValidation:rule=`!isIP(self.start) || !isIP(self.end) || (ip(self.start).family() == ip(self.end).family() && (ip(self.start).family() == 6 || [0, 1, 2, 3].map(i, int(self.start.split('.')[i]) - int(self.end.split('.')[i])).filter(d, d != 0).all(d, d < 0) || [0, 1, 2, 3].map(i, int(self.start.split('.')[i]) - int(self.end.split('.')[i])).filter(d, d != 0)[0] < 0))`,message=`staticIP.range.start must not come after staticIP.range.end, and both must be of one IP family`
type IPRange struct {
	// start is the first address.
	//
	// +kubebuilder:validation:MaxLength=45
	// +required
	// +kubebuilder:validation:XValidation:rule=`isIP(self)`,message=`staticIP.range.start must be an IP address`
	Start string `json:"start"`

	// end is the last address.
	//
	// +kubebuilder:validation:MaxLength=45
	// +required
	// +kubebuilder:validation:XValidation:rule=`isIP(self)`,message=`staticIP.range.end must be an IP address`
	End string `json:"end"`
}
