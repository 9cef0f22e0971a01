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
		events := []any{}
		for _, m := range s.machines {
			if m.Message != "" && c.Params.Get("id") == m.ID {
				events = append(events, map[string]any{"username": "unknown", "node": m.ID, "hostname": m.Hostname, "id": len(events) + 1, "level": "ERROR",
					"created": "Fri, 20 Nov. 2026 14:57:25", "type": "Node installation failure", "description": "curtin said no"})
			}
		}
		for _, m := range s.machines {
			if m.Comment != "" && c.Params.Get("id") == m.ID && c.Params.Get("level") == "DEBUG" {
				events = append(events, map[string]any{"username": s.User, "node": m.ID, "hostname": m.Hostname, "id": len(events) + 1, "level": "DEBUG",
					"created": "Fri, 20 Nov. 2026 14:57:25", "type": "User acquiring node", "description": "(" + s.User + ") - " + m.Comment})
			}
		}
		answer(w, map[string]any{"count": len(events), "events": events, "next_uri": nil, "prev_uri": nil})
	default:
		text(w, http.StatusNotFound, "Unknown API endpoint: /MAAS/api/2.0/"+c.Path+".")
	}
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
