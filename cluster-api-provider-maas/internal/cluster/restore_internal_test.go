// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/handover"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machine"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/reservation"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// successor makes the MaasCluster replace the MaasCluster "lost".
func successor(infra *infrav1.MaasCluster) error {
	infra.Annotations = map[string]string{infrav1.RestoredFromAnnotation: "lost"}
	return nil
}

// ofLost returns a machine that runs for the lost cluster, with its allocation key and ownership annotations.
func ofLost(id string, change ...func(*simtest.Machine)) simtest.Machine {
	m := simtest.Machine{ID: id, Hostname: "host-" + id, Status: status.Deployed, Owner: "admin", AgentName: maas.AllocationKey("of-" + id),
		Annotations: map[string]string{maas.AnnotationClusterUID: "lost", maas.AnnotationMachineUID: "of-" + id, maas.AnnotationPool: "workers"}}
	for _, do := range change {
		do(&m)
	}
	return m
}

func TestRestore(t *testing.T) {
	g := NewWithT(t)
	p := newPlace(t, "admin", successor, []infrav1.MaasMachine{runningOn("moved1", "noble", true)},
		ofLost("mole01"), ofLost("moved1"),
		ofLost("older1", func(m *simtest.Machine) {
			delete(m.Annotations, maas.AnnotationPool)
			m.Annotations[maas.AnnotationMachine] = "big-workers-x7k2p-abcde"
		}),
		ofLost("young1", func(m *simtest.Machine) { m.Status = status.Allocated }),
		ofLost("forged", func(m *simtest.Machine) { m.AgentName = "by-hand" }),
		ofLost("others", func(m *simtest.Machine) { m.Annotations[maas.AnnotationClusterUID] = "another" }),
		ofLost("bobs01", func(m *simtest.Machine) { m.Owner = "bob" }))
	g.Expect(p.restoredCondition()).To(ConsistOf(And(HaveField("Type", "MachinesRestored"), HaveField("Status", metav1.ConditionFalse), HaveField("Reason", "LookingForMachines"))))
	result, err := p.restore(t.Context(), p.scope)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result.IsZero()).To(BeTrue())
	g.Expect(p.Client.Get(t.Context(), client.ObjectKeyFromObject(p.infra), p.infra)).To(Succeed())
	now := simtest.Start.UTC()
	if diff := cmp.Diff(map[string]reservation.Record{
		"mole01": {UID: "of-mole01", Deployment: "workers", Hostname: "host-mole01", Restored: true, Since: now},
		"older1": {UID: "of-older1", Deployment: "big-workers", Hostname: "host-older1", Restored: true, Since: now},
	}, reservation.Records.Of(p.infra)); diff != "" {
		t.Errorf("kept for the pools (-want +got):\n%s", diff)
	}
	g.Expect(p.infra.Annotations).To(HaveKeyWithValue(infrav1.RestoredAtAnnotation, now.Format(time.RFC3339)))
	g.Expect(p.infra.Annotations).To(HaveKeyWithValue(infrav1.OwnerAnnotation, "admin"))
	g.Expect(p.told()).To(Equal([]string{"Normal MachinesFound Found 2 running machines of MaasCluster lost, which this MaasCluster replaces"}))
	g.Expect(p.restoredCondition()).To(ConsistOf(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", "WaitingForMaasMachines"),
		HaveField("Message", ContainSubstring("2 running machines: host-mole01 (mole01) of workers, host-older1 (older1) of big-workers. Scale")))))

	_, err = p.restore(t.Context(), p.scope)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.told()).To(BeEmpty(), "they are looked for once")
	for _, id := range []string{"mole01", "older1"} {
		reservation.Records.Remove(p.infra, id)
	}
	g.Expect(p.restoredCondition()).To(ConsistOf(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", "AsExpected"), HaveField("Message", ""))))
	p.infra.Annotations = nil
	g.Expect(p.restoredCondition()).To(BeNil(), "it takes nobody's place")
}

// TestRestoreWithoutMAAS checks that nothing is recorded before MAAS has returned all machines.
func TestRestoreWithoutMAAS(t *testing.T) {
	g, p := NewWithT(t), newPlace(t, "admin", successor, nil, ofLost("mole01"))
	accept := simtest.Refuse(t, p.site.Simulator, "machines.read", "", http.StatusServiceUnavailable, "busy")
	result, err := p.restore(t.Context(), p.scope)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result.RequeueAfter).To(Equal(15 * time.Second))
	g.Expect(p.problem).To(HaveValue(HaveField("Reason", "MAASUnavailable")))
	accept()
	_, err = p.restore(t.Context(), p.scope)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.infra.Annotations).NotTo(HaveKey(infrav1.RestoredAtAnnotation), "the pass has a problem already")
	p.problem = nil
	_, err = p.restore(t.Context(), p.scope)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.infra.Annotations).To(HaveKey(infrav1.RestoredAtAnnotation))
}

// TestMayLeak checks that a MaasCluster is not deleted while its machines may remain in MAAS, and that its status
// names the remedy.
func TestMayLeak(t *testing.T) {
	away, missing := &machine.Problem{Reason: "MAASUnreachable", Message: "no answer"}, &machine.Problem{Reason: "MAASCredentialsMissing", Message: "no Secret"}
	left := &machine.Problem{Reason: "OrphansLeft", Message: "mole01 stays"}
	for name, tc := range map[string]struct {
		never         bool
		problem, left *machine.Problem
		want          bool
		words, event  string
	}{
		"no machine is left":                                 {},
		"MAAS is unreachable":                                {problem: away, want: true, words: "machines may be left in MAAS: no answer. To delete the MaasCluster without this check, remove the annotation"},
		"a machine is left":                                  {left: left, want: true, words: "machines may be left in MAAS: mole01 stays."},
		"a machine is left, and MAAS is unreachable":         {left: left, problem: away, want: true, words: "machines may be left in MAAS: mole01 stays."},
		"no machine was ever requested":                      {never: true, problem: away, left: left},
		"the credentials are missing":                        {problem: missing, event: "Warning OrphansNotLookedFor the MaasCluster is deleted without checking MAAS for leftover machines: no Secret"},
		"the credentials are missing, and a machine is left": {problem: missing, left: left, event: "Warning OrphansNotLookedFor the MaasCluster is deleted without checking MAAS for leftover machines: no Secret"},
	} {
		t.Run("When "+name+", the MaasCluster should be kept if machines may remain", func(t *testing.T) {
			g := NewWithT(t)
			p := newPlace(t, "admin", func(infra *infrav1.MaasCluster) error {
				if !tc.never {
					infra.Annotations = map[string]string{infrav1.OwnerAnnotation: "admin"}
				}
				return nil
			}, nil)
			p.problem, p.left = tc.problem, tc.left
			g.Expect(p.mayLeak(p.scope)).To(Equal(tc.want))
			if tc.want {
				g.Expect(p.left.Message).To(HavePrefix(tc.words))
			}
			if tc.event != "" {
				g.Expect(p.told()).To(Equal([]string{tc.event}))
				return
			}
			g.Expect(p.told()).To(BeEmpty())
		})
	}
}

// TestSameUser covers machines that were allocated under another MAAS user: they are not visible with these
// credentials.
func TestSameUser(t *testing.T) {
	held := func(owner string, systemID bool) infrav1.MaasMachine {
		m := runningOn("mole01", "noble", true)
		m.Annotations = map[string]string{infrav1.OwnerAnnotation: owner}
		if !systemID {
			m.Spec.SystemID = nil
		}
		return m
	}
	for name, tc := range map[string]struct {
		machine infrav1.MaasMachine
		want    string
	}{
		"a machine belongs to the user":                  {held("admin", true), ""},
		"a machine belongs to another user":              {held("alice", true), "machine mole01"},
		"the owner of a machine is unknown":              {held("", true), ""},
		"the MaasMachine of another user has no machine": {held("alice", false), ""},
	} {
		t.Run("When "+name+", only machines of another user should be a problem", func(t *testing.T) {
			g, p := NewWithT(t), newPlace(t, "admin", unchanged, []infrav1.MaasMachine{tc.machine})
			g.Expect(p.sameUser(t.Context(), p.scope)).To(Succeed())
			if tc.want == "" {
				g.Expect(p.problem).To(BeNil())
				return
			}
			g.Expect(p.problem).To(HaveValue(And(HaveField("Reason", "CredentialsOfAnotherUser"), HaveField("Message", HavePrefix(tc.want)))))
		})
	}
}

// TestUserOfRecords checks that machines whose release was delegated under another MAAS user are not visible with
// these credentials either.
func TestUserOfRecords(t *testing.T) {
	for user, reason := range map[string]string{"": "", "admin": "", "alice": "CredentialsOfAnotherUser"} {
		g := NewWithT(t)
		p := newPlace(t, "admin", func(infra *infrav1.MaasCluster) error {
			return handover.Records.Set(infra, "mole01", handover.Record{Machine: "m", UID: "x", User: user})
		}, nil)
		g.Expect(p.sameUser(t.Context(), p.scope)).To(Succeed())
		if reason == "" {
			g.Expect(p.problem).To(BeNil(), user)
			continue
		}
		g.Expect(p.problem).To(HaveValue(HaveField("Reason", reason)), user)
	}
}

// TestEndsReservations checks that a reservation ends at its timeout, and that an event reports why.
func TestEndsReservations(t *testing.T) {
	g := NewWithT(t)
	p := newPlace(t, "admin", func(infra *infrav1.MaasCluster) error {
		return errors.Join(
			reservation.Records.Set(infra, "mole01", reservation.Record{UID: "a", Deployment: "workers", Hostname: "mole", Since: simtest.Start.Add(-time.Minute)}),
			reservation.Records.Set(infra, "rat001", reservation.Record{UID: "b", Deployment: "workers", Hostname: "rat", Since: simtest.Start.Add(-reservation.SuccessorTimeout)}))
	}, nil)
	result, err := p.endReservations(t.Context(), p.scope)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result.RequeueAfter).To(Equal(reservation.SuccessorTimeout - time.Minute))
	g.Expect(reservation.Records.Of(p.infra)).To(And(HaveLen(1), HaveKey("mole01")))
	g.Expect(p.told()).To(Equal([]string{"Normal ReservationEnded machine rat (rat001) of MachineDeployment workers: no successor claimed it"}))
}
