// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// nics formats each interface as "name type links parents<children".
func nics(m *inventory.Machine) []string {
	out := []string{}
	for _, nic := range m.Interfaces {
		out = append(out, fmt.Sprintf("%s %s %d %s<%s", nic.Name, nic.Type, len(nic.Links), strings.Join(nic.Parents, "+"), strings.Join(nic.Children, "+")))
	}
	return out
}

// TestBridges verifies that a requested bridge takes over the addresses of its interface, and that the interface gets
// them again at the release.
func TestBridges(t *testing.T) {
	const three = "machines/aaaaa3/"
	plain := []string{"eth0 physical 1 <", "eth1 physical 1 <"}
	bridged := []string{"eth0 physical 0 <br-eth0", "eth1 physical 0 <br-eth1", "br-eth0 bridge 1 eth0<", "br-eth1 bridge 1 eth1<"}
	t.Run("When an allocation requests bridges, its release should remove them", func(t *testing.T) {
		g := NewWithT(t)
		site := simtest.New(t, simtest.Rack)
		story(t, site, ask("alice", "POST machines/?op=allocate", "name", "three", "bridge_all", "true", "bridge_type", "ovs", "bridge_stp", "true").with("hostname=three"))
		g.Expect(nics(site.Has("three"))).To(Equal(bridged))
		g.Expect(site.Has("three").Interfaces[2].Params).To(And(HaveKeyWithValue("bridge_type", "ovs"), HaveKeyWithValue("bridge_stp", true)))
		g.Expect(site.Has("three").Interfaces[2].MAC).To(Equal("52:54:00:00:00:03"))
		story(t, site, ask("alice", "POST "+three+"?op=release").with("status_name=Ready"))
		g.Expect(nics(site.Has("three"))).To(Equal(plain))
	})
	t.Run("When a deployment requests bridges, they should have the machine's addresses", func(t *testing.T) {
		g := NewWithT(t)
		site := simtest.New(t, simtest.Rack)
		story(t, site,
			ask("alice", "POST "+three+"?op=deploy", "bridge_all", "true").with("status_name=Deploying"),
			ask("alice", "GET "+three).with("ip_addresses=[10.9.0.251 10.8.0.1]"),
		)
		g.Expect(nics(site.Has("three"))).To(Equal(bridged))
		g.Expect(site.Has("three").Interfaces[2].Params).To(And(HaveKeyWithValue("bridge_type", "standard"), HaveKeyWithValue("bridge_stp", false)))
		site.Settle(time.Hour)
		story(t, site, ask("alice", "POST "+three+"?op=release"))
		site.Settle(time.Hour)
		g.Expect(nics(site.Has("three"))).To(Equal(plain))
		g.Expect(site.Has("three").IPs()).To(BeEmpty())
	})
	t.Run("When a bridge exists or an interface has no address, it should be left alone", func(t *testing.T) {
		g := NewWithT(t)
		site := simtest.New(t, simtest.Rack)
		id := fmt.Sprint(site.Has("three").Interfaces[0].ID)
		story(t, site,
			ask("admin", "POST nodes/aaaaa3/interfaces/?op=create_bridge", "name", "br0", "parent", id).with("name=br0"),
			ask("admin", "POST nodes/aaaaa3/interfaces/eth1/?op=disconnect"),
			ask("alice", "POST machines/?op=allocate", "name", "three", "bridge_all", "true"),
		)
		own := []string{"eth0 physical 0 <br0", "eth1 physical 0 <", "br0 bridge 1 eth0<"}
		g.Expect(nics(site.Has("three"))).To(Equal(own))
		story(t, site, ask("alice", "POST "+three+"?op=release"))
		g.Expect(nics(site.Has("three"))).To(Equal(own), "what an administrator made stays")
	})
	t.Run("When an administrator creates a bridge on an allocated machine, the release should remove it", func(t *testing.T) {
		g := NewWithT(t)
		site := simtest.New(t, simtest.Rack)
		id := fmt.Sprint(site.Has("three").Interfaces[0].ID)
		story(t, site,
			ask("alice", "POST machines/?op=allocate", "name", "three"),
			ask("admin", "POST nodes/aaaaa3/interfaces/?op=create_bridge", "name", "br0", "parent", id).with("name=br0"),
			ask("alice", "POST "+three+"?op=release"),
		)
		g.Expect(nics(site.Has("three"))).To(Equal(plain))
	})
}

func TestInterfaceForms(t *testing.T) {
	site := simtest.New(t, simtest.Rack)
	eth0, eth1 := fmt.Sprint(site.Has("three").Interfaces[0].ID), fmt.Sprint(site.Has("three").Interfaces[1].ID)
	const base = "nodes/aaaaa3/interfaces/"
	story(t, site,
		ask("admin", "POST "+base+"?op=create_physical", "name", "eth2", "mac_address", "one").is(400, `{"mac_address": ["'one' is not a valid MAC address."]}`),
		ask("admin", "POST "+base+"?op=create_physical", "name", "eth2", "mac_address", "02:00:5e:10:00:00:00:01").
			is(400, `{"mac_address": ["'02:00:5e:10:00:00:00:01' is not a valid MAC address."]}`),
		ask("admin", "POST "+base+"?op=create_physical", "name", "eth2", "mac_address", "52:54:00:00:0A:0B", "tags", "a", "tags", "b", "vlan", "2").
			with("mac_address=52:54:00:00:0a:0b", "tags=[a b]", "vlan.vid=30", "enabled=true", "type=physical", "links=[]"),
		ask("admin", "POST "+base+"?op=create_bond", "name", "bond0").is(400, `{"parents": ["A bond interface must have at least one parent."]}`),
		ask("admin", "POST "+base+"?op=create_vlan", "parent", eth0).is(400, `{"name": ["This field is required."]}`),
		ask("admin", "POST "+base+"?op=create_vlan", "parent", eth0, "vlan", "x").
			is(400, `{"name": ["This field is required."], "vlan": [`+noChoice+`]}`),
		ask("admin", "POST "+base+"?op=create_vlan", "parent", eth0, "vlan", "2", "name", "own").with("name=own", "vlan.vid=30", "parents=[eth0]", "links=[]"),
		ask("alice", "GET "+base+"eth0/").with("children=[own]"),
		ask("admin", "POST "+base+"?op=create_bond", "name", "bond0", "parents", eth1, "mac_address", "52:54:00:00:0c:0c").
			with("mac_address=52:54:00:00:0c:0c", "vlan.vid=30", "parents=[eth1]"),
		ask("alice", "GET "+base+"eth1/").with("children=[bond0]", "links=[]"),
		ask("admin", "PUT "+base+"bond0/", "vlan", "1").with("vlan.vid=0", "name=bond0", "enabled=true"),
		ask("admin", "PUT "+base+"bond0/", "vlan", "77", "name", "lost").is(400, `{"vlan": [`+noChoice+`]}`),
		ask("admin", "POST "+base+"bond0/?op=add_tag", "tag", "x").with("tags=[x]"),
		ask("admin", "POST "+base+"bond0/?op=add_tag", "tag", "x").with("tags=[x]"),
		ask("admin", "POST "+base+"bond0/?op=add_tag").with("tags=[x]"),
		ask("admin", "POST "+base+"bond0/?op=remove_tag", "tag", "y").with("tags=[x]"),
		ask("admin", "DELETE "+base+"bond0/").is(204, ""),
		ask("alice", "GET "+base+"eth1/").with("children=[]"),
		ask("alice", "GET machines/aaaaa3/interfaces/").with("name=eth0 eth1 eth2 own"),
	)
}

// TestLinkForms verifies the parameters that each mode of a link requires, and that a forced link replaces all others.
func TestLinkForms(t *testing.T) {
	const eth0, wrongNetwork = "POST nodes/aaaaa3/interfaces/eth0/?op=", `{"subnet": [` + noChoice + `]}`
	tests := map[string]struct {
		form []string
		code int
		says string
	}{
		"no mode":                              {nil, 400, `{"mode": ["Select a valid choice.  is not one of the available choices."]}`},
		"an unknown subnet":                    {[]string{"mode", "AUTO", "subnet", "nowhere"}, 400, wrongNetwork},
		"a subnet of another VLAN":             {[]string{"mode", "AUTO", "subnet", "2"}, 400, wrongNetwork},
		"a subnet of another VLAN, forced":     {[]string{"mode", "auto", "subnet", "storage-net", "force", "true"}, 200, ""},
		"a static link without a subnet":       {[]string{"mode", "STATIC"}, 400, `{"subnet": ["This field is required."]}`},
		"an invalid address":                   {[]string{"mode", "STATIC", "subnet", "1", "ip_address", "ten"}, 400, `{"ip_address": ["Enter a valid IPv4 or IPv6 address."]}`},
		"an address outside the subnet":        {[]string{"mode", "STATIC", "subnet", "1", "ip_address", "10.9.1.1"}, 400, `{"ip_address": ["IP address is not in the given subnet '10.9.0.0/24'."]}`},
		"the first address of a dynamic range": {[]string{"mode", "STATIC", "subnet", "1", "ip_address", "10.9.0.200"}, 400, `{"ip_address": ["IP address is within the dynamic range 10.9.0.200 to 10.9.0.250."]}`},
		"the address before a dynamic range":   {[]string{"mode", "STATIC", "subnet", "1", "ip_address", "10.9.0.199"}, 200, ""},
		"a static link without an address":     {[]string{"mode", "STATIC", "subnet", "1"}, 200, ""},
		"DHCP without a subnet":                {[]string{"mode", "DHCP"}, 200, ""},
		"no address beside a link with one": {[]string{"mode", "LINK_UP"}, 400, `{"mode": ["Cannot configure interface to link up (with no IP address) while other links are ` +
			`already configured. Specify force=True to override this behavior and unlink all other subnets."]}`},
		"no address, forced":                {[]string{"mode", "LINK_UP", "force", "true"}, 200, ""},
		"a gateway of a subnet without one": {[]string{"mode", "AUTO", "subnet", "2", "force", "true", "default_gateway", "true"}, 400, `{"default_gateway": ["Cannot set as default gateway because subnet has no gateway IP."]}`},
		"a gateway without a subnet":        {[]string{"mode", "DHCP", "default_gateway", "true"}, 200, ""},
	}
	for name, test := range tests {
		t.Run("When a link has "+name+", it should be accepted or rejected as by MAAS", func(t *testing.T) {
			g := NewWithT(t)
			site := simtest.New(t, simtest.Rack)
			before := site.Has("three").Interfaces[0].Links
			story(t, site, ask("admin", eth0+"link_subnet", test.form...).is(test.code, test.says))
			after := site.Has("three").Interfaces[0].Links
			switch {
			case test.code != 200:
				g.Expect(after).To(Equal(before))
			case strings.Contains(strings.Join(test.form, " "), "force"):
				g.Expect(after).To(HaveLen(1))
				g.Expect(after[0].ID).NotTo(Equal(before[0].ID))
			default:
				g.Expect(after).To(HaveLen(2))
			}
		})
	}
	t.Run("When an interface is only up, a real link should replace that link", func(t *testing.T) {
		g := NewWithT(t)
		site := simtest.New(t, simtest.Rack)
		story(t, site,
			ask("admin", eth0+"disconnect"),
			ask("admin", eth0+"link_subnet", "mode", "LINK_UP"),
			ask("admin", eth0+"link_subnet", "mode", "LINK_UP"),
			ask("alice", "POST nodes/aaaaa3/interfaces/eth0/?op=link_subnet", "mode", "AUTO", "subnet", "1").is(403, ""),
			ask("admin", eth0+"link_subnet", "mode", "AUTO", "subnet", "1"),
		)
		g.Expect(site.Has("three").Interfaces[0].Links).To(HaveExactElements(HaveField("Mode", "auto")))
	})
}

// dual is Rack with two more subnets on the storage VLAN that have gateways, one IPv6 and one IPv4.
var dual = strings.Replace(simtest.Rack, `"subnets": [`, `"subnets": [
   {"id": 5, "name": "six", "cidr": "fd00::/64", "gateway_ip": "fd00::1", "vlan": {"id": 2}}, {"id": 6, "name": "four", "cidr": "10.7.0.0/24", "gateway_ip": "10.7.0.1", "vlan": {"id": 2}},`, 1)

// TestOneGatewayOfEachFamily verifies that the latest default gateway replaces the previous one of the same address
// family only.
func TestOneGatewayOfEachFamily(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, dual)
	const eth1 = "POST nodes/aaaaa3/interfaces/eth1/?op="
	story(t, site,
		ask("admin", eth1+"link_subnet", "mode", "AUTO", "subnet", "six", "default_gateway", "true"),
		ask("admin", eth1+"link_subnet", "mode", "AUTO", "subnet", "four", "default_gateway", "true"),
		ask("alice", "GET machines/aaaaa3/").with("default_gateways.ipv4.gateway_ip=10.7.0.1", "default_gateways.ipv6.gateway_ip=fd00::1"),
	)
	links := site.Has("three").Interfaces[1].Links
	g.Expect(links).To(HaveExactElements(HaveField("Gateway", false), HaveField("Gateway", true), HaveField("Gateway", true)))
	story(t, site,
		ask("admin", "POST nodes/aaaaa3/interfaces/eth0/?op=set_default_gateway"),
		ask("alice", "GET machines/aaaaa3/").with("default_gateways.ipv4.gateway_ip=10.9.0.1", "default_gateways.ipv6.gateway_ip=fd00::1",
			fmt.Sprintf("default_gateways.ipv6.link_id=%d", links[1].ID)),
		ask("admin", eth1+"set_default_gateway", "link_id", fmt.Sprint(links[2].ID)),
		ask("alice", "GET machines/aaaaa3/").with("default_gateways.ipv4.gateway_ip=10.7.0.1", fmt.Sprintf("default_gateways.ipv4.link_id=%d", links[2].ID)),
		ask("admin", eth1+"set_default_gateway", "link_id", fmt.Sprint(links[0].ID)).is(400, `{"link_id": [`+noChoice+`]}`),
	)
	site.Change("aaaaa3", func(m *inventory.Machine) { m.Status = status.Deployed })
	story(t, site, ask("admin", eth1+"set_default_gateway").
		is(409, "Cannot set default gateway on interface because the machine is not New, Ready, Allocated, or Broken."))
}
