// SPDX-License-Identifier: Apache-2.0

package faults_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	testclock "k8s.io/utils/clock/testing"

	"github.com/openshift/hypershift/test/maas-simulator/faults"
)

func newSet(rules ...faults.Rule) (*faults.Set, *testclock.FakeClock) {
	clock := testclock.NewFakeClock(time.Unix(0, 0))
	s := faults.NewSet(clock, 42)
	for _, r := range rules {
		if _, err := s.Add(r); err != nil {
			panic(err)
		}
	}
	return s, clock
}

func TestRequest(t *testing.T) {
	tests := map[string]struct {
		rule faults.Rule
		hits map[string]bool
	}{
		"no operation is named":     {faults.Rule{Kind: faults.Error}, map[string]bool{"machine.deploy": true, "zones.read": true}},
		"one operation is named":    {faults.Rule{Kind: faults.Error, Operation: "machine.deploy"}, map[string]bool{"machine.deploy": true, "machine.release": false}},
		"a pattern is named":        {faults.Rule{Kind: faults.Error, Operation: "machine*.*"}, map[string]bool{"machine.deploy": true, "machines.read": true, "zones.read": false}},
		"the fault is for machines": {faults.Rule{Kind: faults.DeployFails}, map[string]bool{"machine.deploy": false}},
	}
	for name, test := range tests {
		t.Run("When "+name+", the fault should apply only to matching requests", func(t *testing.T) {
			s, _ := newSet(test.rule)
			for operation, hit := range test.hits {
				NewWithT(t).Expect(len(s.Request(operation, faults.Target{})) > 0).To(Equal(hit), operation)
			}
		})
	}
}

func TestMachine(t *testing.T) {
	g := NewWithT(t)
	s, _ := newSet(faults.Rule{Kind: faults.DeployFails, Machine: "one", Message: "x"}, faults.Rule{Kind: faults.PowerError, Machine: "aaa"})
	hit := func(kind faults.Kind, id, hostname string) bool {
		_, ok := s.Machine(kind, faults.Target{SystemID: id, Hostname: hostname})
		return ok
	}
	g.Expect(hit(faults.DeployFails, "bbb", "one")).To(BeTrue())
	g.Expect(hit(faults.DeployFails, "aaa", "two")).To(BeFalse())
	g.Expect(hit(faults.PowerError, "aaa", "two")).To(BeTrue())
	g.Expect(hit(faults.BootHangs, "aaa", "one")).To(BeFalse())
	rule, _ := s.Machine(faults.DeployFails, faults.Target{SystemID: "bbb", Hostname: "one"})
	g.Expect(rule.Text("y")).To(Equal("x"))
	g.Expect(faults.Rule{}.Text("y")).To(Equal("y"))
	g.Expect(faults.Rule{}.Code()).To(Equal(503))
	g.Expect(faults.Rule{Kind: faults.Proxy}.Code()).To(Equal(403))
}

func TestMachines(t *testing.T) {
	g := NewWithT(t)
	s, _ := newSet(faults.Rule{Kind: faults.PowerError, Machines: 2})
	hit := func(id string) bool {
		_, ok := s.Machine(faults.PowerError, faults.Target{SystemID: id, Hostname: "name of " + id})
		return ok
	}
	g.Expect(hit("one")).To(BeTrue())
	g.Expect(hit("two")).To(BeTrue())
	g.Expect(hit("three")).To(BeFalse(), "a third machine was hit")
	g.Expect(hit("one")).To(BeTrue(), "the first machine was healed")
	g.Expect(s.List()[0].Hit).To(Equal([]string{"one", "two"}))
	g.Expect(s.List()[0].Hits).To(Equal(3))
	_, err := s.Add(faults.Rule{Kind: faults.PowerError, Machines: -1})
	g.Expect(err).To(MatchError(ContainSubstring("machines -1")))
}

func TestSeen(t *testing.T) {
	g := NewWithT(t)
	s, _ := newSet(faults.Rule{Kind: faults.PowerError, Machines: 1}, faults.Rule{Kind: faults.DeadBMC})
	one, two := faults.Target{SystemID: "one"}, faults.Target{SystemID: "two"}
	seen := func(kind faults.Kind, target faults.Target) bool {
		_, hit := s.Seen(kind, target)
		return hit
	}
	g.Expect(seen(faults.PowerError, one)).To(BeFalse(), "a look took the place of a machine")
	_, hit := s.Machine(faults.PowerError, two)
	g.Expect(hit).To(BeTrue())
	g.Expect(seen(faults.PowerError, two)).To(BeTrue(), "the machine that is hit looks well")
	g.Expect(seen(faults.PowerError, one)).To(BeFalse())
	g.Expect(seen(faults.DeadBMC, one)).To(BeTrue(), "a rule for all machines spares one")
}

func TestTargets(t *testing.T) {
	one := faults.Target{SystemID: "aaa", Hostname: "one"}
	tests := map[string]struct {
		machine string
		target  faults.Target
		hit     bool
	}{
		"nothing is named": {"", faults.Target{}, true},
		"a machine is named and the request has none":   {"*", faults.Target{}, false},
		"the hostname is named":                         {"one", one, true},
		"the system id is named":                        {"aaa", one, true},
		"a pattern matches the hostname":                {"o*", one, true},
		"a pattern matches the name of another machine": {"t*", one, false},
		"half of a name is given without a wildcard":    {"on", one, false},
	}
	for name, test := range tests {
		t.Run("When "+name+", the fault should apply to requests as to machines", func(t *testing.T) {
			g := NewWithT(t)
			s, _ := newSet(faults.Rule{Kind: faults.Error, Machine: test.machine}, faults.Rule{Kind: faults.DeployFails, Machine: test.machine})
			g.Expect(s.Request("machine.deploy", test.target)).To(HaveLen(map[bool]int{true: 1}[test.hit]))
			_, hit := s.Machine(faults.DeployFails, test.target)
			g.Expect(hit).To(Equal(test.hit))
		})
	}
}

func TestLimits(t *testing.T) {
	t.Run("When a rule has a count, it should stop after that many hits", func(t *testing.T) {
		g := NewWithT(t)
		s, _ := newSet(faults.Rule{Kind: faults.Drop, Count: 2})
		got := []int{len(s.Request("a.b", faults.Target{})), len(s.Request("a.b", faults.Target{})), len(s.Request("a.b", faults.Target{}))}
		g.Expect(got).To(Equal([]int{1, 1, 0}))
		g.Expect(s.List()).To(BeEmpty())
	})
	t.Run("When a rule has a duration, it should stop after that time", func(t *testing.T) {
		g := NewWithT(t)
		s, clock := newSet(faults.Rule{Kind: faults.Drop, For: faults.Duration(time.Minute)})
		clock.Step(time.Minute)
		g.Expect(s.Request("a.b", faults.Target{})).To(HaveLen(1))
		clock.Step(time.Second)
		g.Expect(s.Request("a.b", faults.Target{})).To(BeEmpty())
	})
	t.Run("When a rule has a rate, it should hit about that share, and the same requests with the same seed", func(t *testing.T) {
		g := NewWithT(t)
		run := func() (pattern []bool, hits int) {
			s, _ := newSet(faults.Rule{Kind: faults.Error, Rate: 0.2})
			for range 1000 {
				hit := len(s.Request("a.b", faults.Target{})) > 0
				pattern = append(pattern, hit)
				if hit {
					hits++
				}
			}
			return pattern, hits
		}
		first, hits := run()
		second, _ := run()
		g.Expect(hits).To(BeNumerically("~", 200, 50))
		g.Expect(first).To(Equal(second))
	})
	t.Run("When several rules of a kind apply, one should hit and the others should wait for their turn", func(t *testing.T) {
		g := NewWithT(t)
		s, _ := newSet(faults.Rule{Kind: faults.Error, Count: 1, Status: 500}, faults.Rule{Kind: faults.Error, Count: 1, Status: 502}, faults.Rule{Kind: faults.Latency})
		first, second := s.Request("a.b", faults.Target{}), s.Request("a.b", faults.Target{})
		g.Expect(first[faults.Error].Code()).To(Equal(500))
		g.Expect(second[faults.Error].Code()).To(Equal(502))
		g.Expect(first).To(HaveKey(faults.Latency))
	})
}
