// SPDX-License-Identifier: Apache-2.0

package lxd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/maas"
)

// Peer is another MaasMachine with a virtual machine, or with a place for one.
type Peer struct {
	UID   string
	Group string
	Placement
	// Leaving is set for one that is being deleted: it takes room, and nobody keeps away from it.
	Leaving bool
}

// Choice is where a virtual machine goes.
type Choice struct {
	Host Host
	// Store is the storage pool; empty leaves it to MAAS.
	Store string
}

// Refusal says why a virtual machine goes nowhere.
type Refusal struct{ Reason, Message string }

// Reasons why there is no host.
const (
	ReasonHostUnavailable       = "HostUnavailable"
	ReasonInsufficientResources = "InsufficientResources"
	ReasonProfileNotFound       = "ProfileNotFound"
	ReasonProjectNotFound       = "ProjectNotFound"
	ReasonStoragePoolNotFound   = "StoragePoolNotFound"
)

// Select finds the best host: in the zone with the fewest siblings, on the host with the fewest of them, with the most left after it; the
// name decides between equals. Hosts that were avoided before are taken last. Peers count as far as MAAS does not report them at the time
// of the list of hosts. A nil choice comes with the reason.
func Select(wish Wish, hosts []Host, asOf time.Time, peers []Peer, avoid map[string]bool) (*Choice, Refusal) {
	hosts = reserved(hosts, asOf, peers)
	siblings := countSiblings(wish.Group, peers)
	constraints := wish.constraints(siblings)
	fit := slices.DeleteFunc(slices.Clone(hosts), func(h Host) bool { return first(constraints, h) != nil })
	if len(fit) == 0 {
		return nil, explain(wish, hosts, constraints)
	}
	best := slices.MinFunc(fit, func(a, b Host) int {
		return cmp.Or(
			compareBool(avoid[a.Name], avoid[b.Name]),
			cmp.Compare(siblings.zones[a.Zone], siblings.zones[b.Zone]),
			cmp.Compare(siblings.hosts[a.Name], siblings.hosts[b.Name]),
			cmp.Compare(b.leftAfter(wish), a.leftAfter(wish)),
			strings.Compare(a.Name, b.Name))
	})
	store, _ := best.storeFor(wish)
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

// reserved takes from the hosts what peers keep there and MAAS does not report.
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

// counts are siblings by where they are.
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

// leftAfter is the share of the scarcest of cores and memory that a host has left with the machine on it.
func (h *Host) leftAfter(w Wish) float64 {
	left := h.Free.minus(w.Size())
	return min(share(left.Cores, h.Total.Cores), share(left.MemoryMiB, h.Total.MemoryMiB))
}

func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// constraint is one thing that a host must have.
type constraint struct {
	reason string
	// lacks says what is wrong with a host: "is in zone az9" of one, "are in zone az9" of several. It is empty for one that suits.
	lacks func(Host) (one, many string)
}

// constraints are in the order in which they are told: what no room would mend comes first.
func (w Wish) constraints(siblings counts) []constraint {
	return []constraint{
		{ReasonHostUnavailable, func(h Host) (string, string) {
			return unless(w.VMHost == "" || h.Name == w.VMHost, "not named "+w.VMHost)
		}},
		{ReasonProjectNotFound, func(h Host) (string, string) {
			return unless(w.Project == "" || h.Project == w.Project, fmt.Sprintf("in LXD project %q", h.Project))
		}},
		{ReasonProfileNotFound, func(Host) (string, string) {
			return unless(slices.Contains([]string{"", "maas", "default"}, w.Profile), "without a way to be asked for profile "+w.Profile)
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

func (w Wish) ofArchitecture(have string) bool {
	return have == w.Architecture || strings.HasPrefix(have, w.Architecture+"/")
}

func (w Wish) tagged(h Host) (string, string) {
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

// mebibytes says 16384 as 16 GiB.
func mebibytes(n int) string {
	if n%1024 == 0 {
		return fmt.Sprintf("%d GiB", n/1024)
	}
	return fmt.Sprintf("%d MiB", n)
}

// first is the first constraint that a host does not fulfil.
func first(constraints []constraint, h Host) *constraint {
	for i := range constraints {
		if one, _ := constraints[i].lacks(h); one != "" {
			return &constraints[i]
		}
	}
	return nil
}
