// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"fmt"
	"net/http"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
)

// vmHost is an entry of the list of VM hosts.
type vmHost struct {
	Name     string   `json:"name"`
	Away     bool     `json:"away"`
	Machines []string `json:"machines"`
}

func vmHosts(s *simulator.Simulator) []vmHost {
	rows := []vmHost{}
	// The function always returns nil.
	_ = s.DB.View(func() error {
		for _, h := range s.DB.VMHosts.All() {
			row := vmHost{Name: h.Name, Away: h.Away, Machines: []string{}}
			for _, m := range s.DB.MachinesOf(h.ID) {
				row.Machines = append(row.Machines, m.Hostname)
			}
			rows = append(rows, row)
		}
		return nil
	})
	return rows
}

// vmHostLevers are actions on the hypervisor. Their argument is the name of a storage pool.
var vmHostLevers = map[string]func(*simulator.Simulator, *inventory.VMHost, string) error{
	"away": func(s *simulator.Simulator, h *inventory.VMHost, _ string) error {
		s.Life.LeaveVMHost(h)
		return nil
	},
	"back": func(s *simulator.Simulator, h *inventory.VMHost, _ string) error {
		s.Life.ReturnVMHost(h)
		return nil
	},
	"fill": func(s *simulator.Simulator, h *inventory.VMHost, pool string) error {
		used := s.DB.Used(h).Pools
		for i := range h.StoragePools {
			if p := &h.StoragePools[i]; p.Name == pool {
				p.Other += p.Total - used[p.ID]
				return nil
			}
		}
		return fmt.Errorf("VM host %s has no storage pool %q", h.Name, pool)
	},
}

// pullVMHost runs a lever on a VM host. The query parameter "text" is the lever's argument.
func pullVMHost(w http.ResponseWriter, r *http.Request, s *simulator.Simulator) {
	lever := vmHostLevers[r.PathValue("lever")]
	if lever == nil {
		refuse(w, http.StatusNotFound, fmt.Errorf("there is no lever %q of a VM host", r.PathValue("lever")))
		return
	}
	var err error
	if !s.ChangeVMHost(r.PathValue("name"), func(h *inventory.VMHost) { err = lever(s, h, r.URL.Query().Get("text")) }) {
		refuse(w, http.StatusNotFound, fmt.Errorf("no VM host has the name %q", r.PathValue("name")))
		return
	}
	if err != nil {
		refuse(w, http.StatusConflict, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
