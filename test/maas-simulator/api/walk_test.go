// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// busy are the statuses in which an operation is running.
var busy = []status.Status{
	status.Commissioning, status.Deploying, status.Releasing, status.DiskErasing, status.EnteringRescueMode, status.ExitingRescueMode, status.Testing,
}

// walker sends random requests one after the other as several users.
type walker struct {
	*simtest.Site
	random *rand.Rand
	log    []string
}

func pick[T any](w *walker, from ...T) T { return from[w.random.IntN(len(from))] }

func (w *walker) step() {
	user := pick(w, "alice", "bob", "admin", "admin")
	machine := fmt.Sprintf("machines/aaaaa%d/", 1+w.random.IntN(5))
	switch w.random.IntN(10) {
	case 0:
		w.ask(user, "POST", "machines/?op=allocate", "bridge_all", pick(w, "true", "false"), "agent_name", pick(w, "", "mine"))
	case 1:
		w.ask("admin", "POST", "nodes"+machine[len("machines"):]+"interfaces/eth0/?op=link_subnet", "mode", pick(w, "AUTO", "STATIC", "DHCP"), "subnet", pick(w, "1", "2"), "force",
			pick(w, "true", "false"))
	case 2:
		w.ask("admin", "POST", "dnsresources/", "fqdn", pick(w, "a", "b", "c")+".maas", "ip_addresses", fmt.Sprintf("10.9.0.%d", 245+w.random.IntN(10)))
	case 3:
		w.ask(user, "POST", "ipaddresses/?op="+pick(w, "reserve", "release"), "ip", fmt.Sprintf("10.9.0.%d", 249+w.random.IntN(6)))
	case 4, 5:
		d := time.Duration(1+w.random.IntN(90)) * time.Second
		w.log = append(w.log, d.String())
		w.Settle(d)
	default:
		// mark_broken is not in the list, because a machine keeps its addresses and annotations after it.
		op := pick(w, "deploy", "deploy", "release", "release", "abort", "commission", "test", "rescue_mode", "exit_rescue_mode", "power_on", "power_off", "lock", "unlock",
			"override_failed_testing")
		w.ask(user, "POST", machine+"?op="+op, pick(w, "erase", "comment", "bridge_all"), "true")
	}
}

func (w *walker) ask(user, method, path string, form ...string) {
	w.log = append(w.log, fmt.Sprint(user, " ", path, " ", form, " ", w.Do(user, method, path, form...).Code))
}

// wrong returns a violated invariant of the site; empty if there is none.
func (w *walker) wrong() string {
	held := map[string]string{}
	for _, m := range w.Machines() {
		switch {
		case m.Status == status.Ready && (m.Owner != "" || m.Task != nil && m.Task.Name != "power-off"):
			return m.Hostname + " is Ready, owned or at work"
		case m.Status.In(status.Allocated, status.Deploying, status.Releasing) && m.Owner == "":
			return m.Hostname + " is nobody's and " + m.Status.String()
		case m.Status.In(busy...) && m.Task == nil:
			return m.Hostname + " never ends to be " + m.Status.String()
		case m.Status == status.Ready && m.AgentName != "":
			return m.Hostname + " has an allocation's name and no allocation"
		}
		for _, nic := range m.Interfaces {
			if nic.Acquired && m.Status.In(status.Ready, status.New) {
				return m.Hostname + " has a bridge of an allocation that is over"
			}
		}
		for _, ip := range m.IPs() {
			if held[ip] != "" {
				return fmt.Sprintf("%s has the address %s of %s", m.Hostname, ip, held[ip])
			}
			held[ip] = m.Hostname
		}
	}
	return ""
}

// TestRandomWalk verifies invariants after random requests: no address or machine is shared, all operations end, and a
// new process has the same state.
func TestRandomWalk(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprintf("When random requests with seed %d are sent, the invariants should hold", seed), func(t *testing.T) {
			g := NewWithT(t)
			state := filepath.Join(t.TempDir(), "state")
			open := func() *simtest.Site {
				return simtest.New(t, simtest.Rack, func(o *simulator.Options) { o.StateFile = state })
			}
			w := &walker{Site: open(), random: rand.New(rand.NewPCG(seed, 7))}
			simtest.Fault(t, w.Simulator, faults.Rule{Kind: faults.PowerError, Rate: 0.05})
			simtest.Fault(t, w.Simulator, faults.Rule{Kind: faults.DeployFails, Rate: 0.2})
			for range 120 {
				w.step()
				if wrong := w.wrong(); wrong != "" {
					t.Fatalf("%s after %v", wrong, w.log[max(0, len(w.log)-12):])
				}
			}
			w.Faults.Clear()
			before := w.Do("admin", "GET", "machines/").Body
			g.Expect(w.Close()).To(Succeed())
			again := open()
			g.Expect(again.Do("admin", "GET", "machines/").Body).To(MatchJSON(before))
			again.Settle(3 * time.Hour)
			for _, m := range again.Machines() {
				g.Expect(m.Status.In(busy...)).To(BeFalse(), "%s is %s for ever", m.Hostname, m.Status)
				again.Change(m.SystemID, func(m *inventory.Machine) { m.Locked = false })
			}
		})
	}
}
