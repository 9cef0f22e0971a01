// SPDX-License-Identifier: Apache-2.0

package inventory

import "net/netip"

func (l *loader) spaces() {
	for _, d := range l.seed.docs("spaces") {
		id := l.id("spaces", d)
		if id < 0 {
			continue // VLANs without a space are listed in this space.
		}
		l.db.Spaces.Put(&Space{ID: id, Name: d.str("name"), Description: d.str("description")})
	}
}

func (l *loader) space(name string) *int {
	if name == "" || name == "undefined" {
		return nil
	}
	space := l.db.Spaces.Find(func(s *Space) bool { return s.Name == name })
	if space == nil {
		space = &Space{ID: l.db.Next("spaces"), Name: name}
		l.db.Spaces.Put(space)
	}
	return &space.ID
}

func (l *loader) fabrics() {
	for _, d := range l.seed.docs("fabrics") {
		l.db.Fabrics.Put(&Fabric{ID: l.id("fabrics", d), Name: d.str("name"), ClassType: d.strPtr("class_type")})
		for _, v := range d.docs("vlans") {
			l.vlan(v)
		}
	}
	for _, v := range l.seed.docs("vlans") {
		l.vlan(v)
	}
	if len(l.db.Fabrics.All()) == 0 {
		l.db.Fabrics.Put(&Fabric{ID: 0, Name: "fabric-0"})
		l.db.Reserve("fabrics", 0)
	}
}

// vlan stores a VLAN if it is not stored yet, and returns its ID.
func (l *loader) vlan(d Doc) int {
	id := l.id("vlans", d)
	if l.db.VLANs.Get(id) != nil {
		return id
	}
	v := &VLAN{
		ID: id, VID: d.integer("vid", 0), FabricID: d.integer("fabric_id", 0), SpaceID: l.space(d.str("space")),
		Name: d.str("name"), MTU: d.integer("mtu", 1500), DHCPOn: d.boolean("dhcp_on", true),
	}
	if v.Name == "" {
		v.Name = "untagged"
	}
	d.drop("resource_uri", "fabric")
	v.Extra = d
	l.db.VLANs.Put(v)
	if l.db.Fabrics.Get(v.FabricID) == nil {
		l.db.Fabrics.Put(&Fabric{ID: v.FabricID, Name: "fabric-0"})
		l.db.Reserve("fabrics", v.FabricID)
	}
	return id
}

func (l *loader) subnets() {
	for _, d := range l.seed.docs("subnets") {
		l.subnet(d)
	}
}

func (l *loader) subnet(d Doc) int {
	id := l.id("subnets", d)
	if l.db.Subnets.Get(id) != nil {
		return id
	}
	s := &Subnet{
		ID: id, Name: d.str("name"), Description: d.str("description"), CIDR: d.str("cidr"), Gateway: d.str("gateway_ip"),
		DNSServers: d.strs("dns_servers"), Managed: d.boolean("managed", true),
	}
	if _, err := netip.ParsePrefix(s.CIDR); err != nil {
		l.fail("the cidr of subnet %d: %w", id, err)
		return id
	}
	if s.Name == "" {
		s.Name = s.CIDR
	}
	if vlan := d.object("vlan"); vlan != nil {
		s.VLANID = l.vlan(vlan)
	} else if vlans := l.db.VLANs.All(); len(vlans) > 0 {
		s.VLANID = vlans[0].ID
	} else {
		s.VLANID = l.vlan(Doc{})
	}
	d.drop("resource_uri", "space")
	s.Extra = d
	l.db.Subnets.Put(s)
	return id
}

func (l *loader) ranges() {
	for _, d := range l.seed.docs("ipranges") {
		r := &Range{
			ID: l.id("ranges", d), Type: d.str("type"), Start: d.str("start_ip"), End: d.str("end_ip"), Comment: d.str("comment"),
			SubnetID: d.integer("subnet", 1),
		}
		if user := d.object("user"); user != nil {
			r.User = user.str("username")
		}
		l.db.Ranges.Put(r)
	}
}

// addresses stores the addresses that belong to no link of a machine.
func (l *loader) addresses() {
	held := map[string]bool{}
	for _, v := range l.peek("machines") {
		for _, nic := range asDocs(v["interface_set"]) {
			for _, link := range asDocs(nic["links"]) {
				if ip, ok := link["ip_address"].(string); ok {
					held[ip] = true
				}
			}
		}
	}
	for _, d := range l.seed.docs("ipaddresses") {
		ip := d.str("ip")
		if held[ip] || ip == "" {
			continue
		}
		a := &Address{
			ID: l.db.Next("addresses"), IP: ip, Type: d.integer("alloc_type", 4), Created: d.moment("created"),
			SubnetID: d.intPtr("subnet"), Interfaces: d.list("interface_set"),
		}
		a.Updated = a.Created
		if owner := d.object("owner"); owner != nil {
			a.Owner = owner.str("username")
		}
		l.db.Addresses.Put(a)
	}
}

// peek returns a list without removing it from the seed.
func (l *loader) peek(key string) []Doc { return asDocs(l.seed[key]) }

func asDocs(v any) []Doc {
	list, _ := v.([]any)
	var out []Doc
	for _, e := range list {
		if o, ok := e.(map[string]any); ok {
			out = append(out, Doc(o))
		}
	}
	return out
}
