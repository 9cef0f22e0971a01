// SPDX-License-Identifier: Apache-2.0

// Package metadata serves the metadata endpoint for cloud-init, and receives the reports of the installer and of the
// booted system.
package metadata

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/form"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/lifecycle"
	"github.com/openshift/hypershift/test/maas-simulator/oauth"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// Root is the path of the endpoint.
const Root = "/MAAS/metadata/"

// versions lists the versions of the EC2-like metadata tree.
var versions = []string{"latest", "2012-03-01", "2009-04-04"}

// Server is the HTTP handler of all paths below Root. Create one with New.
type Server struct {
	life     *lifecycle.Life
	verifier *oauth.Verifier
}

// New returns a Server for the machines of a simulator.
func New(life *lifecycle.Life) *Server {
	return &Server{life: life, verifier: oauth.NewVerifier(life.Clock)}
}

// ServeHTTP answers a request of a machine.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	code, body, err := s.serve(r)
	if err != nil {
		var p *problem.Problem
		if !errors.As(err, &p) {
			p = problem.Text(http.StatusInternalServerError, "%s", err.Error())
		}
		code, body = p.Status, []byte(p.Body)
		for key, values := range p.Header {
			w.Header()[key] = values
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(body) //nolint:gosec // Plain text. The machine may be gone; no client reads the error.
}

func (s *Server) serve(r *http.Request) (int, []byte, error) {
	rest := strings.TrimPrefix(r.URL.Path, Root)
	if id, ok := strings.CutPrefix(rest, "status/"); ok {
		return s.report(r, strings.Trim(id, "/"))
	}
	rest = strings.TrimPrefix(rest, "curtin/")
	version, item, _ := strings.Cut(rest, "/")
	if version == "" {
		return http.StatusOK, []byte(strings.Join(versions, "\n")), nil
	}
	if !slices.Contains(versions, version) {
		return 0, nil, problem.Text(http.StatusNotFound, "Unknown metadata version %s.", version)
	}
	m, err := s.machine(r)
	if err != nil {
		return 0, nil, err
	}
	switch {
	case r.Method == http.MethodPost:
		return s.signal(r, m)
	case item == "" || item == "/":
		return http.StatusOK, []byte("meta-data/\nuser-data\nmaas-commissioning-scripts\nmaas-scripts"), nil
	case item == "user-data":
		return s.userData(m)
	case strings.HasPrefix(item, "meta-data"):
		return s.metaData(m, strings.Trim(strings.TrimPrefix(item, "meta-data"), "/"))
	}
	return 0, nil, problem.Text(http.StatusNotFound, "Unknown metadata attribute: %s", item)
}

// machine returns the machine with the request's credentials.
func (s *Server) machine(r *http.Request) (*inventory.Machine, error) {
	// Machines sign with PLAINTEXT, which does not cover a form.
	params, err := oauth.Read(r, nil)
	if err != nil {
		return nil, unauthorized("Not authenticated.")
	}
	var found *inventory.Machine
	err = s.life.DB.View(func() error {
		return s.verifier.Verify(r, nil, params, func(consumer, token string) (oauth.Key, bool, bool) {
			found = s.life.DB.Machines.Find(func(m *inventory.Machine) bool {
				return m.Token.Consumer == consumer && m.Token.Key == token
			})
			if found == nil {
				return oauth.Key{}, false, false
			}
			return oauth.Key{Consumer: consumer, Token: token, Secret: found.Token.Secret}, true, true
		})
	})
	if err != nil {
		return nil, unauthorized(err.Error())
	}
	return found, nil
}

func unauthorized(words string) error {
	p := problem.Text(http.StatusUnauthorized, "%s", words)
	p.Header = http.Header{"Www-Authenticate": {`OAuth realm="MAAS API"`}}
	return p
}

// metaData returns an item of the tree below meta-data, or the sorted names of the items.
func (s *Server) metaData(m *inventory.Machine, item string) (code int, body []byte, err error) {
	err = s.life.DB.View(func() error {
		items := s.items(m)
		value, known := items[item]
		switch {
		case item == "":
			var names []string
			for name := range items {
				names = append(names, name)
			}
			slices.Sort(names)
			value = strings.Join(names, "\n")
		case !known:
			return problem.Text(http.StatusNotFound, "Unknown metadata attribute: %s", item)
		}
		code, body = http.StatusOK, []byte(value)
		return nil
	})
	return code, body, err
}

func (s *Server) items(m *inventory.Machine) map[string]string {
	db := s.life.DB
	out := map[string]string{
		"instance-id": m.SystemID, "local-hostname": db.FQDN(m), "public-keys": "", "vendor-data": vendorData(s.life.MetadataURL),
		"x509": "",
	}
	if ips := m.IPs(); len(ips) > 0 {
		out["local-ipv4"] = ips[0]
	}
	if z := db.Zones.Get(m.ZoneID); z != nil {
		out["placement/availability-zone"] = z.Name
	}
	if owner := db.Users.Get(m.Owner); owner != nil {
		var keys []string
		for _, k := range owner.SSHKeys {
			keys = append(keys, k.Key)
		}
		out["public-keys"] = strings.Join(keys, "\n")
	}
	return out
}

// userData returns the user-data. The request for it is the signal that a deployed system is up.
func (s *Server) userData(m *inventory.Machine) (int, []byte, error) {
	if _, hit := s.life.Fault(faults.BootHangs, m); hit {
		return 0, nil, problem.Unavailable("The service is unavailable.")
	}
	err := s.life.DB.Update(func() error {
		fresh := s.life.DB.Machines.Edit(m.SystemID)
		switch {
		case fresh == nil:
			return nil
		case fresh.VMHost && fresh.Status == status.Deploying:
			// The machine becomes Deployed when it reports the end of its configuration.
			fresh.AgentName = lifecycle.AgentOfVMHost
			return nil
		}
		return s.life.OSReady(fresh)
	})
	s.life.Wake()
	if err != nil {
		return 0, nil, err
	}
	if _, hit := s.life.Fault(faults.GoesSilent, m); hit {
		return http.StatusOK, nil, nil
	}
	if m.UserData == nil {
		return 0, nil, problem.Text(http.StatusNotFound, "No user data available for this node.")
	}
	return http.StatusOK, m.UserData, nil
}

// signal handles op=signal, op=netboot_off and op=netboot_on.
func (s *Server) signal(r *http.Request, m *inventory.Machine) (int, []byte, error) {
	body, err := form.Body(r)
	if err != nil {
		return 0, nil, problem.Text(http.StatusBadRequest, "%s", err.Error())
	}
	op := r.URL.Query().Get("op")
	if op == "" {
		op = body.Get("op")
	}
	err = s.life.DB.Update(func() error {
		fresh := s.life.DB.Machines.Edit(m.SystemID)
		switch {
		case fresh == nil:
			return problem.NotFound("Node")
		case op == "netboot_off" || op == "netboot_on":
			fresh.Netboot = op == "netboot_on"
			return nil
		case op != "signal":
			return problem.Text(http.StatusBadRequest, "Unrecognised signature: method=POST op=%s", op)
		}
		return s.signalled(fresh, body.Get("status"), body.Get("error"))
	})
	s.life.Wake()
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, []byte("OK"), nil
}

var signals = []string{"OK", "FAILED", "WORKING", "COMMISSIONING", "TESTING", "TIMEDOUT", "INSTALLING", "APPLYING_NETCONF", "RELEASING"}

func (s *Server) signalled(m *inventory.Machine, signal, reason string) error {
	switch {
	case signal == "":
		return problem.Text(http.StatusBadRequest, "No provided status!")
	case !slices.Contains(signals, signal):
		return problem.Text(http.StatusBadRequest, "Unknown commissioning/installation status: '%s'", signal)
	case signal == "FAILED" || signal == "TIMEDOUT":
		if _, moving := m.Status.Failed(); moving {
			if reason == "" {
				reason = "the machine reported " + signal
			}
			s.life.Fail(m, reason)
		}
	}
	return nil
}

// event is a report of curtin or cloud-init.
type event struct {
	Type        string `json:"event_type"`
	Origin      string `json:"origin"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Result      string `json:"result"`
}

// maxReport is the maximum size of a report in bytes. A report may contain log files.
const maxReport = 16 << 20

func (s *Server) report(r *http.Request, id string) (int, []byte, error) {
	m, err := s.machine(r)
	if err != nil {
		return 0, nil, err
	}
	if m.SystemID != id {
		return 0, nil, unauthorized("These credentials belong to another node.")
	}
	if r.Method != http.MethodPost {
		return 0, nil, problem.Text(http.StatusMethodNotAllowed, "")
	}
	var e event
	raw, err := io.ReadAll(io.LimitReader(r.Body, maxReport))
	if err == nil {
		err = json.Unmarshal(raw, &e)
	}
	if err != nil {
		return 0, nil, problem.Text(http.StatusBadRequest, "Status payload is not valid JSON: %s", err.Error())
	}
	for key, value := range map[string]string{"event_type": e.Type, "origin": e.Origin, "name": e.Name, "description": e.Description} {
		if value == "" {
			return 0, nil, problem.Text(http.StatusBadRequest, "Missing parameter in status message %s", key)
		}
	}
	err = s.life.DB.Update(func() error { return s.reported(m.SystemID, e) })
	s.life.Wake()
	return http.StatusNoContent, nil, err
}

// reported logs a step that begins or has failed. A failed top-level step fails the deployment, commissioning or
// erasing that runs.
func (s *Server) reported(id string, e event) error {
	m := s.life.DB.Machines.Edit(id)
	if m == nil {
		return nil
	}
	failed := e.Result == "FAIL" || e.Result == "FAILURE"
	if e.Type == "start" || failed {
		s.life.Reported(m, fmt.Sprintf("'%s' %s", e.Origin, e.Description), failed)
	}
	topLevel := !strings.Contains(strings.Trim(e.Name, "/"), "/")
	if m.VMHost && m.Status == status.Deploying {
		// Failed steps have no effect here: the deployment of a VM host ends with success or with the timeout.
		if e.Type == "finish" && !failed && e.Name == "modules-final" && m.AgentName == lifecycle.AgentOfVMHost {
			return s.life.OSReady(m)
		}
		return nil
	}
	if e.Type == "finish" && failed && topLevel && m.Status.In(status.Deploying, status.Commissioning, status.DiskErasing) {
		s.life.Fail(m, fmt.Sprintf("Installation failed (%s: %s)", e.Name, e.Description))
	}
	return nil
}
