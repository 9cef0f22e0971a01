// SPDX-License-Identifier: Apache-2.0

package render

import "github.com/openshift/hypershift/test/maas-simulator/inventory"

// VLAN renders a VLAN; nil renders null.
func (p *Printer) VLAN(id *int) any {
	if id == nil {
		return nil
	}
	v := p.DB.VLANs.Get(*id)
	if v == nil {
		return nil
	}
	name := ""
	if f := p.DB.Fabrics.Get(v.FabricID); f != nil {
		name = f.Name
	}
	return under(over(v.Extra, Object{
		"id": v.ID, "vid": v.VID, "name": v.Name, "mtu": v.MTU, "dhcp_on": v.DHCPOn, "fabric": name, "fabric_id": v.FabricID,
		"space": p.DB.SpaceOf(v), "resource_uri": uri("vlans", v.ID),
	}), Object{"external_dhcp": nil, "relay_vlan": nil, "primary_rack": nil, "secondary_rack": nil})
}

// Fabric renders a fabric with its VLANs.
func (p *Printer) Fabric(f *inventory.Fabric) Object {
	return Object{
		"id": f.ID, "name": f.Name, "class_type": pointer(f.ClassType), "resource_uri": uri("fabrics", f.ID),
		"vlans": p.VLANsOf(f.ID),
	}
}

// VLANsOf renders the VLANs of a fabric.
func (p *Printer) VLANsOf(fabric int) []any {
	out := []any{}
	for _, v := range p.DB.VLANs.All() {
		if v.FabricID == fabric {
			out = append(out, p.VLAN(&v.ID))
		}
	}
	return out
}

// Subnet renders a subnet; nil renders null.
func (p *Printer) Subnet(id *int) any {
	if id == nil {
		return nil
	}
	s := p.DB.Subnets.Get(*id)
	if s == nil {
		return nil
	}
	return under(over(s.Extra, Object{
		"id": s.ID, "name": s.Name, "description": s.Description, "cidr": s.CIDR, "gateway_ip": orNull(s.Gateway),
		"dns_servers": list(s.DNSServers), "managed": s.Managed, "vlan": p.VLAN(&s.VLANID),
		"space": p.DB.SpaceOf(p.DB.VLANs.Get(s.VLANID)), "resource_uri": uri("subnets", s.ID),
	}), Object{
		"rdns_mode": 2, "active_discovery": false, "allow_dns": true, "allow_proxy": true, "disabled_boot_architectures": []any{},
	})
}

// undefinedSpace is the ID of the space that contains the VLANs without a space.
const undefinedSpace = -1

// Spaces renders every space, including the space "undefined".
func (p *Printer) Spaces() []any {
	out := []any{}
	for _, s := range p.DB.Spaces.All() {
		out = append(out, p.Space(s))
	}
	return append(out, p.Undefined())
}

// Space renders a space.
func (p *Printer) Space(s *inventory.Space) Object {
	return p.space(s.ID, s.Name, s.Description, uri("spaces", s.ID))
}

// Undefined renders the space "undefined", in which MAAS lists the VLANs that have no space.
func (p *Printer) Undefined() Object {
	return p.space(undefinedSpace, "undefined",
		"Backward compatibility object to ensure objects not associated with a space can be found.", uri("spaces", "undefined"))
}

func (p *Printer) space(id int, name, description, resource string) Object {
	vlans, subnets := []any{}, []any{}
	in := map[int]bool{}
	for _, v := range p.DB.VLANs.All() {
		if v.SpaceID == nil && id == undefinedSpace || v.SpaceID != nil && *v.SpaceID == id {
			in[v.ID] = true
			vlans = append(vlans, p.VLAN(&v.ID))
		}
	}
	for _, s := range p.DB.Subnets.All() {
		if in[s.VLANID] {
			subnets = append(subnets, p.Subnet(&s.ID))
		}
	}
	return Object{"id": id, "name": name, "description": description, "vlans": vlans, "subnets": subnets, "resource_uri": resource}
}

// Range renders a dynamic or reserved range.
func (p *Printer) Range(r *inventory.Range) Object {
	return Object{
		"id": r.ID, "type": r.Type, "start_ip": r.Start, "end_ip": r.End, "subnet": p.Subnet(&r.SubnetID),
		"user": p.userByName(r.User), "comment": r.Comment, "resource_uri": uri("ipranges", r.ID),
	}
}

// allocNames are the names of the allocation types of addresses.
var allocNames = map[int]string{0: "Automatic", 1: "Static", 4: "User reserved", 5: "DHCP", 6: "Observed"}

// Address renders an address.
func (p *Printer) Address(a *inventory.Address) Object {
	return Object{
		"ip": a.IP, "alloc_type": a.Type, "alloc_type_name": allocNames[a.Type], "created": Moment(a.Created), "subnet": p.Subnet(a.SubnetID),
		"owner": p.userByName(a.Owner), "interface_set": list(a.Interfaces), "resource_uri": uri("ipaddresses"),
	}
}

// Held renders the address of a machine's link.
func (p *Printer) Held(h inventory.Holding) Object {
	out := p.Address(&inventory.Address{
		IP: h.Link.IP, Type: AllocType(h.Link.Mode), SubnetID: h.Link.SubnetID, Owner: h.Machine.Owner, Created: h.Link.Since,
	})
	out["interface_set"] = []any{p.Interface(h.Machine, h.Interface)}
	return out
}

// AllocType returns the allocation type of an address whose link has the mode.
func AllocType(mode string) int {
	switch mode {
	case "static":
		return 1
	case "dhcp":
		return 5
	}
	return 0
}

// Domain renders a DNS domain.
func (p *Printer) Domain(d *inventory.Domain) Object {
	count := 0
	for _, r := range p.DB.DNSResources.All() {
		if r.DomainID == d.ID {
			count += max(1, len(r.IPs))
		}
	}
	for _, r := range p.DB.DNSRecords.All() {
		if r.DomainID == d.ID {
			count++
		}
	}
	return Object{
		"id": d.ID, "name": d.Name, "ttl": pointer(d.TTL), "authoritative": d.Authoritative, "is_default": d.Default,
		"resource_record_count": count, "resource_uri": uri("domains", d.ID),
	}
}

// DNSResource renders a name with its addresses and other records.
func (p *Printer) DNSResource(r *inventory.DNSResource) Object {
	addresses, records := []any{}, []any{}
	for _, ip := range r.IPs {
		addresses = append(addresses, p.addressOf(ip))
	}
	for _, record := range p.DB.DNSRecords.All() {
		if record.DomainID == r.DomainID && record.Name == r.Name {
			records = append(records, p.DNSRecord(record))
		}
	}
	return Object{
		"id": r.ID, "fqdn": p.fqdn(r.Name, r.DomainID), "address_ttl": pointer(r.TTL), "ip_addresses": addresses,
		"resource_records": records, "resource_uri": uri("dnsresources", r.ID),
	}
}

func (p *Printer) addressOf(ip string) Object {
	for h := range p.DB.Holdings() {
		if h.Link.IP == ip {
			return p.Held(h)
		}
	}
	a := p.DB.Addresses.Find(func(a *inventory.Address) bool { return a.IP == ip })
	if a == nil {
		a = &inventory.Address{IP: ip, Type: 4}
	}
	return p.Address(a)
}

func (p *Printer) fqdn(name string, domain int) string {
	d := p.DB.Domains.Get(domain)
	if d == nil || name == "" {
		return name
	}
	if name == "@" {
		return d.Name
	}
	return name + "." + d.Name
}

// Implicit renders the DNS resource that a node has without a stored one.
func (p *Printer) Implicit(fqdn, systemID string, nodeType int, ips []string) Object {
	records := []any{}
	for _, ip := range ips {
		kind := "A"
		if isIPv6(ip) {
			kind = "AAAA"
		}
		records = append(records, Object{
			"system_id": systemID, "node_type": nodeType, "user_id": nil, "dnsresource_id": nil, "ttl": nil,
			"rrtype": kind, "rrdata": ip, "dnsdata_id": nil,
		})
	}
	return Object{
		"id": -1, "fqdn": fqdn, "address_ttl": nil, "ip_addresses": nil, "resource_records": records,
		"resource_uri": uri("dnsresources", -1),
	}
}

func isIPv6(ip string) bool {
	for _, c := range ip {
		if c == ':' {
			return true
		}
	}
	return false
}

// DNSRecord renders a record of a type other than an address.
func (p *Printer) DNSRecord(r *inventory.DNSRecord) Object {
	return Object{
		"id": r.ID, "fqdn": p.fqdn(r.Name, r.DomainID), "ttl": pointer(r.TTL), "rrtype": r.Type, "rrdata": r.RRData,
		"resource_uri": uri("dnsresourcerecords", r.ID),
	}
}
