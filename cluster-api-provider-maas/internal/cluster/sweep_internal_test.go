// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/handover"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machine"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/reservation"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

func unchanged(*infrav1.MaasCluster) error { return nil }

// TestSuspects checks which machines of the user may be orphans of this cluster. A machine without annotations is
// ignored for five minutes.
func TestSuspects(t *testing.T) {
	mark := func(uid string) map[string]string { return map[string]string{maas.AnnotationClusterUID: uid} }
	owned := func() []maas.Machine {
		return []maas.Machine{
			{SystemID: "marked", Status: maas.StatusDeployed, Annotations: mark("mine")},
			{SystemID: "another's", Status: maas.StatusDeployed, Annotations: mark("another")},
			{SystemID: "unmarked", Status: maas.StatusAllocated},
			{SystemID: "old-mark", Status: maas.StatusAllocated, Annotations: mark("another")},
			{SystemID: "installed", Status: maas.StatusDeployed},
			{SystemID: "handed-over", Status: maas.StatusAllocated, Annotations: mark("mine")},
			{SystemID: "kept", Status: maas.StatusAllocated, Annotations: mark("mine")},
		}
	}
	p := newPlace(t, "admin", func(infra *infrav1.MaasCluster) error {
		return errors.Join(handover.Records.Set(infra, "handed-over", handover.Record{}), reservation.Records.Set(infra, "kept", reservation.Record{}))
	}, nil)
	expect := func(what string, want ...string) {
		t.Helper()
		var got []string
		for _, m := range p.suspects(p.scope, owned()) {
			got = append(got, m.SystemID)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", what, diff)
		}
	}
	expect("at first", "marked")
	p.site.Clock.Step(5*time.Minute - time.Second)
	expect("a moment before five minutes", "marked")
	p.site.Clock.Step(time.Second)
	expect("after five minutes", "marked", "unmarked", "old-mark")
	p.suspects(p.scope, nil)
	expect("one that was gone is young again", "marked")
	p.infra.DeletionTimestamp = ptr.To(metav1.Now())
	expect("who goes looks at all", "marked", "unmarked", "old-mark")
}

// TestOrphaned checks for which allocation the machine mole01 is an orphan, given its key and its ownership
// annotations.
func TestOrphaned(t *testing.T) {
	maasMachine := func(uid string, age time.Duration, systemID *string) infrav1.MaasMachine {
		return infrav1.MaasMachine{ObjectMeta: metav1.ObjectMeta{UID: "uid-" + "of-" + "m", Name: uid, CreationTimestamp: metav1.NewTime(simtest.Start.Add(-age)),
			Annotations: map[string]string{machine.UIDAnnotation: uid}}, Spec: infrav1.MaasMachineSpec{SystemID: systemID}}
	}
	mark := func(cluster, uid string) map[string]string {
		return map[string]string{maas.AnnotationClusterUID: cluster, maas.AnnotationMachineUID: uid}
	}
	const hour, minutes = time.Hour, 5 * time.Minute
	for name, tc := range map[string]struct {
		key      string
		marks    map[string]string
		machines []infrav1.MaasMachine
		want     string
	}{
		"its MaasMachine is gone":                                            {"gone", mark("mine", "gone"), nil, "gone"},
		"it belongs to another cluster":                                      {"gone", mark("another", "gone"), nil, ""},
		"its annotations do not match its allocation key":                    {"carried", mark("mine", "gone"), nil, ""},
		"its MaasMachine has it":                                             {"m", mark("mine", "m"), []infrav1.MaasMachine{maasMachine("m", hour, ptr.To("mole01"))}, ""},
		"its MaasMachine is about to record it":                              {"m", mark("mine", "m"), []infrav1.MaasMachine{maasMachine("m", hour, nil)}, ""},
		"its MaasMachine has another machine":                                {"m", mark("mine", "m"), []infrav1.MaasMachine{maasMachine("m", hour, ptr.To("rat001"))}, "m"},
		"its young MaasMachine has another machine":                          {"m", mark("mine", "m"), []infrav1.MaasMachine{maasMachine("m", minutes, ptr.To("rat001"))}, ""},
		"it has no annotations, and its MaasMachine has another machine":     {"m", nil, []infrav1.MaasMachine{maasMachine("m", minutes+time.Second, ptr.To("rat001"))}, "m"},
		"it has no annotations, and its new MaasMachine has another machine": {"m", nil, []infrav1.MaasMachine{maasMachine("m", minutes, ptr.To("rat001"))}, ""},
		"it has no annotations, and its MaasMachine has no machine yet":      {"m", nil, []infrav1.MaasMachine{maasMachine("m", hour, nil)}, ""},
		"it has no annotations, and its allocation key is unknown":           {"by-hand", nil, []infrav1.MaasMachine{maasMachine("m", hour, ptr.To("rat001"))}, ""},
		"there are more MaasMachines than fit into one call":                 {"m60", nil, many(60, func(n int) infrav1.MaasMachine { return maasMachine(numbered(n), hour, ptr.To("rat001")) }), "m60"},
		"there are as many as fit into one call":                             {"m50", nil, many(50, func(n int) infrav1.MaasMachine { return maasMachine(numbered(n), hour, ptr.To("rat001")) }), "m50"},
	} {
		t.Run("When "+name+", it should return the key only of an orphan", func(t *testing.T) {
			g := NewWithT(t)
			p := newPlace(t, "admin", unchanged, nil, simtest.Machine{ID: "mole01", Status: status.Allocated, Owner: "admin", AgentName: maas.AllocationKey(tc.key), Annotations: tc.marks})
			m, err := p.identity.Client.GetMachine(t.Context(), "mole01")
			g.Expect(err).NotTo(HaveOccurred())
			got, err := p.orphaned(t.Context(), p.scope, *m, tc.machines)
			g.Expect(err).NotTo(HaveOccurred())
			if tc.want == "" {
				g.Expect(got).To(BeEmpty())
				return
			}
			// When several keys are looked up in one call, the result is the first of these keys.
			g.Expect(got).To(Or(Equal(maas.AllocationKey(tc.want)), Equal(maas.AllocationKey("m01")), Equal(maas.AllocationKey("m51"))))
		})
	}
}

func numbered(n int) string { return "m" + string(rune('0'+n/10)) + string(rune('0'+n%10)) }

// many returns n MaasMachines.
func many(n int, one func(int) infrav1.MaasMachine) (all []infrav1.MaasMachine) {
	for i := range n {
		all = append(all, one(i+1))
	}
	return all
}

// TestSweepTells checks that a failed list or release of orphans is reported and retried soon.
func TestSweepTells(t *testing.T) {
	orphan := simtest.Machine{ID: "orphan", Hostname: "mole", Status: status.Allocated, Owner: "admin", AgentName: maas.AllocationKey("gone"),
		Annotations: map[string]string{maas.AnnotationClusterUID: "mine", maas.AnnotationMachineUID: "gone"}}
	for name, tc := range map[string]struct {
		operation string
		want      *machine.Problem
	}{
		"all orphans are released": {"nothing", nil},
		"MAAS refuses the release": {"machine.release", &machine.Problem{Reason: "OrphansLeft"}},
		"MAAS does not list them":  {"machines.read", &machine.Problem{Reason: "MAASUnavailable"}},
	} {
		t.Run("When "+name+", the sweep should report only a failure", func(t *testing.T) {
			g, p := NewWithT(t), newPlace(t, "admin", unchanged, nil, orphan)
			simtest.Refuse(t, p.site.Simulator, tc.operation, "", http.StatusServiceUnavailable, "busy")
			result, err := p.sweep(t.Context(), p.scope)
			g.Expect(err).NotTo(HaveOccurred())
			if tc.want == nil {
				g.Expect(p.left).To(BeNil())
				g.Expect(result.IsZero()).To(BeTrue())
				g.Expect(p.told()).To(Equal([]string{"Warning OrphanReleased released machine mole (orphan), which no MaasMachine uses (allocation key " + maas.AllocationKey("gone") + ")"}))
				g.Expect(p.site.Machine("orphan").Owner).To(BeEmpty())
				return
			}
			g.Expect(result.RequeueAfter).To(Equal(15 * time.Second))
			g.Expect(p.left).To(HaveValue(And(HaveField("Reason", tc.want.Reason), HaveField("Message", ContainSubstring("busy")))))
			g.Expect(p.told()).To(BeEmpty())
		})
	}
	t.Run("When MAAS is unavailable or a restore is pending, it should not look for orphans", func(t *testing.T) {
		for _, change := range []func(*place){
			func(p *place) { p.problem = &machine.Problem{} },
			func(p *place) { p.infra.Annotations = map[string]string{infrav1.RestoredFromAnnotation: "mine"} },
		} {
			p := newPlace(t, "admin", unchanged, nil, orphan)
			change(p)
			result, err := p.sweep(t.Context(), p.scope)
			g := NewWithT(t)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(result.IsZero()).To(BeTrue())
			g.Expect(p.site.Machine("orphan").Owner).To(Equal("admin"))
		}
	})
}

// TestSurveyDue checks that all machines are surveyed once an hour, but not immediately after the process starts.
func TestSurveyDue(t *testing.T) {
	g, p := NewWithT(t), newPlace(t, "admin", unchanged, nil)
	g.Expect(p.surveyDue(p.scope)).To(BeFalse())
	p.site.Clock.Step(time.Hour)
	g.Expect(p.surveyDue(p.scope)).To(BeTrue())
	g.Expect(p.surveyDue(p.scope)).To(BeFalse())
	p.site.Clock.Step(time.Hour - time.Second)
	g.Expect(p.surveyDue(p.scope)).To(BeFalse())
	p.site.Clock.Step(time.Second)
	g.Expect(p.surveyDue(p.scope)).To(BeTrue())
}

// TestMachinesOfCluster checks that machines are listed by the label of Cluster API. Its value is the name of the
// Cluster or, without a Cluster, the value of the label of the MaasCluster.
func TestMachinesOfCluster(t *testing.T) {
	g, p := NewWithT(t), newPlace(t, "admin", unchanged, []infrav1.MaasMachine{{}, {}})
	names := func() (all []string) {
		machines, err := p.machines(t.Context(), p.scope, p.Client)
		g.Expect(err).NotTo(HaveOccurred())
		for i := range machines {
			all = append(all, machines[i].Name)
		}
		return slices.Sorted(slices.Values(all))
	}
	g.Expect(names()).To(Equal([]string{"m0", "m1"}))
	p.infra.Labels = nil
	g.Expect(names()).To(BeEmpty(), "nobody knows which")
	p.owner = endpointScope().owner
	p.owner.Name = "demo"
	g.Expect(names()).To(Equal([]string{"m0", "m1"}))
	p.owner.Name = "another"
	g.Expect(names()).To(BeEmpty())
	result, err := p.awaitMachines(t.Context(), p.scope)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result.IsZero()).To(BeTrue())
	p.owner.Name = "demo"
	result, err = p.awaitMachines(t.Context(), p.scope)
	g.Expect(err).To(HaveOccurred())
	g.Expect(result.RequeueAfter).To(Equal(10 * time.Second))
	g.Expect(p.Client.Get(t.Context(), client.ObjectKeyFromObject(p.infra), p.infra)).To(Succeed())
}
