// SPDX-License-Identifier: Apache-2.0

package repair

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/hypershift/support/condition"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

func healthy(name string) Machine {
	return Machine{Name: name, Joined: true, Healthy: true, Since: ago(24 * time.Hour)}
}

// broken returns a machine whose Node has not been Ready for an hour. Its replacement has been due for 44 minutes.
func broken(name string) Machine {
	return Machine{Name: name, Joined: true, Since: ago(time.Hour), Due: ago(44 * time.Minute), Cause: "NodeNotReady"}
}

// state returns the state of a cluster whose control plane is available.
func state(machines ...Machine) State {
	return State{Now: now, Machines: machines, MaxUnhealthy: 2, Cluster: []metav1.Condition{condition.True("Available", "AsExpected", "")}}
}

func with(m Machine, change func(*Machine)) Machine {
	change(&m)
	return m
}

func elsewhere(m Machine) Machine {
	m.OtherPool = true
	return m
}

func in(zone string, m Machine) Machine {
	m.Zone = zone
	return m
}

func many(n int) (all []Machine) {
	for i := range n {
		all = append(all, healthy("h"+string(rune('0'+i))))
	}
	return all
}

func TestDecide(t *testing.T) {
	gone := func(m *Machine) { m.Gone = true }
	hostLost := func(m *Machine) { m.HostLost = true }
	for name, test := range map[string]struct {
		state   State
		machine string
		reason  string
		says    string
	}{
		"allows the repair of a machine that fails alone": {
			state(healthy("a"), broken("b")), "b", "AsExpected", "Machine b is being replaced"},
		"says nothing while no machine fails": {
			state(healthy("a"), healthy("b")), "", "", ""},
		"says nothing about a failure that is younger than two minutes": {
			state(healthy("a"), with(broken("b"), func(m *Machine) { m.Since = ago(settle - 1) })), "", "", ""},
		"waits for the timeout of the health check": {
			state(healthy("a"), with(broken("b"), func(m *Machine) { m.Due = now.Add(1) })), "", "", ""},
		"leaves out a machine that health checks skip": {
			state(healthy("a"), with(broken("b"), func(m *Machine) { m.Due = time.Time{} })), "", "", ""},
		"holds back while the pool is paused": {
			func() State { s := state(healthy("a"), broken("b")); s.Paused = true; return s }(), "", "ReconciliationPaused", "remove spec.pausedUntil"},
		"holds back while two machines of a small pool fail": {
			state(append(many(3), broken("a"), broken("b"))...), "", "TooManyUnhealthy", "2 of 5 machines of the pool"},
		"counts a second machine before its timeout": {
			state(healthy("a"), broken("b"), with(broken("c"), func(m *Machine) { m.Since, m.Due = ago(time.Minute), now.Add(time.Hour) })), "",
			"TooManyUnhealthy", "2 of 3 machines"},
		"allows the oldest failure of two in a larger pool": {
			state(append(many(5), broken("b"), with(broken("a"), func(m *Machine) { m.Since = ago(2 * time.Hour) }))...), "a", "AsExpected", ""},
		"holds back while more machines fail than the annotation allows": {
			state(append(many(9), broken("a"), broken("b"), broken("c"))...), "", "TooManyUnhealthy", "3 of 12 machines"},
		"holds back while most machines of a zone fail": {
			state(append(many(6), in("az1", broken("a")), in("az1", elsewhere(broken("b"))), in("az1", healthy("c")))...), "", "TooManyUnhealthy", "2 of 3 machines of the zone az1"},
		"allows the only machine of a zone": {
			state(append(many(6), in("az1", broken("a")))...), "a", "AsExpected", ""},
		"holds back while most machines of the cluster fail": {
			state(broken("a"), elsewhere(broken("b")), elsewhere(healthy("c"))), "", "TooManyUnhealthy", "2 of 3 machines of the cluster"},
		"allows the only machine of a pool if other nodes of the cluster are healthy": {
			state(broken("a"), elsewhere(healthy("b"))), "a", "AsExpected", ""},
		"holds back the only node of a cluster": {
			state(broken("a")), "", "NoHealthyNode", "if the machine itself is broken, delete the Machine"},
		"allows the only node of a cluster if the platform has lost the machine": {
			func() State {
				s := state(with(broken("a"), gone))
				s.Cluster = append(s.Cluster, condition.False("ControlPlaneConnectionAvailable", "ConnectionCheckStale", ""))
				return s
			}(), "a", "AsExpected", ""},
		"allows the only machine of a cluster if it never had a node": {
			state(with(broken("a"), func(m *Machine) { m.Joined = false })), "a", "AsExpected", ""},
		"allows machines of a lost host one after the other": {
			state(elsewhere(healthy("a")), with(broken("b"), hostLost), with(broken("c"), hostLost)), "b", "AsExpected", ""},
		"holds back a lost host while another machine fails": {
			state(healthy("a"), with(broken("b"), hostLost), broken("c")), "", "TooManyUnhealthy", "2 of 3"},
		"holds back while all nodes of the cluster are on a lost host": {
			state(with(broken("b"), hostLost), with(broken("c"), hostLost)), "", "NoHealthyNode", ""},
		"holds back while the pods of the node have no network": {
			state(healthy("a"), with(broken("b"), func(m *Machine) { m.WithoutNetwork = true })), "", "SharedCause", "range for each node"},
		"holds back while the provider does not reach MAAS": {
			func() State { s := state(healthy("a"), broken("b")); s.Provider = "MAASUnreachable"; return s }(), "", "SharedCause", "MAASUnreachable"},
		"holds back while another machine is being deleted": {
			state(healthy("a"), broken("b"), with(healthy("c"), func(m *Machine) { m.Deleted = ago(leaving - 1) })), "", "WaitingForRepair", "Machine c"},
		"does not wait longer than an hour for a deletion, which may wait for the repair": {
			state(healthy("a"), broken("b"), with(healthy("c"), func(m *Machine) { m.Deleted = ago(leaving) })), "b", "AsExpected", ""},
		"holds back while another machine is being installed": {
			state(healthy("a"), broken("b"), Machine{Name: "c", Starting: true}), "", "WaitingForRepair", "Machine c"},
		"does not wait for an installation in a larger pool": {
			state(append(many(5), broken("b"), Machine{Name: "c", Starting: true})...), "b", "AsExpected", ""},
		"does not wait for a machine that waits for capacity": {
			state(healthy("a"), broken("b"), Machine{Name: "c"}), "b", "AsExpected", ""},
		"holds back while Cluster API is going to delete another machine": {
			state(append(many(5), broken("b"), with(broken("c"), func(m *Machine) { m.Marked = true }))...), "", "WaitingForRepair", "Machine c"},
		"keeps to the machine that was allowed before": {
			state(append(many(5), broken("a"), with(broken("b"), func(m *Machine) { m.Admitted = true }))...), "b", "AsExpected", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, got := NewWithT(t), Decide(test.state)
			g.Expect(got.Machine).To(Equal(test.machine), got.Message)
			g.Expect(got.Reason).To(Equal(test.reason))
			g.Expect(got.Message).To(ContainSubstring(test.says))
			g.Expect(len(got.History) == 1).To(Equal(test.machine != ""))
			g.Expect(got.After > 0).To(Equal(strings.Contains(name, "says nothing while") == false), "a failure is checked again")
		})
	}
}

func TestSharedConditions(t *testing.T) {
	for name, want := range map[string]string{
		"Available": "SharedCause", "InfrastructureReady": "SharedCause", "ControlPlaneConnectionAvailable": "SharedCause", "PlatformCredentialsFound": "SharedCause",
		"ValidConfiguration": "SharedCause", "Degraded": "AsExpected", "DataPlaneConnectionAvailable": "AsExpected",
	} {
		t.Run("When condition "+name+" of the HostedCluster is False, the reason should be "+want, func(t *testing.T) {
			s := state(healthy("a"), broken("b"))
			s.Cluster = append([]metav1.Condition{condition.False(name, "Broken", "")}, s.Cluster...)
			NewWithT(t).Expect(Decide(s).Reason).To(Equal(want))
		})
	}
	for _, name := range poolCauses {
		t.Run("When condition "+name+" of the NodePool is False, it should hold back the repair", func(t *testing.T) {
			s := state(healthy("a"), broken("b"))
			s.Pool = []metav1.Condition{condition.Unknown(name, "Waiting", "")}
			NewWithT(t).Expect(Decide(s).Reason).To(Equal("AsExpected"))
			s.Pool = []metav1.Condition{condition.False(name, "Broken", "")}
			NewWithT(t).Expect(Decide(s)).To(And(HaveField("Reason", "SharedCause"), HaveField("Message", ContainSubstring(name))))
		})
	}
	t.Run("When the control plane has never been available, it should hold back the repair", func(t *testing.T) {
		s := state(healthy("a"), broken("b"))
		s.Cluster = nil
		NewWithT(t).Expect(Decide(s).Reason).To(Equal("SharedCause"))
	})
}

func TestWaitsAfterRepairs(t *testing.T) {
	repaired := func(times ...time.Duration) (h History) {
		for i, d := range times {
			h = append(h, Record{Machine: "r" + string(rune('0'+i)), Cause: "NodeNotReady", At: ago(d)})
		}
		return h
	}
	h := time.Hour
	for name, test := range map[string]struct {
		history History
		change  func(*Machine)
		reason  string
	}{
		"no wait without a repair":                              {nil, nil, "AsExpected"},
		"half an hour after the first repair":                   {repaired(30*time.Minute - 1), nil, "RepairedRecently"},
		"a repair after half an hour":                           {repaired(30 * time.Minute), nil, "AsExpected"},
		"an hour after the second repair":                       {repaired(5*h, h-1), nil, "RepairedRecently"},
		"a repair after an hour":                                {repaired(5*h, h), nil, "AsExpected"},
		"at most twelve hours":                                  {repaired(70*h, 60*h, 50*h, 40*h, 30*h, 20*h, 15*h, 12*h), nil, "AsExpected"},
		"no repair before twelve hours":                         {repaired(70*h, 60*h, 50*h, 40*h, 30*h, 20*h, 15*h, 12*h-1), nil, "RepairedRecently"},
		"repairs older than three days do not count":            {repaired(90*h, 80*h, 72*h, 40*time.Minute), nil, "AsExpected"},
		"no wait for another cause":                             {repaired(5 * time.Minute), func(m *Machine) { m.Cause = "NodeReadyUnknown" }, "AsExpected"},
		"two minutes after a repair for any cause":              {repaired(time.Minute), func(m *Machine) { m.Cause = "NodeReadyUnknown" }, "WaitingForRepair"},
		"no wait for a machine that is gone":                    {repaired(5 * time.Minute), func(m *Machine) { m.Gone = true }, "AsExpected"},
		"no wait for the machine that the last record is about": {History{{Machine: "b", Cause: "NodeNotReady", At: ago(time.Minute)}}, func(m *Machine) { m.Admitted = true }, "AsExpected"},
	} {
		t.Run(name, func(t *testing.T) {
			g, b := NewWithT(t), broken("b")
			if test.change != nil {
				test.change(&b)
			}
			s := state(healthy("a"), b)
			s.History = test.history
			g.Expect(Decide(s)).To(HaveField("Reason", test.reason))
		})
	}
}

func TestHistory(t *testing.T) {
	g := NewWithT(t)
	for i := range 100 {
		g.Expect(wait(i + 1)).To(And(BeNumerically(">=", firstWait), BeNumerically("<=", longestWait)))
	}
	of := func(name string) History { return History{{Machine: name, Cause: "NodeNotReady", At: ago(time.Hour)}} }
	g.Expect(of("a").keep(state(healthy("b")))).To(BeNil(), "the pool was healthy for two hours")
	fresh := with(healthy("b"), func(m *Machine) { m.Since = ago(calm - 1) })
	g.Expect(of("a").keep(state(fresh))).To(HaveLen(1))
	g.Expect(of("a").keep(state(fresh, elsewhere(broken("c"))))).To(HaveLen(1))
	g.Expect(of("b").keep(state(fresh))).To(BeNil(), "the machine was not replaced")
	g.Expect(of("b").keep(state(with(fresh, func(m *Machine) { m.Deleted = now })))).To(HaveLen(1))

	read, err := Parse(of("a").String())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read).To(Equal(of("a")))
	g.Expect(History{}.String()).To(BeEmpty())
	_, err = Parse("[")
	g.Expect(err).To(MatchError(ContainSubstring("recent repairs")))
	var long History
	for i := range 2 * maxRecords {
		long = long.with(broken("m"+string(rune('a'+i))), now)
	}
	g.Expect(long).To(HaveLen(maxRecords))
}
