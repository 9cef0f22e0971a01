package maastest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

func (s *Server) find(id string) *Machine {
	for _, m := range s.machines {
		if m.ID == id {
			return m
		}
	}
	return nil
}

// render fills the golden machine with what is known of this one.
func (s *Server) render(m *Machine) map[string]any {
	var out map[string]any
	if err := json.Unmarshal(machineJSON, &out); err != nil {
		panic(err) // The golden file is embedded; a test would have to be broken.
	}
	name := statusName(m.Status)
	message := m.Message
	if message == "" {
		message = name
	}
	for key, value := range map[string]any{
		"system_id": m.ID, "hostname": m.Hostname, "fqdn": m.Hostname + ".maas", "status": m.Status, "status_name": name, "status_message": message,
		"cpu_count": m.CPU, "memory": m.Memory, "architecture": m.Arch, "power_state": m.Power, "power_type": m.PowerType, "locked": m.Locked,
		"distro_series": m.Series, "error_description": m.Description, "resource_uri": "/MAAS/api/2.0/machines/" + m.ID + "/",
		"storage": float64(m.DiskGB * 1000),
	} {
		out[key] = value
	}
	if m.Owner != "" {
		out["owner"] = m.Owner
	}
	if len(m.Annotations) > 0 {
		out["workload_annotations"], out["owner_data"] = m.Annotations, m.Annotations
	}
	out["tag_names"] = append([]string{}, m.Tags...)
	out["ip_addresses"] = append([]string{}, m.IPs...)
	out["zone"].(map[string]any)["name"] = m.Zone
	out["pool"].(map[string]any)["name"] = m.Pool
	out["physicalblockdevice_set"].([]any)[0].(map[string]any)["size"] = m.DiskGB * 1_000_000_000
	return out
}

func (s *Server) serveMachines(w http.ResponseWriter, c Call) {
	switch c.Method + c.Op {
	case "GET":
		list := []any{}
		for _, m := range s.machines {
			s.settle(m)
			if !s.shows(m) {
				continue
			}
			match, bad := matches(m, c.Params)
			if bad != "" {
				refuse(w, bad, "No such constraint.")
				return
			}
			if match {
				list = append(list, s.render(m))
			}
		}
		answer(w, list)
	case "POSTallocate":
		s.allocate(w, c.Params)
	default:
		text(w, http.StatusBadRequest, fmt.Sprintf("Unrecognised signature: method=%s op=%s", c.Method, c.Op))
	}
}

// shows tells whether the user sees a machine: what is his and what is nobody's; an administrator sees all.
func (s *Server) shows(m *Machine) bool { return m.Owner == "" || m.Owner == s.User || s.Superuser }

func matches(m *Machine, params url.Values) (match bool, bad string) {
	word := strings.ReplaceAll(strings.ToLower(statusName(m.Status)), " ", "_")
	for key, values := range params {
		have := ""
		switch key {
		case "id":
			have = m.ID
		case "hostname":
			have = m.Hostname
		case "agent_name":
			have = m.AgentName
		case "owner":
			have = m.Owner
		case "status":
			have = word
		case "zone":
			have = m.Zone
		case "pool":
			have = m.Pool
		default:
			if known[key] == nil {
				return false, key
			}
			if !known[key](m, values) {
				return false, ""
			}
			continue
		}
		if !slices.Contains(values, have) {
			return false, ""
		}
	}
	return true, ""
}

// known are the constraints of an allocation; each tells whether a machine has what is wanted.
var known = map[string]func(*Machine, []string) bool{
	"cpu_count": func(m *Machine, v []string) bool { return m.CPU >= number(v) },
	"mem":       func(m *Machine, v []string) bool { return m.Memory >= number(v) },
	"zone":      func(m *Machine, v []string) bool { return slices.Contains(v, m.Zone) },
	"pool":      func(m *Machine, v []string) bool { return slices.Contains(v, m.Pool) },
	"system_id": func(m *Machine, v []string) bool { return slices.Contains(v, m.ID) },
	"arch": func(m *Machine, v []string) bool {
		return m.Arch == v[0] || strings.HasPrefix(m.Arch, v[0]+"/")
	},
	"tags": func(m *Machine, v []string) bool {
		return !slices.ContainsFunc(v, func(tag string) bool { return !slices.Contains(m.Tags, tag) })
	},
	"not_tags": func(m *Machine, v []string) bool {
		return !slices.ContainsFunc(v, func(tag string) bool { return slices.Contains(m.Tags, tag) })
	},
	"storage": func(m *Machine, v []string) bool {
		_, size, _ := strings.Cut(v[0], ":")
		return m.DiskGB >= number([]string{size})
	},
	"agent_name": func(*Machine, []string) bool { return true },
	"comment":    func(*Machine, []string) bool { return true },
}

func number(values []string) int {
	n, _ := strconv.Atoi(values[0]) // A test that sends no number is told by its result.
	return n
}

func (s *Server) allocate(w http.ResponseWriter, params url.Values) {
	for key := range params {
		if known[key] == nil {
			refuse(w, key, "No such constraint.")
			return
		}
	}
	var best *Machine
	for _, m := range s.machines {
		s.settle(m)
		fits := m.Status == Ready
		for key, values := range params {
			fits = fits && known[key](m, values)
		}
		if fits && (best == nil || cost(m) < cost(best)) {
			best = m
		}
	}
	if best == nil {
		if id := params.Get("system_id"); id != "" {
			text(w, http.StatusConflict, "No machine with system ID "+id+" available.")
			return
		}
		text(w, http.StatusConflict, "No available machine matches constraints: [] (resolved to \"\")")
		return
	}
	best.Status, best.Owner, best.AgentName, best.Comment = Allocated, s.User, params.Get("agent_name"), params.Get("comment")
	answer(w, s.render(best))
}

func cost(m *Machine) float64 { return float64(m.CPU) + float64(m.Memory)/1024 }

func (s *Server) serveMachine(w http.ResponseWriter, c Call, id string) {
	m := s.find(id)
	if m == nil {
		text(w, http.StatusNotFound, "No Machine matches the given query.")
		return
	}
	s.settle(m)
	op := map[string]func(http.ResponseWriter, *Machine, url.Values){
		"GET": func(http.ResponseWriter, *Machine, url.Values) {}, "POSTdeploy": s.deploy, "POSTrelease": s.release, "POSTabort": s.abort,
		"POSTset_workload_annotations": s.annotate, "POSTpower_on": s.powerOn,
	}[c.Method+c.Op]
	switch {
	case op == nil:
		text(w, http.StatusBadRequest, fmt.Sprintf("Unrecognised signature: method=%s op=%s", c.Method, c.Op))
	case !s.shows(m), c.Method == http.MethodPost && m.Locked:
		text(w, http.StatusForbidden, "")
	default:
		recorder := &status{ResponseWriter: w}
		op(recorder, m, c.Params)
		if recorder.code == 0 {
			answer(w, s.render(m))
		}
	}
}

// status remembers whether an operation refused.
type status struct {
	http.ResponseWriter
	code int
}

func (s *status) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

func (s *Server) deploy(w http.ResponseWriter, m *Machine, params url.Values) {
	series := params.Get("distro_series")
	if m.Status != Allocated && m.Status != Ready {
		text(w, http.StatusConflict, fmt.Sprintf("Can't deploy a machine that is in the '%s' state", statusName(m.Status)))
		return
	}
	if !s.hasImage(series) {
		refuse(w, "distro_series", fmt.Sprintf("'%s' is not a valid distro_series.  It should be one of: '', 'custom/node-image', 'ubuntu/noble'.", series))
		return
	}
	data, err := base64.StdEncoding.DecodeString(params.Get("user_data"))
	if err != nil {
		data = []byte(params.Get("user_data"))
	}
	m.Series, m.UserData, m.Power, m.Owner, m.Message = series, string(data), "on", s.User, ""
	then := Deployed
	if m.FailDeploys > 0 {
		m.FailDeploys--
		then = FailedDeployment
	}
	m.move(Deploying, then, s.DeployTime)
}

func (s *Server) hasImage(series string) bool {
	return slices.ContainsFunc(s.Images, func(image map[string]any) bool {
		name := image["name"].(string)
		_, bare, _ := strings.Cut(name, "/")
		return series == name || series == bare || image["type"] == "Uploaded" && series == "custom/"+name
	})
}

func (s *Server) release(w http.ResponseWriter, m *Machine, _ url.Values) {
	switch m.Status {
	case Ready, Releasing:
		return
	case Allocated, Reserved, Broken, Deploying, Deployed, FailedDeployment, FailedDiskErasing, ReleasingFailed:
	default:
		text(w, http.StatusConflict, fmt.Sprintf("Machine cannot be released in its current state ('%s').", statusName(m.Status)))
		return
	}
	m.AgentName, m.Annotations, m.Series, m.UserData, m.IPs, m.Message = "", nil, "", "", nil, ""
	if m.Power == "off" {
		m.Status, m.Owner = Ready, ""
		return
	}
	m.move(Releasing, Ready, s.ReleaseTime)
}

func (s *Server) abort(w http.ResponseWriter, m *Machine, _ url.Values) {
	if m.Status != Deploying {
		text(w, http.StatusConflict, fmt.Sprintf("Cannot abort in current state: node %s is in state %s.", m.ID, statusName(m.Status)))
		return
	}
	m.Status, m.Power = Allocated, "off"
	m.at = time.Time{}
}

func (s *Server) annotate(_ http.ResponseWriter, m *Machine, params url.Values) {
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	for key := range params {
		m.Annotations[key] = params.Get(key)
		if params.Get(key) == "" {
			delete(m.Annotations, key)
		}
	}
}

func (s *Server) powerOn(w http.ResponseWriter, m *Machine, _ url.Values) {
	if m.Owner == "" {
		text(w, http.StatusConflict, "Can't start node: it hasn't been allocated.")
		return
	}
	m.Power = "on"
}
