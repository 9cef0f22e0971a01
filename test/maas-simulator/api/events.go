// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
	"github.com/openshift/hypershift/test/maas-simulator/render"
)

func eventsResource() resource {
	return resource{name: "events", ops: ops{"GET query": {read: queryEvents}}}
}

// levels are the severities of events.
var levels = map[string]int{"AUDIT": 0, "DEBUG": 10, "INFO": 20, "WARNING": 30, "ERROR": 40, "CRITICAL": 50}

const maxEvents = 1000

func queryEvents(c *call) (any, error) {
	limit, after, before, err := c.eventWindow()
	if err != nil {
		return nil, err
	}
	level := c.form.Get("level")
	if level == "" {
		level = "INFO"
	}
	floor, known := levels[level]
	if !known {
		return nil, problem.Text(400, "Unrecognised log level: %s", level)
	}
	var found []*inventory.Event
	all := c.DB.Events.All()
	for i := range all {
		e := all[len(all)-1-i]
		if after > 0 {
			e = all[i] // With "after", the search begins at the oldest events.
		}
		if len(found) == limit {
			break
		}
		audited := (level == "AUDIT") == (e.Level == "AUDIT")
		if levels[e.Level] >= floor && audited && inWindow(e.ID, after, before) && c.eventFits(e) {
			found = append(found, e)
		}
	}
	if after > 0 {
		slices.Reverse(found)
	}
	out := []any{}
	for _, e := range found {
		out = append(out, c.print.Event(e))
	}
	next, prev := c.eventPages(found)
	return render.Object{"count": len(out), "events": out, "next_uri": next, "prev_uri": prev}, nil
}

// inWindow reports whether an ID is between the bounds; 0 means no bound.
func inWindow(id, after, before int) bool {
	return (after == 0 || id > after) && (before == 0 || id < before)
}

func (c *call) eventWindow() (limit, after, before int, err error) {
	limit = 100
	for key, into := range map[string]*int{"limit": &limit, "after": &after, "before": &before} {
		if raw := c.form.Get(key); raw != "" {
			if *into, err = strconv.Atoi(raw); err != nil {
				return 0, 0, 0, problem.Text(400, "Invalid %s: Please enter an integer value", key)
			}
		}
	}
	if limit > maxEvents {
		return 0, 0, 0, problem.Text(400, "Requested number of events %d is greater than limit: %d", limit, maxEvents)
	}
	return limit, after, before, nil
}

// eventFits reports whether an event matches the filters on its node.
func (c *call) eventFits(e *inventory.Event) bool {
	m := c.DB.Machines.Get(e.SystemID)
	if m != nil && !may(c.user, m, toView) {
		return false
	}
	property := map[string]func() string{
		"hostname":   func() string { return e.Hostname },
		"id":         func() string { return e.SystemID },
		"owner":      func() string { return e.Username },
		"agent_name": func() string { return ofMachine(m, func(m *inventory.Machine) string { return m.AgentName }) },
		"zone": func() string {
			return ofMachine(m, func(m *inventory.Machine) string { return c.DB.Zones.Get(m.ZoneID).Name })
		},
		"domain": func() string {
			return ofMachine(m, func(m *inventory.Machine) string { return c.DB.Domains.Get(m.DomainID).Name })
		},
	}
	for key, of := range property {
		if wanted := c.form.All(key); len(wanted) > 0 && !slices.Contains(wanted, of()) {
			return false
		}
	}
	if macs := c.form.All("mac_address"); len(macs) > 0 {
		return m != nil && slices.ContainsFunc(m.Interfaces, func(nic inventory.Interface) bool { return slices.Contains(macs, nic.MAC) })
	}
	return true
}

func ofMachine(m *inventory.Machine, of func(*inventory.Machine) string) string {
	if m == nil {
		return ""
	}
	return of(m)
}

// eventPages returns the links to newer and older events.
func (c *call) eventPages(found []*inventory.Event) (next, prev any) {
	page := func(key string, id int) string {
		uri := render.Root + "events/?op=query"
		for _, pair := range c.query.Without("op", "after", "before") {
			uri += "&" + url.QueryEscape(pair.Key) + "=" + url.QueryEscape(pair.Value)
		}
		if id > 0 {
			uri += fmt.Sprintf("&%s=%d", key, id)
		}
		return uri
	}
	if len(found) == 0 {
		return page("after", 0), nil
	}
	return page("after", found[0].ID), page("before", found[len(found)-1].ID)
}
