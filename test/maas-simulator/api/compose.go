// SPDX-License-Identifier: Apache-2.0

package api

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/openshift/hypershift/test/maas-simulator/constraints"
	"github.com/openshift/hypershift/test/maas-simulator/form"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
	"github.com/openshift/hypershift/test/maas-simulator/render"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// order contains the properties of a VM to compose.
type order struct {
	cores    int
	pinned   []int
	memory   int64
	huge     bool
	disks    []constraints.Disk
	hostname string
	// domain, zone and pool are IDs.
	domain, zone, pool int
	architecture       string
	skipCommissioning  bool
	// interfaces is the unparsed interface constraint; empty means the default interface.
	interfaces string
}

const (
	minMemory      = 1024
	defaultMemory  = 2048
	defaultStorage = 8e9
	minCPUSpeed    = 300
)

func compose(c *call) (any, error) {
	h, err := c.ownVMHost()
	if err != nil {
		return nil, err
	}
	if !h.Can("composable") {
		return nil, problem.Text(400, "VM host does not support composability.")
	}
	f := problem.Fields{}
	o := c.readOrder(c.form, h, f)
	if err := f.Problem(); err != nil {
		return nil, err
	}
	m, err := c.composeOn(h, o)
	if err != nil {
		return nil, err
	}
	if !o.skipCommissioning {
		if err := c.Life.Commission(m, c.user.Name, ""); err != nil {
			return nil, err
		}
	}
	return render.Object{"system_id": m.SystemID, "resource_uri": render.Root + "machines/" + m.SystemID + "/"}, nil
}

// readOrder parses the parameters of compose and adds errors to f.
func (c *call) readOrder(given form.Values, h *inventory.VMHost, f problem.Fields) order {
	o := order{
		cores: bounded(given, "cores", 1, 1, h.Cores, f), memory: int64(bounded(given, "memory", defaultMemory, minMemory, int(h.Memory), f)),
		pinned: pinnedCores(given, h, f), huge: given.Bool("hugepages_backed"),
		hostname: strings.TrimSpace(given.Get("hostname")), architecture: given.Get("architecture"), zone: 1, pool: h.PoolID,
		skipCommissioning: given.Bool("skip_commissioning"), interfaces: strings.TrimSpace(given.Get("interfaces")),
		domain: c.DB.Domains.Find(func(d *inventory.Domain) bool { return d.Default }).ID,
		disks:  []constraints.Disk{{Bytes: defaultStorage}},
	}
	bounded(given, "cpu_speed", minCPUSpeed, minCPUSpeed, 1<<31-1, f)
	if o.architecture != "" && !slices.Contains(h.Architectures, o.architecture) {
		f.Add("architecture", unknownValue, o.architecture)
	} else if o.architecture == "" && len(h.Architectures) > 0 {
		o.architecture = h.Architectures[0]
	}
	if text := given.Get("storage"); text != "" {
		disks, ok := constraints.ParseStorage(text)
		if !ok {
			f.Add("storage", "Malformed storage constraint, \"%s\".", text)
		}
		o.disks = disks
	}
	if message := constraints.CheckInterfaces(o.interfaces); message != "" {
		f.Add("interfaces", "%s", message)
	}
	if o.hostname != "" {
		c.composedName(o.hostname, f)
	}
	reference(given, "zone", &o.zone, func(id int) bool { return c.DB.Zones.Get(id) != nil }, f)
	reference(given, "pool", &o.pool, func(id int) bool { return c.DB.Pools.Get(id) != nil }, f)
	reference(given, "domain", &o.domain, func(id int) bool { return c.DB.Domains.Get(id) != nil }, f)
	return o
}

// composedName adds an error if a node already has the hostname, including controllers and devices, or if the name is
// invalid.
func (c *call) composedName(name string, f problem.Fields) {
	taken := c.DB.Nodes.Find(func(n *inventory.Node) bool { return n.Doc["hostname"] == name }) != nil
	if taken || c.DB.MachineByName(name) != nil {
		f.Add("hostname", "Node with hostname \"%s\" already exists", name)
	}
	if !hostnamePattern.MatchString(name) {
		f.Add("hostname", "Label contains disallowed characters: '%s'.", name)
	}
}

// wholeNumber matches integers as MAAS's forms accept them: "4.0" is 4.
var wholeNumber = regexp.MustCompile(`^\s*(-?\d+)(?:\.0*)?\s*$`)

// bounded parses an integer between two limits.
func bounded(given form.Values, key string, fallback, low, high int, f problem.Fields) int {
	raw := given.Get(key)
	if raw == "" {
		return fallback
	}
	found := wholeNumber.FindStringSubmatch(raw)
	if found == nil {
		f.Add(key, "Enter a whole number.")
		return fallback
	}
	n, err := strconv.Atoi(found[1])
	switch {
	case err == nil && n < low:
		f.Add(key, "Ensure this value is greater than or equal to %d.", low)
	case err != nil || n > high:
		f.Add(key, "Ensure this value is less than or equal to %d.", high)
	}
	return n
}

// pinnedCores parses the numbers of the host's cores, one in each parameter.
func pinnedCores(given form.Values, h *inventory.VMHost, f problem.Fields) []int {
	var cores []int
	for _, raw := range given.All("pinned_cores") {
		core, err := strconv.Atoi(raw)
		if err != nil || core < 0 || core >= h.Cores {
			f.Add("pinned_cores", unknownValue, raw)
			return nil
		}
		if !slices.Contains(cores, core) {
			cores = append(cores, core)
		}
	}
	slices.Sort(cores)
	return cores
}

// reference parses an ID. MAAS does not accept names here.
func reference(given form.Values, key string, into *int, exists func(int) bool, f problem.Fields) {
	raw := given.Get(key)
	if raw == "" {
		return
	}
	id, err := strconv.Atoi(raw)
	if err != nil || !exists(id) {
		f.Add(key, unknownChoice)
		return
	}
	*into = id
}

// composeFor composes a machine for an allocation that no machine satisfies. The host must match the requested zone,
// tags, name and type. Other constraints are ignored: the machine gets the default zone and the host's pool. It returns
// nil if no host can compose the machine.
func (c *call) composeFor(set *constraints.Set) *inventory.Machine {
	if !c.print.Version.VMHosts() {
		return nil
	}
	for _, h := range c.dynamicHosts() {
		if !set.FitsVMHost(c.DB, h) {
			continue
		}
		f := problem.Fields{}
		o := c.readOrder(set.Order(), h, f)
		o.skipCommissioning = true
		if len(f) > 0 {
			continue
		}
		if m, err := c.composeOn(h, o); err == nil {
			m.Dynamic = true
			return m
		}
	}
	return nil
}

// dynamicHosts returns the composable hosts in the order in which MAAS tries them: hosts without over-commit first.
func (c *call) dynamicHosts() []*inventory.VMHost {
	hosts := slices.DeleteFunc(slices.Clone(c.DB.VMHosts.All()), func(h *inventory.VMHost) bool { return !h.Can("composable") })
	slices.SortStableFunc(hosts, func(a, b *inventory.VMHost) int {
		switch {
		case a.Can("over_commit") == b.Can("over_commit"):
			return 0
		case b.Can("over_commit"):
			return -1
		}
		return 1
	})
	return hosts
}

// stand sets a composed machine Ready without commissioning.
func stand(m *inventory.Machine) {
	m.Status, m.Previous, m.Commissioned = status.Ready, status.Ready, true
}
