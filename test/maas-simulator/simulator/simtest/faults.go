// SPDX-License-Identifier: Apache-2.0

package simtest

import (
	"testing"

	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
)

// Fault adds a fault to a simulator and returns a function that removes it.
func Fault(t testing.TB, s *simulator.Simulator, rule faults.Rule) (mend func()) {
	t.Helper()
	id, err := s.Faults.Add(rule)
	if err != nil {
		t.Fatal(err)
	}
	return func() { s.Faults.Remove(id) }
}

// Behind simulates a proxy that responds instead of MAAS, with an HTML page and the status. It affects the given
// operations, such as machines.read and users.whoami, or all if there are none.
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

// Refuse rejects an operation on a machine, given by its name or system ID, until the returned function is called. The
// message is a text or a JSON object of messages by field, such as {"hwe_kernel": ["..."]}.
func Refuse(t testing.TB, s *simulator.Simulator, operation, machine string, status int, message string) (mend func()) {
	t.Helper()
	return Fault(t, s, faults.Rule{Kind: faults.Error, Operation: operation, Machine: machine, Status: status, Message: message})
}

// KillBMC disables a machine's power controller: power commands have no effect, and MAAS gets no error.
func KillBMC(t testing.TB, s *simulator.Simulator, machine string) (mend func()) {
	t.Helper()
	return Fault(t, s, faults.Rule{Kind: faults.DeadBMC, Machine: machine})
}

// FailDeployments fails the next deployments of the machines that match the pattern, count in total.
func FailDeployments(t testing.TB, s *simulator.Simulator, machines string, count int) {
	t.Helper()
	Fault(t, s, faults.Rule{Kind: faults.DeployFails, Machine: machines, Count: count})
}

// FailTests runs a hardware test on a machine that fails. A Deployed machine gets the status Failed testing and stays
// owned and installed.
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

// HostAway disconnects an LXD host from the network, which powers off its VMs. The returned function reconnects it.
func HostAway(t testing.TB, s *simulator.Simulator, name string) (back func()) {
	t.Helper()
	if !s.ChangeVMHost(name, s.Life.LeaveVMHost) {
		t.Fatalf("there is no VM host %s", name)
	}
	return func() { s.ChangeVMHost(name, s.Life.ReturnVMHost) }
}

// LoseVM deletes a VM in LXD. MAAS lists it until its host is refreshed.
func LoseVM(t testing.TB, s *simulator.Simulator, machine string) {
	t.Helper()
	m := s.Machine(machine)
	if m == nil || m.VM == nil {
		t.Fatalf("there is no VM %s", machine)
	}
	s.Change(m.SystemID, s.Life.LoseVM)
}
