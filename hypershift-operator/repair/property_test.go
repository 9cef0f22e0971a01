// SPDX-License-Identifier: Apache-2.0

package repair

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/hypershift/support/condition"
)

const (
	step    = time.Minute
	timeout = 16 * time.Minute
)

// simulated is a machine of a simulation. broken means that it fails for a cause of its own. A shared cause affects it
// after lag.
type simulated struct {
	Machine
	broken, gone bool
	lag          time.Duration
	readyAt      time.Time
}

// simulation is a cluster with one pool that is repaired, in simulated time.
type simulation struct {
	*rand.Rand
	now      time.Time
	machines []*simulated
	made     int
	history  string
	released []simulated

	// A shared cause affects all machines, or those of a zone, from begin to end. unreported means that no condition
	// shows it.
	zone       string
	begin, end time.Time
	unreported bool
	// away is the time until which the operator does not run.
	away time.Time
	// neverReady reports that new machines never become Ready, for a cause that no condition shows.
	neverReady bool
}

func (s *simulation) add(other bool, zone string, ready time.Time) {
	s.made++
	s.machines = append(s.machines, &simulated{readyAt: ready, lag: time.Duration(s.IntN(60)) * time.Second, Machine: Machine{
		Name: fmt.Sprintf("m%d", s.made), Zone: zone, OtherPool: other, Starting: true}})
}

func (s *simulation) cut(m *simulated) bool {
	return (s.zone == "" || s.zone == m.Zone) && !s.now.Before(s.begin.Add(m.lag)) && s.now.Before(s.end)
}

// observe updates the machines as Cluster API does.
func (s *simulation) observe() {
	all := s.machines
	s.machines = nil
	for _, m := range all {
		if !m.Deleted.IsZero() && s.now.Sub(m.Deleted) > 5*time.Minute {
			s.add(m.OtherPool, m.Zone, s.now.Add(10*time.Minute))
			s.machines[len(s.machines)-1].broken = s.neverReady
			continue
		}
		s.machines = append(s.machines, m)
		up := !s.now.Before(m.readyAt) && !s.cut(m)
		if !m.Joined && up {
			m.Joined, m.Starting, m.Since = true, false, s.now
		}
		if ready := up && !m.broken; m.Joined && ready != m.Healthy {
			m.Healthy, m.Since = ready, s.now
		}
		m.Cause, m.Due = "", time.Time{}
		if m.Joined && !m.Healthy {
			m.Cause, m.Due, m.Gone = "NodeReadyUnknown", m.Since.Add(timeout), m.gone
		}
	}
}

// decide runs the operator.
func (s *simulation) decide(t *testing.T) {
	if s.now.Before(s.away) {
		return
	}
	history, err := Parse(s.history)
	if err != nil {
		t.Fatal(err)
	}
	state := State{Now: s.now, History: history, MaxUnhealthy: 2, Cluster: []metav1.Condition{condition.True("Available", "AsExpected", "")}}
	if s.zone == "" && !s.unreported && s.now.After(s.begin.Add(3*time.Minute)) && s.now.Before(s.end) {
		state.Cluster = append(state.Cluster, condition.False("ControlPlaneConnectionAvailable", "ConnectionCheckStale", ""))
	}
	for _, m := range s.machines {
		state.Machines = append(state.Machines, m.Machine)
	}
	decision := Decide(state)
	s.history = decision.History.String()
	for _, m := range s.machines {
		m.Admitted = m.Name == decision.Machine
	}
}

// check runs the health check of Cluster API, which sees only the admitted machine.
func (s *simulation) check() {
	for _, m := range s.machines {
		if m.Admitted && m.Deleted.IsZero() && m.Cause != "" && !s.now.Before(m.Due) {
			m.Deleted = s.now
			s.released = append(s.released, *m)
		}
	}
}

// disturb starts failures. At most one machine at a time fails for a cause of its own.
func (s *simulation) disturb() {
	m := s.machines[s.IntN(len(s.machines))]
	alone := !m.OtherPool && m.Healthy
	for _, other := range s.machines {
		alone = alone && !other.broken
	}
	switch s.IntN(600) {
	case 0:
		m.broken, m.gone = alone, alone && s.IntN(4) == 0
	case 1:
		m.broken = m.broken && !m.Deleted.IsZero() // It recovers.
	case 2:
		s.away = s.now.Add(time.Duration(s.IntN(120)) * time.Minute)
	case 3:
		if s.now.Before(s.end.Add(10 * time.Minute)) {
			return
		}
		inZone := 0
		for _, other := range s.machines {
			if other.Healthy && other.Deleted.IsZero() && other.Zone == m.Zone {
				inZone++
			}
		}
		s.begin, s.end, s.zone, s.unreported = s.now, s.now.Add(time.Duration(s.IntN(180))*time.Minute), "", s.IntN(2) == 0
		if inZone > 1 && s.IntN(2) == 0 {
			s.zone = m.Zone
		}
	}
}

func (s *simulation) run(t *testing.T, d time.Duration, disturb bool) {
	for end := s.now.Add(d); s.now.Before(end); s.now = s.now.Add(step) {
		if disturb {
			s.disturb()
		}
		s.observe()
		s.decide(t)
		s.check()
	}
}

func simulate(seed uint64, pool, others, zones int) *simulation {
	s := &simulation{Rand: rand.New(rand.NewPCG(seed, 1)), now: now}
	for i := range pool + others {
		s.add(i >= pool, fmt.Sprintf("az%d", i%zones), now)
	}
	return s
}

// TestRandomHistories checks that a shared cause never leads to the replacement of a machine that does not fail by
// itself. A machine that fails alone is replaced in the end.
func TestRandomHistories(t *testing.T) {
	released := 0
	for seed := range uint64(96) {
		s := simulate(seed, 1+int(seed%8), int(seed/8%4), 1+int(seed/32%3))
		single := len(s.machines) == 1
		s.run(t, 48*time.Hour, true)
		s.away = time.Time{}
		s.run(t, 24*time.Hour, false)
		for _, m := range s.released {
			if !m.broken {
				t.Fatalf("seed %d: machine %s was released for a shared cause: %+v", seed, m.Name, m)
			}
		}
		for _, m := range s.machines {
			if m.broken && !single {
				t.Fatalf("seed %d: machine %s was never replaced: %+v", seed, m.Name, m)
			}
		}
		released += len(s.released)
	}
	if released < 50 {
		t.Fatalf("only %d machines were replaced; the histories prove nothing", released)
	}
}

// TestUnknownSharedCause checks that machines are reinstalled less and less often if each replacement fails for a
// cause that no condition shows.
func TestUnknownSharedCause(t *testing.T) {
	s := simulate(1, 3, 0, 1)
	s.run(t, time.Hour, false)
	s.machines[2].broken, s.neverReady = true, true
	s.run(t, 72*time.Hour, false)
	if n := len(s.released); n < 5 || n > 10 {
		t.Fatalf("%d machines were reinstalled in three days; want 5 to 10", n)
	}
	for _, m := range s.released {
		if !m.broken {
			t.Fatalf("machine %s was healthy", m.Name)
		}
	}
}
