// Package maastest is a small MAAS region API for tests, written from the examples of a fact sheet and from nothing else: it
// shares no type with the client, so that the two can't agree on the same mistake.
package maastest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

//go:embed testdata/machine.json
var machineJSON []byte

// Statuses by the numbers of the fact sheet.
const (
	Commissioning, Ready, Reserved          = 1, 4, 5
	Deployed, Broken                        = 6, 8
	Deploying, Allocated, FailedDeployment  = 9, 10, 11
	Releasing, ReleasingFailed, DiskErasing = 12, 13, 14
	FailedDiskErasing, RescueMode, Testing  = 15, 16, 21
	FailedTesting                           = 22
)

var statusNames = []string{"New", "Commissioning", "Failed commissioning", "Missing", "Ready", "Reserved", "Deployed", "Retired",
	"Broken", "Deploying", "Allocated", "Failed deployment", "Releasing", "Releasing failed", "Disk erasing", "Failed disk erasing",
	"Rescue mode", "Entering rescue mode", "Failed to enter rescue mode", "Exiting rescue mode", "Failed to exit rescue mode", "Testing", "Failed testing"}

// statusName names a state; a number that no MAAS has yet stands for one of a newer MAAS.
func statusName(status int) string {
	if status >= len(statusNames) {
		return "Levitating"
	}
	return statusNames[status]
}

// Machine is what the server knows of a machine. Tests change it under Server.Edit.
type Machine struct {
	ID, Hostname         string
	Status               int
	Owner, AgentName     string
	Annotations          map[string]string
	Zone, Pool, Arch     string
	Tags                 []string
	CPU, Memory, DiskGB  int
	Power, PowerType     string
	Series, UserData     string
	IPs                  []string
	Locked               bool
	Message, Description string
	// Comment is that of the allocation; the event log tells it, to who asks for DEBUG.
	Comment string
	// FailDeploys is how many of the next deployments fail.
	FailDeploys int

	then int
	at   time.Time
}

// Call is one request that the server saw.
type Call struct {
	Method, Path, Op string
	Params           url.Values
}

// Name is method, path without ids, and op.
func (c Call) Name() string {
	parts := strings.Split(strings.Trim(c.Path, "/"), "/")
	if len(parts) > 1 {
		parts[1] = "*"
	}
	name := c.Method + " " + strings.Join(parts, "/")
	if c.Op != "" {
		name += " " + c.Op
	}
	return name
}

// Server is the region API. Its fields may be changed before the first request.
type Server struct {
	// URL is the endpoint, APIKey the credentials of its one user.
	URL, APIKey string
	User        string
	Superuser   bool
	// DeployTime and ReleaseTime are how long these take.
	DeployTime, ReleaseTime time.Duration
	// Intercept may answer instead of the server: before the request is worked on, or, when it returns a function, after.
	Intercept func(Call, http.ResponseWriter) (done bool, after func(http.ResponseWriter) bool)
	Images    []map[string]any

	mu       sync.Mutex
	machines []*Machine
	dns      []*dnsResource
	calls    []Call
	nonces   map[string]bool
	nextDNS  int
	secret   string
}

type dnsResource struct {
	id  int
	ttl any
	// fqdn and its addresses.
	fqdn string
	ips  []string
}

// New starts a server that ends with the test.
func New(t testing.TB, machines ...*Machine) *Server {
	t.Helper()
	s := &Server{APIKey: "consumerkey:tokenkey01:tokensecret", User: "provider", nonces: map[string]bool{}, secret: "tokensecret"}
	s.Images = []map[string]any{
		{"id": 1, "type": "Synced", "name": "ubuntu/noble", "architecture": "amd64/ga-24.04", "resource_uri": "/MAAS/api/2.0/boot-resources/1/"},
		{"id": 2, "type": "Uploaded", "name": "node-image", "architecture": "amd64/generic", "resource_uri": "/MAAS/api/2.0/boot-resources/2/"},
	}
	for _, m := range machines {
		s.Add(m)
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL + "/MAAS"
	return s
}

// Add puts a machine into the inventory, with defaults for what is empty.
func (s *Server) Add(m *Machine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	set(&m.Hostname, "host-"+m.ID)
	set(&m.Zone, "default")
	set(&m.Pool, "default")
	set(&m.Arch, "amd64/generic")
	set(&m.Power, "off")
	set(&m.PowerType, "ipmi")
	if m.Status == 0 {
		m.Status = Ready // New is what Edit is for.
	}
	if m.CPU == 0 {
		m.CPU = 4
	}
	if m.Memory == 0 {
		m.Memory = 8192
	}
	if m.DiskGB == 0 {
		m.DiskGB = 80
	}
	s.machines = append(s.machines, m)
}

// Edit changes a machine.
func (s *Server) Edit(id string, change func(*Machine)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.machines {
		if m.ID == id {
			s.settle(m)
			change(m)
		}
	}
}

// Delete removes a machine from the inventory.
func (s *Server) Delete(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machines = slices.DeleteFunc(s.machines, func(m *Machine) bool { return m.ID == id })
}

// Machines returns copies of all machines.
func (s *Server) Machines() []Machine {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Machine
	for _, m := range s.machines {
		s.settle(m)
		all = append(all, *m)
	}
	return all
}

// Get returns a copy of a machine.
func (s *Server) Get(id string) Machine {
	for _, m := range s.Machines() {
		if m.ID == id {
			return m
		}
	}
	return Machine{}
}

// Held returns the machines that are allocated to somebody.
func (s *Server) Held() []Machine {
	return slices.DeleteFunc(s.Machines(), func(m Machine) bool { return m.Owner == "" })
}

// DNS returns the names with their addresses.
func (s *Server) DNS() map[string][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := map[string][]string{}
	for _, r := range s.dns {
		names[r.fqdn] = r.ips
	}
	return names
}

// Calls returns how often each call was made, and forgets them when reset is set.
func (s *Server) Calls(reset bool) map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[string]int{}
	for _, c := range s.calls {
		counts[c.Name()]++
	}
	if reset {
		s.calls = nil
	}
	return counts
}

// Last returns the last call with a name.
func (s *Server) Last(name string) (Call, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range slices.Backward(s.calls) {
		if c.Name() == name {
			return c, true
		}
	}
	return Call{}, false
}

// settle ends what has taken its time.
func (s *Server) settle(m *Machine) {
	if m.at.IsZero() || time.Now().Before(m.at) {
		return
	}
	m.Status, m.at = m.then, time.Time{}
	switch m.Status {
	case Ready:
		m.Owner, m.Power = "", "off"
	case Deployed:
		m.Power, m.IPs = "on", []string{"10.0.0." + strconv.Itoa(10+slices.Index(s.machines, m)%200)}
	case FailedDeployment:
		m.Message = "Marking node failed - Node operation 'Deploying' timed out."
	}
}

func (m *Machine) move(now, then int, after time.Duration) {
	m.Status, m.then, m.at = now, then, time.Now().Add(after)
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, found := strings.CutPrefix(r.URL.Path, "/MAAS/api/2.0/")
	if err := r.ParseForm(); err != nil || !found {
		text(w, http.StatusNotFound, "Unknown API endpoint: "+r.URL.Path+".")
		return
	}
	params := r.Form
	call := Call{Method: r.Method, Path: path, Op: params.Get("op"), Params: params}
	delete(params, "op")
	s.mu.Lock()
	s.calls = append(s.calls, call)
	s.mu.Unlock()
	var after func(http.ResponseWriter) bool
	if s.Intercept != nil {
		var done bool
		if done, after = s.Intercept(call, w); done {
			return
		}
	}
	answer := httptest.NewRecorder()
	s.mu.Lock()
	s.serve(answer, r, call)
	s.mu.Unlock()
	if after != nil && after(w) {
		return
	}
	for key, values := range answer.Header() {
		w.Header()[key] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // A client that went away is its own test.
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, c Call) {
	if c.Path == "version/" {
		answer(w, map[string]any{"version": "3.4.10", "subversion": "", "capabilities": []string{"networks-management"}})
		return
	}
	if refusal := s.authenticate(r.Header.Get("Authorization")); refusal != "" {
		text(w, http.StatusUnauthorized, refusal)
		return
	}
	kind, id, _ := strings.Cut(strings.TrimSuffix(c.Path, "/"), "/")
	switch {
	case !strings.HasSuffix(c.Path, "/"):
		text(w, http.StatusNotFound, "Unknown API endpoint: /MAAS/api/2.0/"+c.Path+".")
	case kind == "machines" && id == "":
		s.serveMachines(w, c)
	case kind == "machines":
		s.serveMachine(w, c, id)
	case kind == "dnsresources":
		s.serveDNS(w, c, id)
	default:
		s.serveSmall(w, c, kind)
	}
}

// authenticate reads the header as section 2 describes it; the answer for a wrong signature prints the right one.
func (s *Server) authenticate(header string) string {
	fields := map[string]string{}
	rest, ok := strings.CutPrefix(header, "OAuth ")
	if !ok {
		return "Forbidden"
	}
	for pair := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		decoded, err := url.PathUnescape(strings.Trim(value, `"`))
		if err != nil {
			return "Authorization Error: 'malformed'"
		}
		fields[name] = decoded
	}
	parts := strings.Split(s.APIKey, ":")
	switch {
	case fields["oauth_consumer_key"] != parts[0]:
		return "Authorization Error: Invalid API key."
	case fields["oauth_token"] != parts[1]:
		return fmt.Sprintf("Authorization Error: 'Invalid access token: %s'", fields["oauth_token"])
	case fields["oauth_signature_method"] != "PLAINTEXT" || fields["oauth_signature"] != "&"+parts[2]:
		return "Authorization Error: 'Invalid signature. Expected signature base string: &" + parts[2] + "'"
	case s.nonces[fields["oauth_nonce"]]:
		return "Authorization Error: 'Nonce already used: " + fields["oauth_nonce"] + "'"
	}
	seconds, err := strconv.ParseInt(fields["oauth_timestamp"], 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return "Authorization Error: 'Expired timestamp: given " + fields["oauth_timestamp"] + "'"
	}
	s.nonces[fields["oauth_nonce"]] = true
	return ""
}

func answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	// The bodies are made of maps and texts, which always encode.
	_ = json.NewEncoder(w).Encode(body)
}

func refuse(w http.ResponseWriter, field, message string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(map[string][]string{field: {message}})
}

func text(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body)) //nolint:gosec // plain text
}
