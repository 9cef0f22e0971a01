// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/handover"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/identity"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machine"
)

// releases is a fake Releaser. It returns the outcome of the release of each machine by system ID.
type releases map[string]lifecycle.Outcome

// GiveBack implements Releaser.
func (r releases) GiveBack(_ context.Context, _ *infrav1.MaasCluster, _ *identity.Identity, systemID string, _ handover.Record) lifecycle.Outcome {
	return r[systemID]
}

// handedOver returns a MaasCluster with these handover records, and a reconciler that releases their machines through
// r.
func handedOver(t *testing.T, r releases, records map[string]handover.Record) (*Reconciler, *scope) {
	t.Helper()
	infra := &infrav1.MaasCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}}
	for id, record := range records {
		if err := handover.Records.Set(infra, id, record); err != nil {
			t.Fatal(err)
		}
	}
	scheme := runtime.NewScheme()
	if err := infrav1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(infra).Build()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(infra), infra); err != nil {
		t.Fatal(err)
	}
	return &Reconciler{Client: c, Machines: r, Recorder: events.NewFakeRecorder(10)}, &scope{infra: infra}
}

func TestTakeBack(t *testing.T) {
	record := func(uid string) handover.Record {
		return handover.Record{Machine: "m-" + uid, UID: uid, Hostname: "host-" + uid}
	}
	for name, tc := range map[string]struct {
		outcome lifecycle.Outcome
		record  handover.Record
		problem *machine.Problem
		stands  bool
		again   time.Duration
		event   string
	}{
		"MAAS has released the machine": {outcome: lifecycle.Outcome{Action: lifecycle.Gone, Message: "it is free"}, record: record("x"), event: "Normal MachineReleased machine host-x (mole01) of MaasMachine m-x, which is gone: it is free"},
		"MAAS is still releasing it":    {outcome: lifecycle.Outcome{Action: lifecycle.Wait, Message: "it is erased"}, record: record("x"), stands: true, again: 15 * time.Second},
		"MAAS fails to release it":      {outcome: lifecycle.Outcome{Action: lifecycle.Stuck, Message: "its BMC is dead"}, record: record("x"), stands: true},
		"a user corrupted the record":   {outcome: lifecycle.Outcome{Action: lifecycle.Gone}, stands: true},
		"MAAS is unreachable":           {outcome: lifecycle.Outcome{Action: lifecycle.Gone}, record: record("x"), problem: &machine.Problem{}, stands: true},
	} {
		t.Run("When "+name+", the record should stay only while the release is pending", func(t *testing.T) {
			g := NewWithT(t)
			r, s := handedOver(t, releases{"mole01": tc.outcome}, map[string]handover.Record{"mole01": tc.record})
			s.problem = tc.problem
			result, err := r.takeBack(t.Context(), s)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(result.RequeueAfter).To(Equal(tc.again))
			g.Expect(handover.Records.Of(s.infra)).To(HaveLen(map[bool]int{true: 1}[tc.stands]))
			g.Expect(r.Client.Get(t.Context(), client.ObjectKeyFromObject(s.infra), s.infra)).To(Succeed())
			g.Expect(handover.Records.Of(s.infra)).To(HaveLen(map[bool]int{true: 1}[tc.stands]), "what the API server has")
			if tc.event == "" {
				g.Expect(r.Recorder.(*events.FakeRecorder).Events).To(BeEmpty())
				return
			}
			g.Expect(<-r.Recorder.(*events.FakeRecorder).Events).To(Equal(tc.event))
		})
	}
	t.Run("When there are no records, no pending release should be reported", func(t *testing.T) {
		g := NewWithT(t)
		r, s := handedOver(t, nil, nil)
		result, err := r.takeBack(t.Context(), s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.IsZero()).To(BeTrue())
		g.Expect(s.unreleased).To(BeNil())
		g.Expect(s.awaitsRecords()).To(BeFalse())
		g.Expect(s.left).To(BeNil())
	})
	t.Run("When the context is cancelled, it should return the context's error", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r, s := handedOver(t, releases{"mole01": {Action: lifecycle.Gone}}, map[string]handover.Record{"mole01": record("x")})
		_, err := r.takeBack(ctx, s)
		NewWithT(t).Expect(errors.Is(err, context.Canceled)).To(BeTrue())
	})
}

// TestToldOfHandedOver checks the condition and the message of a MaasCluster with machines that MAAS has not released.
func TestToldOfHandedOver(t *testing.T) {
	g := NewWithT(t)
	_, s := handedOver(t, nil, map[string]handover.Record{"mole01": {Machine: "m", UID: "x", Hostname: "mole", Words: "as it was then"}})
	g.Expect(s.releasedCondition()).To(ConsistOf(And(HaveField("Type", "MachinesReleased"), HaveField("Status", metav1.ConditionFalse),
		HaveField("Reason", "MachinesNotReleased"), HaveField("Message", ContainSubstring(": as it was then.")))))
	g.Expect(s.awaitsRecords()).To(BeTrue())
	g.Expect(s.left.Reason).To(Equal("MachinesNotReleased"))
	g.Expect(s.left.Message).To(HavePrefix("MAAS has not released machine mole (mole01)"))

	s.unreleased = map[string]lifecycle.Outcome{"mole01": {Message: "as it is now"}}
	s.problem = &machine.Problem{Reason: "MAASUnreachable", Message: "no answer"}
	g.Expect(s.awaitsRecords()).To(BeTrue())
	g.Expect(s.left.Reason).To(Equal("MAASUnreachable"))
	g.Expect(s.left.Message).To(And(HavePrefix("no answer. MAAS has not released"), ContainSubstring(": as it is now.")))

	handover.Records.Remove(s.infra, "mole01")
	g.Expect(s.releasedCondition()).To(BeNil(), "of one that never handed over a machine nobody asked")
	s.infra.Status.Conditions = []metav1.Condition{{Type: ConditionReleased, Status: metav1.ConditionFalse}}
	g.Expect(s.releasedCondition()).To(ConsistOf(And(HaveField("Type", "MachinesReleased"), HaveField("Status", metav1.ConditionTrue),
		HaveField("Reason", "MachineReleased"), HaveField("Message", ""))))
}
