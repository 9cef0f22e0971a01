// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

const (
	noDomain = "No Domain matches the given query."
	noData   = "No DNSData matches the given query."
)

// TestRecordsOfAName verifies that records move and disappear with their name, and that the name exists as long as it
// has a record.
func TestRecordsOfAName(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	story(t, site,
		ask("admin", "POST dnsresourcerecords/", "fqdn", "x.lab.example", "rrtype", "TXT", "rrdata", "hi", "ttl", "60").with("id=1", "ttl=60", "fqdn=x.lab.example"),
		ask("admin", "POST dnsresourcerecords/", "name", "x", "domain", "lab.example", "rrtype", "mx", "rrdata", "10 mail").with("id=2", "rrtype=MX"),
		ask("alice", "GET dnsresourcerecords/?rrtype=mx").with("id=2"),
		ask("alice", "GET dnsresourcerecords/?fqdn=x.lab.example").with("id=1 2"),
		ask("alice", "GET dnsresourcerecords/?name=y").is(200, "[]"),
		ask("alice", "GET dnsresources/?rrtype=txt").with("fqdn=x.lab.example"),
		ask("alice", "GET dnsresources/?rrtype=SRV").is(200, "[]"),
		ask("alice", "GET domains/lab.example/").with("resource_record_count=3"),
		ask("alice", "DELETE dnsresourcerecords/1/").is(403, ""),
		ask("admin", "DELETE dnsresourcerecords/1/").is(204, ""),
		ask("alice", "GET dnsresources/?fqdn=x.lab.example").with("id=1"),
		ask("admin", "PUT dnsresources/1/", "name", "y").with("fqdn=y.lab.example"),
		ask("alice", "GET dnsresourcerecords/2/").with("fqdn=y.lab.example"),
		ask("admin", "POST dnsresources/", "fqdn", "x.lab.example").with("id=2", "resource_records=[]"),
		ask("admin", "PUT dnsresources/2/", "name", "y").is(400, `{"__all__": ["Labels must be unique within their zone."]}`),
		ask("alice", "GET dnsresources/2/").with("fqdn=x.lab.example"),
	)
	records := site.Do("alice", "GET", "dnsresources/1/").Object()["resource_records"]
	g.Expect(records).To(HaveExactElements(And(HaveKeyWithValue("rrtype", "MX"), HaveKeyWithValue("rrdata", "10 mail"))))
	story(t, site,
		ask("admin", "DELETE dnsresources/1/").is(204, ""),
		ask("alice", "GET dnsresourcerecords/").is(200, "[]"),
		ask("admin", "POST dnsresourcerecords/", "fqdn", "z.lab.example", "rrtype", "TXT", "rrdata", "last").with("id=3"),
		ask("admin", "DELETE dnsresourcerecords/3/").is(204, ""),
		ask("alice", "GET dnsresources/?name=z").is(200, "[]"),
	)
}

func TestRefusedNames(t *testing.T) {
	site := simtest.New(t, simtest.Rack)
	story(t, site,
		ask("admin", "POST dnsresources/", "fqdn", "api.lab.example", "ip_addresses", "10.9.0.50").with("id=1"),
		ask("admin", "POST dnsresourcerecords/", "fqdn", "api.lab.example", "rrtype", "CNAME", "rrdata", "other.example").
			is(400, `{"__all__": ["CNAME records for a name cannot coexist with non-CNAME records."]}`),
		ask("admin", "POST dnsresourcerecords/", "fqdn", "www.lab.example", "rrtype", "CNAME", "rrdata", "api.lab.example").with("rrtype=CNAME"),
		ask("admin", "POST dnsresourcerecords/", "fqdn", "x.nowhere", "rrtype", "TXT", "rrdata", "hi").is(404, noDomain),
		ask("admin", "POST dnsresourcerecords/", "rrtype", "TXT", "rrdata", "hi", "ttl", "0").
			is(400, `{"domain": ["This field is required."], "name": ["This field is required."], "ttl": ["Ensure this value is greater than or equal to 1."]}`),
		ask("alice", "GET dnsresourcerecords/?domain=nowhere").is(404, noDomain),
		ask("alice", "GET dnsresourcerecords/9/").is(404, noData),
		ask("alice", "GET dnsresourcerecords/abc/").is(404, noData),
		ask("admin", "DELETE dnsresourcerecords/abc/").is(404, noData),
		ask("alice", "GET dnsresources/9/").is(404, "No DNSResource matches the given query."),
		ask("alice", "GET dnsresources/1/").with("fqdn=api.lab.example"),
		ask("admin", "PUT dnsresources/1/", "address_ttl", "soon", "name", "lost", "ip_addresses", "10.9.0.51").is(400, `{"address_ttl": ["Enter a whole number."]}`),
		ask("alice", "GET dnsresources/1/").with("fqdn=api.lab.example"),
		ask("admin", "GET ipaddresses/").with("ip=10.9.0.50"),
	)
}

// TestTTL verifies that a TTL must be between one second and one week.
func TestTTL(t *testing.T) {
	site := simtest.New(t, simtest.Rack)
	story(t, site, ask("admin", "POST dnsresources/", "fqdn", "a.maas"))
	for given, want := range map[string]string{
		"0": "Ensure this value is greater than or equal to 1.", "-1": "Ensure this value is greater than or equal to 1.", "1": "", "604800": "",
		"604801": "Ensure this value is less than or equal to 604800.", "1.5": "Enter a whole number.", "": "",
	} {
		t.Run("When the TTL is "+given+", it should be accepted only within its limits", func(t *testing.T) {
			for path, field := range map[string]string{"dnsresources/1/": "address_ttl", "domains/1/": "ttl"} {
				if want != "" {
					story(t, site, ask("admin", "PUT "+path, field, given).is(400, `{"`+field+`": ["`+want+`"]}`))
					continue
				}
				shown := given
				if given == "" {
					shown = "<nil>"
				}
				story(t, site, ask("admin", "PUT "+path, field, given).with(field+"="+shown))
			}
		})
	}
}

func TestDomains(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	newMachine := func(mac string) map[string]any {
		return site.Do("admin", "POST", "machines/", "architecture", "amd64", "mac_addresses", mac, "power_type", "manual").Object()
	}
	story(t, site,
		ask("alice", "GET domains/9/").is(404, noDomain),
		ask("alice", "GET domains/nowhere/").is(404, noDomain),
		ask("admin", "PUT domains/9/", "name", "x").is(404, noDomain),
		ask("admin", "POST domains/9/?op=set_default").is(404, noDomain),
		ask("admin", "POST domains/").is(400, `{"name": ["This field is required."]}`),
		ask("admin", "PUT domains/1/", "name", "").is(400, `{"name": ["This field is required."]}`),
		ask("admin", "PUT domains/1/", "name", "maas").is(400, `{"name": ["Domain with this Name already exists."]}`),
		ask("admin", "PUT domains/1/", "name", "lab.example", "ttl", "30").with("ttl=30"),
		ask("admin", "PUT domains/1/", "authoritative", "false").with("ttl=30", "authoritative=false", "name=lab.example"),
		ask("alice", "POST domains/1/?op=set_default").is(403, ""),
		ask("alice", "DELETE domains/1/").is(403, ""),
		ask("alice", "POST domains/?op=set_serial", "serial", "5").is(403, adminOnly),
		ask("admin", "POST domains/?op=set_serial", "serial", "5"),
	)
	g.Expect(newMachine("52:54:00:00:07:01")["domain"]).To(HaveKeyWithValue("name", "maas"))
	story(t, site,
		ask("admin", "POST domains/lab.example/?op=set_default").with("is_default=true"),
		ask("alice", "GET domains/").with("is_default=false true"),
		ask("admin", "DELETE domains/1/").is(400, "This domain is the default domain, it cannot be deleted."),
		ask("admin", "DELETE domains/0/").is(500, `("Cannot delete some instances of model 'Domain' because they are referenced through protected `+
			`foreign keys: 'Node.domain'.", {<Machine: aaaaa1 (one.maas)>})`),
	)
	g.Expect(newMachine("52:54:00:00:07:02")["domain"]).To(HaveKeyWithValue("name", "lab.example"))
}

// withRack is Rack with a rack controller that has addresses, and with a DNS name for one of them.
var withRack = simtest.Rack[:len(simtest.Rack)-1] + `, "rackcontrollers": [{"system_id": "rrrrr1", "hostname": "rack", "ip_addresses": ["10.9.0.3", "fd00::3"],
  "interface_set": [{"id": 90, "name": "eth0"}]}, {"system_id": "rrrrr2", "hostname": "silent"}], "devices": [{"system_id": "ddddd1", "hostname": "printer"}],
 "ipaddresses": [{"ip": "10.9.0.3", "alloc_type": 1, "subnet": {"id": 1}, "interface_set": [{"system_id": "rrrrr1", "name": "eth0"}]},
  {"ip": "10.8.0.3", "alloc_type": 4, "subnet": {"id": 2}, "owner": {"username": "bob"}},
  {"ip": "10.8.0.4", "alloc_type": 1, "subnet": {"id": 2}, "interface_set": [{"system_id": "zzzzz1", "name": "eth7"}]}]}`

// TestNamesOfNodes verifies the implicit DNS names of nodes with addresses.
func TestNamesOfNodes(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, withRack)
	story(t, site,
		ask("alice", "POST machines/aaaaa1/?op=deploy"),
		ask("alice", "GET dnsresources/").is(200, "[]"),
		ask("alice", "GET dnsresources/?all=true").with("fqdn=one.maas rack.maas", "id=-1 -1"),
		ask("alice", "GET dnsresources/?all=true&name=rack").with("fqdn=rack.maas"),
		ask("alice", "GET dnsresources/?all=true&fqdn=rack.maas&domain=maas").with("fqdn=rack.maas"),
		ask("alice", "GET dnsresources/?all=true&domain=lab.example").is(200, "[]"),
	)
	rack := site.Do("alice", "GET", "dnsresources/?all=1&name=rack").List()[0]
	g.Expect(rack["resource_records"]).To(HaveExactElements(
		And(HaveKeyWithValue("rrtype", "A"), HaveKeyWithValue("rrdata", "10.9.0.3"), HaveKeyWithValue("node_type", 2.0), HaveKeyWithValue("system_id", "rrrrr1")),
		And(HaveKeyWithValue("rrtype", "AAAA"), HaveKeyWithValue("rrdata", "fd00::3"))))
}

func TestControllers(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, withRack)
	story(t, site,
		ask("alice", "GET rackcontrollers/").with("hostname=rack silent", "fqdn=rack.maas silent.maas"),
		ask("alice", "GET rackcontrollers/rrrrr1/").with("hostname=rack", "node_type_name=Rack controller", "version=3.4.10"),
		ask("alice", "GET regioncontrollers/rrrrr1/").is(404, "No RegionController matches the given query."),
		ask("alice", "GET devices/").with("hostname=printer"),
		ask("alice", "GET devices/ddddd1/").with("node_type_name=Device"),
		ask("alice", "GET devices/rrrrr1/").is(404, "No Device matches the given query."),
		ask("alice", "GET nodes/rrrrr1/").with("hostname=rack"),
		ask("alice", "GET nodes/aaaaa1/").with("hostname=one", "node_type_name=Machine"),
		ask("alice", "GET machines/rrrrr1/").is(404, "No Machine matches the given query."),
		ask("alice", "GET nodes/").with("hostname=one two three four five printer rack silent region"),
		ask("alice", "GET nodes/?colour=red").is(400, `{"colour": ["No such constraint."]}`),
		ask("alice", "GET subnets/1/?op=ip_addresses").with("ip=10.9.0.3", "alloc_type=1"),
		ask("alice", "GET subnets/1/?op=ip_addresses&with_summary=false").with("node_summary=<nil>", "user="),
		ask("alice", "GET subnets/2/?op=ip_addresses&with_username=false").with("ip=10.8.0.3 10.8.0.4", "user=<nil> <nil>"),
	)
	unlisted := site.Do("alice", "GET", "subnets/2/?op=ip_addresses").List()
	g.Expect(unlisted[0]).NotTo(HaveKey("node_summary"), "no node holds what a user reserved")
	g.Expect(unlisted[1]["node_summary"]).To(And(HaveKeyWithValue("system_id", "zzzzz1"), HaveKeyWithValue("node_type", 2.0), HaveKeyWithValue("hostname", ""),
		HaveKeyWithValue("via", "eth7")))
	held := site.Do("alice", "GET", "subnets/1/?op=ip_addresses").List()[0]
	g.Expect(held["node_summary"]).To(And(HaveKeyWithValue("hostname", "rack"), HaveKeyWithValue("fqdn", "rack.maas"), HaveKeyWithValue("node_type", 2.0),
		HaveKeyWithValue("via", "eth0"), HaveKeyWithValue("system_id", "rrrrr1")))
	story(t, site, ask("alice", "POST machines/aaaaa1/?op=deploy"))
	site.Settle(time.Hour)
	one := site.Do("alice", "GET", "subnets/1/?op=ip_addresses").List()[1]
	g.Expect(one).To(And(HaveKeyWithValue("ip", "10.9.0.251"), HaveKeyWithValue("alloc_type", 0.0), HaveKeyWithValue("user", "alice")))
	g.Expect(one["node_summary"]).To(And(HaveKeyWithValue("hostname", "one"), HaveKeyWithValue("node_type", 0.0), HaveKeyWithValue("fqdn", "one.maas")))
}
