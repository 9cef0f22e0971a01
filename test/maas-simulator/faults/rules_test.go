// SPDX-License-Identifier: Apache-2.0

package faults_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/faults"
)

// TestRefusedRules verifies that Add rejects rules that cannot work, and accepts the limits of the valid ranges.
func TestRefusedRules(t *testing.T) {
	for name, test := range map[string]struct {
		rule faults.Rule
		says string
	}{
		"an unknown kind":                  {faults.Rule{Kind: "rain"}, `fault kind "rain" is not known`},
		"no kind":                          {faults.Rule{}, `fault kind "" is not known`},
		"a rate below zero":                {faults.Rule{Kind: faults.Error, Rate: -0.1}, "rate -0.1 of a fault must be between 0 and 1"},
		"a rate above one":                 {faults.Rule{Kind: faults.Error, Rate: 1.1}, "rate 1.1 of a fault"},
		"a rate of one":                    {faults.Rule{Kind: faults.Error, Rate: 1}, ""},
		"a status below 400":               {faults.Rule{Kind: faults.Error, Status: 399}, "status 399 of a fault must be between 400 and 599"},
		"the lowest error status":          {faults.Rule{Kind: faults.Error, Status: 400}, ""},
		"the highest error status":         {faults.Rule{Kind: faults.Error, Status: 599}, ""},
		"a status above 599":               {faults.Rule{Kind: faults.Error, Status: 600}, "status 600 of a fault"},
		"an invalid pattern of operations": {faults.Rule{Kind: faults.Error, Operation: "["}, `operation "[" of a fault is not a pattern`},
		"an invalid pattern of machines":   {faults.Rule{Kind: faults.DeadBMC, Machine: "["}, `machine "[" of a fault is not a pattern`},
		"a negative number of machines":    {faults.Rule{Kind: faults.DeadBMC, Machines: -1}, "machines -1 of a fault"},
		"one machine":                      {faults.Rule{Kind: faults.DeadBMC, Machines: 1}, ""},
	} {
		t.Run("When a rule has "+name+", Add should accept or reject it", func(t *testing.T) {
			g := NewWithT(t)
			s, _ := newSet()
			_, err := s.Add(test.rule)
			if test.says == "" {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(s.List()).To(HaveLen(1))
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(test.says)))
			g.Expect(s.List()).To(BeEmpty())
		})
	}
}

// TestKinds verifies that each kind hits either requests or machines.
func TestKinds(t *testing.T) {
	g := NewWithT(t)
	one := faults.Target{SystemID: "a", Hostname: "one"}
	requests := []faults.Kind{faults.Error, faults.Proxy, faults.LostAnswer, faults.Latency, faults.Drop, faults.DropAfter}
	machines := []faults.Kind{
		faults.DeployFails, faults.DeployReverts, faults.BootHangs, faults.GoesSilent, faults.DiskEmpty, faults.PowerError, faults.DeadBMC, faults.ReleaseFails,
		faults.SlowRelease, faults.CommissionFails, faults.ComposeFails, faults.EraseFails, faults.TestFails, faults.BrokenOnDeploy,
	}
	for _, kind := range append(requests, machines...) {
		s, clock := newSet()
		_, err := s.Add(faults.Rule{Kind: kind, Machine: "one"})
		g.Expect(err).NotTo(HaveOccurred(), "%s is a kind", kind)
		clock.Step(24 * time.Hour)
		g.Expect(len(s.Request("machine.deploy", one)) > 0).To(Equal(slices.Contains(requests, kind)), "%s on a request", kind)
		_, hit := s.Machine(kind, one)
		g.Expect(hit).To(BeTrue(), "%s on a machine", kind)
	}
	g.Expect(faults.Kinds()).To(ConsistOf(append(requests, machines...)))
}

// TestIDs verifies that IDs are unique, that Remove deletes only the rule with the ID, and that List returns copies.
func TestIDs(t *testing.T) {
	g := NewWithT(t)
	s, _ := newSet(faults.Rule{Kind: faults.Drop, ID: 77, Hits: 5, Hit: []string{"x"}}, faults.Rule{Kind: faults.Error})
	g.Expect(s.List()).To(HaveExactElements(
		And(HaveField("ID", 1), HaveField("Hits", 0), HaveField("Hit", BeEmpty())), HaveField("ID", 2)))
	g.Expect(s.Remove(1)).To(BeTrue())
	g.Expect(s.Remove(1)).To(BeFalse())
	g.Expect(s.Remove(77)).To(BeFalse())
	id, err := s.Add(faults.Rule{Kind: faults.PowerError, Machines: 2})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(id).To(Equal(3))
	s.Machine(faults.PowerError, faults.Target{SystemID: "a"})
	listed := s.List()
	listed[1].Hit[0] = "changed"
	g.Expect(s.List()[1].Hit).To(Equal([]string{"a"}))
	s.Clear()
	g.Expect(s.List()).To(BeEmpty())
	id, err = s.Add(faults.Rule{Kind: faults.Drop})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(id).To(Equal(4))
}

// TestMachinesWithoutOne verifies that a rule with Machines never hits a target without a machine.
func TestMachinesWithoutOne(t *testing.T) {
	g := NewWithT(t)
	s, _ := newSet(faults.Rule{Kind: faults.Error, Machines: 1})
	one := faults.Target{SystemID: "a"}
	g.Expect(s.Request("zones.read", faults.Target{})).To(BeEmpty())
	g.Expect(s.Request("machine.read", one)).To(HaveKey(faults.Error))
	g.Expect(s.Request("machine.read", faults.Target{SystemID: "b"})).To(BeEmpty())
	g.Expect(s.Request("machine.read", one)).To(HaveKey(faults.Error))
}

// TestTheEndOfATime verifies that a rule is active at its last moment, and not listed after it.
func TestTheEndOfATime(t *testing.T) {
	g := NewWithT(t)
	s, clock := newSet(faults.Rule{Kind: faults.DeadBMC, For: faults.Duration(time.Minute)})
	one := faults.Target{SystemID: "a"}
	clock.Step(time.Minute)
	g.Expect(s.List()).To(HaveLen(1))
	_, hit := s.Machine(faults.DeadBMC, one)
	g.Expect(hit).To(BeTrue())
	clock.Step(time.Nanosecond)
	g.Expect(s.List()).To(BeEmpty())
	_, hit = s.Machine(faults.DeadBMC, one)
	g.Expect(hit).To(BeFalse())
}

func TestCodes(t *testing.T) {
	g := NewWithT(t)
	g.Expect(faults.Rule{Kind: faults.Error, Status: 418}.Code()).To(Equal(418))
	g.Expect(faults.Rule{Kind: faults.Proxy, Status: 502}.Code()).To(Equal(502))
	g.Expect(faults.Rule{Kind: faults.LostAnswer}.Code()).To(Equal(503))
}

func TestDurations(t *testing.T) {
	g := NewWithT(t)
	var rule faults.Rule
	g.Expect(json.Unmarshal([]byte(`{"kind": "latency", "delay": "1m30s"}`), &rule)).To(Succeed())
	g.Expect(time.Duration(rule.Delay)).To(Equal(90 * time.Second))
	out, err := json.Marshal(faults.Rule{ID: 1, Kind: faults.Latency, Delay: faults.Duration(time.Second)})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(MatchJSON(`{"id": 1, "kind": "latency", "delay": "1s", "hits": 0}`))
	g.Expect(json.Unmarshal([]byte(`{"delay": "soon"}`), &rule)).To(MatchError(ContainSubstring("reading a duration such as 1m30s")))
}

func TestRulesOfAUser(t *testing.T) {
	set := func() *faults.Set {
		s, _ := newSet(faults.Rule{Kind: faults.Error, User: "al*"}, faults.Rule{Kind: faults.PowerError, User: "alice",
			Machines: 1})
		return s
	}
	t.Run("does not hit the requests of other users or without a user", func(t *testing.T) {
		g, s := NewWithT(t), set()
		g.Expect(s.Request("zones.read", faults.Target{User: "alice"})).To(HaveKey(faults.Error))
		g.Expect(s.Request("zones.read", faults.Target{User: "bob"})).To(BeEmpty())
		g.Expect(s.Request("zones.read", faults.Target{})).To(BeEmpty())
	})
	t.Run("does not hit the machines of other owners", func(t *testing.T) {
		g, s := NewWithT(t), set()
		_, hit := s.Machine(faults.PowerError, faults.Target{SystemID: "a", User: "bob"})
		g.Expect(hit).To(BeFalse())
		_, hit = s.Machine(faults.PowerError, faults.Target{SystemID: "b", User: "alice"})
		g.Expect(hit).To(BeTrue())
		_, hit = s.Machine(faults.PowerError, faults.Target{SystemID: "c", User: "alice"})
		g.Expect(hit).To(BeFalse(), "one machine was hit")
	})
	t.Run("rejects an invalid pattern", func(t *testing.T) {
		_, err := set().Add(faults.Rule{Kind: faults.Error, User: "["})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(`user "[" of a fault is not a pattern`)))
	})
}
