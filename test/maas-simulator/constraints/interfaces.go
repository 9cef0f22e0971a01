// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
)

const interfaceFormat = "Malformed constraint: %s (required format: '<label>:<key>=<value>[,<key2>=<value2>[,...]]')"

// labelled is one part of an interface constraint: "label:key=value,key=value".
type labelled struct {
	label string
	keys  [][2]string
}

// labels splits a constraint that CheckInterfaces accepts.
func labels(text string) []labelled {
	var out []labelled
	for _, part := range strings.Split(text, ";") {
		label, keys, _ := strings.Cut(part, ":")
		l := labelled{label: label}
		for _, pair := range strings.Split(keys, ",") {
			key, value, _ := strings.Cut(pair, "=")
			l.keys = append(l.keys, [2]string{key, value})
		}
		out = append(out, l)
	}
	return out
}

// CheckInterfaces returns an error message if the syntax of an interface constraint is invalid, or "". It does not
// check the values.
func CheckInterfaces(text string) string {
	if text == "" {
		return ""
	}
	for _, part := range strings.Split(text, ";") {
		label, keys, ok := strings.Cut(part, ":")
		if !ok || label == "" || !strings.Contains(keys, "=") {
			return fmt.Sprintf(interfaceFormat, quote(part))
		}
	}
	for _, l := range labels(text) {
		for _, pair := range l.keys {
			key := strings.TrimPrefix(pair[0], "not_")
			if interfaceSpecs[key] == nil && interfaceProperties[key] == nil {
				return "Unknown interfaces constraint: '" + pair[0]
			}
		}
	}
	return ""
}

// fits returns a function that reports whether an interface satisfies the label's keys; nil if a value is rejected.
func (l labelled) fits(c *context) func(*inventory.Interface) bool {
	var all []func(*inventory.Interface) bool
	for _, pair := range l.keys {
		fits := interfaceKey(c, pair[0], pair[1])
		if fits == nil {
			return nil
		}
		all = append(all, fits)
	}
	return func(nic *inventory.Interface) bool {
		return !slices.ContainsFunc(all, func(fits func(*inventory.Interface) bool) bool { return !fits(nic) })
	}
}

// InterfaceOrder is a requested interface of a VM.
type InterfaceOrder struct {
	Label string
	// Fits reports whether the VM can be attached to an interface of the host.
	Fits func(*inventory.Interface) bool
	// IPs are the requested addresses of the VM. Mode "unconfigured" means that it gets none.
	IPs  []string
	Mode string
}

// Interfaces parses the interface constraint of a VM to compose. An address and a mode apply to the VM. Other keys
// select the host's interface, which must be on the VLAN of the address. It must run inside View or Update.
func Interfaces(db *inventory.DB, text string) ([]InterfaceOrder, error) {
	var out []InterfaceOrder
	for _, l := range labels(text) {
		c := &context{db: db, set: &Set{}, fields: problem.Fields{}, key: "interfaces"}
		order := InterfaceOrder{Label: l.label}
		host := labelled{label: l.label}
		for _, pair := range l.keys {
			switch pair[0] {
			case "ip":
				vlan, err := vlanOf(db, pair[1])
				if err != nil {
					return nil, err
				}
				order.IPs = append(order.IPs, pair[1])
				host.keys = append(host.keys, [2]string{"vlan", fmt.Sprintf("id:%d", vlan)})
			case "mode":
				order.Mode = pair[1]
			default:
				host.keys = append(host.keys, pair)
			}
		}
		if order.Fits = host.fits(c); order.Fits == nil {
			return nil, c.err
		}
		out = append(out, order)
	}
	return out, nil
}

// vlanOf returns the VLAN of the subnet that contains an address. Without such a subnet it returns the internal error
// of MAAS, which crashes there.
func vlanOf(db *inventory.DB, ip string) (int, error) {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return 0, problem.Text(500, "failed to detect a valid IP address from %s", quote(ip))
	}
	s := db.Subnets.Find(func(s *inventory.Subnet) bool {
		cidr, err := netip.ParsePrefix(s.CIDR)
		return err == nil && cidr.Contains(addr)
	})
	if s == nil {
		return 0, problem.Text(500, "'NoneType' object has no attribute 'vlan'")
	}
	return s.VLANID, nil
}
