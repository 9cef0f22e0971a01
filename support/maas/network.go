// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// ListDomains returns the DNS domains.
func (c *Client) ListDomains(ctx context.Context) ([]Domain, error) {
	return fetch[[]Domain](ctx, c, read("domains.list", "list domains", "domains/"))
}

// ListDNSResources returns the DNS resources with the given name; an empty name returns all.
func (c *Client) ListDNSResources(ctx context.Context, fqdn string) ([]DNSResource, error) {
	request := read("dnsresources.list", "list DNS resources", "dnsresources/")
	request.params = params{}.add("fqdn", fqdn).values()
	return fetch[[]DNSResource](ctx, c, request)
}

// CreateDNSResource creates a DNS resource with addresses; ttl is in seconds. It requires an administrator.
func (c *Client) CreateDNSResource(ctx context.Context, fqdn string, ttl int, ips []string) (DNSResource, error) {
	return fetch[DNSResource](ctx, c, call{name: "dnsresources.create", what: "create DNS resource " + fqdn, method: http.MethodPost, path: "dnsresources/",
		params: params{}.add("fqdn", fqdn).number("address_ttl", ttl).set("ip_addresses", strings.Join(ips, " ")).values()})
}

// SetDNSResourceIPs replaces the addresses of a DNS resource. It requires an administrator.
func (c *Client) SetDNSResourceIPs(ctx context.Context, id int, ips []string) (DNSResource, error) {
	return fetch[DNSResource](ctx, c, call{name: "dnsresources.update", what: "update DNS resource " + strconv.Itoa(id), method: http.MethodPut, path: dnsPath(id),
		params: params{}.set("ip_addresses", strings.Join(ips, " ")).values()})
}

// DeleteDNSResource deletes a DNS resource. It requires an administrator.
func (c *Client) DeleteDNSResource(ctx context.Context, id int) error {
	return c.do(ctx, call{name: "dnsresources.delete", what: "delete DNS resource " + strconv.Itoa(id), method: http.MethodDelete, path: dnsPath(id)}, nil)
}

func dnsPath(id int) string { return "dnsresources/" + strconv.Itoa(id) + "/" }

// ListSubnets returns the subnets.
func (c *Client) ListSubnets(ctx context.Context) ([]Subnet, error) {
	return fetch[[]Subnet](ctx, c, read("subnets.list", "list subnets", "subnets/"))
}

// GetSubnet returns a subnet by id, CIDR, or a specifier such as "name:mgmt".
func (c *Client) GetSubnet(ctx context.Context, specifier string) (Subnet, error) {
	return fetch[Subnet](ctx, c, read("subnets.get", "read subnet "+specifier, "subnets/"+url.PathEscape(specifier)+"/"))
}

// ListUnreservedIPRanges returns the free ranges of a subnet.
func (c *Client) ListUnreservedIPRanges(ctx context.Context, subnetID int) ([]IPRange, error) {
	request := read("subnets.unreserved_ip_ranges", "read the free addresses of subnet "+strconv.Itoa(subnetID), "subnets/"+strconv.Itoa(subnetID)+"/")
	request.op = "unreserved_ip_ranges"
	return fetch[[]IPRange](ctx, c, request)
}

// ListAddressRanges returns the ranges that administrators set aside in subnets: dynamic ranges for DHCP, and reserved
// ranges, from which MAAS does not assign addresses automatically.
func (c *Client) ListAddressRanges(ctx context.Context) ([]AddressRange, error) {
	return fetch[[]AddressRange](ctx, c, read("ipranges.list", "list IP ranges", "ipranges/"))
}

// ListHeldAddresses returns the used addresses of a subnet with their users.
func (c *Client) ListHeldAddresses(ctx context.Context, subnetID int) ([]HeldAddress, error) {
	request := read("subnets.ip_addresses", "read the held addresses of subnet "+strconv.Itoa(subnetID), "subnets/"+strconv.Itoa(subnetID)+"/")
	request.op = "ip_addresses"
	return fetch[[]HeldAddress](ctx, c, request)
}

// ListIPAddresses returns the addresses that the user reserved.
func (c *Client) ListIPAddresses(ctx context.Context) ([]IPAddress, error) {
	return fetch[[]IPAddress](ctx, c, read("ipaddresses.list", "list IP addresses", "ipaddresses/"))
}

// ReserveIPAddress reserves an address of the subnet (a CIDR); if ip is empty, MAAS chooses one.
func (c *Client) ReserveIPAddress(ctx context.Context, subnet, ip, hostname string) (IPAddress, error) {
	return fetch[IPAddress](ctx, c, call{name: "ipaddresses.reserve", what: "reserve IP address " + ip + " in " + subnet, method: http.MethodPost,
		path: "ipaddresses/", op: "reserve", params: params{}.add("subnet", subnet).add("ip", ip).add("hostname", hostname).values()})
}

// ReleaseIPAddress releases a reserved address.
func (c *Client) ReleaseIPAddress(ctx context.Context, ip string) error {
	return c.do(ctx, call{name: "ipaddresses.release", what: "release IP address " + ip, method: http.MethodPost,
		path: "ipaddresses/", op: "release", params: params{}.add("ip", ip).values()}, nil)
}

// ListInterfaces returns the interfaces of a machine.
func (c *Client) ListInterfaces(ctx context.Context, systemID string) ([]Interface, error) {
	request := read("interfaces.list", "list interfaces of machine "+systemID, interfacesPath(systemID))
	request.systemID = systemID
	return fetch[[]Interface](ctx, c, request)
}

// CreateBridge creates a bridge over an interface. MAAS deletes it at the end of the allocation. It requires an
// administrator.
func (c *Client) CreateBridge(ctx context.Context, systemID, name string, parentID int) (Interface, error) {
	return fetch[Interface](ctx, c, call{name: "interfaces.create_bridge", what: "create bridge " + name + " on machine " + systemID, systemID: systemID, method: http.MethodPost,
		path: interfacesPath(systemID), op: "create_bridge", params: params{}.add("name", name).set("parent", strconv.Itoa(parentID)).values()})
}

// LinkRequest configures a link between an interface and a subnet.
type LinkRequest struct {
	// Mode is AUTO, DHCP, STATIC or LINK_UP.
	Mode string
	// Subnet is an ID or a CIDR.
	Subnet string
	// IPAddress is for STATIC; if it is empty, MAAS chooses one.
	IPAddress      string
	DefaultGateway bool
}

// LinkSubnet links an interface to a subnet. It requires an administrator.
func (c *Client) LinkSubnet(ctx context.Context, systemID string, interfaceID int, request LinkRequest) (Interface, error) {
	p := params{}.add("mode", request.Mode).add("subnet", request.Subnet).add("ip_address", request.IPAddress)
	p.flag("default_gateway", request.DefaultGateway)
	return fetch[Interface](ctx, c, interfaceOp("link_subnet", "link a subnet to", systemID, interfaceID, p))
}

// UnlinkSubnet removes a link of an interface. It requires an administrator.
func (c *Client) UnlinkSubnet(ctx context.Context, systemID string, interfaceID, linkID int) (Interface, error) {
	return fetch[Interface](ctx, c, interfaceOp("unlink_subnet", "unlink a subnet from", systemID, interfaceID, params{}.set("id", strconv.Itoa(linkID))))
}

func interfaceOp(op, verb, systemID string, interfaceID int, p params) call {
	return call{name: "interfaces." + op, what: verb + " an interface of machine " + systemID, systemID: systemID, method: http.MethodPost,
		path: interfacesPath(systemID) + strconv.Itoa(interfaceID) + "/", op: op, params: p.values()}
}

func interfacesPath(systemID string) string {
	return "nodes/" + url.PathEscape(systemID) + "/interfaces/"
}
