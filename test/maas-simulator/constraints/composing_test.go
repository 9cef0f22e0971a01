// SPDX-License-Identifier: Apache-2.0

package constraints_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/constraints"
	"github.com/openshift/hypershift/test/maas-simulator/form"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
)

// TestOrder verifies that an allocation orders a VM with the requested size in integers. compose chooses everything
// else.
func TestOrder(t *testing.T) {
	for query, want := range map[string]form.Values{
		"":                          nil,
		"zone=z2&tags=t1&name=x":    nil,
		"cpu_count=2.9&mem=3000":    {{Key: "cores", Value: "2"}, {Key: "memory", Value: "3000"}},
		"cpu_count=0.5&mem=0":       nil,
		"mem=-1":                    {{Key: "memory", Value: "-1"}},
		"arch=arm64":                {{Key: "architecture", Value: "arm64"}},
		"storage=8,root:9":          {{Key: "storage", Value: "8,root:9"}},
		"interfaces=l:tag=x":        {{Key: "interfaces", Value: "l:tag=x"}},
		"storage=4&storage=8&mem=1": {{Key: "memory", Value: "1"}, {Key: "storage", Value: "8"}},
	} {
		t.Run("When "+query+" is requested, the VM should be ordered with it", func(t *testing.T) {
			acquired(t, open(t), query, func(s *constraints.Set) {
				if diff := cmp.Diff(want, s.Order()); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestFitsVMHost(t *testing.T) {
	host := &inventory.VMHost{ID: 5, Name: "kvm", Type: "virsh", ZoneID: 2, Tags: []string{"t1", "virtual"}}
	for query, want := range map[string]bool{
		"": true, "mem=999999": true, "pool=p1": true,
		"zone=z2": true, "zone=default": false, "zone=z2&zone=default": false,
		"tags=t1": true, "tags=t2": false, "tags=t1&tags=t2": false,
		"tags=t1,t2":  false, // The host has no tag with this text: the text is not split.
		"not_tags=t2": true, "not_tags=t1": false, "not_tags=t1&not_tags=t2": true,
		"pod=kvm": true, "pod=other": false, "pod=other&pod=kvm": true, "not_pod=kvm": false, "not_pod=other": true,
		"pod_type=virsh": true, "pod_type=lxd": false, "pod_type=lxd&pod_type=virsh": true, "not_pod_type=virsh": false, "not_pod_type=lxd": true,
	} {
		t.Run("When "+query+" is requested, the host should match or not as in MAAS", func(t *testing.T) {
			db := open(t)
			acquired(t, db, query, func(s *constraints.Set) { NewWithT(t).Expect(s.FitsVMHost(db, host)).To(Equal(want)) })
		})
	}
}

// TestInterfaceOrders verifies that an address and a mode apply to the VM. Other keys select the host's interface,
// which must be on the VLAN of the address.
func TestInterfaceOrders(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"a network of the host":           {"net0:subnet=n1", "net0 [] : eth0@a"},
		"an address":                      {"net0:ip=10.2.0.9", "net0 [10.2.0.9] : eth0@b bond0@d"},
		"two addresses of a VLAN":         {"net0:ip=10.2.0.9,ip=10.2.0.8", "net0 [10.2.0.9 10.2.0.8] : eth0@b bond0@d"},
		"addresses of two VLANs":          {"net0:ip=10.2.0.9,ip=10.1.0.8", "net0 [10.2.0.9 10.1.0.8] : "},
		"an address and a type":           {"net0:ip=10.2.0.9,type=bond", "net0 [10.2.0.9] : bond0@d"},
		"no address":                      {"net0:subnet=n2,mode=unconfigured", "net0 [] unconfigured: eth0@b"},
		"two interfaces":                  {"a:vlan=v1;b:vlan=v2", "a [] : eth0@a\nb [] : eth0@b bond0@d"},
		"an unknown space":                {"net0:space=q", "404 No Space matches the given query."},
		"an invalid address":              {"net0:ip=ten", "500 failed to detect a valid IP address from 'ten'"},
		"an address outside every subnet": {"net0:ip=192.0.2.1", "500 'NoneType' object has no attribute 'vlan'"},
		"an unknown subnet":               {"net0:subnet=q", "net0 [] : "},
		"an address with another key":     {"net0:ip=10.1.0.9,tag=x", "net0 [10.1.0.9] : eth0@a"},
	}
	for name, test := range tests {
		t.Run("When "+name+" is requested, the matching interfaces of the host should be selected", func(t *testing.T) {
			db := open(t)
			NewWithT(t).Expect(ordered(db, test.text)).To(Equal(test.want))
		})
	}
}

// ordered formats each requested interface as "label [addresses] mode: interfaces that fit", or returns the error.
func ordered(db *inventory.DB, text string) string {
	var lines []string
	err := db.View(func() error {
		orders, err := constraints.Interfaces(db, text)
		for _, o := range orders {
			var fit []string
			for _, m := range db.Machines.All() {
				for i := range m.Interfaces {
					if o.Fits(&m.Interfaces[i]) {
						fit = append(fit, m.Interfaces[i].Name+"@"+m.SystemID)
					}
				}
			}
			lines = append(lines, fmt.Sprintf("%s %v %s: %s", o.Label, o.IPs, o.Mode, strings.Join(fit, " ")))
		}
		return err
	})
	var p *problem.Problem
	if errors.As(err, &p) {
		return fmt.Sprintf("%d %s", p.Status, p.Body)
	}
	return strings.Join(lines, "\n")
}
