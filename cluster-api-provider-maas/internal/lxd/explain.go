// SPDX-License-Identifier: Apache-2.0

package lxd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/openshift/hypershift/support/condition"
)

// complaint is a problem that some hosts share.
type complaint struct {
	reason    string
	one, many string
	hosts     int
}

// explain counts the problems of the hosts: "3 hosts: 2 lack 16 GiB of memory, 1 is in zone az9". The reason is the
// first unmet constraint of the hosts that met the most constraints.
func explain(w Request, hosts []Host, constraints []constraint) Refusal {
	if len(hosts) == 0 {
		return Refusal{ReasonHostUnavailable, fmt.Sprintf("asked for %s, but MAAS has no LXD host on which it composes", w)}
	}
	var complaints []complaint
	reason, furthest := "", -1
	for _, h := range hosts {
		for i, c := range constraints {
			one, many := c.lacks(h)
			if one == "" {
				continue
			}
			complaints = noted(complaints, c.reason, one, many)
			if i > furthest {
				reason, furthest = c.reason, i
			}
			break
		}
	}
	text := fmt.Sprintf("asked for %s; %s: %s", w, condition.Count(len(hosts), "host"), count(complaints))
	return Refusal{reason, text + advice(reason, w, hosts)}
}

func noted(all []complaint, reason, one, many string) []complaint {
	for i := range all {
		if all[i].one == one {
			all[i].hosts++
			return all
		}
	}
	return append(all, complaint{reason, one, many, 1})
}

func count(complaints []complaint) string {
	slices.SortStableFunc(complaints, func(a, b complaint) int { return b.hosts - a.hosts })
	var words []string
	for _, c := range complaints {
		text := c.many
		if c.hosts == 1 {
			text = c.one
		}
		words = append(words, fmt.Sprintf("%d %s", c.hosts, text))
	}
	return strings.Join(words, ", ")
}

// advice lists the available names if the request names something that no host has.
func advice(reason string, w Request, hosts []Host) string {
	switch reason {
	case ReasonProfileNotFound:
		return "; MAAS composes with LXD profile maas, or default if the project has no profile maas: remove the profile from the request, and choose a project " +
			"whose profile maas has the desired settings"
	case ReasonStoragePoolNotFound:
		return "; there are: " + listed(hosts, func(h Host) []string { return keys(h.Stores) })
	case ReasonProjectNotFound:
		return "; register the host with MAAS in that project, or name another"
	case ReasonHostUnavailable:
		if w.VMHost != "" {
			return "; there are: " + listed(hosts, func(h Host) []string { return []string{h.Name} })
		}
	}
	return ""
}

func listed(hosts []Host, names func(Host) []string) string {
	var all []string
	for _, h := range hosts {
		all = append(all, names(h)...)
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ", ")
}

func keys(m map[string]int64) []string {
	var all []string
	for key := range m {
		all = append(all, key)
	}
	return all
}
