// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lxd"
	"github.com/openshift/hypershift/support/maas"
)

// virtual returns a MaasMachine that requests a virtual machine.
func virtual(change ...func(*infrav1.MaasMachine)) *infrav1.MaasMachine {
	m := sibling("vm", func(m *infrav1.MaasMachine) { m.Spec.ProvisioningMode = infrav1.ProvisioningModeLXD })
	for _, do := range change {
		do(m)
	}
	return m
}

// placed sets a placement on host h1. systemID is empty until MAAS has composed the virtual machine.
func placed(systemID string) func(*infrav1.MaasMachine) {
	return func(m *infrav1.MaasMachine) {
		if err := lxd.SetPlacement(m, lxd.Placement{Host: "h1", HostID: 1, Zone: "az1", Project: "p", Hostname: "vm-1", Cores: 2, MemoryMiB: 4096, DiskGB: 60, SystemID: systemID, At: noon}); err != nil {
			panic(err)
		}
	}
}

func held(m *infrav1.MaasMachine) { m.Spec.SystemID = ptr.To("wq4h8c") }

// TestStepsOfVirtualMachines checks the conditions for the steps host, resources, creation and deployment. The
// condition of the current step has the reason, and the later conditions say that they wait.
func TestStepsOfVirtualMachines(t *testing.T) {
	t.Parallel()
	problem := func(reason string) func(*scope) {
		return func(s *scope) { s.findings.problem = &Problem{reason, "words"} }
	}
	for name, tc := range map[string]struct {
		machine *infrav1.MaasMachine
		found   func(*scope)
		want    []string
	}{
		"nothing is known yet": {virtual(), func(*scope) {},
			[]string{"LXDHostSelected False Waiting", "LXDResourcesAllocated False Waiting", "LXDVMCreated False Waiting", "LXDVMDeployed False Allocating"}},
		"no host is in the zone": {virtual(), problem(lxd.ReasonHostUnavailable),
			[]string{"LXDHostSelected False HostUnavailable", "LXDResourcesAllocated False Waiting", "LXDVMCreated False Waiting", "LXDVMDeployed False Allocating"}},
		"no host has enough resources": {virtual(), problem(lxd.ReasonInsufficientResources),
			[]string{"LXDHostSelected False InsufficientResources", "LXDResourcesAllocated False InsufficientResources", "LXDVMCreated False Waiting", "LXDVMDeployed False Allocating"}},
		"a host rejected the call": {virtual(), problem(ReasonVMCreationFailed),
			[]string{"LXDHostSelected False Waiting", "LXDResourcesAllocated False Waiting", "LXDVMCreated False VMCreationFailed", "LXDVMDeployed False Allocating"}},
		"it is being composed": {virtual(placed("")), problem(ReasonVMCommissioning),
			[]string{"LXDHostSelected True HostSelected", "LXDResourcesAllocated True HostSelected", "LXDVMCreated False VMCommissioning", "LXDVMDeployed False Allocating"}},
		"it is being deployed": {virtual(placed("wq4h8c"), held), func(s *scope) {
			s.observed, s.findings.outcome = deployed(), lifecycle.Outcome{Action: lifecycle.Wait, Reason: lifecycle.ReasonDeploying}
		}, []string{"LXDHostSelected True HostSelected", "LXDResourcesAllocated True HostSelected", "LXDVMCreated True VMCreated", "LXDVMDeployed False MachineDeploying"}},
		"its installation failed": {virtual(placed("wq4h8c"), held), func(s *scope) {
			s.observed, s.findings.outcome = deployed(), lifecycle.Outcome{Action: lifecycle.Retry, Reason: lifecycle.ReasonDeployFailed}
		}, []string{"LXDHostSelected True HostSelected", "LXDResourcesAllocated True HostSelected", "LXDVMCreated True VMCreated", "LXDVMDeployed False VMDeploymentFailed"}},
		"it runs": {virtual(placed("wq4h8c"), held), runs,
			[]string{"LXDHostSelected True HostSelected", "LXDResourcesAllocated True HostSelected", "LXDVMCreated True VMCreated", "LXDVMDeployed True MachineDeployed"}},
		"it runs, and its host is unavailable": {virtual(placed("wq4h8c"), held), func(s *scope) { runs(s); s.findings.host = &Problem{lxd.ReasonHostUnavailable, "away"} },
			[]string{"LXDHostSelected False HostUnavailable", "LXDResourcesAllocated True HostSelected", "LXDVMCreated True VMCreated", "LXDVMDeployed True MachineDeployed"}},
		"another provider composed it": {virtual(held), runs,
			[]string{"LXDHostSelected True HostSelected", "LXDResourcesAllocated True HostSelected", "LXDVMCreated True VMCreated", "LXDVMDeployed True MachineDeployed"}},
		"it is a bare-metal machine": {holding(), runs, nil},
	} {
		t.Run("When "+name+", the conditions should show the current step", func(t *testing.T) {
			t.Parallel()
			r, _, _ := quiet()
			pass(r, tc.machine, tc.found)
			if diff := cmp.Diff(tc.want, conditionsOf(tc.machine, ConditionLXDHost, ConditionLXDResources, ConditionLXDCreated, ConditionLXDDeployed)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestWhereItIs checks that the status has the host and the resources of the virtual machine, first as requested,
// then as MAAS reports them.
func TestWhereItIs(t *testing.T) {
	t.Parallel()
	r, _, _ := quiet()
	m := virtual(placed(""))
	expect := func(what, host, project string, cores, memory, disk int) {
		t.Helper()
		s := m.Status
		if s.LXDHost != host || s.LXDProject != project || s.ProvisioningMode != infrav1.ProvisioningModeLXD {
			t.Errorf("%s: it is on %q in %q, and %s", what, s.LXDHost, s.LXDProject, s.ProvisioningMode)
		}
		var want *infrav1.VMResourceUsage
		if cores > 0 {
			want = usage(cores, memory, disk)
		}
		if diff := cmp.Diff(want, s.VMResourceUsage); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	pass(r, m, func(*scope) {})
	expect("composing", "h1", "p", 2, 4096, 60)
	annotate(m, lxd.PlacementAnnotation, "")
	pass(r, m, func(*scope) {})
	expect("without a place", "", "", 0, 0, 0)
	placed("wq4h8c")(m)
	held(m)
	pass(r, m, func(s *scope) {
		runs(s)
		s.observed.CPUCount, s.observed.MemoryMiB, s.observed.PhysicalBlockDevices = 4, 8192, []maas.BlockDevice{{Size: 80_999_999_999}}
		s.observed.Pod = &maas.Reference{Name: "h2"}
	})
	expect("as MAAS has it", "h2", "p", 4, 8192, 80)
	annotate(m, lxd.PlacementAnnotation, "a person broke it")
	pass(r, m, func(s *scope) { s.findings.problem = &Problem{ReasonUnreachable, "down"} })
	expect("while MAAS is away", "h2", "p", 4, 8192, 80)
	metal := holding()
	pass(r, metal, runs)
	if metal.Status.VMResourceUsage != nil || metal.Status.ProvisioningMode != infrav1.ProvisioningModeBareMetal {
		t.Errorf("a machine of metal is %s and takes %v", metal.Status.ProvisioningMode, metal.Status.VMResourceUsage)
	}
}

// TestWithoutEffect checks that fields without effect are reported.
func TestWithoutEffect(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		spec *infrav1.LXDConfig
		n    int
	}{
		"lxd is not set":                         {nil, 0},
		"lxd is empty":                           {&infrav1.LXDConfig{}, 0},
		"only fields that MAAS supports are set": {&infrav1.LXDConfig{VMConfig: &infrav1.VMConfig{AutoStart: ptr.To(true)}}, 0},
		"autoStart is false":                     {&infrav1.LXDConfig{VMConfig: &infrav1.VMConfig{AutoStart: ptr.To(false)}}, 1},
		"its links have their mode":              {&infrav1.LXDConfig{VMConfig: &infrav1.VMConfig{InterfaceLinkModes: map[string]string{"eth0": "static"}}}, 1},
		"both":                                   {&infrav1.LXDConfig{VMConfig: &infrav1.VMConfig{AutoStart: ptr.To(false), InterfaceLinkModes: map[string]string{"eth0": "dhcp"}}}, 2},
	} {
		told := withoutEffect(tc.spec)
		got := 0
		for _, field := range []string{"lxd.vmConfig.autoStart", "lxd.vmConfig.interfaceLinkModes"} {
			if strings.Count(told, field) == 1 {
				got++
			}
		}
		if got != tc.n || (told == "") != (tc.n == 0) {
			t.Errorf("when %s, it tells %q", name, told)
		}
	}
}

// TestLooks checks that MAAS refreshes a host once for all its machines, and the result is used for a while.
func TestLooks(t *testing.T) {
	t.Parallel()
	l := newLooks()
	for _, step := range []struct {
		after time.Duration
		due   bool
	}{{0, true}, {1, false}, {lookAgainEvery - 1, false}, {lookAgainEvery, true}, {2*lookAgainEvery - 1, false}} {
		if got := l.due(1, noon.Add(step.after)); got != step.due {
			t.Errorf("after %s it is due: %t", step.after, got)
		}
	}
	if !l.due(2, noon.Add(1)) {
		t.Error("hosts wait for each other")
	}
	at := noon.Add(lookAgainEvery) // The last refresh was at this time.
	l.note(1, "no route to host")
	for after, want := range map[time.Duration]string{0: "no route to host", staleLook - 1: "no route to host", staleLook: ""} {
		if got := l.words(1, at.Add(after)); got != want {
			t.Errorf("%s after the look it is %q", after, got)
		}
	}
	if !l.due(1, at.Add(lookAgainEvery)) || l.words(1, at.Add(staleLook)) != "no route to host" {
		t.Error("while somebody looks again, what is known holds")
	}
	l.note(1, "")
	if got := l.words(1, at.Add(lookAgainEvery)); got != "" {
		t.Errorf("a host that is back is said to be away: %s", got)
	}
	if got := l.words(3, noon); got != "" {
		t.Errorf("of a host that nobody looked at it is said: %s", got)
	}
}

// TestAvoided checks that hosts with a failed attempt and hosts that do not answer are avoided.
func TestAvoided(t *testing.T) {
	t.Parallel()
	r, _, _ := quiet()
	m := virtual()
	if err := setFailures(m, []failure{{SystemID: "x", Host: "failed"}, {SystemID: "metal"}}); err != nil {
		t.Fatal(err)
	}
	hosts := []lxd.Host{{ID: 1, Name: "away"}, {ID: 2, Name: "back"}, {ID: 3, Name: "failed"}, {ID: 4, Name: "well"}}
	for id, words := range map[int]string{1: "no route", 2: ""} {
		r.looks.due(id, noon)
		r.looks.note(id, words)
	}
	got := r.avoided(&scope{machine: m}, hosts)
	delete(got, "") // A failed bare metal machine has no host.
	if diff := cmp.Diff(map[string]bool{"away": true, "failed": true}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestComposed checks that only a virtual machine that was composed for this MaasMachine is deleted. Any other
// virtual machine is released and stays on its host.
func TestComposed(t *testing.T) {
	t.Parallel()
	const uid, other = "0f3c61f2-3f43-4f0b-8c55-1f0a5a6d9f10", "1f3c61f2-3f43-4f0b-8c55-1f0a5a6d9f10"
	for name, tc := range map[string]struct {
		mode    infrav1.ProvisioningMode
		machine maas.Machine
		want    bool
	}{
		"it is a bare-metal machine":                                     {infrav1.ProvisioningModeBareMetal, maas.Machine{SystemID: "wq4h8c", Hostname: "mole", PowerType: "ipmi"}, false},
		"a bare-metal machine has the name":                              {infrav1.ProvisioningModeLXD, maas.Machine{SystemID: "wq4h8c", Hostname: "vm-" + uid, PowerType: "ipmi"}, false},
		"it has the name for this MaasMachine":                           {infrav1.ProvisioningModeLXD, maas.Machine{SystemID: "a", Hostname: "vm-" + uid + "-2", PowerType: "lxd"}, true},
		"it has the name for this MaasMachine, and the mode was changed": {infrav1.ProvisioningModeBareMetal, maas.Machine{SystemID: "a", Hostname: "vm-" + uid, PowerType: "lxd"}, true},
		"it has the name for another MaasMachine":                        {infrav1.ProvisioningModeLXD, maas.Machine{SystemID: "a", Hostname: "vm-" + other, PowerType: "lxd"}, false},
		"another provider composed it for this MaasMachine":              {infrav1.ProvisioningModeLXD, maas.Machine{SystemID: "wq4h8c", Hostname: "any", PowerType: "lxd"}, true},
		"MAAS picked an existing virtual machine":                        {infrav1.ProvisioningModeBareMetal, maas.Machine{SystemID: "wq4h8c", Hostname: "any", PowerType: "lxd"}, false},
	} {
		m := virtual(held, annotated(UIDAnnotation, uid))
		m.Spec.ProvisioningMode = tc.mode
		if got := (&scope{machine: m}).composed(&tc.machine); got != tc.want {
			t.Errorf("when %s, it is deleted: %t", name, got)
		}
	}
}

// TestVMName checks that each attempt has its own name: MAAS keeps the name of a failed virtual machine as long as it
// has the machine.
func TestVMName(t *testing.T) {
	t.Parallel()
	const uid = "0f3c61f2-3f43-4f0b-8c55-1f0a5a6d9f10"
	seen := map[string]bool{}
	for tries := range 3 {
		m := virtual(annotated(UIDAnnotation, uid))
		var failures []failure
		for i := range tries {
			failures = append(failures, failure{SystemID: fmt.Sprint(i), Released: true})
		}
		if err := setFailures(m, failures); err != nil {
			t.Fatal(err)
		}
		name := (&scope{machine: m, infra: &infrav1.MaasCluster{}}).vmName()
		if seen[name] || lxd.UIDOf(name) != uid {
			t.Errorf("try %d has the name %s", tries, name)
		}
		seen[name] = true
	}
}
