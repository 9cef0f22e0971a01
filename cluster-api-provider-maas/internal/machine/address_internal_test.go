// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/events"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lxd"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/staticip"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

const staticIP = "10.0.0.77"

// addressed returns a fixture whose MaasMachine has the allocated machine m1 and requests the static address on it.
func addressed(t *testing.T, user string) *rack {
	t.Helper()
	self := sibling("self", running("m1"), annotated(AddressAnnotation, `{"ip": "`+staticIP+`"}`))
	self.Spec.StaticIP = &infrav1.StaticIPConfig{IP: staticIP}
	k := newRack(t, user, self, simtest.Machine{ID: "m1", Hostname: "mole", Status: status.Allocated, Owner: user, AgentName: maas.AllocationKey("self")})
	k.reread()
	return k
}

// reread resets the fixture to what a new process knows: the data of MAAS and of the API server.
func (k *rack) reread() {
	k.t.Helper()
	m, err := k.identity.Inventory.Refresh(k.t.Context(), "m1")
	if err != nil {
		k.t.Fatal(err)
	}
	k.scope = &scope{machine: k.machine, infra: k.infra, identity: k.identity, user: k.user, observed: m}
}

// links returns the links of machine m1 in MAAS: "auto", "static 10.0.0.77".
func (k *rack) links() []string {
	k.t.Helper()
	m, err := k.identity.Client.GetMachine(k.t.Context(), "m1")
	if err != nil {
		k.t.Fatal(err)
	}
	var all []string
	for _, nic := range m.Interfaces {
		for _, link := range nic.Links {
			text := link.Mode
			if link.Mode == "static" {
				text += " " + link.IPAddress
			}
			all = append(all, text)
		}
	}
	slices.Sort(all)
	return all
}

func (k *rack) expectLinks(what string, want ...string) {
	k.t.Helper()
	if diff := cmp.Diff(want, k.links()); diff != "" {
		k.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// expectEvents compares the reasons of the events since the last call with want.
func (k *rack) expectEvents(want ...string) {
	k.t.Helper()
	var got []string
	for recorded := k.Recorder.(*events.FakeRecorder).Events; len(recorded) > 0; {
		got = append(got, strings.Fields(<-recorded)[1])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		k.t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestPlaceThatIsCutOff checks that the machine has a network whatever MAAS call fails, and that the next reconcile
// continues.
func TestPlaceThatIsCutOff(t *testing.T) {
	t.Parallel()
	k := addressed(t, "admin")
	placed := func() error {
		t.Helper()
		ok, _, err := k.place(t.Context(), k.scope)
		if ok != (err == nil) {
			t.Fatalf("placed %t, and %v", ok, err)
		}
		return err
	}
	accept := simtest.Refuse(t, k.site.Simulator, "interface.link_subnet", "", http.StatusServiceUnavailable, "busy")
	if err := placed(); err == nil {
		t.Fatal("MAAS was not asked")
	}
	accept()
	k.expectLinks("after a link that was refused", "auto")
	if a := addressOf(k.machine); a != (address{IP: staticIP, SystemID: "m1", Replaced: "auto"}) {
		t.Fatalf("before MAAS was asked, %+v was written down: whoever comes later would not take the address off", a)
	}
	k.reread()
	accept = simtest.Refuse(t, k.site.Simulator, "interface.unlink_subnet", "", http.StatusServiceUnavailable, "busy")
	if err := placed(); err == nil {
		t.Fatal("MAAS was not asked")
	}
	k.expectLinks("after the old link stayed", "auto", "static "+staticIP)
	accept()
	for range 2 {
		k.reread()
		if err := placed(); err != nil {
			t.Fatal(err)
		}
		k.expectLinks("at the end", "static "+staticIP)
		if nic, link := staticip.Find(k.observed, staticIP); link == nil || len(nic.Links) != 1 {
			t.Errorf("what MAAS answered is not known to the rest of the pass: %+v", k.observed.Interfaces)
		}
	}
	k.expectEvents("StaticIPAssigned")
	if a := addressOf(k.machine); a.Replaced != "auto" {
		t.Errorf("after a restart it is forgotten what was there before: %+v", a)
	}
}

// TestPlaceForbidden checks that the message names the required permission, since the MAAS error does not.
func TestPlaceForbidden(t *testing.T) {
	t.Parallel()
	k := addressed(t, "alice")
	ok, _, err := k.place(t.Context(), k.scope)
	if ok || err == nil || k.findings.problem == nil || !strings.Contains(k.findings.problem.Message, "needs the API key of a MAAS administrator") {
		t.Errorf("placed %t, %v: %+v", ok, err, k.findings.problem)
	}
	k.expectLinks("of a user who may not", "auto")
}

// TestFreeThatIsCutOff checks that a released machine gets its previous link before it loses the address. After an
// interruption it does not get a second link.
func TestFreeThatIsCutOff(t *testing.T) {
	t.Parallel()
	k := addressed(t, "admin")
	if ok, _, err := k.place(t.Context(), k.scope); !ok {
		t.Fatal(err)
	}
	k.site.Change("m1", func(m *inventory.Machine) { m.Status, m.Owner, m.AgentName = status.Ready, "", "" })
	accept := simtest.Refuse(t, k.site.Simulator, "interface.unlink_subnet", "", http.StatusServiceUnavailable, "busy")
	for range 2 {
		k.reread()
		if _, err := k.free(t.Context(), k.scope); err == nil {
			t.Fatal("MAAS was not asked")
		}
		k.expectLinks("cut off", "auto", "static "+staticIP)
	}
	accept()
	for range 2 {
		k.reread()
		if _, err := k.free(t.Context(), k.scope); err != nil {
			t.Fatal(err)
		}
		k.expectLinks("at the end", "auto")
	}
	k.expectEvents("StaticIPAssigned", "StaticIPReleased")
}

// TestFreeWhereNothingCanBeDone checks that a machine that is now allocated to another user keeps the address. An
// event reports it, and the controller does not wait indefinitely.
func TestFreeWhereNothingCanBeDone(t *testing.T) {
	t.Parallel()
	for is, changes := range map[status.Status]bool{status.Ready: true, status.Broken: true, status.FailedTesting: true, status.New: true, status.Deployed: false, status.Deploying: false, status.Commissioning: false} {
		k := addressed(t, "admin")
		if ok, _, err := k.place(t.Context(), k.scope); !ok {
			t.Fatal(err)
		}
		k.site.Change("m1", func(m *inventory.Machine) { m.Status, m.Task = is, nil })
		k.reread()
		if _, err := k.free(t.Context(), k.scope); err != nil {
			t.Errorf("%v: %v", is, err)
		}
		want := []string{"static " + staticIP}
		if changes {
			want = []string{"auto"}
		}
		k.expectLinks(is.String(), want...)
		k.expectEvents("StaticIPAssigned", map[bool]string{true: "StaticIPReleased", false: "StaticIPKept"}[changes])
	}
	for name, change := range map[string]func(*rack){
		"MAAS was never asked for the address": func(k *rack) { annotate(k.machine, AddressAnnotation, `{"ip": "`+staticIP+`"}`) },
		"the address is on another machine":    func(k *rack) { annotate(k.machine, AddressAnnotation, `{"ip": "`+staticIP+`", "systemID": "m2"}`) },
		"MAAS does not have the machine":       func(k *rack) { k.observed = nil },
		"another user has the machine":         func(k *rack) { k.observed, k.foreign = nil, true },
	} {
		k := addressed(t, "admin")
		if ok, _, err := k.place(t.Context(), k.scope); !ok {
			t.Fatal(err)
		}
		change(k)
		if _, err := k.free(t.Context(), k.scope); err != nil {
			t.Errorf("when %s: %v", name, err)
		}
		k.expectLinks("when "+name, "static "+staticIP)
	}
}

// TestFreeWithoutOldLink checks that the address is unassigned even if the network was changed since.
func TestFreeWithoutOldLink(t *testing.T) {
	t.Parallel()
	k := addressed(t, "admin")
	if ok, _, err := k.place(t.Context(), k.scope); !ok {
		t.Fatal(err)
	}
	k.site.Change("m1", func(m *inventory.Machine) { m.Status, m.Owner = status.Ready, "" })
	k.reread()
	simtest.Refuse(t, k.site.Simulator, "interface.link_subnet", "", http.StatusBadRequest, `{"mode": ["no"]}`)
	if _, err := k.free(t.Context(), k.scope); err != nil {
		t.Fatal(err)
	}
	for _, link := range k.links() {
		if strings.HasPrefix(link, "static") {
			t.Errorf("it keeps %s", link)
		}
	}
}

// TestDiscard checks that a virtual machine counts as deleted when MAAS no longer has it, not when the call succeeds.
func TestDiscard(t *testing.T) {
	t.Parallel()
	vm := func(user string) (*rack, *maas.Machine) {
		k := newRack(t, user, virtual(running("v1")), simtest.Machine{ID: "v1", Hostname: "vm-1", Status: status.Allocated, Owner: user})
		k.site.Change("v1", func(m *inventory.Machine) { m.PowerType = "lxd" })
		m, err := k.identity.Inventory.Refresh(t.Context(), "v1")
		if err != nil {
			t.Fatal(err)
		}
		k.observed = m
		if !lxd.IsVM(*m) {
			t.Fatal("it is none")
		}
		return k, m
	}
	k, m := vm("admin")
	for range 2 {
		if err := k.discard(t.Context(), k.scope, m); err != nil || k.observed != nil || k.site.Machine("v1") != nil {
			t.Errorf("%v; MAAS has %v", err, k.site.Machine("v1"))
		}
	}
	k, m = vm("alice")
	if err := k.discard(t.Context(), k.scope, m); !maas.IsForbidden(err) || !strings.Contains(err.Error(), "API key of a MAAS administrator") {
		t.Errorf("it does not tell what it takes: %v", err)
	}
	k, m = vm("admin")
	simtest.Refuse(t, k.site.Simulator, "machine.delete", "v1", http.StatusServiceUnavailable, "the host is away")
	if err := k.discard(t.Context(), k.scope, m); !maas.IsUnavailable(err) || k.site.Machine("v1") == nil {
		t.Errorf("it is done away with: %v", err)
	}
}

// TestUnallocatedVM checks that a virtual machine that was composed and never allocated is deleted with its
// MaasMachine. While the outcome of the compose call is unknown, the deletion waits.
func TestUnallocatedVM(t *testing.T) {
	t.Parallel()
	self := virtual(placed(""), leaving)
	k := newRack(t, "admin", self)
	if _, err := k.discardUnallocated(t.Context(), k.scope); err == nil || k.findings.problem == nil || k.findings.problem.Reason != ReasonAllocationUncertain {
		t.Errorf("who was asked a moment ago may still compose: %v, %+v", err, k.findings.problem)
	}
	placed("v1")(self) // MAAS composed it, and has since deleted it.
	k.findings = findings{}
	if _, err := k.discardUnallocated(t.Context(), k.scope); err != nil || k.findings.problem != nil {
		t.Errorf("one that is gone is waited for: %v, %+v", err, k.findings.problem)
	}
	delete(self.Annotations, lxd.PlacementAnnotation)
	if result, err := k.discardUnallocated(t.Context(), k.scope); err != nil || result.RequeueAfter > 0 {
		t.Errorf("one that never was is waited for: %v", err)
	}
}
