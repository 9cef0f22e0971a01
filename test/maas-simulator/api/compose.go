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

// order is what a VM is to be like.
type order struct {
	cores    int
	pinned   []int
	memory   int64
	huge     bool
	disks    []constraints.Disk
	hostname string
	// domain, zone and pool are ids.
	domain, zone, pool int
	architecture       string
	skipCommissioning  bool
	// interfaces is the constraint as it was given; empty leaves the choice to the host.
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

// readOrder reads the form of compose and notes what is wrong with it.
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

// composedName takes a name that no node has: controllers and devices count.
func (c *call) composedName(name string, f problem.Fields) {
	taken := c.DB.Nodes.Find(func(n *inventory.Node) bool { return n.Doc["hostname"] == name }) != nil
	if taken || c.DB.MachineByName(name) != nil {
		f.Add("hostname", "Node with hostname \"%s\" already exists", name)
	}
	if !hostnamePattern.MatchString(name) {
		f.Add("hostname", "Label contains disallowed characters: '%s'.", name)
	}
}

// wholeNumber is what a form takes for one: "4.0" is 4.
var wholeNumber = regexp.MustCompile(`^\s*(-?\d+)(?:\.0*)?\s*$`)

// bounded reads a whole number between two limits.
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

// pinnedCores are the host's cores by number, one a parameter.
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

// reference reads an id: names are not understood here.
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

// composeFor makes a machine for an allocation that nothing fits, on a host of
// the zone, tags, name and type that were asked for: what else was asked for is
// not looked at, and the machine is in the default zone and in the host's pool.
// Nil when no host can.
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

// dynamicHosts are the hosts in the order in which they are tried: those that
// cannot be over-committed come first.
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

// stand makes a composed machine one that commissioning is not waited for.
func stand(m *inventory.Machine) {
	m.Status, m.Previous, m.Commissioned = status.Ready, status.Ready, true
}
