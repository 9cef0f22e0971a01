package maastest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

func (s *Server) serveSmall(w http.ResponseWriter, c Call, kind string) {
	switch kind + " " + c.Method + c.Op {
	case "users GETwhoami":
		answer(w, map[string]any{"username": s.User, "email": "", "is_local": true, "is_superuser": s.Superuser, "resource_uri": "/MAAS/api/2.0/users/" + s.User + "/"})
	case "zones GET":
		answer(w, s.named(func(m *Machine) string { return m.Zone }, "/MAAS/api/2.0/zones/"))
	case "resourcepools GET":
		answer(w, s.named(func(m *Machine) string { return m.Pool }, "/MAAS/api/2.0/resourcepool/"))
	case "tags GET":
		tags := []any{}
		for _, m := range s.machines {
			for _, tag := range m.Tags {
				tags = append(tags, map[string]any{"name": tag, "definition": "", "comment": "", "kernel_opts": ""})
			}
		}
		answer(w, tags)
	case "boot-resources GET":
		answer(w, s.Images)
	case "events GETquery":
		events := s.events(c.Params.Get("id"), c.Params.Get("level") == "DEBUG")
		answer(w, map[string]any{"count": len(events), "events": events, "next_uri": nil, "prev_uri": nil})
	default:
		text(w, http.StatusNotFound, "Unknown API endpoint: /MAAS/api/2.0/"+c.Path+".")
	}
}

// events are the errors of a machine and, when asked for, who acquired it.
func (s *Server) events(id string, debug bool) []any {
	events := []any{}
	add := func(user, level, kind, description, hostname string) {
		events = append(events, map[string]any{"username": user, "node": id, "hostname": hostname, "id": len(events) + 1, "level": level,
			"created": "Fri, 20 Nov. 2026 14:57:25", "type": kind, "description": description})
	}
	for _, m := range s.machines {
		if m.ID != id {
			continue
		}
		if m.Message != "" {
			add("unknown", "ERROR", "Node installation failure", "curtin said no", m.Hostname)
		}
		if m.Comment != "" && debug {
			add(s.User, "DEBUG", "User acquiring node", "("+s.User+") - "+m.Comment, m.Hostname)
		}
	}
	return events
}

// named lists the zones or pools that machines are in, and the default one.
func (s *Server) named(of func(*Machine) string, uri string) []any {
	names := []string{"default"}
	for _, m := range s.machines {
		names = append(names, of(m))
	}
	slices.Sort(names)
	list := []any{}
	for i, name := range slices.Compact(names) {
		list = append(list, map[string]any{"id": i, "name": name, "description": "", "resource_uri": uri + name + "/"})
	}
	return list
}

func (s *Server) serveDNS(w http.ResponseWriter, c Call, id string) {
	if c.Method != http.MethodGet && !s.Superuser {
		text(w, http.StatusForbidden, "This method is reserved for admin users.")
		return
	}
	n := slices.IndexFunc(s.dns, func(r *dnsResource) bool { return strconv.Itoa(r.id) == id })
	switch {
	case id != "" && n < 0:
		text(w, http.StatusNotFound, "No DNSResource matches the given query.")
	case c.Method == http.MethodGet:
		list := []any{}
		for _, r := range s.dns {
			if fqdn := c.Params.Get("fqdn"); fqdn == "" || fqdn == r.fqdn {
				list = append(list, r.render())
			}
		}
		answer(w, list)
	case c.Method == http.MethodPost:
		s.nextDNS++
		r := &dnsResource{id: s.nextDNS, fqdn: c.Params.Get("fqdn"), ttl: c.Params.Get("address_ttl"), ips: strings.Fields(c.Params.Get("ip_addresses"))}
		s.dns = append(s.dns, r)
		answer(w, r.render())
	case c.Method == http.MethodPut:
		if c.Params.Has("ip_addresses") {
			s.dns[n].ips = strings.Fields(c.Params.Get("ip_addresses"))
		}
		answer(w, s.dns[n].render())
	case c.Method == http.MethodDelete:
		s.dns = slices.Delete(s.dns, n, n+1)
		w.WriteHeader(http.StatusNoContent)
	}
}

func (r *dnsResource) render() map[string]any {
	addresses := []any{}
	for i, ip := range r.ips {
		addresses = append(addresses, map[string]any{"id": i + 1, "ip": ip, "alloc_type": 4, "alloc_type_name": "User reserved", "subnet": nil})
	}
	ttl, err := strconv.Atoi(fmt.Sprint(r.ttl))
	var rendered any
	if err == nil {
		rendered = ttl
	}
	return map[string]any{"id": r.id, "fqdn": r.fqdn, "address_ttl": rendered, "ip_addresses": addresses, "resource_records": []any{},
		"resource_uri": fmt.Sprintf("/MAAS/api/2.0/dnsresources/%d/", r.id)}
}
