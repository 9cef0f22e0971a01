// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/handover"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// witness records the object, type and reason of events: "*v1beta1.MaasCluster demo Warning Reason".
type witness struct{ saw []string }

func (w *witness) Eventf(regarding, _ runtime.Object, kind, reason, _, _ string, _ ...any) {
	about := regarding.(metav1.Object)
	w.saw = append(w.saw, fmt.Sprintf("%T %s %s %s", regarding, about.GetName(), kind, reason))
}

func (k *rack) witness() *witness {
	w := &witness{}
	k.Recorder = w
	return w
}

// TestOverdue checks that a machine that MAAS does not release blocks its MaasMachine only until the release timeout.
func TestOverdue(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		action lifecycle.Action
		after  time.Duration
		change func(*scope)
		want   bool
	}{
		"it is stuck longer than the timeout":   {lifecycle.Stuck, 10*time.Minute + 1, nil, true},
		"it is blocked longer than the timeout": {lifecycle.Blocked, 10*time.Minute + 1, nil, true},
		"the timeout is not exceeded":           {lifecycle.Stuck, 10 * time.Minute, nil, false},
		"MAAS is releasing it":                  {lifecycle.Wait, time.Hour, nil, false},
		"there is no MaasCluster":               {lifecycle.Stuck, time.Hour, func(s *scope) { s.infra = nil }, false},
		"the MaasCluster has no finalizer":      {lifecycle.Stuck, time.Hour, func(s *scope) { s.infra.Finalizers = nil }, false},
	} {
		r, clock, _ := quiet()
		clock.SetTime(noon.Add(tc.after))
		s := &scope{machine: sibling("self", leaving), infra: &infrav1.MaasCluster{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{infrav1.ClusterFinalizer}}}}
		maybe(tc.change, s)
		if got := r.overdue(s, lifecycle.Outcome{Action: tc.action}); got != tc.want {
			t.Errorf("when %s, it is overdue: %t", name, got)
		}
	}
}

// TestHandOverRecord checks that everything needed to release the machine is on the MaasCluster before the
// MaasMachine is deleted.
func TestHandOverRecord(t *testing.T) {
	t.Parallel()
	erase := &infrav1.EraseConfig{Mode: "Secure"}
	there, elsewhere := `{"ip":"10.0.0.7","systemID":"m1"}`, `{"ip":"10.0.0.7","systemID":"m2"}`
	plain := handover.Record{Machine: "self", UID: "self", User: "alice", Hostname: "mole", Words: "dead BMC"}
	with := func(change func(*handover.Record)) handover.Record {
		r := plain
		change(&r)
		return r
	}
	for name, tc := range map[string]struct {
		change func(*rack)
		want   handover.Record
	}{
		"it is a bare-metal machine":        {func(*rack) {}, plain},
		"its disks are to be erased":        {func(k *rack) { k.machine.Spec.Erase = erase }, with(func(r *handover.Record) { r.Erase = erase })},
		"it is a virtual machine":           {func(k *rack) { k.machine.Spec.ProvisioningMode = infrav1.ProvisioningModeLXD }, with(func(r *handover.Record) { r.LXD = true })},
		"another provider allocated it":     {func(k *rack) { delete(k.machine.Annotations, UIDAnnotation) }, with(func(r *handover.Record) { r.Keyless = true })},
		"its address is on this machine":    {func(k *rack) { annotate(k.machine, AddressAnnotation, there) }, with(func(r *handover.Record) { r.Address = there })},
		"its address is on another machine": {func(k *rack) { annotate(k.machine, AddressAnnotation, elsewhere) }, plain},
		"it was not read":                   {func(k *rack) { k.observed = nil }, with(func(r *handover.Record) { r.Hostname = "" })},
		"another MaasMachine delegated its release": {func(k *rack) {
			if err := handover.Records.Set(k.infra, "m1", handover.Record{UID: "other"}); err != nil {
				k.t.Fatal(err)
			}
		}, plain},
	} {
		t.Run("When "+name+", the record should have what the release needs", func(t *testing.T) {
			t.Parallel()
			k := holder(t, status.FailedReleasing)
			k.site.Clock.SetTime(simtest.Start.In(time.FixedZone("", 7200)))
			tc.change(k)
			w := k.witness()
			tc.want.Since = simtest.Start
			for range 2 { // The second call must change nothing.
				if err := k.handOver(t.Context(), k.scope, lifecycle.Outcome{Message: "dead BMC"}); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(map[string]handover.Record{"m1": tc.want}, handover.Records.Of(k.storedCluster())); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff([]string{"*v1beta1.MaasCluster demo Warning MachineHandedOver", "*v1beta1.MaasMachine self Warning MachineHandedOver"}, w.saw); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if got := k.storedCluster().Annotations[handover.Records.Key("m1")]; !strings.Contains(got, simtest.Start.Format(time.RFC3339)) {
				t.Errorf("the time is not that of everybody: %s", got)
			}
		})
	}
	k := holder(t, status.FailedReleasing)
	unwritable[*infrav1.MaasCluster](k)
	if err := k.handOver(t.Context(), k.scope, lifecycle.Outcome{}); !errors.Is(err, errUnwritten) || !strings.Contains(err.Error(), "m1") {
		t.Errorf("it is told as done: %v", err)
	}
	k.expectEvents()
}

// TestGiveBackHandedOver checks that the MaasCluster releases only what certainly belongs to the deleted MaasMachine,
// as the MaasMachine would have done.
func TestGiveBackHandedOver(t *testing.T) {
	t.Parallel()
	const uid = "0f3c61f2-3f43-4f0b-8c55-1f0a5a6d9f10"
	record := handover.Record{Machine: "gone", UID: uid, User: "admin"}
	with := func(change func(*handover.Record)) handover.Record {
		r := record
		change(&r)
		return r
	}
	owned := func(key string) func(*inventory.Machine) {
		return func(m *inventory.Machine) { m.AgentName = maas.AllocationKey(key) }
	}
	for name, tc := range map[string]struct {
		record handover.Record
		is     func(*inventory.Machine)
		action lifecycle.Action
		events []string
		there  bool
		busy   bool
	}{
		"it has the allocation key":                             {record, owned(uid), lifecycle.Wait, []string{"Normal MachineReleasing"}, true, true},
		"it has another allocation key":                         {record, owned("other"), lifecycle.Gone, nil, true, false},
		"the MaasMachine had no allocation key":                 {with(func(r *handover.Record) { r.Keyless = true }), owned("other"), lifecycle.Wait, []string{"Normal MachineReleasing"}, true, true},
		"another user has it":                                   {record, func(m *inventory.Machine) { m.Owner = "bob" }, lifecycle.Gone, nil, true, false},
		"another user has it, and the recorded user is unknown": {with(func(r *handover.Record) { r.User = "" }), func(m *inventory.Machine) { m.Owner = "bob" }, lifecycle.Stuck, nil, true, false},
		"it was composed for the MaasMachine":                   {with(func(r *handover.Record) { r.LXD = true }), func(m *inventory.Machine) { owned(uid)(m); m.PowerType, m.Hostname = "lxd", "vm-"+uid }, lifecycle.Gone, nil, false, false},
		"it was composed by another provider":                   {with(func(r *handover.Record) { r.LXD, r.Keyless = true, true }), func(m *inventory.Machine) { m.PowerType, m.Hostname = "lxd", "any" }, lifecycle.Gone, nil, false, false},
		"it is an existing virtual machine that was allocated":  {record, func(m *inventory.Machine) { owned(uid)(m); m.PowerType, m.Hostname = "lxd", "any" }, lifecycle.Wait, []string{"Normal MachineReleasing"}, true, true},
		"MAAS has released it":                                  {record, func(m *inventory.Machine) { m.Status, m.Owner = status.Ready, "" }, lifecycle.Gone, nil, true, false},
	} {
		t.Run("When "+name+", it should be released only if it is the recorded allocation", func(t *testing.T) {
			t.Parallel()
			user := "admin"
			if strings.HasPrefix(name, "another ") {
				user = "alice"
				if tc.record.User != "" {
					tc.record.User = user
				}
			}
			k := seeker(t, user, sibling("unused"), simtest.Machine{ID: "m1", Status: status.Deployed, Owner: user, Power: "on"})
			k.site.Change("m1", tc.is)
			k.unreleased.add("m1", Problem{}, k.site.Clock.Now().Add(-time.Hour))
			w := k.witness()
			left := k.GiveBack(t.Context(), k.infra, k.identity, "m1", tc.record)
			if left.Action != tc.action {
				t.Errorf("it is %+v", left)
			}
			var want []string
			for _, e := range tc.events {
				want = append(want, "*v1beta1.MaasCluster demo "+e)
			}
			if saw := slices.DeleteFunc(w.saw, func(e string) bool { return strings.Contains(e, "VM") }); tc.there && cmp.Diff(want, saw) != "" {
				t.Errorf("it told %v", w.saw)
			}
			m := k.site.Machine("m1")
			if (m != nil) != tc.there || m != nil && (m.Status == status.Releasing || m.Task != nil) != tc.busy {
				t.Errorf("MAAS has it as %+v", m)
			}
			if first := k.unreleased.add("m1", Problem{}, k.site.Clock.Now()) <= 18*time.Second; !first && tc.action == lifecycle.Gone {
				t.Error("what MAAS refused is remembered of a machine that is back")
			}
		})
	}
}

// TestGiveBackAsItWasSaid checks that the disks are erased and the address is unassigned, and that the MAAS log names
// the MaasMachine.
func TestGiveBackAsItWasSaid(t *testing.T) {
	t.Parallel()
	k := addressed(t, "admin")
	if ok, _, err := k.place(t.Context(), k.scope); !ok {
		t.Fatal(err)
	}
	k.site.Change("m1", func(m *inventory.Machine) { m.Status, m.PowerState = status.Deployed, "on" })
	k.identity.Inventory.Forget("m1")
	record := handover.Record{Machine: "gone", UID: "self", User: "admin", Erase: &infrav1.EraseConfig{Mode: "Quick"}, Address: k.machine.Annotations[AddressAnnotation]}
	if left := k.GiveBack(t.Context(), k.infra, k.identity, "m1", record); left.Action != lifecycle.Wait {
		t.Errorf("it is %+v", left)
	}
	if got := k.site.Has("m1").Status; got != status.DiskErasing {
		t.Errorf("its disks are left as they are: it is %s", got)
	}
	page, err := k.identity.Client.ListEvents(t.Context(), maas.EventFilter{SystemIDs: []string{"m1"}, Level: "DEBUG"})
	if err != nil || !slices.ContainsFunc(page.Events, func(e maas.Event) bool { return strings.Contains(e.Description, "ns/gone") }) {
		t.Errorf("MAAS's log tells %+v, %v", page.Events, err)
	}
	k.site.Settle(10 * time.Minute)
	k.identity.Inventory.Forget("m1")
	if left := k.GiveBack(t.Context(), k.infra, k.identity, "m1", record); left.Action != lifecycle.Gone {
		t.Errorf("it is %+v", left)
	}
	k.expectLinks("at the end", "auto")
}

// TestHandOverOutstanding checks that the MaasCluster continues the pending releases, and that the MaasMachine no
// longer waits for them.
func TestHandOverOutstanding(t *testing.T) {
	t.Parallel()
	found := func() *rack {
		k := seeker(t, "alice", sibling("self", annotated(UIDAnnotation, "self"), failedOn(t, failure{SystemID: "a"}, failure{SystemID: "b"})),
			allocated("a", "self", status.FailedDeployment), allocated("b", "self", status.FailedDeployment))
		simtest.Refuse(t, k.site.Simulator, "machine.release", "", http.StatusServiceUnavailable, "dead BMC")
		if _, err := k.background(t.Context(), k.scope); err != nil || len(k.findings.outstanding) != 2 {
			t.Fatalf("%+v, %v", k.findings.outstanding, err)
		}
		return k
	}
	k := found()
	if result, err := k.handOverOutstanding(t.Context(), k.scope); err != nil || !result.IsZero() || len(k.findings.outstanding) > 0 {
		t.Errorf("it still waits for %v: %v", k.findings.outstanding, err)
	}
	records := handover.Records.Of(k.storedCluster())
	if len(records) != 2 || records["a"].Hostname != "host-a" || records["b"].UID != "self" || !strings.Contains(records["b"].Words, "dead BMC") {
		t.Errorf("it wrote down %+v", records)
	}
	k = found()
	k.infra.Finalizers = nil
	if _, err := k.handOverOutstanding(t.Context(), k.scope); err != nil || len(k.findings.outstanding) != 2 || len(handover.Records.Of(k.infra)) > 0 {
		t.Errorf("a cluster that waits for nothing goes on with it: %v, %v", k.findings.outstanding, err)
	}
	k = found()
	unwritable[*infrav1.MaasCluster](k)
	if _, err := k.handOverOutstanding(t.Context(), k.scope); !errors.Is(err, errUnwritten) || len(k.findings.outstanding) != 2 {
		t.Errorf("it is told as done: %v", err)
	}
}

// TestTakesOver checks that releases are delegated only to a MaasCluster with its finalizer: without it, the
// MaasCluster could be deleted at any time.
func TestTakesOver(t *testing.T) {
	t.Parallel()
	s := &scope{machine: sibling("self")}
	if s.takesOver() || s.handedOver("m1") {
		t.Error("no cluster takes over")
	}
	s.infra = &infrav1.MaasCluster{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: ptr.To(metav1.NewTime(noon)), Finalizers: []string{infrav1.ClusterFinalizer}}}
	if !s.takesOver() {
		t.Error("one that is deleted takes over, and waits")
	}
}
