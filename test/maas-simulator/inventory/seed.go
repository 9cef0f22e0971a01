// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"encoding/json"
	"fmt"
	"time"
)

// aliases maps alternative names of lists to the names in a seed.
var aliases = map[string]string{
	"boot-resources": "boot_resources", "vm-hosts": "vm_hosts", "pods": "vm_hosts", "pools": "resourcepools",
	"resource-pools": "resourcepools", "resource_pools": "resourcepools", "dns-resources": "dnsresources",
}

// loader loads a seed into the tables.
type loader struct {
	db   *DB
	seed Doc
	now  time.Time
	err  error
}

// Load loads a seed into empty tables. A seed is a JSON object that maps the name of each list endpoint to the response
// of MAAS. Lists and fields may be missing. Zones, pools, tags and domains that the seed uses but does not list are
// created.
func (db *DB) Load(seed []byte, now time.Time) error {
	l := &loader{db: db, seed: Doc{}, now: now}
	if len(seed) > 0 {
		if err := json.Unmarshal(seed, &l.seed); err != nil {
			return fmt.Errorf("reading the seed: it must be one JSON object: %w", err)
		}
	}
	for alias, name := range aliases {
		if v, ok := l.seed[alias]; ok {
			l.seed[name] = v
			delete(l.seed, alias)
		}
	}
	return db.Update(func() error {
		for _, load := range []func(){
			l.users, l.zones, l.pools, l.tags, l.domains, l.spaces, l.fabrics, l.subnets, l.ranges, l.addresses,
			l.bootResources, l.vmHosts, l.controllers, l.machines, l.dns, l.settings,
		} {
			load()
		}
		return l.err
	})
}

func (l *loader) fail(format string, args ...any) {
	if l.err == nil {
		l.err = fmt.Errorf("reading the seed: "+format, args...)
	}
}

// id returns the ID in the seed, or the next one if there is none.
func (l *loader) id(kind string, d Doc) int {
	if n, ok := Number(d.take("id")); ok {
		l.db.Reserve(kind, n)
		return n
	}
	return l.db.Next(kind)
}

// reserve reserves the ID of an object that is rendered but not stored.
func (l *loader) reserve(kind string, d Doc) {
	if n, ok := Number(d["id"]); ok {
		l.db.Reserve(kind, n)
	}
}

func (l *loader) users() {
	for _, d := range l.seed.docs("users") {
		l.db.Users.Put(&User{
			Name: d.str("username"), Email: d.str("email"),
			Superuser: d.boolean("is_superuser", false), Local: d.boolean("is_local", true),
		})
	}
}

func (l *loader) zones() {
	l.db.Reserve("zones", 0)
	for _, d := range l.seed.docs("zones") {
		l.db.Zones.Put(&Zone{ID: l.id("zones", d), Name: d.str("name"), Description: d.str("description")})
	}
	if l.db.Zones.Get(1) == nil {
		l.db.Reserve("zones", 1)
		l.db.Zones.Put(&Zone{ID: 1, Name: "default"})
	}
}

func (l *loader) zone(name string) int {
	if name == "" {
		return 1
	}
	if z := l.db.ZoneByName(name); z != nil {
		return z.ID
	}
	z := &Zone{ID: l.db.Next("zones"), Name: name}
	l.db.Zones.Put(z)
	return z.ID
}

func (l *loader) pools() {
	l.db.Reserve("pools", 0)
	for _, d := range l.seed.docs("resourcepools") {
		l.db.Pools.Put(&Pool{ID: l.id("pools", d), Name: d.str("name"), Description: d.str("description")})
	}
	if l.db.Pools.Get(0) == nil {
		l.db.Pools.Put(&Pool{ID: 0, Name: "default", Description: "Default pool"})
	}
}

func (l *loader) pool(name string) int {
	if name == "" {
		return 0
	}
	if p := l.db.PoolByName(name); p != nil {
		return p.ID
	}
	p := &Pool{ID: l.db.Next("pools"), Name: name}
	l.db.Pools.Put(p)
	return p.ID
}

func (l *loader) tags() {
	for _, d := range l.seed.docs("tags") {
		l.db.Tags.Put(&Tag{
			ID: l.db.Next("tags"), Name: d.str("name"), Definition: d.str("definition"),
			Comment: d.str("comment"), KernelOpts: d.str("kernel_opts"),
		})
	}
}

func (l *loader) knownTags(names []string) []string {
	for _, name := range names {
		if l.db.Tags.Get(name) == nil {
			l.db.Tags.Put(&Tag{ID: l.db.Next("tags"), Name: name})
		}
	}
	return names
}

func (l *loader) domains() {
	for _, d := range l.seed.docs("domains") {
		l.db.Domains.Put(&Domain{
			ID: l.id("domains", d), Name: d.str("name"), TTL: d.intPtr("ttl"),
			Authoritative: d.boolean("authoritative", true), Default: d.boolean("is_default", false),
		})
	}
	if l.db.Domains.Find(func(d *Domain) bool { return d.Default }) == nil {
		if first := l.db.Domains.Edit(0); first != nil {
			first.Default = true
		} else {
			l.db.Domains.Put(&Domain{ID: 0, Name: "maas", Authoritative: true, Default: true})
		}
	}
	l.db.Reserve("domains", 0)
}

func (l *loader) domain(name string) int {
	if name == "" {
		return l.db.Domains.Find(func(d *Domain) bool { return d.Default }).ID
	}
	if d := l.db.DomainByName(name); d != nil {
		return d.ID
	}
	d := &Domain{ID: l.db.Next("domains"), Name: name, Authoritative: true}
	l.db.Domains.Put(d)
	return d.ID
}

func (l *loader) bootResources() {
	for _, d := range l.seed.docs("boot_resources") {
		r := &BootResource{
			ID: l.id("bootresources", d), Type: d.str("type"), Name: d.str("name"), Architecture: d.str("architecture"),
			Subarches: d.str("subarches"), Title: d.str("title"), BaseImage: d.str("base_image"), FileType: d.str("filetype"),
			Sets: d.object("sets"),
		}
		if t := d.moment("last_deployed"); !t.IsZero() {
			r.LastDeployed = &t
		}
		d.drop("resource_uri", "last_deployed")
		r.Extra = d
		l.db.BootResources.Put(r)
	}
}

func (l *loader) controllers() {
	for _, kind := range []string{"rackcontrollers", "regioncontrollers", "devices"} {
		for _, d := range l.seed.docs(kind) {
			id, _ := d["system_id"].(string)
			if id == "" {
				l.fail("an entry of %s has no system_id", kind)
				continue
			}
			l.db.Nodes.Put(&Node{SystemID: id, Kind: kind, Doc: d})
			for _, nic := range asDocs(d["interface_set"]) {
				l.reserve("interfaces", nic)
				for _, link := range asDocs(nic["links"]) {
					l.reserve("links", link)
				}
			}
		}
	}
}

func (l *loader) settings() {
	config := l.seed.object("config")
	for name, value := range config {
		l.db.Settings.Put(&Setting{Name: name, Value: value})
	}
}

func (l *loader) dns() {
	for _, d := range l.seed.docs("dnsresources") {
		id := l.id("dnsresources", d)
		if id < 0 {
			continue // The record is implicit: it is derived from the machines.
		}
		fqdn := d.str("fqdn")
		name, domain := l.db.SplitFQDN(fqdn)
		if domain == nil {
			l.fail("the domain of dnsresource %q is not in domains", fqdn)
			return
		}
		r := &DNSResource{ID: id, Name: name, DomainID: domain.ID, TTL: d.intPtr("address_ttl")}
		for _, a := range d.docs("ip_addresses") {
			r.IPs = append(r.IPs, a.str("ip"))
		}
		for _, record := range d.docs("resource_records") {
			l.db.DNSRecords.Put(&DNSRecord{
				ID: l.id("dnsrecords", record), Name: name, DomainID: domain.ID, TTL: record.intPtr("ttl"),
				Type: record.str("rrtype"), RRData: record.str("rrdata"),
			})
		}
		l.db.DNSResources.Put(r)
	}
}

// SplitFQDN splits a name into the host and the longest matching domain.
func (db *DB) SplitFQDN(fqdn string) (string, *Domain) {
	for i := range fqdn {
		if fqdn[i] != '.' {
			continue
		}
		if d := db.DomainByName(fqdn[i+1:]); d != nil {
			return fqdn[:i], d
		}
	}
	return fqdn, db.DomainByName(fqdn)
}
