// SPDX-License-Identifier: Apache-2.0

package reservation_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/reservation"
)

// TestFor checks that a reserved machine goes to the next MachineSet of its pool, and a restored one to any MachineSet
// of its pool.
func TestFor(t *testing.T) {
	t.Parallel()
	kept, restored := reservation.Record{Deployment: "p", Set: "p-1"}, reservation.Record{Deployment: "p", Set: "p-1", Restored: true}
	for name, tc := range map[string]struct {
		record          reservation.Record
		deployment, set string
		want            bool
	}{
		"the next MachineSet of the pool":                       {kept, "p", "p-2", true},
		"the same MachineSet":                                   {kept, "p", "p-1", false},
		"another pool":                                          {kept, "q", "p-2", false},
		"no pool, and a MachineSet with the name of the pool":   {kept, "", "p", false},
		"no pool, and a record without a pool":                  {reservation.Record{}, "", "s", false},
		"restored, the next set":                                {restored, "p", "p-2", true},
		"restored, the same set":                                {restored, "p", "p-1", true},
		"restored, a set that is a pool":                        {restored, "", "p", true},
		"restored, another pool with a MachineSet of that name": {restored, "q", "p", false},
		"restored, of no pool":                                  {reservation.Record{Restored: true}, "", "", false},
	} {
		if got := tc.record.For(tc.deployment, tc.set); got != tc.want {
			t.Errorf("%s: it may take the machine: %t", name, got)
		}
	}
}

// TestRecordsSurvive checks that a process reads the records of an earlier one. An invalid record is no reservation,
// so its machine is released.
func TestRecordsSurvive(t *testing.T) {
	t.Parallel()
	infra := &infrav1.MaasCluster{}
	want := reservation.Record{UID: "u", Deployment: "p", Set: "p-1", Hostname: "mole", Since: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Successor: "h", Restored: true}
	if err := reservation.Records.Set(infra, "a", want); err != nil {
		t.Fatal(err)
	}
	infra.Annotations[reservation.Records.Key("b")] = "{"
	if diff := cmp.Diff(map[string]reservation.Record{"a": want}, reservation.Records.Of(infra)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
