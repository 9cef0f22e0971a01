package api

import (
	"slices"
	"strconv"
	"strings"

	"github.com/openshift/hypershift/test/maas-simulator/constraints"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
	"github.com/openshift/hypershift/test/maas-simulator/render"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// order is what a VM is to be like.
type order struct {
	cores    int
	memory   int64
	disks    []constraints.Disk
	hostname string
	// domain, zone and pool are ids.
	domain, zone, pool int
	architecture       string
	skipCommissioning  bool
	networks           []inventory.Link
}

const (
	minMemory      = 1024
	defaultMemory  = 2048
	defaultStorage = 8e9
)

func compose(c *call) (any, error) {
	h, err := c.vmHost()
	if err != nil {
		return nil, err
	}
	if err := c.silentAdmin(); err != nil {
		return nil, err
	}
	o, err := c.readOrder(h)
	if err != nil {
		return nil, err
	}
	m, err := c.composeOn(h, o)
	if err != nil {
		return nil, err
	}
	if o.skipCommissioning {
		m.Status, m.Previous, m.Commissioned = status.Ready, status.Ready, true
	} else if err := c.Life.Commission(m, c.user.Name, ""); err != nil {
		return nil, err
	}
	return render.Object{"system_id": m.SystemID, "resource_uri": render.Root + "machines/" + m.SystemID + "/"}, nil
}

func (c *call) readOrder(h *inventory.VMHost) (order, error) {
	f := problem.Fields{}
	o := order{
		cores: c.bounded("cores", 1, 1, h.Cores, f), memory: int64(c.bounded("memory", defaultMemory, minMemory, int(h.Memory), f)),
		hostname: c.form.Get("hostname"), architecture: c.form.Get("architecture"), zone: 1,
		pool: h.PoolID, skipCommissioning: c.form.Bool("skip_commissioning"),
		domain: c.DB.Domains.Find(func(d *inventory.Domain) bool { return d.Default }).ID,
	}
	if pinned := c.form.Get("pinned_cores"); pinned != "" {
		o.cores = len(strings.Split(pinned, ","))
	}
	if o.architecture == "" {
		o.architecture = "amd64/generic"
	} else if !slices.Contains(h.Architectures, o.architecture) {
		f.Add("architecture", "Select a valid choice. %s is not one of the available choices.", o.architecture)
	}
	if text := c.form.Get("storage"); text != "" {
		disks, ok := constraints.ParseStorage(text)
		if !ok {
			f.Add("storage", "Malformed storage constraint, \"%s\".", text)
		}
		o.disks = disks
	} else {
		o.disks = []constraints.Disk{{Bytes: defaultStorage}}
	}
	if o.hostname != "" {
		c.composedName(o.hostname, f)
	}
	c.reference("zone", &o.zone, func(id int) bool { return c.DB.Zones.Get(id) != nil }, f)
	c.reference("pool", &o.pool, func(id int) bool { return c.DB.Pools.Get(id) != nil }, f)
	c.reference("domain", &o.domain, func(id int) bool { return c.DB.Domains.Get(id) != nil }, f)
	if text := c.form.Get("interfaces"); text != "" {
		links, err := c.composedLinks(text, h, f)
		if err != nil {
			return o, err
		}
		o.networks = links
	}
	return o, f.Problem()
}

func (c *call) composedName(name string, f problem.Fields) {
	if !hostnamePattern.MatchString(name) {
		f.Add("hostname", "Label contains disallowed characters: '%s'.", name)
	} else if c.DB.MachineByName(name) != nil {
		f.Add("hostname", "Node with hostname \"%s\" already exists", name)
	}
}

// bounded reads a whole number between two limits.
func (c *call) bounded(key string, fallback, low, high int, f problem.Fields) int {
	raw := c.form.Get(key)
	if raw == "" {
		return fallback
	}
	n, err := strconv.Atoi(raw)
	switch {
	case err != nil:
		f.Add(key, "Enter a whole number.")
	case n < low:
		f.Add(key, "Ensure this value is greater than or equal to %d.", low)
	case n > high:
		f.Add(key, "Ensure this value is less than or equal to %d.", high)
	}
	return n
}

// reference reads an id: names are not understood here.
func (c *call) reference(key string, into *int, exists func(int) bool, f problem.Fields) {
	raw := c.form.Get(key)
	if raw == "" {
		return
	}
	id, err := strconv.Atoi(raw)
	if err != nil || !exists(id) {
		f.Add(key, "Select a valid choice. That choice is not one of the available choices.")
		return
	}
	*into = id
}

// composedLinks reads "eth0:subnet=3;eth1:ip=10.0.0.9", which needs a VM host
// whose own machine is known.
func (c *call) composedLinks(text string, h *inventory.VMHost, f problem.Fields) ([]inventory.Link, error) {
	var out []inventory.Link
	for _, part := range strings.Split(text, ";") {
		label, keys, ok := strings.Cut(part, ":")
		if !ok || label == "" {
			f.Add("interfaces", "Malformed constraint: '%s' (required format: '<label>:<key>=<value>[,<key2>=<value2>[,...]]')", part)
			return nil, nil
		}
		link := inventory.Link{Mode: "auto"}
		for _, pair := range strings.Split(keys, ",") {
			key, value, _ := strings.Cut(pair, "=")
			switch key {
			case "ip":
				link.Mode, link.IP = "static", value
				link.SubnetID = c.subnetOf(value)
			case "subnet", "subnet_cidr":
				if s := constraints.SubnetBySpec(c.DB, value); s != nil {
					link.SubnetID = &s.ID
				}
			case "space":
				s := c.DB.Subnets.Find(func(s *inventory.Subnet) bool { return c.DB.SpaceOf(c.DB.VLANs.Get(s.VLANID)) == value })
				if s != nil {
					link.SubnetID = &s.ID
				}
			}
		}
		if h.HostSystemID == "" || link.SubnetID == nil {
			return nil, problem.Text(400, "This pod does not match the specified networks.")
		}
		out = append(out, link)
	}
	return out, nil
}

// fits reports whether the VM host has room for what is ordered.
func (c *call) fits(h *inventory.VMHost, o order) error {
	used := c.print.Used(h)
	cores := float64(h.Cores)*h.CPUOverCommit - float64(used.Cores)
	memory := float64(h.Memory)*h.MemoryOverCommit - float64(used.Memory)
	var bytes int64
	for _, d := range o.disks {
		bytes += d.Bytes
	}
	switch {
	case float64(o.cores) > cores:
		return problem.Unavailable("Unable to compose KVM instance in '%s'. CPU overcommit ratio is %v and there are %v available resources; "+
			"%d requested.", h.Name, h.CPUOverCommit, cores, o.cores)
	case float64(o.memory) > memory:
		return problem.Unavailable("Unable to compose KVM instance in '%s'. Memory overcommit ratio is %v and there are %v available resources; "+
			"%d requested.", h.Name, h.MemoryOverCommit, memory, o.memory)
	case bytes > h.Storage-used.Storage:
		return problem.Unavailable("Unable to compose KVM instance in '%s'. Not enough storage space on storage pools: %d bytes available; "+
			"%d requested.", h.Name, h.Storage-used.Storage, bytes)
	}
	return nil
}

// composeOn makes a VM, in status New.
func (c *call) composeOn(h *inventory.VMHost, o order) (*inventory.Machine, error) {
	if h.Parameters == nil {
		return nil, problem.Unavailable("Failed talking to VM host %s: its seed says no parameters to reach it with.", h.Name)
	}
	if err := c.fits(h, o); err != nil {
		return nil, err
	}
	m := &inventory.Machine{
		ID: c.DB.Next("machines"), SystemID: c.DB.NewSystemID(), Hostname: o.hostname, DomainID: o.domain, ZoneID: o.zone, PoolID: o.pool,
		Architecture: o.architecture, CPUCount: o.cores, Memory: o.memory, Status: status.New, Previous: status.New, Netboot: true,
		PowerType: h.Type, PowerState: "off", PodID: &h.ID, Token: c.DB.NewToken(), Extra: map[string]any{},
	}
	if m.Hostname == "" {
		m.Hostname = c.DB.NewHostname()
	}
	for _, tag := range h.Tags {
		if c.DB.Tags.Get(tag) == nil {
			c.DB.Tags.Put(&inventory.Tag{ID: c.DB.Next("tags"), Name: tag})
		}
		m.Tags = append(m.Tags, tag)
	}
	for i, d := range o.disks {
		m.Disks = append(m.Disks, inventory.Disk{
			ID: c.DB.Next("blockdevices"), Name: "sd" + string(rune('a'+i)), Type: "physical", Size: d.Bytes, Tags: []string{"ssd"},
		})
	}
	c.wire(m, h, o)
	c.DB.Machines.Put(m)
	return m, nil
}

// wire gives the VM its interfaces: those that were ordered, or one on the
// first subnet that hands out addresses.
func (c *call) wire(m *inventory.Machine, _ *inventory.VMHost, o order) {
	links := o.networks
	if links == nil {
		s := c.DB.Subnets.Find(func(s *inventory.Subnet) bool { v := c.DB.VLANs.Get(s.VLANID); return v != nil && v.DHCPOn })
		if s == nil {
			return
		}
		links = []inventory.Link{{Mode: "auto", SubnetID: &s.ID}}
	}
	for i, link := range links {
		link.ID = c.DB.Next("links")
		vlan := c.DB.Subnets.Get(*link.SubnetID).VLANID
		m.Interfaces = append(m.Interfaces, inventory.Interface{
			ID: c.DB.Next("interfaces"), Name: "eth" + strconv.Itoa(i), Type: "physical", MAC: c.DB.NewMAC(), Enabled: true,
			VLANID: &vlan, Links: []inventory.Link{link},
		})
	}
}

// composeFor makes a machine for an allocation that nothing fits: name and pool
// are not looked at, and it is in the default zone. Nil when no host can.
func (c *call) composeFor(set *constraints.Set) *inventory.Machine {
	if !c.print.Version.VMHosts() {
		return nil
	}
	for _, h := range c.DB.VMHosts.All() {
		if !slices.Contains(h.Capabilities, "composable") || len(set.Pods) > 0 && !slices.Contains(set.Pods, h.Name) ||
			len(set.Zones) > 0 && !slices.Contains(set.Zones, h.ZoneID) {
			continue
		}
		o := order{cores: set.Least("cpu_count", 1), memory: int64(set.Least("mem", defaultMemory)), zone: 1, pool: h.PoolID, architecture: "amd64/generic"}
		o.memory = max(o.memory, minMemory)
		o.domain = c.DB.Domains.Find(func(d *inventory.Domain) bool { return d.Default }).ID
		o.disks = set.Disks()
		if len(o.disks) == 0 {
			o.disks = []constraints.Disk{{Bytes: defaultStorage}}
		}
		m, err := c.composeOn(h, o)
		if err != nil {
			continue
		}
		m.Status, m.Previous, m.Commissioned, m.Dynamic = status.Ready, status.Ready, true, true
		if !set.FitsComposed(m) {
			c.DB.Machines.Delete(m.SystemID)
			continue
		}
		return m
	}
	return nil
}
