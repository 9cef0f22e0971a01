// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machine"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/reservation"
)

// TestEndOfReservation checks whether the machine mole01 stays reserved for the successor of a MaasMachine, and for how
// long.
func TestEndOfReservation(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	maasMachine := func(uid string, change ...func(*infrav1.MaasMachine)) infrav1.MaasMachine {
		m := infrav1.MaasMachine{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}}
		for _, c := range change {
			c(&m)
		}
		return m
	}
	has := func(id string) func(*infrav1.MaasMachine) {
		return func(m *infrav1.MaasMachine) { m.Spec.SystemID = ptr.To(id) }
	}
	type kept struct {
		Why  string
		Left time.Duration
	}
	for name, test := range map[string]struct {
		record   reservation.Record
		age      time.Duration
		machines []infrav1.MaasMachine
		deleted  bool
		want     kept
	}{
		"just made":                       {want: kept{Left: reservation.SuccessorTimeout}},
		"some minutes old":                {age: 4 * time.Minute, want: kept{Left: reservation.SuccessorTimeout - 4*time.Minute}},
		"no successor claimed it in time": {age: reservation.SuccessorTimeout, want: kept{Why: "no successor claimed it"}},
		"a restored reservation has no timeout": {record: reservation.Record{Restored: true}, age: 30 * 24 * time.Hour,
			want: kept{Left: sweepAge}},
		"the successor has the machine": {record: reservation.Record{Successor: "new"}, machines: []infrav1.MaasMachine{maasMachine("new", has("mole01"))},
			want: kept{Why: "its successor has it"}},
		"the successor has another machine": {record: reservation.Record{Successor: "new"}, machines: []infrav1.MaasMachine{maasMachine("new", has("rat001"))},
			want: kept{Left: reservation.SuccessorTimeout}},
		"the successor has no machine yet": {record: reservation.Record{Successor: "new"}, machines: []infrav1.MaasMachine{maasMachine("new")},
			want: kept{Left: reservation.SuccessorTimeout}},
		"another MaasMachine has it, and no successor claimed it": {machines: []infrav1.MaasMachine{maasMachine("", has("mole01"))}, want: kept{Left: reservation.SuccessorTimeout}},
		"the previous MaasMachine is about to allocate it": {age: 20 * time.Minute, machines: []infrav1.MaasMachine{maasMachine("old")},
			want: kept{Left: time.Second}},
		"the previous MaasMachine uses an older key": {age: 20 * time.Minute, want: kept{Left: time.Second}, machines: []infrav1.MaasMachine{
			maasMachine("other", func(m *infrav1.MaasMachine) { m.Annotations = map[string]string{machine.UIDAnnotation: "old"} })}},
		"the previous MaasMachine exists and the cluster is deleted": {deleted: true, machines: []infrav1.MaasMachine{maasMachine("old")},
			want: kept{Left: reservation.SuccessorTimeout}},
		"the cluster is deleted": {deleted: true, want: kept{Why: "the cluster is deleted"}},
	} {
		t.Run(name, func(t *testing.T) {
			test.record.UID, test.record.Since = "old", now.Add(-test.age)
			infra := &infrav1.MaasCluster{}
			if test.deleted {
				infra.DeletionTimestamp = ptr.To(metav1.NewTime(now))
			}
			r := &Reconciler{Clock: clocktesting.NewFakePassiveClock(now)}
			why, left := r.ended(&scope{infra: infra}, test.record, "mole01", test.machines)
			if diff := cmp.Diff(test.want, kept{why, left}); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}
