// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// TestLinksInEveryStatus verifies that a network can change only if the machine is neither being installed nor in use.
func TestLinksInEveryStatus(t *testing.T) {
	for _, s := range status.All() {
		t.Run("When a machine is "+s.String()+", links should be changed or rejected as by MAAS", func(t *testing.T) {
			g := NewWithT(t)
			site := in(t, s)
			nic := site.Has("aaaaa2").Interfaces[0]
			path := fmt.Sprintf("POST nodes/aaaaa2/interfaces/%d/?op=", nic.ID)
			link := ask("admin", path+"link_subnet", "mode", "STATIC", "subnet", "1", "ip_address", "10.9.0.50")
			unlink := ask("admin", path+"unlink_subnet", "id", fmt.Sprint(nic.Links[0].ID))
			if s.In(status.New, status.Ready, status.FailedTesting, status.Allocated, status.Broken) {
				story(t, site, link.with("name=eth0"), unlink.with("name=eth0"))
				g.Expect(site.Has("aaaaa2").IPs()).To(Equal([]string{"10.9.0.50"}))
				return
			}
			story(t, site,
				link.is(409, "Cannot link interface because the machine is not New, Ready, Allocated, or Broken."),
				unlink.is(409, "Cannot unlink interface because the machine is not New, Ready, Allocated, or Broken."))
			g.Expect(site.Has("aaaaa2").Interfaces[0].Links).To(Equal(nic.Links), "a refusal changes nothing")
		})
	}
}

func TestStaticLinks(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	one := site.Has("one").Interfaces[0]
	path, other := fmt.Sprintf("POST nodes/aaaaa1/interfaces/%d/?op=", one.ID), "POST nodes/aaaaa2/interfaces/eth0/?op="
	static := []string{"mode", "STATIC", "subnet", "10.9.0.0/24", "ip_address", "10.9.0.5"}
	story(t, site,
		ask("alice", "POST machines/?op=allocate", "system_id", "aaaaa1"),
		ask("alice", path+"link_subnet", static...).is(403, ""),
		ask("alice", path+"unlink_subnet", "id", fmt.Sprint(one.Links[0].ID)).is(403, ""),
		ask("admin", path+"link_subnet", "mode", "STATIC", "subnet", "1", "ip_address", "10.9.0.210").
			is(400, `{"ip_address": ["IP address is within the dynamic range 10.9.0.200 to 10.9.0.250."]}`),
		ask("admin", path+"link_subnet", "mode", "STATIC", "subnet", "2", "ip_address", "10.8.0.3").
			is(400, `{"subnet": ["Select a valid choice. That choice is not one of the available choices."]}`),
		ask("admin", path+"link_subnet", append(static, "default_gateway", "true")...).with("name=eth0"),
		ask("admin", path+"link_subnet", static...).is(404, "IP address is already in use."),
		ask("admin", other+"link_subnet", static...).is(404, "IP address is already in use."),
		ask("admin", "POST ipaddresses/?op=reserve", "ip", "10.9.0.5").is(404, "The IP address 10.9.0.5 is already in use."),
		ask("admin", path+"unlink_subnet", "id", fmt.Sprint(one.Links[0].ID)).with("name=eth0"),
		ask("alice", "GET machines/aaaaa1/").with("ip_addresses=[10.9.0.5]", "default_gateways.ipv4.gateway_ip=10.9.0.1"),
		ask("alice", "GET subnets/1/?op=ip_addresses").with("ip=10.9.0.5", "alloc_type=1"),
		ask("alice", "POST machines/aaaaa1/?op=deploy", "distro_series", "noble"),
	)
	site.Settle(time.Hour)
	g.Expect(site.Has("one").Status).To(Equal(status.Deployed))
	g.Expect(site.Has("one").IPs()).To(Equal([]string{"10.9.0.5"}), "a deployment adds no address where no link asks for one")
	story(t, site, ask("alice", "POST machines/aaaaa1/?op=release"))
	site.Settle(time.Hour)
	g.Expect(site.Has("one").Status).To(Equal(status.Ready))
	g.Expect(site.Has("one").IPs()).To(Equal([]string{"10.9.0.5"}), "a release clears automatic addresses only")
	link := site.Has("one").Interfaces[0].Links[0]
	story(t, site,
		ask("admin", path+"link_subnet", "mode", "AUTO", "subnet", "1").with("name=eth0"),
		ask("admin", path+"unlink_subnet", "id", fmt.Sprint(link.ID)).with("name=eth0"),
		ask("alice", "GET subnets/1/?op=ip_addresses").is(200, "[]"),
		ask("admin", other+"link_subnet", static...).with("name=eth0"),
	)
}

func TestDefaultGateway(t *testing.T) {
	site := simtest.New(t, simtest.Rack)
	base := "POST nodes/aaaaa3/interfaces/"
	story(t, site,
		ask("admin", base+"eth1/?op=set_default_gateway").is(400, `{"__all__": ["No link of this interface has a gateway."]}`),
		ask("admin", base+"eth0/?op=set_default_gateway", "link_id", "999").
			is(400, `{"link_id": ["Select a valid choice. That choice is not one of the available choices."]}`),
		ask("admin", "GET machines/aaaaa3/").with("default_gateways.ipv4.gateway_ip=10.9.0.1", "default_gateways.ipv4.link_id=<nil>"),
		ask("admin", base+"eth0/?op=set_default_gateway").with("name=eth0"),
		ask("admin", "GET machines/aaaaa3/").with("default_gateways.ipv4.gateway_ip=10.9.0.1",
			fmt.Sprintf("default_gateways.ipv4.link_id=%d", site.Has("three").Interfaces[0].Links[0].ID)),
	)
}
