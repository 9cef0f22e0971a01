// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/reservation"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// keeper returns a fixture with a deleted MaasMachine. Its machine is released in MAAS and must be reserved.
func keeper(t *testing.T) *rack {
	t.Helper()
	self := sibling("self", holds("m1"), annotated(UIDAnnotation, "self"), annotated(KeptAnnotation, "pool"), func(m *infrav1.MaasMachine) {
		m.Labels[clusterv1.MachineSetNameLabel] = "pool-1"
	})
	k := seeker(t, "alice", self, simtest.Machine{ID: "m1", Hostname: "mole"}).look("m1")
	k.machine.DeletionTimestamp = ptr.To(metav1.NewTime(simtest.Start))
	return k
}

// reserves records a reserved machine on the MaasCluster.
func (k *rack) reserves(id string, record reservation.Record) {
	k.t.Helper()
	if err := reservation.Records.Set(k.infra, id, record); err != nil {
		k.t.Fatal(err)
	}
	if err := k.Client.Update(k.t.Context(), k.infra); err != nil {
		k.t.Fatal(err)
	}
}

// TestKeepForSuccessor checks that a released machine is allocated again immediately, after the reservation was
// recorded. A failed reservation is removed.
func TestKeepForSuccessor(t *testing.T) {
	t.Parallel()
	record := reservation.Record{UID: "self", Deployment: "pool", Set: "pool-1", Hostname: "mole", Since: simtest.Start}
	older := record
	older.Since = simtest.Start.Add(-time.Minute)
	taken := func(k *rack) {
		k.site.Change("m1", func(m *inventory.Machine) { m.Status, m.Owner = status.Allocated, "bob" })
	}
	for name, tc := range map[string]struct {
		before *reservation.Record
		set    func(*rack)
		after  *reservation.Record
		held   bool
		reason string
		events []string
	}{
		"all is well":                      {nil, func(*rack) {}, &record, true, "", []string{ReasonKept}},
		"it was recorded before a crash":   {&older, func(*rack) {}, &older, true, "", []string{ReasonKept}},
		"it is no longer to be reserved":   {&record, func(k *rack) { delete(k.machine.Annotations, KeptAnnotation) }, nil, false, "", nil},
		"MAAS does not have it":            {&record, func(k *rack) { k.observed = nil }, nil, false, "", nil},
		"it is not Ready":                  {&record, func(k *rack) { k.observed.Status = maas.StatusBroken }, nil, false, "", nil},
		"its MaasCluster has no finalizer": {&record, func(k *rack) { k.infra.Finalizers = nil }, nil, false, "", nil},
		"its MaasCluster is deleted":       {&record, func(k *rack) { k.infra.DeletionTimestamp = ptr.To(metav1.NewTime(noon)) }, nil, false, "", nil},
		"another user allocated it first":  {nil, taken, nil, false, "", []string{ReasonNotKept}},
		"MAAS is busy":                     {nil, func(k *rack) { away(k, "machines.allocate") }, &record, false, ReasonUnavailable, nil},
		"the record belongs to another MaasMachine and MAAS does not have the machine": {&reservation.Record{UID: "other"}, func(k *rack) { k.observed = nil }, &reservation.Record{UID: "other"}, false, "", nil},
	} {
		t.Run("When "+name+", it should be reserved only for a successor", func(t *testing.T) {
			t.Parallel()
			k := keeper(t)
			k.site.Clock.SetTime(simtest.Start.In(time.FixedZone("", 7200)))
			if tc.before != nil {
				k.reserves("m1", *tc.before)
			}
			tc.set(k)
			result, err := k.keep(t.Context(), k.scope)
			again := time.Duration(0)
			if tc.reason != "" {
				again = 15 * time.Second
			}
			k.expectReason(result, err, tc.reason, again)
			want := map[string]reservation.Record{}
			if tc.after != nil {
				want["m1"] = *tc.after
			}
			if diff := cmp.Diff(want, reservation.Records.Of(k.storedCluster())); diff != "" && len(want)+len(reservation.Records.Of(k.storedCluster())) > 0 {
				t.Errorf("-want +got:\n%s", diff)
			}
			k.expectEvents(tc.events...)
			m := k.site.Has("m1")
			if held := m.Owner == "alice" && m.AgentName == maas.AllocationKey("self"); held != tc.held || held && k.observed.Status != maas.StatusAllocated {
				t.Errorf("MAAS has it as %s of %q, and the pass knows %s", m.Status, m.Owner, k.observed.Status)
			}
		})
	}
}

// TestKeepIsWrittenFirst checks that without a record MAAS is not called, and cached data is dropped when MAAS
// rejects the call.
func TestKeepIsWrittenFirst(t *testing.T) {
	t.Parallel()
	k := keeper(t)
	unwritable[*infrav1.MaasCluster](k)
	if _, err := k.keep(t.Context(), k.scope); !errors.Is(err, errUnwritten) || !strings.Contains(err.Error(), "m1") || k.site.Has("m1").Owner != "" {
		t.Errorf("MAAS was asked: %v", err)
	}
	k = keeper(t)
	k.reserves("m1", reservation.Record{UID: "self"})
	unwritable[*infrav1.MaasCluster](k)
	if err := k.forgo(t.Context(), k.scope, "m1"); !errors.Is(err, errUnwritten) {
		t.Errorf("it is told as forgotten: %v", err)
	}
	k = keeper(t)
	away(k, "machines.allocate")
	k.site.Change("m1", func(m *inventory.Machine) { m.Hostname = "renamed" })
	if _, err := k.keep(t.Context(), k.scope); err == nil {
		t.Fatal("MAAS was not asked")
	}
	if m, err := k.identity.Inventory.Machine(t.Context(), "m1", time.Hour); err != nil || m.Hostname != "renamed" {
		t.Errorf("what MAAS said before is still believed: %+v, %v", m, err)
	}
	k = newKept(t)
	unwritable[*infrav1.MaasMachine](k)
	if err := k.intend(t.Context(), k.scope); !errors.Is(err, errUnwritten) {
		t.Errorf("what is not written down is told as done: %v", err)
	}
}

// newKept returns a fixture with a machine that a rollout replaces.
func newKept(t *testing.T) *rack {
	t.Helper()
	r, s := newRollOut().among(t)
	return &rack{Reconciler: r, scope: s, t: t}
}

// TestKeepsAlready checks that a machine is not released if an interrupted reconcile has allocated it again.
func TestKeepsAlready(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		set  func(*rack)
		want bool
	}{
		"it is allocated again":                 {func(*rack) {}, true},
		"it is reserved by another MaasMachine": {func(k *rack) { k.reserves("m1", reservation.Record{UID: "other"}) }, false},
		"there is no record":                    {func(k *rack) { k.infra.Annotations = nil }, false},
		"it runs":                               {func(k *rack) { k.observed.Status = maas.StatusDeployed }, false},
		"the machine was not read":              {func(k *rack) { k.observed = nil }, false},
		"it has another allocation key":         {func(k *rack) { k.site.Change("m1", func(m *inventory.Machine) { m.AgentName = "x" }) }, false},
	} {
		k := holder(t, status.Allocated)
		k.reserves("m1", reservation.Record{UID: "self"})
		tc.set(k)
		if got, err := k.keepsAlready(t.Context(), k.scope); got != tc.want || err != nil {
			t.Errorf("when %s, it is kept: %t, %v", name, got, err)
		}
	}
	k := holder(t, status.Allocated)
	k.reserves("m1", reservation.Record{UID: "self"})
	simtest.Refuse(t, k.site.Simulator, "machines.read", "", http.StatusServiceUnavailable, "busy")
	if got, err := k.keepsAlready(t.Context(), k.scope); got || err == nil {
		t.Errorf("keepsAlready returned %t, %v although MAAS does not answer", got, err)
	}
}

// TestOutdatedAt checks that a rollout scheduled for a time begins after it, and affects the machines that existed
// then.
func TestOutdatedAt(t *testing.T) {
	t.Parallel()
	r, _, _ := quiet()
	for name, tc := range map[string]struct {
		after, made time.Time
		want        bool
	}{
		"the time has passed":         {noon.Add(-time.Second), noon.Add(-time.Hour), true},
		"the time is now":             {noon, noon.Add(-time.Hour), false},
		"it was created at that time": {noon.Add(-time.Second), noon.Add(-time.Second), false},
		"no time is set":              {time.Time{}, noon.Add(-time.Hour), false},
	} {
		md, set := &clusterv1.MachineDeployment{}, &clusterv1.MachineSet{}
		set.CreationTimestamp = metav1.NewTime(tc.made)
		if !tc.after.IsZero() {
			md.Spec.Rollout.After = metav1.NewTime(tc.after)
		}
		if got := r.outdated(set, md); got != tc.want {
			t.Errorf("when %s, it is replaced: %t", name, got)
		}
	}
}
