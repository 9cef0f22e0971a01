// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"math/rand/v2"
	"strings"

	"github.com/openshift/hypershift/test/maas-simulator/store"
)

// DB contains the tables of a MAAS server. The methods of the tables, and the methods below, may be called only inside
// View and Update.
type DB struct {
	store.Store
	Machines      *store.Table[string, Machine]
	Zones         *store.Table[int, Zone]
	Pools         *store.Table[int, Pool]
	Tags          *store.Table[string, Tag]
	Domains       *store.Table[int, Domain]
	Spaces        *store.Table[int, Space]
	Fabrics       *store.Table[int, Fabric]
	VLANs         *store.Table[int, VLAN]
	Subnets       *store.Table[int, Subnet]
	Ranges        *store.Table[int, Range]
	Addresses     *store.Table[int, Address]
	DNSResources  *store.Table[int, DNSResource]
	DNSRecords    *store.Table[int, DNSRecord]
	BootResources *store.Table[int, BootResource]
	Users         *store.Table[string, User]
	VMHosts       *store.Table[int, VMHost]
	Events        *store.Table[int, Event]
	Settings      *store.Table[string, Setting]
	Counters      *store.Table[string, Counter]
	Nodes         *store.Table[string, Node]

	random *rand.Rand
}

// NewDB returns empty tables. The same seed generates the same IDs and keys.
func NewDB(seed uint64) *DB {
	db := &DB{random: rand.New(rand.NewPCG(seed, seed))}
	s := &db.Store
	db.Machines = store.NewTable(s, "machines", func(m *Machine) string { return m.SystemID }, (*Machine).Clone,
		func(a, b *Machine) int { return cmp.Compare(a.ID, b.ID) })
	db.Zones = byID(s, "zones", func(z *Zone) int { return z.ID })
	db.Pools = byID(s, "pools", func(p *Pool) int { return p.ID })
	db.Tags = store.NewTable(s, "tags", func(t *Tag) string { return t.Name }, shallow[Tag],
		func(a, b *Tag) int { return cmp.Compare(a.ID, b.ID) })
	db.Domains = byID(s, "domains", func(d *Domain) int { return d.ID })
	db.Spaces = byID(s, "spaces", func(x *Space) int { return x.ID })
	db.Fabrics = byID(s, "fabrics", func(f *Fabric) int { return f.ID })
	db.VLANs = byID(s, "vlans", func(v *VLAN) int { return v.ID })
	db.Subnets = byID(s, "subnets", func(x *Subnet) int { return x.ID })
	db.Ranges = byID(s, "ranges", func(r *Range) int { return r.ID })
	db.Addresses = byID(s, "addresses", func(a *Address) int { return a.ID })
	db.DNSResources = byID(s, "dnsresources", func(d *DNSResource) int { return d.ID })
	db.DNSRecords = byID(s, "dnsrecords", func(d *DNSRecord) int { return d.ID })
	db.BootResources = byID(s, "bootresources", func(b *BootResource) int { return b.ID })
	db.Users = byName(s, "users", func(u *User) string { return u.Name })
	db.VMHosts = store.NewTable(s, "vmhosts", func(v *VMHost) int { return v.ID }, (*VMHost).Clone,
		func(a, b *VMHost) int { return cmp.Compare(a.ID, b.ID) })
	db.Events = byID(s, "events", func(e *Event) int { return e.ID })
	db.Settings = byName(s, "settings", func(x *Setting) string { return x.Name })
	db.Counters = byName(s, "counters", func(c *Counter) string { return c.Name })
	db.Nodes = byName(s, "nodes", func(n *Node) string { return n.SystemID })
	return db
}

func shallow[V any](v *V) *V {
	c := *v
	return &c
}

func byID[V any](s *store.Store, name string, id func(*V) int) *store.Table[int, V] {
	return store.NewTable(s, name, id, shallow[V], func(a, b *V) int { return cmp.Compare(id(a), id(b)) })
}

func byName[V any](s *store.Store, name string, key func(*V) string) *store.Table[string, V] {
	return store.NewTable(s, name, key, shallow[V], func(a, b *V) int { return strings.Compare(key(a), key(b)) })
}

// Next returns the next number of a kind. It never returns a number twice.
func (db *DB) Next(kind string) int {
	counter := db.Counters.Edit(kind)
	if counter == nil {
		counter = &Counter{Name: kind}
		db.Counters.Put(counter)
	}
	counter.Last++
	return counter.Last
}

// Reserve ensures that Next returns only numbers above n.
func (db *DB) Reserve(kind string, n int) {
	counter := db.Counters.Edit(kind)
	if counter == nil {
		counter = &Counter{Name: kind}
		db.Counters.Put(counter)
	}
	counter.Last = max(counter.Last, n)
}

// systemIDAlphabet has no letters and digits that are easily confused.
const systemIDAlphabet = "34678abcdefghkmnpqrstwxy"

// NewSystemID generates a system ID that no node has.
func (db *DB) NewSystemID() string {
	for {
		id := string(systemIDAlphabet[1+db.random.IntN(len(systemIDAlphabet)-1)]) + db.letters(systemIDAlphabet, 5)
		if db.Machines.Get(id) == nil && db.Nodes.Get(id) == nil {
			return id
		}
	}
}

const keyAlphabet = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghjkmnpqrstuvwxyz23456789"

// NewToken generates an OAuth credential.
func (db *DB) NewToken() Token {
	return Token{Consumer: db.letters(keyAlphabet, 18), Key: db.letters(keyAlphabet, 18), Secret: db.letters(keyAlphabet, 32)}
}

var adjectives = []string{"apt", "bold", "calm", "dear", "eager", "fair", "glad", "keen", "loyal", "merry", "noble", "proud", "quick", "sane", "tidy", "wise"}

var animals = []string{"ant", "bear", "crow", "deer", "eel", "finch", "goat", "hare", "ibis", "koala", "lynx", "mole", "newt", "otter", "puma", "seal"}

// NewHostname generates a hostname that no machine has.
func (db *DB) NewHostname() string {
	for {
		name := adjectives[db.random.IntN(len(adjectives))] + "-" + animals[db.random.IntN(len(animals))]
		if db.MachineByName(name) != nil {
			name += "-" + db.letters(systemIDAlphabet, 3)
		}
		if db.MachineByName(name) == nil {
			return name
		}
	}
}

func (db *DB) letters(alphabet string, n int) string {
	out := make([]byte, n)
	for i := range out {
		out[i] = alphabet[db.random.IntN(len(alphabet))]
	}
	return string(out)
}

// NewMAC generates a MAC address in the range of hypervisors.
func (db *DB) NewMAC() string {
	const hex = "0123456789abcdef"
	return "00:16:3e:" + db.letters(hex, 2) + ":" + db.letters(hex, 2) + ":" + db.letters(hex, 2)
}

// MachineByName returns the machine with the hostname; nil if there is none.
func (db *DB) MachineByName(name string) *Machine {
	return db.Machines.Find(func(m *Machine) bool { return m.Hostname == name })
}

// FQDN returns the machine's hostname with its domain.
func (db *DB) FQDN(m *Machine) string {
	if d := db.Domains.Get(m.DomainID); d != nil {
		return m.Hostname + "." + d.Name
	}
	return m.Hostname
}

// ZoneByName returns the zone with the name; nil if there is none.
func (db *DB) ZoneByName(name string) *Zone {
	return db.Zones.Find(func(z *Zone) bool { return z.Name == name })
}

// PoolByName returns the resource pool with the name; nil if there is none.
func (db *DB) PoolByName(name string) *Pool {
	return db.Pools.Find(func(p *Pool) bool { return p.Name == name })
}

// DomainByName returns the domain with the name; nil if there is none.
func (db *DB) DomainByName(name string) *Domain {
	return db.Domains.Find(func(d *Domain) bool { return d.Name == name })
}

// SpaceOf returns the name of a VLAN's space; "undefined" if it has none.
func (db *DB) SpaceOf(v *VLAN) string {
	if v != nil && v.SpaceID != nil {
		if space := db.Spaces.Get(*v.SpaceID); space != nil {
			return space.Name
		}
	}
	return "undefined"
}

// Setting returns a configuration value; nil if it was never set.
func (db *DB) Setting(name string) any {
	if s := db.Settings.Get(name); s != nil {
		return s.Value
	}
	return nil
}

// Restarted changes the random generator, so that this process generates other values than earlier processes with the
// same seed. It must run inside Update.
func (db *DB) Restarted() {
	for range db.Next("starts") - 1 {
		db.random = rand.New(rand.NewPCG(db.random.Uint64(), db.random.Uint64()))
	}
}
