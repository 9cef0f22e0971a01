// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

func TestNetworks(t *testing.T) {
	site := simtest.New(t, simtest.Rack)
	story(t, site,
		ask("alice", "GET subnets/").with("name=prod-net storage-net", "space=prod undefined"),
		ask("alice", "GET subnets/1/").with("cidr=10.9.0.0/24", "vlan.fabric=fabric-0"),
		ask("alice", "GET subnets/cidr:10.8.0.0%2F28/").with("id=2"),
		ask("alice", "GET subnets/10.8.0.0%2F28/").with("id=2"),
		ask("alice", "GET subnets/name:storage-net/").with("id=2"),
		ask("alice", "GET subnets/ip:10.9.0.77/").with("id=1"),
		ask("alice", "GET subnets/bogus:x/").is(404, "No Subnet matches the given query."),
		ask("alice", "GET spaces/").with("name=prod undefined", "id=1 -1"),
		ask("alice", "GET spaces/prod/").with("id=1"),
		ask("alice", "GET spaces/undefined/").with("id=-1"),
		ask("alice", "GET spaces/x/").is(404, "No Space matches the given query."),
		ask("alice", "GET fabrics/").with("name=fabric-0"),
		ask("alice", "GET fabrics/0/").with("name=fabric-0"),
		ask("alice", "GET fabrics/9/").is(404, "No Fabric matches the given query."),
		ask("alice", "GET fabrics/0/vlans/").with("vid=0 30"),
		ask("alice", "GET vlans/2/").with("vid=30", "dhcp_on=false"),
		ask("alice", "GET vlans/9/").is(404, "No VLAN matches the given query."),
		ask("alice", "GET ipranges/").with("type=reserved dynamic"),
		ask("alice", "GET ipranges/2/").with("start_ip=10.9.0.200"),
		ask("alice", "GET ipranges/9/").is(404, "No IPRange matches the given query."),
		ask("alice", "GET regioncontrollers/").with("hostname=region"),
		ask("alice", "GET rackcontrollers/").is(200, "[]"),
		ask("alice", "GET rackcontrollers/x/").is(404, "No RackController matches the given query."),
	)
}

func TestAddresses(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	story(t, site,
		ask("alice", "POST ipaddresses/?op=reserve", "subnet", "10.9.0.0/24").with("ip=10.9.0.251", "owner.username=alice", "alloc_type_name=User reserved"),
		ask("alice", "POST ipaddresses/?op=reserve", "subnet", "1", "ip", "10.9.0.99", "hostname", "vip").with("ip=10.9.0.99"),
		ask("alice", "GET dnsresources/?name=vip").with("fqdn=vip.maas"),
		ask("alice", "POST ipaddresses/?op=reserve", "ip", "10.9.0.99").is(404, "The IP address 10.9.0.99 is already in use."),
		ask("alice", "POST ipaddresses/?op=reserve", "ip", "10.9.0.210").is(403, "IP address 10.9.0.210 belongs to an existing dynamic range. To reserve this IP address, "+
			"a MAC address is required. (Create a device instead.)"),
		ask("alice", "POST ipaddresses/?op=reserve", "subnet", "172.16.0.0/12").is(400, "Unable to identify subnet: 172.16.0.0/12."),
		ask("alice", "POST ipaddresses/?op=reserve", "ip", "192.0.2.1").is(400, "No known subnet for IP 192.0.2.1."),
		ask("alice", "POST ipaddresses/?op=reserve").is(400, ""),
		ask("alice", "GET ipaddresses/").with("ip=10.9.0.251 10.9.0.99"),
		ask("bob", "GET ipaddresses/").is(200, "[]"),
		ask("bob", "GET ipaddresses/?all=true").is(403, ""),
		ask("bob", "POST ipaddresses/?op=release", "ip", "10.9.0.99").is(400, "IP address 10.9.0.99 does not exist, is not the correct type of address, or does not belong to the requesting user."),
		ask("bob", "POST ipaddresses/?op=release", "ip", "10.9.0.99", "force", "true").is(403, ""),
		ask("admin", "POST ipaddresses/?op=release", "ip", "10.9.0.99", "force", "true").is(204, ""),
		ask("alice", "GET dnsresources/?name=vip").is(200, "[]"),
		ask("alice", "POST machines/aaaaa1/?op=deploy"),
		ask("admin", "GET ipaddresses/?all=true").with("ip=10.9.0.251 10.9.0.252"),
		ask("alice", "GET subnets/1/?op=ip_addresses").with("ip=10.9.0.251 10.9.0.252", "user=alice alice"),
		ask("alice", "GET subnets/1/?op=unreserved_ip_ranges").with("start=10.9.0.10 10.9.0.253", "end=10.9.0.199 10.9.0.254"),
		ask("alice", "GET subnets/1/?op=reserved_ip_ranges").with("start=10.9.0.1 10.9.0.200 10.9.0.251", "num_addresses=9 51 2"),
		ask("alice", "GET subnets/1/?op=statistics&include_ranges=true&include_suggestions=true").with("num_available=192", "largest_available=190", "total_addresses=254", "usage_string=24%"),
		ask("alice", "GET dnsresources/?all=true").with("fqdn=one.maas", "id=-1"),
	)
	site.Settle(time.Hour)
	g.Expect(site.Has("one").IPs()).To(Equal([]string{"10.9.0.252"}))
}

func TestDNS(t *testing.T) {
	site := simtest.New(t, simtest.Rack)
	story(t, site,
		ask("alice", "GET domains/").with("name=maas lab.example", "is_default=true false"),
		ask("alice", "GET domains/maas/").with("id=0", "resource_record_count=0"),
		ask("alice", "POST domains/", "name", "a.b").is(403, adminOnly),
		ask("admin", "POST domains/", "name", "new.example", "ttl", "60").with("id=2", "ttl=60"),
		ask("admin", "POST domains/", "name", "new.example").is(400, `{"name": ["Domain with this Name already exists."]}`),
		ask("admin", "POST domains/", "name", "bad_domain", "ttl", "x").is(400, `{"name": ["Domain name contains invalid characters.", "Label contains disallowed characters: 'bad_domain'."], "ttl": ["Enter a whole number."]}`),
		ask("admin", "PUT domains/2/", "authoritative", "false", "name", "newer.example").with("authoritative=false", "name=newer.example"),
		ask("alice", "PUT domains/2/").is(403, ""),
		ask("admin", "POST domains/1/?op=set_default").with("is_default=true"),
		ask("admin", "GET domains/0/").with("is_default=false"),
		ask("admin", "POST domains/0/?op=set_default").with("is_default=true"),

		ask("alice", "POST dnsresources/", "fqdn", "api.lab.example").is(403, adminOnly),
		ask("admin", "POST dnsresources/", "fqdn", "bad name.lab.example").is(404, "No Domain matches the given query."),
		ask("admin", "POST dnsresources/", "fqdn", "two.labels.lab.example").is(404, "No Domain matches the given query."),
		ask("admin", "POST dnsresources/", "name", "bad name", "domain", "lab.example", "ip_addresses", "10.9.0.50").
			is(400, `{"__all__": ["Invalid dnsresource name: bad name."]}`),
		ask("admin", "POST dnsresources/", "fqdn", "api.lab.example", "address_ttl", "10", "ip_addresses", "10.9.0.50 203.0.113.7").with("id=1", "address_ttl=10", "fqdn=api.lab.example"),
		ask("admin", "POST dnsresources/", "name", "api", "domain", "lab.example").is(400, `{"__all__": ["Labels must be unique within their zone."]}`),
		ask("admin", "POST dnsresources/", "name", "x").is(400, `{"domain": ["This field is required."]}`),
		ask("admin", "POST dnsresources/", "domain", "1").is(400, `{"name": ["This field is required."]}`),
		ask("admin", "POST dnsresources/", "name", "x", "domain", "nowhere").is(404, "No Domain matches the given query."),
		ask("admin", "POST dnsresources/", "fqdn", "x.nowhere").is(404, "No Domain matches the given query."),
		ask("admin", "POST dnsresources/", "fqdn", "y.maas", "ip_addresses", "rubbish").is(500, "failed to detect a valid IP address from 'rubbish'"),
		ask("admin", "POST dnsresources/", "fqdn", "y.maas", "address_ttl", "soon").is(400, `{"address_ttl": ["Enter a whole number."]}`),
		ask("alice", "GET dnsresources/?fqdn=api.lab.example").with("id=1"),
		ask("alice", "GET dnsresources/?domain=lab.example&name=api&rrtype=A").with("id=1"),
		ask("alice", "GET dnsresources/?rrtype=AAAA").is(200, "[]"),
		ask("alice", "GET dnsresources/?domain=nowhere").is(404, "No Domain matches the given query."),
		ask("admin", "GET ipaddresses/").with("ip=10.9.0.50 203.0.113.7"),
		ask("alice", "PUT dnsresources/1/", "ip_addresses", "").is(403, ""),
		ask("admin", "PUT dnsresources/1/", "address_ttl", "20").with("address_ttl=20"),
		ask("admin", "GET ipaddresses/").with("ip=10.9.0.50 203.0.113.7"),
		ask("admin", "PUT dnsresources/1/", "ip_addresses", "10.9.0.51").with("fqdn=api.lab.example"),
		ask("admin", "GET ipaddresses/").with("ip=10.9.0.51"),
		ask("admin", "PUT dnsresources/1/", "ip_addresses", "zz").is(500, "failed to detect a valid IP address from 'zz'"),
		ask("admin", "PUT dnsresources/1/", "ip_addresses", "", "name", "api2").with("fqdn=api2.lab.example", "ip_addresses=[]"),
		ask("admin", "GET dnsresources/abc/").is(404, "No DNSResource matches the given query."),
		ask("admin", "PUT dnsresources/9/").is(404, "No DNSResource matches the given query."),

		ask("alice", "POST dnsresourcerecords/").is(403, adminOnly),
		ask("admin", "POST dnsresourcerecords/", "fqdn", "txt.lab.example", "rrtype", "txt", "rrdata", "hello").with("id=1", "rrtype=TXT"),
		ask("admin", "POST dnsresourcerecords/", "fqdn", "txt.lab.example", "rrtype", "A", "rrdata", "").is(400, `{"rrdata": ["This field is required."], "rrtype": ["A is not one of SSHFP CNAME SRV TXT NS MX."]}`),
		ask("alice", "GET dnsresourcerecords/?domain=lab.example").with("rrdata=hello"),
		ask("alice", "GET dnsresourcerecords/1/").with("fqdn=txt.lab.example"),
		ask("admin", "DELETE domains/1/").is(500, `("Cannot delete some instances of model 'Domain' because they are referenced through protected foreign keys: `+
			`'DNSResource.domain'.", {<DNSResource: name=api2>, <DNSResource: name=txt>})`),
		ask("admin", "DELETE dnsresourcerecords/1/").is(204, ""),
		ask("admin", "DELETE dnsresourcerecords/1/").is(404, "No DNSData matches the given query."),
		ask("alice", "DELETE dnsresources/1/").is(403, ""),
		ask("admin", "DELETE dnsresources/1/").is(204, ""),
		ask("admin", "DELETE dnsresources/1/").is(404, "No DNSResource matches the given query."),
		ask("admin", "DELETE domains/1/").is(204, ""),
		ask("admin", "DELETE domains/0/").is(400, "This domain is the default domain, it cannot be deleted."),
		ask("admin", "DELETE domains/9/").is(404, "No Domain matches the given query."),
	)
}

func TestInterfaces(t *testing.T) {
	site := simtest.New(t, simtest.Rack)
	base := "nodes/aaaaa3/interfaces/"
	story(t, site,
		ask("alice", "GET "+base).with("name=eth0 eth1"),
		ask("alice", "GET "+base+"eth1/").with("name=eth1", "vlan.vid=30"),
		ask("alice", "GET "+base+"99/").is(404, "No Interface matches the given query."),
		ask("alice", "POST "+base+"?op=create_bridge", "name", "br0", "parent", "3").is(403, ""),
		ask("admin", "POST "+base+"?op=create_bridge", "name", "br0", "parent", "3", "bridge_stp", "true").with("name=br0", "type=bridge", "parents=[eth0]", "params.bridge_stp=true"),
		ask("admin", "POST "+base+"?op=create_bridge", "name", "br0", "parent", "99").is(400, `{"name": ["Node three already has an interface named 'br0'."], `+
			`"parent": ["Select a valid choice. 99 is not one of the available choices.", "A bridge interface must have at least one parent."]}`),
		ask("admin", "POST "+base+"?op=create_vlan", "parent", "4", "vlan", "2").with("name=eth1.30"),
		ask("admin", "POST "+base+"?op=create_bond", "name", "bond0", "parents", "3", "parents", "4").with("type=bond", "parents=[eth0 eth1]"),
		ask("admin", "POST "+base+"?op=create_physical", "name", "", "vlan", "99").is(400, `{"mac_address": ["This field is required."], "name": ["This field is required."], `+
			`"vlan": ["Select a valid choice. That choice is not one of the available choices."]}`),
		ask("admin", "PUT "+base+"eth1/", "name", "lan1", "mac_address", "52:54:00:00:0A:0B", "enabled", "false", "tags", "x").with("name=lan1", "mac_address=52:54:00:00:0a:0b", "enabled=false", "tags=[x]"),
		ask("admin", "PUT "+base+"lan1/", "mac_address", "zz").is(400, `{"mac_address": ["'zz' is not a valid MAC address."]}`),
		ask("admin", "POST "+base+"lan1/?op=add_tag", "tag", "y").with("tags=[x y]"),
		ask("admin", "POST "+base+"lan1/?op=remove_tag", "tag", "x").with("tags=[y]"),
		ask("admin", "POST "+base+"lan1/?op=disconnect").with("links=[]", "vlan=<nil>"),
		ask("admin", "POST "+base+"lan1/?op=link_subnet", "mode", "hope").is(400, `{"mode": ["Select a valid choice. hope is not one of the available choices."]}`),
		ask("admin", "POST "+base+"lan1/?op=link_subnet", "mode", "AUTO").is(400, `{"subnet": ["This field is required."]}`),
		ask("admin", "POST "+base+"lan1/?op=link_subnet", "mode", "STATIC", "subnet", "2", "ip_address", "192.0.2.1").is(400, `{"ip_address": ["IP address is not in the given subnet '10.8.0.0/28'."]}`),
		ask("admin", "POST "+base+"lan1/?op=link_subnet", "mode", "STATIC", "subnet", "2", "ip_address", "10.8.0.9").with("name=lan1"),
		ask("admin", "POST "+base+"br0/?op=link_subnet", "mode", "STATIC", "subnet", "2", "ip_address", "10.8.0.9").is(400, ""),
		ask("admin", "POST "+base+"br0/?op=link_subnet", "mode", "STATIC", "subnet", "2", "force", "true").with("vlan.vid=30"),
		ask("admin", "POST "+base+"lan1/?op=link_subnet", "mode", "DHCP", "subnet", "2"),
		ask("admin", "POST "+base+"lan1/?op=link_subnet", "mode", "DHCP", "subnet", "2").is(400, `{"mode": ["Interface is already set to DHCP."]}`),
		ask("admin", "POST "+base+"lan1/?op=link_subnet", "mode", "LINK_UP").is(400, ""),
		ask("admin", "POST "+base+"lan1/?op=link_subnet", "mode", "AUTO", "subnet", "2", "default_gateway", "true").is(400, `{"default_gateway": ["Cannot set as default gateway because subnet has no gateway IP."]}`),
		ask("admin", "POST "+base+"lan1/?op=unlink_subnet", "id", "999").is(400, `{"id": ["Select a valid choice. That choice is not one of the available choices."]}`),
		ask("admin", "POST "+base+"lan1/?op=unlink_subnet").is(400, `{"id": ["This field is required."]}`),
		ask("admin", "GET machines/aaaaa3/").with("ip_addresses=[10.8.0.9 10.8.0.10]"),
		ask("admin", "DELETE "+base+"lan1/").is(204, ""),
		ask("admin", "DELETE "+base+"lan1/").is(404, "No Interface matches the given query."),
		ask("admin", "PUT "+base+"lan1/").is(404, "No Interface matches the given query."),
	)
}
