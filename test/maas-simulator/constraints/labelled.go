// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
)

// storageRule is the constraint of one disk.
type storageRule struct {
	label string
	bytes int64
	tags  []string
}

var storagePattern = regexp.MustCompile(`^(?:([a-zA-Z0-9]+):)?([0-9.]+)(?:\(([^)]+)\))?$`)

// splitOutside splits at commas outside of parentheses.
func splitOutside(s string) []string {
	var out []string
	depth, start := 0, 0
	for i, r := range s {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, s[start:i])
				start = i + 1
			}
		}
	}
	return append(out, s[start:])
}

func storage(c *context, values []string) (string, func(*inventory.Machine) bool) {
	text := values[len(values)-1]
	rules, ok := ParseStorage(text)
	if !ok {
		return c.refuse("Malformed storage constraint, \"%s\".", text)
	}
	for _, r := range rules {
		c.set.storage = append(c.set.storage, storageRule{r.Label, r.Bytes, r.Tags})
	}
	wanted := c.set.storage
	return text, func(m *inventory.Machine) bool { return pickDisks(m, wanted) != nil }
}

// Disk is an entry of a storage constraint.
type Disk struct {
	// Label is the label; empty if there is none.
	Label string
	// Bytes is the size in bytes, converted from decimal gigabytes.
	Bytes int64
	Tags  []string
}

// ParseStorage parses "[label:]GB[(tag,tag)]" entries. It returns false if the syntax is invalid.
func ParseStorage(text string) ([]Disk, bool) {
	var out []Disk
	for _, part := range splitOutside(text) {
		found := storagePattern.FindStringSubmatch(part)
		if found == nil {
			return nil, false
		}
		gigabytes, err := strconv.ParseFloat(found[2], 64)
		if err != nil {
			return nil, false
		}
		d := Disk{Label: found[1], Bytes: int64(gigabytes * 1e9)}
		if found[3] != "" {
			d.Tags = words([]string{found[3]})
		}
		out = append(out, d)
	}
	return out, true
}

// pickDisks assigns a different disk to each constraint. The first constraint gets the boot disk, each other one the
// smallest disk that fits. It returns nil if that is impossible.
func pickDisks(m *inventory.Machine, wanted []storageRule) []int {
	free := slices.Clone(m.Disks)
	picked := make([]int, 0, len(wanted))
	for i, want := range wanted {
		candidates := free
		if i == 0 {
			candidates = free[:min(1, len(free))]
		}
		best := -1
		for j, d := range candidates {
			if want.fits(&d) && (best < 0 || d.Size < candidates[best].Size) {
				best = j
			}
		}
		if best < 0 {
			return nil
		}
		picked = append(picked, free[best].ID)
		free = slices.Delete(free, best, best+1)
	}
	return picked
}

func (r storageRule) fits(d *inventory.Disk) bool {
	if d.Size < r.bytes {
		return false
	}
	return !slices.ContainsFunc(r.tags, func(tag string) bool { return !slices.Contains(d.Tags, tag) })
}

// interfaceRule is the constraint of one interface.
type interfaceRule struct {
	label string
	fits  func(*inventory.Interface) bool
}

func interfaces(c *context, values []string) (string, func(*inventory.Machine) bool) {
	text := values[len(values)-1]
	if message := CheckInterfaces(text); message != "" {
		return c.refuse("%s", message)
	}
	for _, l := range labels(text) {
		fits := l.fits(c)
		if fits == nil {
			return "", nil
		}
		c.set.interfaces = append(c.set.interfaces, interfaceRule{l.label, fits})
	}
	wanted := c.set.interfaces
	return text, func(m *inventory.Machine) bool {
		return !slices.ContainsFunc(wanted, func(r interfaceRule) bool { return len(r.matches(m)) == 0 })
	}
}

// interfaceKey parses a known key of an interface constraint; nil if the value is rejected.
func interfaceKey(c *context, key, value string) func(*inventory.Interface) bool {
	if positive, negated := strings.CutPrefix(key, "not_"); negated {
		fits := interfaceKey(c, positive, value)
		if fits == nil {
			return nil
		}
		return func(nic *inventory.Interface) bool { return !fits(nic) }
	}
	if of, known := interfaceSpecs[key]; known {
		match := of(c, value)
		switch {
		case match != nil:
			return touches(c, match)
		case c.err != nil:
			return nil
		}
		return touches(c, nothing)
	}
	of := interfaceProperties[key]
	return func(nic *inventory.Interface) bool { return of(nic, value) }
}

// interfaceSpecs are the keys that name networks. An unknown space is an error. Any other unknown network matches no
// machine.
var interfaceSpecs = map[string]matcher{
	"subnet": subnetSpec, "subnet_cidr": subnetSpec,
	"space": func(c *context, v string) func(*inventory.VLAN, *inventory.Subnet) bool {
		return within(c, "Space", spaceSpec, v)
	},
	"fabric": fabricSpec, "fabric_class": fabricClassSpec,
	"vlan": vlanSpec, "vid": func(c *context, v string) func(*inventory.VLAN, *inventory.Subnet) bool { return vlanSpec(c, "vid:"+v) },
}

var interfaceProperties = map[string]func(*inventory.Interface, string) bool{
	"id":   func(nic *inventory.Interface, v string) bool { return strconv.Itoa(nic.ID) == v },
	"name": func(nic *inventory.Interface, v string) bool { return nic.Name == v },
	"type": func(nic *inventory.Interface, v string) bool { return nic.Type == v },
	"tag":  func(nic *inventory.Interface, v string) bool { return slices.Contains(nic.Tags, v) },
	"mode": func(nic *inventory.Interface, v string) bool {
		return slices.ContainsFunc(nic.Links, func(l inventory.Link) bool { return strings.EqualFold(l.Mode, v) })
	},
	"ip": func(nic *inventory.Interface, v string) bool {
		return slices.ContainsFunc(nic.Links, func(l inventory.Link) bool { return l.IP == v })
	},
}

func (r interfaceRule) matches(m *inventory.Machine) []int {
	var ids []int
	for i := range m.Interfaces {
		if r.fits(&m.Interfaces[i]) {
			ids = append(ids, m.Interfaces[i].ID)
		}
	}
	return ids
}

// Matched maps the labels of storage and interface constraints to the IDs of the devices that satisfy them.
func (s *Set) Matched(m *inventory.Machine, verbose bool) map[string]any {
	disks, nics := map[string][]int{}, map[string][]int{}
	picked := pickDisks(m, s.storage)
	for i, r := range s.storage {
		if r.label != "" && picked != nil {
			disks[r.label] = append(disks[r.label], picked[i])
		}
	}
	for _, r := range s.interfaces {
		nics[r.label] = r.matches(m)
		sort.Ints(nics[r.label])
	}
	out := map[string]any{}
	if len(disks) > 0 {
		out["storage"] = disks
	}
	if len(nics) > 0 {
		out["interfaces"] = nics
	}
	if verbose {
		out["verbose_storage"] = map[string]any{m.SystemID: disks}
		out["verbose_interfaces"] = map[string]any{m.SystemID: nics}
		if len(disks) == 0 {
			out["verbose_storage"] = map[string]any{}
		}
		if len(nics) == 0 {
			out["verbose_interfaces"] = map[string]any{}
		}
	}
	return out
}
