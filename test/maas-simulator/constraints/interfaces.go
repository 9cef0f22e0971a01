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

// labels splits a constraint that CheckInterfaces found in order.
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

// CheckInterfaces says what is wrong with the form of an interface constraint;
// empty when nothing is. What its values name is not looked at.
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

// fits is what an interface must be like for the label; nil when a value is refused.
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

// InterfaceOrder is an interface that a VM is to have.
type InterfaceOrder struct {
	Label string
	// Fits chooses the interface of the host that the VM is attached to.
	Fits func(*inventory.Interface) bool
	// IPs are the addresses that the VM is to have, Mode "unconfigured" that it
	// is to have none.
	IPs  []string
	Mode string
}

// Interfaces reads the constraint of a VM to be: an address and a mode are about
// the VM, the rest chooses the host's interface, which must be on the address's
// VLAN. It must run inside View or Update.
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

// vlanOf is the VLAN of the subnet that an address is in; the server crashes
// where there is none.
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
