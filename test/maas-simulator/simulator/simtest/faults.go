// SPDX-License-Identifier: Apache-2.0

package simtest

import (
	"testing"

	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
)

// Fault puts a rule in force at a site and returns what takes it out again.
func Fault(t testing.TB, s *simulator.Simulator, rule faults.Rule) (mend func()) {
	t.Helper()
	id, err := s.Faults.Add(rule)
	if err != nil {
		t.Fatal(err)
	}
	return func() { s.Faults.Remove(id) }
}

// Behind lets a proxy answer instead of MAAS: with a page of that status, on
// the operations named, such as machines.read and users.whoami; none means all.
func Behind(t testing.TB, s *simulator.Simulator, status int, operations ...string) (mend func()) {
	t.Helper()
	if len(operations) == 0 {
		operations = []string{""}
	}
	var mends []func()
	for _, operation := range operations {
		mends = append(mends, Fault(t, s, faults.Rule{Kind: faults.Proxy, Status: status, Operation: operation}))
	}
	return func() {
		for _, mend := range mends {
			mend()
		}
	}
}

// Refuse lets MAAS refuse an operation on a machine, by its name or system id,
// for as long as it is asked: with a text, or with a JSON object of messages by
// field such as {"hwe_kernel": ["..."]}.
func Refuse(t testing.TB, s *simulator.Simulator, operation, machine string, status int, message string) (mend func()) {
	t.Helper()
	return Fault(t, s, faults.Rule{Kind: faults.Error, Operation: operation, Machine: machine, Status: status, Message: message})
}

// KillBMC takes a machine's power controller away: nothing that MAAS tells the
// machine arrives, and MAAS is not told so.
func KillBMC(t testing.TB, s *simulator.Simulator, machine string) (mend func()) {
	t.Helper()
	return Fault(t, s, faults.Rule{Kind: faults.DeadBMC, Machine: machine})
}

// FailDeployments fails the next deployments of the machines that the pattern
// names, count of them in all.
func FailDeployments(t testing.TB, s *simulator.Simulator, machines string, count int) {
	t.Helper()
	Fault(t, s, faults.Rule{Kind: faults.DeployFails, Machine: machines, Count: count})
}

// FailTests lets an administrator test a machine's hardware, which fails: a
// Deployed machine ends as Failed testing, still owned and installed.
func FailTests(t testing.TB, s *simulator.Simulator, machine string) {
	t.Helper()
	m := s.Machine(machine)
	if m == nil {
		t.Fatalf("there is no machine %s", machine)
	}
	Fault(t, s, faults.Rule{Kind: faults.TestFails, Machine: m.SystemID, Count: 1})
	var refused error
	s.Change(m.SystemID, func(m *inventory.Machine) { refused = s.Life.Test(m, "admin", "") })
	if refused != nil {
		t.Fatal(refused)
	}
}

// HostAway takes an LXD host off the network, and the power of its VMs with it.
func HostAway(t testing.TB, s *simulator.Simulator, name string) (back func()) {
	t.Helper()
	if !s.ChangeVMHost(name, s.Life.LeaveVMHost) {
		t.Fatalf("there is no VM host %s", name)
	}
	return func() { s.ChangeVMHost(name, s.Life.ReturnVMHost) }
}

// LoseVM deletes a VM in LXD; MAAS lists it until its host is refreshed.
func LoseVM(t testing.TB, s *simulator.Simulator, machine string) {
	t.Helper()
	m := s.Machine(machine)
	if m == nil || m.VM == nil {
		t.Fatalf("there is no VM %s", machine)
	}
	s.Change(m.SystemID, s.Life.LoseVM)
}
