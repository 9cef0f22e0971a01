// SPDX-License-Identifier: Apache-2.0

package lxd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/maas"
)

// Peer is another MaasMachine with a virtual machine or a placement.
type Peer struct {
	UID   string
	Group string
	Placement
	// Leaving is true for a MaasMachine that is being deleted. It still uses resources, but does not count for
	// anti-affinity.
	Leaving bool
}

// Choice is the selected host of a virtual machine.
type Choice struct {
	Host Host
	// Store is the storage pool; empty if MAAS chooses it.
	Store string
}

// Refusal holds the reason why no host was selected, and a message.
type Refusal struct{ Reason, Message string }

// Reasons why no host is available.
const (
	ReasonHostUnavailable       = infrav1.HostUnavailableReason
	ReasonInsufficientResources = infrav1.InsufficientResourcesReason
	ReasonProfileNotFound       = infrav1.ProfileNotFoundReason
	ReasonProjectNotFound       = infrav1.ProjectNotFoundReason
	ReasonStoragePoolNotFound   = infrav1.StoragePoolNotFoundReason
)

// Select returns the best host: in the zone with the fewest siblings, then with the fewest siblings on the host, then
// with the most free resources. The name breaks ties. Hosts in avoid are selected last. The resources of a peer are
// subtracted if the host data, read at asOf, does not include the peer. If the choice is nil, the Refusal holds the
// reason.
func Select(request Request, hosts []Host, asOf time.Time, peers []Peer, avoid map[string]bool) (*Choice, Refusal) {
	hosts = reserved(hosts, asOf, peers)
	siblings := countSiblings(request.Group, peers)
	constraints := request.constraints(siblings)
	fit := slices.DeleteFunc(slices.Clone(hosts), func(h Host) bool { return first(constraints, h) != nil })
	if len(fit) == 0 {
		return nil, explain(request, hosts, constraints)
	}
	best := slices.MinFunc(fit, func(a, b Host) int {
		return cmp.Or(
			compareBool(avoid[a.Name], avoid[b.Name]),
			cmp.Compare(siblings.zones[a.Zone], siblings.zones[b.Zone]),
			cmp.Compare(siblings.hosts[a.Name], siblings.hosts[b.Name]),
			cmp.Compare(b.leftAfter(request), a.leftAfter(request)),
			strings.Compare(a.Name, b.Name))
	})
	store, _ := best.storeFor(request)
	return &Choice{best, store}, Refusal{}
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// reserved subtracts the reservations of peers that MAAS does not report yet from the free resources of the hosts.
func reserved(hosts []Host, asOf time.Time, peers []Peer) []Host {
	hosts = slices.Clone(hosts)
	for _, peer := range peers {
		if peer.reportedAt(asOf) {
			continue
		}
		for i := range hosts {
			if hosts[i].Name == peer.Host {
				hosts[i].take(peer.Placement)
			}
		}
	}
	return hosts
}

// counts holds the number of siblings by zone and by host.
type counts struct{ zones, hosts map[string]int }

func countSiblings(group string, peers []Peer) counts {
	c := counts{map[string]int{}, map[string]int{}}
	for _, peer := range peers {
		if peer.Group == group && !peer.Leaving {
			c.zones[peer.Zone]++
			c.hosts[peer.Host]++
		}
	}
	return c
}

// leftAfter returns the free share of cores or memory, whichever is smaller, after placing the machine on the host.
func (h *Host) leftAfter(w Request) float64 {
	left := h.Free.minus(w.Size())
	return min(share(left.Cores, h.Total.Cores), share(left.MemoryMiB, h.Total.MemoryMiB))
}

func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// constraint is one requirement for a host.
type constraint struct {
	reason string
	// lacks describes the problem of a host, in the singular ("is in zone az9") and the plural ("are in zone az9"). It is
	// empty for a host that meets the constraint.
	lacks func(Host) (one, many string)
}

// constraints returns the requirements in the order in which they are checked. Those that more resources would not fix
// come first.
func (w Request) constraints(siblings counts) []constraint {
	return []constraint{
		{ReasonHostUnavailable, func(h Host) (string, string) {
			return unless(w.VMHost == "" || h.Name == w.VMHost, "not named "+w.VMHost)
		}},
		{ReasonProjectNotFound, func(h Host) (string, string) {
			return unless(w.Project == "" || h.Project == w.Project, fmt.Sprintf("in LXD project %q", h.Project))
		}},
		{ReasonProfileNotFound, func(Host) (string, string) {
			return unless(slices.Contains([]string{"", "maas", "default"}, w.Profile), "without support for choosing profile "+w.Profile)
		}},
		{ReasonHostUnavailable, func(h Host) (string, string) {
			return unless(len(w.Zones) == 0 || slices.Contains(w.Zones, h.Zone), "in zone "+h.Zone)
		}},
		{ReasonHostUnavailable, func(h Host) (string, string) {
			return unless(w.ResourcePool == "" || h.Pool == w.ResourcePool, "in resource pool "+h.Pool)
		}},
		{ReasonHostUnavailable, func(h Host) (string, string) {
			return unless(w.Architecture == "" || slices.ContainsFunc(h.Architectures, w.ofArchitecture), "of architecture "+strings.Join(h.Architectures, ", "))
		}},
		{ReasonHostUnavailable, func(h Host) (string, string) {
			return unless(!slices.Contains(h.Tags, maas.DrainTag), "being drained (tag "+maas.DrainTag+")")
		}},
		{ReasonHostUnavailable, w.tagged},
		{ReasonStoragePoolNotFound, func(h Host) (string, string) {
			_, there := h.Stores[w.Store]
			return without(w.Store == "" || there || len(h.Stores) == 0, "have", "storage pool "+w.Store)
		}},
		{ReasonInsufficientResources, func(h Host) (string, string) {
			return without(h.Free.Cores >= w.Cores, "lack", condition.Count(w.Cores, "core"))
		}},
		{ReasonInsufficientResources, func(h Host) (string, string) {
			return without(h.Free.MemoryMiB >= w.MemoryMiB, "lack", mebibytes(w.MemoryMiB)+" of memory")
		}},
		{ReasonInsufficientResources, func(h Host) (string, string) {
			_, room := h.storeFor(w)
			return without(room, "lack", strings.TrimSpace(fmt.Sprintf("%d GB of disk %s", w.DiskGB, prefixed("in storage pool ", w.Store))))
		}},
		{ReasonInsufficientResources, func(h Host) (string, string) {
			if !w.Apart || siblings.hosts[h.Name] == 0 {
				return "", ""
			}
			return "has a machine of the pool", "have a machine of the pool"
		}},
	}
}

func (w Request) ofArchitecture(have string) bool {
	return have == w.Architecture || strings.HasPrefix(have, w.Architecture+"/")
}

func (w Request) tagged(h Host) (string, string) {
	for _, tag := range w.Tags {
		if !slices.Contains(h.Tags, tag) {
			return without(false, "lack", "tag "+tag)
		}
	}
	for _, tag := range w.NotTags {
		if slices.Contains(h.Tags, tag) {
			return "has the unwanted tag " + tag, "have the unwanted tag " + tag
		}
	}
	return "", ""
}

func unless(suits bool, what string) (one, many string) {
	if suits {
		return "", ""
	}
	return "is " + what, "are " + what
}

func without(suits bool, verb, what string) (one, many string) {
	switch {
	case suits:
		return "", ""
	case verb == "have":
		return "has no " + what, "have no " + what
	}
	return verb + "s " + what, verb + " " + what
}

// mebibytes formats an amount of memory: 16384 becomes 16 GiB.
func mebibytes(n int) string {
	if n%1024 == 0 {
		return fmt.Sprintf("%d GiB", n/1024)
	}
	return fmt.Sprintf("%d MiB", n)
}

// first returns the first constraint that a host does not meet; nil if it meets all.
func first(constraints []constraint, h Host) *constraint {
	for i := range constraints {
		if one, _ := constraints[i].lacks(h); one != "" {
			return &constraints[i]
		}
	}
	return nil
}
