// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/openshift/hypershift/test/maas-simulator/form"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
)

// Order returns the parameters of compose for an allocation that no machine satisfies.
func (s *Set) Order() form.Values {
	var order form.Values
	add := func(key, value string) {
		if value != "" {
			order = append(order, form.Pair{Key: key, Value: value})
		}
	}
	add("cores", s.whole("cpu_count"))
	add("memory", s.whole("mem"))
	add("architecture", strings.Split(s.resolved("arch"), ",")[0])
	add("storage", s.given.Get("storage"))
	add("interfaces", s.given.Get("interfaces"))
	return order
}

func (s *Set) resolved(name string) string {
	for _, r := range s.rules {
		if r.name == name {
			return r.resolved
		}
	}
	return ""
}

// whole returns the integer part of a number; empty if it is 0 or no number.
func (s *Set) whole(name string) string {
	n, err := strconv.ParseFloat(s.resolved(name), 64)
	if err != nil || math.Trunc(n) == 0 {
		return ""
	}
	return strconv.Itoa(int(n))
}

// FitsVMHost reports whether the allocation may be composed on the host. The host must be in the zone, have the tags as
// they were sent, and match the pod names and types. It must run inside View or Update.
func (s *Set) FitsVMHost(db *inventory.DB, h *inventory.VMHost) bool {
	zone, tags, not := db.ZoneByName(s.given.Get("zone")), s.given.All("tags"), s.given.All("not_tags")
	names, types := s.given.All("pod"), s.given.All("pod_type")
	return (zone == nil || zone.ID == h.ZoneID) &&
		!slices.ContainsFunc(tags, func(tag string) bool { return !slices.Contains(h.Tags, tag) }) &&
		(len(not) == 0 || slices.ContainsFunc(not, func(tag string) bool { return !slices.Contains(h.Tags, tag) })) &&
		(len(names) == 0 || slices.Contains(names, h.Name)) && !slices.Contains(s.given.All("not_pod"), h.Name) &&
		(len(types) == 0 || slices.Contains(types, h.Type)) && !slices.Contains(s.given.All("not_pod_type"), h.Type)
}
