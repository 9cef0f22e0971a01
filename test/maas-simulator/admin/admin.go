// SPDX-License-Identifier: Apache-2.0

// Package admin is the API of the simulator's admin port, with actions that a real MAAS does not have.
package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sort"
	"strconv"
	"time"

	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/load"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// maxBody is the maximum size of a request's body in bytes.
const maxBody = 1 << 20

// New returns the handler of the admin port.
func New(s *simulator.Simulator) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /faults", func(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, s.Faults.List()) })
	mux.HandleFunc("POST /faults", func(w http.ResponseWriter, r *http.Request) { addFault(w, r, s.Faults) })
	mux.HandleFunc("DELETE /faults", func(w http.ResponseWriter, _ *http.Request) {
		s.Faults.Clear()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("DELETE /faults/{id}", func(w http.ResponseWriter, r *http.Request) { removeFault(w, r, s.Faults) })
	mux.HandleFunc("GET /requests", func(w http.ResponseWriter, r *http.Request) {
		write(w, http.StatusOK, requests(s, r.URL.Query()["user"]))
	})
	mux.HandleFunc("DELETE /requests", func(w http.ResponseWriter, _ *http.Request) {
		s.ResetRequests()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /load", func(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, s.Load.Report()) })
	mux.HandleFunc("PUT /cost", func(w http.ResponseWriter, r *http.Request) { setCost(w, r, s) })
	mux.HandleFunc("PUT /users/{name}", func(w http.ResponseWriter, r *http.Request) { ensureUser(w, r, s) })
	mux.HandleFunc("GET /machines", func(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, machines(s)) })
	mux.HandleFunc("POST /machines/{id}/{lever}", func(w http.ResponseWriter, r *http.Request) { pull(w, r, s) })
	mux.HandleFunc("GET /vm-hosts", func(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, vmHosts(s)) })
	mux.HandleFunc("POST /vm-hosts/{name}/{lever}", func(w http.ResponseWriter, r *http.Request) { pullVMHost(w, r, s) })
	return mux
}

func write(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // The client may have disconnected.
}

func refuse(w http.ResponseWriter, code int, err error) {
	write(w, code, map[string]string{"error": err.Error()})
}

// read decodes a request's body. If that fails, it writes an error response and returns false.
func read(w http.ResponseWriter, r *http.Request, what string, into any) bool {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		refuse(w, http.StatusBadRequest, fmt.Errorf("reading %s: %w", what, err))
		return false
	}
	return true
}

// cost is the JSON form of load.Cost.
type cost struct {
	Workers int             `json:"workers"`
	Request faults.Duration `json:"request"`
	Machine faults.Duration `json:"machine"`
}

func setCost(w http.ResponseWriter, r *http.Request, s *simulator.Simulator) {
	var c cost
	if !read(w, r, "a cost", &c) {
		return
	}
	if err := s.Load.Set(load.Cost{Workers: c.Workers, Request: time.Duration(c.Request), Machine: time.Duration(c.Machine)}); err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func addFault(w http.ResponseWriter, r *http.Request, set *faults.Set) {
	var rule faults.Rule
	if !read(w, r, "a fault", &rule) {
		return
	}
	id, err := set.Add(rule)
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	write(w, http.StatusCreated, map[string]int{"id": id})
}

func removeFault(w http.ResponseWriter, r *http.Request, set *faults.Set) {
	id, err := strconv.Atoi(r.PathValue("id"))
	if err != nil || !set.Remove(id) {
		refuse(w, http.StatusNotFound, fmt.Errorf("no fault has the id %q", r.PathValue("id")))
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// request is an entry of the request counters.
type request struct {
	Operation string `json:"operation"`
	Status    int    `json:"status"`
	Count     int    `json:"count"`
}

func requests(s *simulator.Simulator, users []string) []request {
	rows := []request{}
	for k, n := range s.Requests(users...) {
		rows = append(rows, request{k.Operation, k.Status, n})
	}
	sort.Slice(rows, func(i, j int) bool {
		return rows[i].Operation < rows[j].Operation || rows[i].Operation == rows[j].Operation && rows[i].Status < rows[j].Status
	})
	return rows
}

// machine is an entry of the machine list.
type machine struct {
	SystemID  string   `json:"system_id"`
	Hostname  string   `json:"hostname"`
	Status    string   `json:"status"`
	Power     string   `json:"power"`
	Owner     string   `json:"owner,omitempty"`
	AgentName string   `json:"agent_name,omitempty"`
	Image     string   `json:"image,omitempty"`
	IPs       []string `json:"ips,omitempty"`
	// UserData is the size of the user-data in bytes.
	UserData int `json:"user_data_bytes,omitempty"`
}

func machines(s *simulator.Simulator) []machine {
	rows := []machine{}
	for _, m := range s.Machines() {
		row := machine{
			SystemID: m.SystemID, Hostname: m.Hostname, Status: m.Status.String(), Power: m.PowerState, Owner: m.Owner,
			AgentName: m.AgentName, IPs: m.IPs(), UserData: len(m.UserData),
		}
		if m.OSystem != "" {
			row.Image = m.OSystem + "/" + m.Series
		}
		rows = append(rows, row)
	}
	return rows
}

// levers are actions on a machine that bypass the MAAS API, or that a MAAS user would take in the UI.
var levers = map[string]func(*simulator.Simulator, *inventory.Machine, string) error{
	"broken": func(s *simulator.Simulator, m *inventory.Machine, text string) error {
		return s.Life.MarkBroken(m, "admin", text)
	},
	"fixed": func(s *simulator.Simulator, m *inventory.Machine, text string) error {
		return s.Life.MarkFixed(m, "admin", text)
	},
	"release": func(s *simulator.Simulator, m *inventory.Machine, text string) error {
		return s.Life.Release(m, "admin", text, false)
	},
	"resume": func(s *simulator.Simulator, m *inventory.Machine, _ string) error {
		return s.Life.Resume(m)
	},
	"test": func(s *simulator.Simulator, m *inventory.Machine, text string) error {
		return s.Life.Test(m, "admin", text)
	},
	"fail": func(s *simulator.Simulator, m *inventory.Machine, text string) error {
		if _, busy := m.Status.Failed(); !busy {
			return fmt.Errorf("machine %s is %s: it does nothing that could fail", m.Hostname, m.Status)
		}
		s.Life.Fail(m, text)
		return nil
	},
	"delete": func(s *simulator.Simulator, m *inventory.Machine, _ string) error {
		s.Life.Remove(m)
		return nil
	},
	"lose": func(s *simulator.Simulator, m *inventory.Machine, _ string) error {
		if m.VM == nil {
			return fmt.Errorf("machine %s is not a VM that can be deleted in LXD", m.Hostname)
		}
		s.Life.LoseVM(m)
		return nil
	},
	"power": func(_ *simulator.Simulator, m *inventory.Machine, text string) error {
		switch text {
		case "on", "off", "unknown", "error":
			m.PowerState = text
			return nil
		}
		return fmt.Errorf("power state %q is not known: use on, off, unknown or error", text)
	},
	"status": func(_ *simulator.Simulator, m *inventory.Machine, text string) error {
		to, known := status.ByWord(text)
		if !known {
			return fmt.Errorf("status %q is not known: use a word such as ready or failed_deployment", text)
		}
		m.Status = to
		return nil
	},
}

// pull runs a lever on a machine. The query parameter "text" is the lever's argument.
func pull(w http.ResponseWriter, r *http.Request, s *simulator.Simulator) {
	lever := levers[r.PathValue("lever")]
	if lever == nil {
		refuse(w, http.StatusNotFound, fmt.Errorf("there is no lever %q", r.PathValue("lever")))
		return
	}
	m := s.Machine(r.PathValue("id"))
	if m == nil {
		refuse(w, http.StatusNotFound, fmt.Errorf("no machine has the system id or hostname %q", r.PathValue("id")))
		return
	}
	err := s.DB.Update(func() error {
		fresh := s.DB.Machines.Edit(m.SystemID)
		if fresh == nil {
			return fmt.Errorf("machine %s is gone", m.SystemID)
		}
		return lever(s, fresh, r.URL.Query().Get("text"))
	})
	s.Life.Wake()
	if err != nil {
		refuse(w, http.StatusConflict, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
