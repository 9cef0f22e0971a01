// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lxd"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

const vmUID = "0f3c61f2-3f43-4f0b-8c55-1f0a5a6d9f10"

// composer returns a fixture whose MaasMachine requests a virtual machine. The first host has the most free resources.
func composer(t *testing.T, user string, change ...func(*infrav1.MaasMachine)) *rack {
	t.Helper()
	self := virtual(append([]func(*infrav1.MaasMachine){annotated(UIDAnnotation, vmUID), func(m *infrav1.MaasMachine) {
		m.Spec.MinCPU, m.Spec.MinMemory = ptr.To(2), ptr.To(4096)
	}}, change...)...)
	return seekerOf(t, user, self, simtest.WithVMHosts(simtest.Seed(), simtest.VMHost{Name: "h1", Zone: "az1", CPU: 64, Memory: 1 << 18, Project: "p"}, simtest.VMHost{Name: "h2", Zone: "az2"}))
}

// composing returns a fixture whose virtual machine was composed and is in the given state.
func composing(t *testing.T, is status.Status) (*rack, *maas.Machine) {
	t.Helper()
	k := composer(t, "admin")
	if _, err := k.acquireVM(t.Context(), k.scope); err == nil || k.reason() != ReasonVMCommissioning {
		t.Fatalf("%v: %+v", err, k.findings.problem)
	}
	id := lxd.PlacementOf(k.machine).SystemID
	k.site.Change(id, func(m *inventory.Machine) { m.Status, m.Task = is, nil })
	m := k.look(id).observed
	k.observed, k.findings = nil, findings{}
	k.expectEvents("VMComposed")
	k.site.ResetRequests()
	return k, m
}

// TestComposeVM checks that a virtual machine is composed on the best host, recorded before and after the call, and
// allocated when MAAS has commissioned it.
func TestComposeVM(t *testing.T) {
	t.Parallel()
	k := composer(t, "admin")
	result, err := k.acquireVM(t.Context(), k.scope)
	k.expectReason(result, err, ReasonVMCommissioning, 10*time.Second)
	k.expectEvents("VMComposed")
	place, m := lxd.PlacementOf(k.stored()), k.stored()
	if place == nil || place.Host != "h1" || place.Zone != "az1" || place.Project != "p" || place.Cores != 2 || place.MemoryMiB != 4096 ||
		!place.At.Equal(simtest.Start) || !place.Composed.Equal(simtest.Start) || place.Hostname != lxd.Hostname(vmUID, "cluster", 0) {
		t.Fatalf("its place is %+v", place)
	}
	if m.Annotations[UIDAnnotation] != vmUID || k.storedCluster().Annotations[infrav1.OwnerAnnotation] != "admin" {
		t.Errorf("nobody knows whose it is: %v, %v", m.Annotations, k.storedCluster().Annotations)
	}
	// MAAS commissions it for a while.
	result, err = k.acquireVM(t.Context(), k.scope)
	k.expectReason(result, err, ReasonVMCommissioning, 10*time.Second)
	if n := k.asked("vm-host.compose"); n > 1 {
		t.Errorf("%d virtual machines are made", n)
	}
	for range 40 {
		k.site.Pass(5 * time.Second)
	}
	k.findings = findings{}
	if result, err = k.acquireVM(t.Context(), k.scope); err != nil || k.systemID() != place.SystemID {
		t.Errorf("it is not allocated: %v, %v: %+v", result, err, k.findings.problem)
	}
	if got := deref(k.stored().Spec.ProviderID); got != "maas-lxd:///az1/"+place.SystemID {
		t.Errorf("its provider ID is %s", got)
	}
	k.expectEvents("MachineAllocated")
}

// TestBeforeVM checks that no virtual machine is composed that could not be deployed.
func TestBeforeVM(t *testing.T) {
	t.Parallel()
	refuse := func(code int) func(*rack) {
		return func(k *rack) { simtest.Fault(k.t, k.site.Simulator, faults.Rule{Kind: faults.Error, Status: code}) }
	}
	for name, tc := range map[string]struct {
		change func(*rack)
		reason string
	}{
		"MAAS has no such image":        {func(k *rack) { k.machine.Spec.Image = "custom/other" }, ReasonImageNotFound},
		"MAAS has no such subnet":       {func(k *rack) { k.machine.Spec.StaticIP = &infrav1.StaticIPConfig{IP: "10.77.0.1"} }, "SubnetNotFound"},
		"MAAS does not list its images": {refuse(http.StatusServiceUnavailable), ReasonUnavailable},
		"the bootstrap data is gone":    {func(k *rack) { k.owner.Spec.Bootstrap.DataSecretName = ptr.To("other") }, ReasonWaitingForBootstrapData},
	} {
		k := composer(t, "admin")
		tc.change(k)
		result, err := k.acquireVM(t.Context(), k.scope)
		if k.reason() != tc.reason || err == nil || !soon(result, 15*time.Second) || k.asked("vm-host.compose") > 0 {
			t.Errorf("when %s, it ends with %v, %v: %+v", name, result, err, k.findings.problem)
		}
	}
	k := composer(t, "admin")
	unwritable[*infrav1.MaasCluster](k)
	if _, err := k.acquireVM(t.Context(), k.scope); !errors.Is(err, errUnwritten) || len(k.site.Machines()) > 0 {
		t.Errorf("nobody will know as whom it was asked for: %v", err)
	}
	k = composer(t, "admin")
	unwritable[*infrav1.MaasMachine](k)
	if _, err := k.acquireVM(t.Context(), k.scope); !errors.Is(err, errUnwritten) || len(k.site.Machines()) > 0 {
		t.Errorf("nobody will know where it was made: %v", err)
	}
	k = composer(t, "admin")
	writable[*infrav1.MaasMachine](k, 1)
	if _, err := k.acquireVM(t.Context(), k.scope); !errors.Is(err, errUnwritten) || len(k.site.Machines()) != 1 || k.reason() != "" {
		t.Errorf("that it was made is told, and not written down: %v", err)
	}
	k.expectEvents()
}

// TestWish checks the zones and the subnet of a request for a virtual machine. The zone of the Machine takes precedence
// over the zones of the cluster. The subnet is the one of the static address.
func TestWish(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change     func(*rack)
		zones      []string
		interfaces string
	}{
		"no zone is set":          {func(*rack) {}, nil, ""},
		"there is no MaasCluster": {func(k *rack) { k.infra = nil }, nil, ""},
		"the cluster sets zones":  {func(k *rack) { k.infra.Spec.FailureDomains = []string{"a", "b"} }, []string{"a", "b"}, ""},
		"the Machine sets a zone": {func(k *rack) { k.infra.Spec.FailureDomains, k.owner.Spec.FailureDomain = []string{"a", "b"}, "c" }, []string{"c"}, ""},
		"it has an address":       {func(k *rack) { k.subnet = &maas.Subnet{ID: 7} }, nil, "eth0:subnet=7"},
		"lxdConfig sets the network": {func(k *rack) {
			k.subnet, k.machine.Spec.LXDConfig = &maas.Subnet{ID: 7}, &infrav1.LXDMachineConfig{Network: &infrav1.LXDNetwork{Bridge: "br9"}}
		}, nil, "eth0:name=br9"},
	} {
		k := composer(t, "admin")
		tc.change(k)
		vmRequest, err := k.vmRequest(t.Context(), k.scope)
		if err != nil || !slices.Equal(vmRequest.Zones, tc.zones) || vmRequest.Interfaces != tc.interfaces || vmRequest.Group != group(k.machine) || vmRequest.Group == "" {
			t.Errorf("when %s, it is wished for %+v, %v", name, vmRequest, err)
		}
	}
}

// TestHostRefuses checks that if a host rejects the call, the next one is tried, and the MAAS errors are reported if
// all do. A problem that another host would not fix is reported immediately.
func TestHostRefuses(t *testing.T) {
	t.Parallel()
	rule := func(host string, code int, words string) faults.Rule {
		return faults.Rule{Kind: faults.Error, Operation: "vm-host.compose", Machine: host, Status: code, Message: words}
	}
	for name, tc := range map[string]struct {
		user   string
		rules  []faults.Rule
		reason string
		again  time.Duration
		words  []string
		placed bool
	}{
		"all hosts reject the call":                   {"admin", []faults.Rule{rule("", 400, "no")}, ReasonVMCreationFailed, 10 * time.Second, []string{"host h1: ", " | host h2: "}, false},
		"all hosts lack room":                         {"admin", []faults.Rule{rule("", 400, "CPU overcommit ratio is 1.0")}, lxd.ReasonInsufficientResources, 10 * time.Second, []string{"overcommit"}, false},
		"the key does not belong to an administrator": {"alice", nil, ReasonForbidden, 15 * time.Second, []string{"API key of a MAAS administrator"}, false},
		"the answer is lost":                          {"admin", []faults.Rule{rule("", 500, "oops")}, ReasonUnavailable, 15 * time.Second, []string{"oops"}, true},
	} {
		k := composer(t, tc.user)
		for _, r := range tc.rules {
			simtest.Fault(t, k.site.Simulator, r)
		}
		result, err := k.acquireVM(t.Context(), k.scope)
		if k.reason() != tc.reason || err == nil || !soon(result, tc.again) {
			t.Errorf("when %s, it ends with %v, %v: %+v", name, result, err, k.findings.problem)
			continue
		}
		for _, words := range tc.words {
			if !strings.Contains(k.findings.problem.Message, words) {
				t.Errorf("when %s, it is told %s", name, k.findings.problem.Message)
			}
		}
		if there := lxd.PlacementOf(k.stored()) != nil; there != tc.placed {
			t.Errorf("when %s, a place is written down: %t", name, there)
		}
	}
}

// TestNoHost checks that the delay grows with the time without a host, and that a timeout is reported.
func TestNoHost(t *testing.T) {
	t.Parallel()
	for waited, tc := range map[time.Duration]struct {
		again time.Duration
		late  bool
	}{
		0: {10 * time.Second, false}, 40 * time.Second: {10 * time.Second, false}, 4 * time.Minute: {time.Minute, false},
		10 * time.Minute: {2 * time.Minute, false}, 10*time.Minute + 1: {2 * time.Minute, true},
	} {
		k := composer(t, "admin", func(m *infrav1.MaasMachine) {
			m.Spec.MinCPU = ptr.To(1000)
			m.Status.Conditions = []metav1.Condition{{Type: ConditionAllocated, LastTransitionTime: metav1.NewTime(simtest.Start)}}
		})
		k.machine.Status.Conditions = []metav1.Condition{condition.False(ConditionAllocated, "", "")}
		k.machine.Status.Conditions[0].LastTransitionTime = metav1.NewTime(simtest.Start.Add(-waited))
		result, err := k.acquireVM(t.Context(), k.scope)
		k.expectReason(result, err, lxd.ReasonInsufficientResources, tc.again)
		if late := strings.HasPrefix(k.findings.problem.Message, "no virtual machine for more than 10m0s: "); late != tc.late {
			t.Errorf("after %s it is told %s", waited, k.findings.problem.Message)
		}
	}
	k := composer(t, "admin", placed(""), func(m *infrav1.MaasMachine) { m.Spec.MinCPU = ptr.To(1000) })
	k.site.Clock.SetTime(noon.Add(time.Hour))
	unwritable[*infrav1.MaasMachine](k)
	if _, err := k.acquireVM(t.Context(), k.scope); !errors.Is(err, errUnwritten) {
		t.Errorf("the place stays: %v", err)
	}
}

// TestHostsAsListed distinguishes a MAAS without LXD hosts from a MAAS that cannot list them.
func TestHostsAsListed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		rule    faults.Rule
		project string
		n       int
		fails   bool
	}{
		"MAAS has two":                         {faults.Rule{Kind: faults.Error, Operation: "nothing", Status: 500}, "", 2, false},
		"MAAS does not answer":                 {faults.Rule{Kind: faults.Error, Status: http.StatusServiceUnavailable}, "", 0, true},
		"the projects cannot be read":          {faults.Rule{Kind: faults.Error, Operation: "vm-host.parameters", Status: http.StatusForbidden}, "", 2, false},
		"the requested project cannot be read": {faults.Rule{Kind: faults.Error, Operation: "vm-host.parameters", Status: http.StatusForbidden}, "p", 0, true},
	} {
		k := composer(t, "admin")
		simtest.Fault(t, k.site.Simulator, tc.rule)
		hosts, asOf, err := k.hosts(t.Context(), k.scope, lxd.Request{Project: tc.project})
		if len(hosts) != tc.n || (err != nil) != tc.fails || tc.n > 0 && !asOf.Equal(simtest.Start) {
			t.Errorf("when %s, there are %d, %v", name, len(hosts), err)
		}
		if tc.rule.Operation == "nothing" && hosts[0].Project != "p" {
			t.Errorf("h1 composes in %q", hosts[0].Project)
		}
	}
}

// TestPeersUnseen checks that nothing is composed without a list of the siblings.
func TestPeersUnseen(t *testing.T) {
	t.Parallel()
	k := composer(t, "admin")
	down := errors.New("no cache")
	deaf(k.Reconciler, down)
	if _, err := k.peers(t.Context(), k.scope); !errors.Is(err, down) {
		t.Errorf("%v", err)
	}
	if _, err := k.acquireVM(t.Context(), k.scope); !errors.Is(err, down) || len(k.site.Machines()) > 0 {
		t.Errorf("%v", err)
	}
}

// TestRaiseVM checks for each state of a composed virtual machine whether the provider waits, or records a failure and
// tries another one.
func TestRaiseVM(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		is     status.Status
		after  time.Duration
		reason string
		again  time.Duration
		failed bool
		former []string
	}{
		"it is new":                             {status.New, 0, ReasonVMCommissioning, 10 * time.Second, false, nil},
		"it is being commissioned":              {status.Commissioning, 30 * time.Minute, ReasonVMCommissioning, 10 * time.Second, false, nil},
		"it is being tested":                    {status.Testing, 30 * time.Minute, ReasonVMCommissioning, 10 * time.Second, false, nil},
		"it is being commissioned for too long": {status.Commissioning, 30*time.Minute + 1, ReasonVMCreationFailed, time.Second, true, []string{ReasonVMCreationFailed}},
		"its commissioning failed":              {status.FailedCommissioning, 0, ReasonVMCreationFailed, time.Second, true, []string{ReasonVMCreationFailed}},
		"its tests failed":                      {status.FailedTesting, 0, ReasonVMCreationFailed, time.Second, true, []string{ReasonVMCreationFailed}},
		"an administrator marked it as broken":  {status.Broken, 0, ReasonVMCreationFailed, time.Second, true, []string{ReasonVMCreationFailed}},
		"it is missing":                         {status.Missing, 0, ReasonVMCreationFailed, time.Second, true, []string{ReasonVMCreationFailed}},
		"it is retired":                         {status.Retired, 0, ReasonVMCreationFailed, time.Second, true, []string{ReasonVMCreationFailed}},
		"another user allocated it":             {status.Allocated, 0, ReasonVMCreationFailed, time.Second, true, []string{ReasonVMCreationFailed}},
	} {
		t.Run("When "+name+", it should wait, or record a failure", func(t *testing.T) {
			t.Parallel()
			k, vm := composing(t, tc.is)
			place := *lxd.PlacementOf(k.machine)
			k.site.Clock.Step(tc.after)
			result, err := k.raiseVM(t.Context(), k.scope, place, vm)
			k.expectReason(result, err, tc.reason, tc.again)
			k.expectEvents(tc.former...)
			stored := k.stored()
			if failed := lxd.PlacementOf(stored) == nil; failed != tc.failed {
				t.Errorf("it is given up: %t", failed)
			}
			if !tc.failed {
				return
			}
			want := []failure{{SystemID: vm.SystemID, Hostname: place.Hostname, At: k.Clock.Now(), Reason: ReasonVMCreationFailed, Host: "h1", Words: failuresOf(stored)[0].Words}}
			if diff := cmp.Diff(want, failuresOf(stored)); diff != "" || want[0].Words == "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestTakeVM checks that a virtual machine that an earlier reconcile allocated is adopted.
func TestTakeVM(t *testing.T) {
	t.Parallel()
	k, _ := composing(t, status.Allocated)
	place := *lxd.PlacementOf(k.machine)
	k.site.Change(place.SystemID, func(m *inventory.Machine) { m.AgentName, m.Owner = maas.AllocationKey(vmUID), "admin" })
	vm := k.look(place.SystemID).observed
	accept := simtest.Refuse(t, k.site.Simulator, "machines.read", "", http.StatusServiceUnavailable, "busy")
	result, err := k.raiseVM(t.Context(), k.scope, place, vm)
	k.expectReason(result, err, ReasonUnavailable, 15*time.Second)
	accept()
	k.findings = findings{}
	if result, err := k.raiseVM(t.Context(), k.scope, place, vm); err != nil || !result.IsZero() || deref(k.stored().Spec.SystemID) != vm.SystemID || !k.proven {
		t.Errorf("%v, %v: it has %v", result, err, deref(k.stored().Spec.SystemID))
	}
}

// TestFailVM checks that the last virtual machine stays so that users can inspect it, and that a deleted one is not
// released.
func TestFailVM(t *testing.T) {
	t.Parallel()
	k, vm := composing(t, status.Broken)
	place := *lxd.PlacementOf(k.machine)
	annotate(k.machine, AttemptAnnotation, "2026-11-22T12:00:00Z")
	if err := k.Client.Update(t.Context(), k.machine); err != nil {
		t.Fatal(err)
	}
	result, err := k.failVM(t.Context(), k.scope, place, nil, "words")
	k.expectReason(result, err, ReasonVMCreationFailed, time.Second)
	stored := k.stored()
	if f := failuresOf(stored); len(f) != 1 || !f[0].Released || f[0].Words != "words" || stored.Annotations[AttemptAnnotation] != "" {
		t.Errorf("it is written down as %+v", stored.Annotations)
	}
	k.Attempts = 2
	k.findings = findings{}
	result, err = k.failVM(t.Context(), k.scope, place, vm, "words")
	k.expectReason(result, err, ReasonVMCreationFailed, 2*time.Minute)
	if o := k.findings.outcome; o.Action != lifecycle.Failed || o.Reason != ReasonVMCreationFailed || o.Message != k.findings.problem.Message || !strings.Contains(o.Message, "2 virtual machines") {
		t.Errorf("it is told %+v", o)
	}
	if len(failuresOf(k.stored())) != 1 || tries(1) != "1 virtual machine" {
		t.Error("the last one is given back")
	}
	k.Attempts = 3
	unwritable[*infrav1.MaasMachine](k)
	k.expectEvents(ReasonVMCreationFailed)
	if _, err := k.failVM(t.Context(), k.scope, place, vm, "words"); !errors.Is(err, errUnwritten) {
		t.Errorf("what is not written down makes no room: %v", err)
	}
	k.expectEvents()
}
