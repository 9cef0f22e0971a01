// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"math"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// shared contains the parameters that allocate and lists have in common.
var shared = map[string]parser{
	"system_id":  systemID,
	"cpu_count":  atLeast("Invalid CPU count: number required.", func(m *inventory.Machine) float64 { return float64(m.CPUCount) }),
	"cpu_speed":  atLeast("Invalid CPU speed: number required.", func(m *inventory.Machine) float64 { return float64(m.CPUSpeed) }),
	"mem":        atLeast("Invalid memory: number of MiB required.", func(m *inventory.Machine) float64 { return float64(m.Memory) }),
	"link_speed": atLeast("Invalid link speed: number required.", linkSpeed),
	"arch":       architecture, "not_arch": not(architecture),
	"tags": allTags, "not_tags": noTags,
	"zone": zones, "not_in_zone": not(zones),
	"pool": pools, "not_in_pool": not(pools),
	"pod": pods, "not_pod": not(pods),
	"pod_type": podTypes, "not_pod_type": not(podTypes),
	"fabrics": fabrics, "not_fabrics": not(fabrics),
	"fabric_classes": fabricClasses, "not_fabric_classes": not(fabricClasses),
	"vlans": vlans, "not_vlans": not(vlans),
	"subnets": subnets, "not_subnets": not(subnets),
	"storage": storage, "interfaces": interfaces, "devices": devices,
	"owner": owners, "not_owner": not(owners),
	"power_state": powerStates, "not_power_state": not(powerStates),
	"deployment_target": targets, "not_deployment_target": not(targets),
}

var acquireParsers = with(shared, map[string]parser{"name": name})

var filterParsers = with(shared, map[string]parser{
	"id": systemIDs, "not_id": not(systemIDs), "not_system_id": not(systemIDs),
	"hostname": hostnames, "not_hostname": not(hostnames),
	"mac_address": macs,
	"domain":      domains, "not_domain": not(domains),
	"agent_name": agents, "not_agent_name": not(agents),
	"status": statuses, "not_status": not(statuses),
	"simple_status": simpleStatuses, "not_simple_status": not(simpleStatuses),
})

func with(base, more map[string]parser) map[string]parser {
	all := map[string]parser{}
	for k, v := range base {
		all[k] = v
	}
	for k, v := range more {
		all[k] = v
	}
	return all
}

// not negates a parser's rule.
func not(p parser) parser {
	return func(c *context, values []string) (string, func(*inventory.Machine) bool) {
		resolved, fits := p(c, values)
		if fits == nil {
			return resolved, nil
		}
		return resolved, func(m *inventory.Machine) bool { return !fits(m) }
	}
}

// oneOf returns a parser whose rule matches machines that have one of the values as the property.
func oneOf(property func(*context, *inventory.Machine) string) parser {
	return func(c *context, values []string) (string, func(*inventory.Machine) bool) {
		db := *c
		return strings.Join(values, ","), func(m *inventory.Machine) bool { return slices.Contains(values, property(&db, m)) }
	}
}

var (
	systemIDs = oneOf(func(_ *context, m *inventory.Machine) string { return m.SystemID })
	hostnames = oneOf(func(_ *context, m *inventory.Machine) string { return m.Hostname })
	agents    = oneOf(func(_ *context, m *inventory.Machine) string { return m.AgentName })
	domains   = oneOf(func(c *context, m *inventory.Machine) string {
		if d := c.db.Domains.Get(m.DomainID); d != nil {
			return d.Name
		}
		return ""
	})
	podTypes = oneOf(func(c *context, m *inventory.Machine) string {
		if h := podOf(c, m); h != nil {
			return h.Type
		}
		return ""
	})
)

func podOf(c *context, m *inventory.Machine) *inventory.VMHost {
	if m.PodID == nil {
		return nil
	}
	return c.db.VMHosts.Get(*m.PodID)
}

func pods(c *context, values []string) (string, func(*inventory.Machine) bool) {
	return oneOf(func(c *context, m *inventory.Machine) string {
		if h := podOf(c, m); h != nil {
			return h.Name
		}
		return ""
	})(c, values)
}

func systemID(c *context, values []string) (string, func(*inventory.Machine) bool) {
	c.set.SystemID = values[len(values)-1]
	return systemIDs(c, values)
}

// name matches a hostname or a fully qualified name.
func name(c *context, values []string) (string, func(*inventory.Machine) bool) {
	want, db := values[len(values)-1], c.db
	return want, func(m *inventory.Machine) bool { return m.Hostname == want || db.FQDN(m) == want }
}

func atLeast(refusal string, property func(*inventory.Machine) float64) parser {
	return func(c *context, values []string) (string, func(*inventory.Machine) bool) {
		want, err := strconv.ParseFloat(strings.TrimSpace(values[len(values)-1]), 64)
		if err != nil || math.IsNaN(want) {
			return c.refuse("%s", refusal)
		}
		return decimal(want), func(m *inventory.Machine) bool { return property(m) >= want }
	}
}

// decimal formats a number like a Python float.
func decimal(f float64) string {
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

func linkSpeed(m *inventory.Machine) float64 {
	fastest := 0
	for _, nic := range m.Interfaces {
		if speed, ok := inventory.Number(nic.Extra["link_speed"]); ok {
			fastest = max(fastest, speed)
		} else {
			fastest = max(fastest, 1000)
		}
	}
	return float64(fastest)
}

// architecture rejects an architecture without a boot image.
func architecture(c *context, values []string) (string, func(*inventory.Machine) bool) {
	want := values[len(values)-1]
	known := false
	for _, image := range c.db.BootResources.All() {
		arch, _, _ := strings.Cut(image.Architecture, "/")
		known = known || want == arch || want == arch+"/generic" || want == image.Architecture
	}
	if !known {
		return c.refuse("Architecture not recognised.")
	}
	return want, func(m *inventory.Machine) bool {
		return m.Architecture == want || strings.HasPrefix(m.Architecture, want+"/")
	}
}

// words splits lists at spaces and commas.
func words(values []string) []string {
	var out []string
	for _, v := range values {
		out = append(out, strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ' ' })...)
	}
	return out
}

func tagNames(c *context, values []string) ([]string, bool) {
	names := words(values)
	var unknown []string
	for _, n := range names {
		if c.db.Tags.Get(n) == nil {
			unknown = append(unknown, "'"+n+"'")
		}
	}
	if unknown != nil {
		slices.Sort(unknown)
		c.refuse("No such tag(s): %s.", strings.Join(slices.Compact(unknown), ", "))
		return nil, false
	}
	return names, true
}

func allTags(c *context, values []string) (string, func(*inventory.Machine) bool) {
	names, ok := tagNames(c, values)
	if !ok {
		return "", nil
	}
	return strings.Join(names, ","), func(m *inventory.Machine) bool { return m.HasTags(names...) }
}

func noTags(c *context, values []string) (string, func(*inventory.Machine) bool) {
	names, ok := tagNames(c, values)
	if !ok {
		return "", nil
	}
	return strings.Join(names, ","), func(m *inventory.Machine) bool {
		return !slices.ContainsFunc(names, func(n string) bool { return m.HasTags(n) })
	}
}

// byName resolves names to IDs, and rejects unknown names.
func byName(c *context, values []string, what string, id func(string) (int, bool)) ([]int, bool) {
	var ids []int
	var unknown []string
	for _, v := range values {
		if n, ok := id(v); ok {
			ids = append(ids, n)
		} else {
			unknown = append(unknown, v)
		}
	}
	if unknown != nil {
		c.refuse("No such %s(s): %s.", what, strings.Join(unknown, ", "))
		return nil, false
	}
	return ids, true
}

func zones(c *context, values []string) (string, func(*inventory.Machine) bool) {
	ids, ok := byName(c, values, "zone", func(n string) (int, bool) {
		z := c.db.ZoneByName(n)
		if z == nil {
			return 0, false
		}
		return z.ID, true
	})
	if !ok {
		return "", nil
	}
	return strings.Join(values, ","), func(m *inventory.Machine) bool { return slices.Contains(ids, m.ZoneID) }
}

func pools(c *context, values []string) (string, func(*inventory.Machine) bool) {
	ids, ok := byName(c, values, "pool", func(n string) (int, bool) {
		p := c.db.PoolByName(n)
		if p == nil {
			return 0, false
		}
		return p.ID, true
	})
	if !ok {
		return "", nil
	}
	return strings.Join(values, ","), func(m *inventory.Machine) bool { return slices.Contains(ids, m.PoolID) }
}

// owners matches the names of the machines' owners.
func owners(c *context, values []string) (string, func(*inventory.Machine) bool) {
	_, ok := byName(c, values, "owner", func(n string) (int, bool) { return 0, c.db.Users.Get(n) != nil })
	if !ok {
		return "", nil
	}
	return strings.Join(values, ","), func(m *inventory.Machine) bool { return slices.Contains(values, m.Owner) }
}

func macs(c *context, values []string) (string, func(*inventory.Machine) bool) {
	for _, v := range values {
		if mac, err := net.ParseMAC(v); err != nil || len(mac) != 6 {
			return c.refuse("'%s' is not a valid MAC address.", v)
		}
	}
	return strings.Join(values, ","), func(m *inventory.Machine) bool {
		return slices.ContainsFunc(m.Interfaces, func(nic inventory.Interface) bool {
			return slices.ContainsFunc(values, func(v string) bool { return strings.EqualFold(v, nic.MAC) })
		})
	}
}

// choices returns a parser that accepts only values of a fixed list.
func choices(known func(string) bool, property func(*inventory.Machine) string) parser {
	return func(c *context, values []string) (string, func(*inventory.Machine) bool) {
		for _, v := range values {
			if !known(v) {
				return c.refuse("Select a valid choice. %s is not one of the available choices.", v)
			}
		}
		return strings.Join(values, ","), func(m *inventory.Machine) bool { return slices.Contains(values, property(m)) }
	}
}

var powerStates = choices(
	func(v string) bool { return slices.Contains([]string{"on", "off", "unknown", "error"}, v) },
	func(m *inventory.Machine) string { return m.PowerState },
)

var targets = choices(
	func(v string) bool { return v == "disk" || v == "memory" },
	func(m *inventory.Machine) string {
		if m.Ephemeral {
			return "memory"
		}
		return "disk"
	},
)

var simpleStatuses = choices(
	func(v string) bool {
		return v == "other" || slices.ContainsFunc(status.All(), func(s status.Status) bool { return s.Simple() == v })
	},
	func(m *inventory.Machine) string { return m.Status.Simple() },
)

func statuses(c *context, values []string) (string, func(*inventory.Machine) bool) {
	var wanted []status.Status
	for _, v := range values {
		s, ok := status.ByWord(v)
		if !ok {
			return c.refuse("Select a valid choice. %s is not one of the available choices.", v)
		}
		wanted = append(wanted, s)
	}
	return strings.Join(values, ","), func(m *inventory.Machine) bool { return m.Status.In(wanted...) }
}

// devices matches the PCI and USB devices of the seed.
func devices(_ *context, values []string) (string, func(*inventory.Machine) bool) {
	wanted := strings.Split(values[len(values)-1], ",")
	return values[len(values)-1], func(m *inventory.Machine) bool {
		list, _ := m.Extra["devices"].([]any)
		return slices.ContainsFunc(list, func(v any) bool {
			device, _ := v.(map[string]any)
			return !slices.ContainsFunc(wanted, func(pair string) bool {
				key, want, _ := strings.Cut(pair, "=")
				got, _ := device[key].(string)
				return got != want
			})
		})
	}
}
