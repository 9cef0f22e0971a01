// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

const reserve = "POST ipaddresses/?op=reserve"

func TestReserve(t *testing.T) {
	const dynamic = " belongs to an existing dynamic range. To reserve this IP address, a MAC address is required. (Create a device instead.)"
	tests := map[string]struct {
		form []string
		code int
		says string
	}{
		"an invalid address":                          {[]string{"ip", "ten"}, 400, `{"ip_address": ["Enter a valid IPv4 or IPv6 address."]}`},
		"an address in the ip_address parameter":      {[]string{"ip_address", "10.9.0.50"}, 200, ""},
		"an address of another subnet":                {[]string{"ip", "10.9.0.50", "subnet", "storage-net"}, 400, "No known subnet for IP 10.9.0.50."},
		"the address before a dynamic range":          {[]string{"ip", "10.9.0.199"}, 200, ""},
		"the first address of a dynamic range":        {[]string{"ip", "10.9.0.200"}, 403, "IP address 10.9.0.200" + dynamic},
		"the last address of a dynamic range":         {[]string{"ip", "10.9.0.250"}, 403, "IP address 10.9.0.250" + dynamic},
		"the address after a dynamic range":           {[]string{"ip", "10.9.0.251"}, 200, ""},
		"a dynamic address for a MAC address":         {[]string{"ip", "10.9.0.200", "mac", "52:54:00:00:00:99"}, 200, ""},
		"an address of a reserved range":              {[]string{"ip", "10.9.0.5"}, 200, ""},
		"a name without a domain":                     {[]string{"ip", "10.9.0.50", "hostname", "vip"}, 200, ""},
		"a name in a domain":                          {[]string{"ip", "10.9.0.50", "hostname", "vip", "domain", "lab.example"}, 200, ""},
		"a name in a domain by ID":                    {[]string{"ip", "10.9.0.50", "hostname", "vip", "domain", "1"}, 200, ""},
		"a name in an unknown domain":                 {[]string{"ip", "10.9.0.50", "hostname", "vip", "domain", "nowhere"}, 404, noDomain},
		"a fully qualified name":                      {[]string{"ip", "10.9.0.50", "hostname", "vip.lab.example"}, 200, ""},
		"a fully qualified name in an unknown domain": {[]string{"ip", "10.9.0.50", "hostname", "vip.nowhere"}, 404, noDomain},
	}
	for name, test := range tests {
		t.Run("When a reservation requests "+name+", it should be accepted or rejected as by MAAS", func(t *testing.T) {
			g := NewWithT(t)
			site := simtest.New(t, simtest.Rack)
			story(t, site, ask("alice", reserve, test.form...).is(test.code, test.says))
			if test.code != 200 {
				story(t, site, ask("alice", "GET ipaddresses/").is(200, "[]"), ask("alice", "GET dnsresources/").is(200, "[]"))
				return
			}
			g.Expect(site.Do("alice", "GET", "ipaddresses/").Each("alloc_type_name")).To(Equal([]string{"User reserved"}))
		})
	}
}

// TestReservedNames verifies that an address is found by its name, and that the name is deleted with its last address.
func TestReservedNames(t *testing.T) {
	site := simtest.New(t, simtest.Rack)
	story(t, site,
		ask("alice", reserve, "ip", "10.9.0.50", "hostname", "vip.lab.example"),
		ask("alice", reserve, "ip", "10.9.0.51", "hostname", "vip", "domain", "lab.example"),
		ask("alice", reserve, "ip", "10.9.0.52", "hostname", "vip"),
		ask("alice", "GET dnsresources/").with("fqdn=vip.lab.example vip.maas", "id=1 2"),
		ask("alice", "GET domains/lab.example/").with("resource_record_count=2"),
		ask("alice", "POST ipaddresses/?op=release", "ip", "10.9.0.50").is(204, ""),
		ask("alice", "GET dnsresources/").with("id=1 2"),
		ask("alice", "POST ipaddresses/?op=release", "ip", "10.9.0.51").is(204, ""),
		ask("alice", "GET dnsresources/").with("fqdn=vip.maas"),
		ask("alice", reserve, "ip", "10.9.0.50").with("ip=10.9.0.50"),
	)
}

func TestReleaseAddresses(t *testing.T) {
	const unknown = " does not exist, is not the correct type of address, or does not belong to the requesting user."
	site := simtest.New(t, withRack)
	story(t, site,
		ask("alice", reserve, "ip", "10.9.0.50"),
		ask("alice", "POST machines/aaaaa1/?op=deploy").with("owner=alice"),
		ask("alice", "POST ipaddresses/?op=release").is(400, "No provided ip!"),
		ask("alice", "POST ipaddresses/?op=release", "ip", "10.9.0.60").is(400, "IP address 10.9.0.60"+unknown),
		ask("alice", "POST ipaddresses/?op=release", "ip", "10.9.0.251").is(400, "IP address 10.9.0.251"+unknown),
		ask("admin", "POST ipaddresses/?op=release", "ip", "10.9.0.50").is(400, "IP address 10.9.0.50"+unknown+
			"\nIf you are sure you want to release this address, use force=true as a MAAS administrator."),
		ask("admin", "POST ipaddresses/?op=release", "ip", "10.9.0.60", "force", "true").is(400, "IP address 10.9.0.60"+unknown),
		ask("admin", "POST ipaddresses/?op=release", "ip", "10.9.0.3", "force", "true").is(204, ""),
		ask("admin", "GET ipaddresses/?owner=alice").with("ip=10.9.0.50"),
		ask("admin", "GET ipaddresses/?owner=bob").with("ip=10.8.0.3"),
		ask("alice", "GET ipaddresses/?owner=bob").is(403, "Listing all IP addresses requires admin privileges."),
		ask("admin", "GET ipaddresses/?all=true").with("ip=10.8.0.3 10.8.0.4 10.9.0.50 10.9.0.251"),
		ask("admin", "GET ipaddresses/?all=true&ip=10.9.0.251").with("ip=10.9.0.251", "alloc_type_name=Automatic"),
		ask("alice", "GET ipaddresses/?ip=10.9.0.51").is(200, "[]"),
		ask("alice", "POST ipaddresses/?op=release", "ip", "10.9.0.50").is(204, ""),
		ask("alice", "POST ipaddresses/?op=release", "ip", "10.9.0.50").is(400, "IP address 10.9.0.50"+unknown),
	)
}

// TestSharedAddresses verifies that a name may have the address of a machine, without a reservation of that address.
func TestSharedAddresses(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	story(t, site,
		ask("alice", "POST machines/aaaaa1/?op=deploy"),
		ask("admin", "POST dnsresources/", "fqdn", "api.lab.example", "ip_addresses", "10.9.0.251 10.9.0.60 10.9.0.251").with("id=1"),
		ask("admin", "GET ipaddresses/").with("ip=10.9.0.60"),
		ask("admin", "POST dnsresources/", "fqdn", "api2.lab.example", "ip_addresses", "10.9.0.60").with("id=2"),
		ask("admin", "GET ipaddresses/").with("ip=10.9.0.60"),
	)
	addresses := site.Do("alice", "GET", "dnsresources/1/").Object()["ip_addresses"]
	g.Expect(addresses).To(HaveExactElements(
		And(HaveKeyWithValue("ip", "10.9.0.251"), HaveKeyWithValue("alloc_type_name", "Automatic")),
		And(HaveKeyWithValue("ip", "10.9.0.60"), HaveKeyWithValue("alloc_type_name", "User reserved"))))
	story(t, site,
		ask("admin", "DELETE dnsresources/1/").is(204, ""),
		ask("admin", "GET ipaddresses/").with("ip=10.9.0.60"), // The other name still has it.
		ask("alice", "GET machines/aaaaa1/").with("ip_addresses=[10.9.0.251]"),
		ask("admin", "PUT dnsresources/2/", "ip_addresses", "").with("ip_addresses=[]"),
		ask("admin", "GET ipaddresses/").is(200, "[]"),
	)
}

// TestExhaustion verifies that the error for a full subnet has no Retry-After header, unlike the error of a busy
// server.
func TestExhaustion(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	for range 14 {
		g.Expect(site.Do("alice", "POST", "ipaddresses/?op=reserve", "subnet", "2").Code).To(Equal(200))
	}
	answer := site.Do("alice", "POST", "ipaddresses/?op=reserve", "subnet", "2")
	g.Expect(answer.Code).To(Equal(503))
	g.Expect(answer.Header).NotTo(HaveKey("Retry-After"))
	story(t, site,
		ask("alice", "GET subnets/2/?op=unreserved_ip_ranges").is(200, "[]"),
		ask("alice", "GET subnets/2/?op=statistics").with("num_available=0", "num_unavailable=14", "usage_string=100%", "available_string=0%"),
		ask("admin", "POST nodes/aaaaa3/interfaces/eth1/?op=link_subnet", "mode", "STATIC", "subnet", "2").
			is(503, "No more IPs available in subnet: 10.8.0.0/28."),
		ask("alice", "POST ipaddresses/?op=release", "ip", "10.8.0.7").is(204, ""),
		ask("alice", reserve, "subnet", "2").with("ip=10.8.0.7"),
	)
}
