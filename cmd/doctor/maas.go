// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/openshift/hypershift/support/lowestversions"
	"github.com/openshift/hypershift/support/maas"
)

const (
	maasPart    = "maas"
	networkPart = "network"

	endpointCheck = "endpoint"
	keyCheck      = "key"
	machinesCheck = "machines"
	hostsCheck    = "lxd-hosts"
	needsMAAS     = maasPart + " " + endpointCheck
	needsKey      = maasPart + " " + keyCheck

	// lxdType is MAAS's type of LXD hosts.
	lxdType = "lxd"

	lowestMAAS = "3.2"
	newestMAAS = "3.7"

	// machinesLimit is longer than that of other checks: MAAS needs long for many machines.
	machinesLimit = 30 * time.Second
)

// MAAS is a MAAS to check, and what a cluster requires of it. Zero fields require nothing.
type MAAS struct {
	// Config returns the endpoint and the credentials.
	Config func(ctx context.Context) (maas.Config, error)
	// From names where the credentials come from, such as "--maas-endpoint", for remedies.
	From string
	// Architecture is that of the machines, in Go's spelling. Image is the name of MAAS's image for them.
	Architecture, Image string
	// Domain is the DNS domain of the machines, and Subnet the network of their static addresses, as a CIDR.
	Domain, Subnet string
	// Zones are the zones that machines may be in; none means any. Pool is the resource pool; empty means any.
	Zones         []string
	Pool          string
	Tags, NotTags []string
	// MinCPU is in cores, MinMemoryMiB in MiB and MinDiskGB in 10^9 bytes.
	MinCPU, MinMemoryMiB, MinDiskGB int
	// Machines is the number of machines that the cluster needs.
	Machines int
	// Composed means that MAAS composes the machines on LXD hosts.
	Composed bool
	// Quarantined has the system IDs of machines that the cluster has quarantined without the tag in MAAS.
	Quarantined map[string]bool
	// Networks are those of the cluster's pods and Services. Flat means that its nodes must share a layer 2 network.
	Networks []netip.Prefix
	Flat     bool

	// Shared is another MAAS whose connection is used; nil makes one.
	Shared *MAAS

	client *maas.Client
	// quick leaves out the advice that does not concern the creation of a cluster.
	quick bool
	// fit are the Ready machines that match, set by the check of the machines.
	fit []maas.Machine
}

// Checks returns all checks of the MAAS.
func (m *MAAS) Checks() []Check { return append(m.Access(), m.Places("")...) }

// Access returns the checks of the endpoint and of the API key.
func (m *MAAS) Access() []Check {
	return []Check{
		{Part: maasPart, Name: endpointCheck, Run: m.endpoint},
		{Part: maasPart, Name: keyCheck, Needs: needsMAAS, Run: m.user},
	}
}

// Places returns the checks of what the cluster requires of the MAAS. The suffix distinguishes their names.
func (m *MAAS) Places(suffix string) []Check {
	var all []Check
	add := func(wanted bool, check Check) {
		if wanted {
			check.Part, check.Needs, check.Name = cmp.Or(check.Part, maasPart), cmp.Or(check.Needs, needsKey), check.Name+suffix
			all = append(all, check)
		}
	}
	add(m.Image != "", Check{Name: "image", Run: m.image})
	add(len(m.Zones) > 0, Check{Name: "zone", Run: m.zones})
	add(m.Pool != "", Check{Name: "pool", Run: m.pool})
	add(len(m.Tags)+len(m.NotTags) > 0, Check{Name: "tags", Run: m.tags})
	add(m.Domain != "", Check{Name: "domain", Run: m.domain})
	add(m.Subnet != "", Check{Name: "static-ips", Run: m.staticSubnet})
	add(m.Composed, Check{Name: hostsCheck, Run: m.hosts})
	add(!m.Composed, Check{Name: machinesCheck, Limit: machinesLimit, Run: m.machines})
	add(!m.Composed, Check{Part: networkPart, Name: "subnets", Run: m.subnets})
	return all
}

// Essential returns the quick checks of a new cluster. They fail only for an answer of MAAS: the management cluster may
// reach a MAAS that this computer does not reach.
func (m *MAAS) Essential() []Check {
	m.quick = true
	all := m.Access()
	if m.Machines > 0 {
		all = append(all, m.Places("")...)
	}
	for i := range all {
		all[i].Limit = 0
		waits := all[i].Name == machinesCheck || all[i].Name == hostsCheck
		all[i] = downgrade(all[i], func(o Outcome) bool { return waits || o.unreached })
	}
	return all
}

// api returns the connection. The check of the endpoint makes it.
func (m *MAAS) api() *maas.Client {
	if m.Shared != nil {
		return m.Shared.client
	}
	return m.client
}

// endpoint connects, and reads the version. MAAS requires no key for it.
func (m *MAAS) endpoint(ctx context.Context) Outcome {
	config, err := m.Config(ctx)
	switch {
	case apierrors.IsForbidden(err):
		return skipped("run this as a user with that right, or set --maas-endpoint and --maas-api-key-file",
			"you have no right to read %s", m.From)
	case err != nil:
		return failed("correct "+m.From, "%v", err)
	}
	config.Retry = maas.RetryPolicy{Attempts: -1}
	if m.client, err = maas.NewClient(config); err != nil {
		return failed("correct "+m.From, "%v", err)
	}
	found, err := m.client.GetVersion(ctx)
	if err != nil {
		return m.problem(err)
	}
	runs, err := version.ParseGeneric(found.Version)
	if err != nil {
		return warn("", "MAAS has the version %q, which cannot be compared", found.Version)
	}
	table, err := lowestversions.Read()
	if err != nil {
		return failed("", "%v", err)
	}
	// A version that is not semantic is not in the table.
	hole, _ := table.BelowLines("maas", found.Version)
	newest := version.MustParseGeneric(newestMAAS)
	switch {
	case runs.LessThan(version.MustParseGeneric(lowestMAAS)):
		return failed("upgrade MAAS", "MAAS %s is too old: %s is the oldest version that works", found.Version, lowestMAAS)
	case hole != "":
		return warn("", "MAAS %s", hole)
	case m.client.PlainHTTP() != "" && !m.quick:
		return warn("", "%s", m.client.PlainHTTP())
	case runs.Major() > newest.Major() || runs.Major() == newest.Major() && runs.Minor() > newest.Minor():
		return warn("", "MAAS %s is newer than %s, the newest version that was tested", found.Version, newestMAAS)
	}
	return ok("MAAS %s", found.Version)
}

// problem describes a call that failed, without the text of the answer: the endpoint may be another server.
func (m *MAAS) problem(err error) Outcome {
	text := maas.Public(err)
	var refused *maas.RefusedAddressError
	switch {
	case errors.As(err, &refused):
		return skipped("the condition PlatformCredentialsFound has the result of the operator's own check",
			"the endpoint of %s is an address of this computer, of its link, or of a metadata service: it is not called", m.From)
	case maas.IsUnauthorized(err):
		return failed("copy the API key from MAAS (user preferences, API keys) into "+m.From, "%s", text)
	case maas.IsForbidden(err):
		return failed("use the API key of a user with that right", "%s", text)
	}
	remedy := "check " + m.From + ", and that firewalls let this computer and the management cluster reach MAAS"
	switch {
	case strings.Contains(text, "unknown authority"):
		remedy = "set --maas-ca-bundle, or " + maas.SecretKeyCABundle + " of the credentials Secret, to the CA of MAAS"
	case maas.IsUnavailable(err):
		remedy = "wait until MAAS is available again"
	}
	outcome := failed(remedy, "%s", text)
	outcome.unreached = true
	return outcome
}

// user checks the API key.
func (m *MAAS) user(ctx context.Context) Outcome {
	user, err := m.api().WhoAmI(ctx)
	switch {
	case err != nil:
		return m.problem(err)
	case user.Username == "":
		return failed("check "+m.From, "MAAS names no user for the API key")
	case user.IsSuperuser:
		return ok("the API key is of %s, an administrator", user.Username)
	case m.Subnet != "":
		return failed("use the API key of a MAAS administrator, or leave out static addresses",
			"the API key is of %s, a plain user: static addresses need an administrator", user.Username)
	}
	return ok("the API key is of %s, a plain user: enough for all but static addresses", user.Username)
}

// image checks that MAAS has the image for the architecture.
func (m *MAAS) image(ctx context.Context) Outcome {
	images, err := m.api().ListBootResources(ctx, maas.ImagesAll)
	if err != nil {
		return m.problem(err)
	}
	var names, elsewhere []string
	for _, image := range images {
		architecture, _, _ := strings.Cut(image.Architecture, "/")
		name := image.Name
		if image.Type == "Uploaded" && !strings.Contains(name, "/") {
			name = "custom/" + name
		}
		_, series, _ := strings.Cut(name, "/")
		switch found := name == m.Image || series == m.Image; {
		case found && architecture == m.Architecture:
			return ok("MAAS has image %s for %s", m.Image, architecture)
		case found:
			elsewhere = append(elsewhere, architecture)
		case architecture == m.Architecture:
			names = append(names, name)
		}
	}
	has := listed(names)
	if len(elsewhere) > 0 {
		return failed("import or upload it for "+m.Architecture, "MAAS has image %s only for %s", m.Image, listed(elsewhere))
	}
	// MAAS has aliases that it does not list: a bare name, and a release number such as "ubuntu/24.04".
	system, series, named := strings.Cut(m.Image, "/")
	if !named || system == "ubuntu" && strings.ContainsAny(series, "0123456789") {
		return warn("name it as MAAS lists it",
			"MAAS does not list image %q, but may know it as an alias; for %s it has: %s", m.Image, m.Architecture, has)
	}
	return failed("import or upload it, or name another one with --image", "MAAS has no image %q for %s; it has: %s",
		m.Image, m.Architecture, has)
}

func (m *MAAS) zones(ctx context.Context) Outcome {
	zones, err := m.api().ListZones(ctx)
	return m.known(err, "zone", m.Zones, texts(zones, func(z maas.Zone) string { return z.Name }))
}

func (m *MAAS) pool(ctx context.Context) Outcome {
	pools, err := m.api().ListPools(ctx)
	return m.known(err, "resource pool", []string{m.Pool}, texts(pools, func(p maas.Pool) string { return p.Name }))
}

func (m *MAAS) tags(ctx context.Context) Outcome {
	tags, err := m.api().ListTags(ctx)
	return m.known(err, "tag", slices.Concat(m.Tags, m.NotTags), texts(tags, func(t maas.Tag) string { return t.Name }))
}

func (m *MAAS) domain(ctx context.Context) Outcome {
	domains, err := m.api().ListDomains(ctx)
	return m.known(err, "domain", []string{m.Domain}, texts(domains, func(d maas.Domain) string { return d.Name }))
}

func (m *MAAS) staticSubnet(ctx context.Context) Outcome {
	subnets, err := m.api().ListSubnets(ctx)
	return m.known(err, "subnet", []string{m.Subnet}, texts(subnets, func(s maas.Subnet) string { return s.CIDR }))
}

// known checks that MAAS has all of the names.
func (m *MAAS) known(err error, kind string, wanted, has []string) Outcome {
	if err != nil {
		return m.problem(err)
	}
	for _, name := range wanted {
		if !slices.Contains(has, name) {
			return failed("correct the name, or create it in MAAS", "MAAS has no %s %q; it has: %s", kind, name, listed(has))
		}
	}
	return ok("MAAS has %s %s", kind, strings.Join(wanted, ", "))
}

// hosts checks that MAAS has an LXD host in the zones.
func (m *MAAS) hosts(ctx context.Context) Outcome {
	hosts, err := m.api().ListVMHosts(ctx)
	if maas.IsGone(err) {
		return failed("leave out --lxd-enabled", "this version of MAAS has no VM hosts")
	}
	if err != nil {
		return m.problem(err)
	}
	var names []string
	for _, host := range hosts {
		if m.inZone(host.Zone.Name) && host.Type == lxdType {
			names = append(names, host.Name)
		}
	}
	if len(names) == 0 {
		return failed("add a host: hypershift create lxd-host", "none of %d VM hosts is an LXD host in the zone", len(hosts))
	}
	return ok("LXD hosts: %s", listed(names))
}

// inZone reports whether machines may be in a zone.
func (m *MAAS) inZone(zone string) bool { return len(m.Zones) == 0 || slices.Contains(m.Zones, zone) }

// listed joins the first names of a sorted list.
func listed(names []string) string {
	const most = 10
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > most:
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

func texts[T any](list []T, text func(T) string) []string {
	all := make([]string, 0, len(list))
	for _, item := range list {
		all = append(all, text(item))
	}
	return all
}
