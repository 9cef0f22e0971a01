// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"

	. "github.com/onsi/gomega"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// makers returns the Cluster API objects that create machines, with annotations.
func makers(annotations ...string) []client.Object {
	meta := inHosted(fixture.PoolName, annotations...)
	return []client.Object{
		&clusterv1.MachineDeployment{ObjectMeta: meta}, &clusterv1.MachineSet{ObjectMeta: *meta.DeepCopy()}, &clusterv1.MachineHealthCheck{ObjectMeta: *meta.DeepCopy()},
	}
}

// annotationsOf returns the annotations of the pool's Cluster API objects.
func annotationsOf(t *testing.T, r *Reconciler) (all []map[string]string) {
	t.Helper()
	for _, obj := range makers() {
		all = append(all, read(t, r, obj, fixture.PoolName).GetAnnotations())
	}
	return all
}

func TestReconcilePause(t *testing.T) {
	paused, active := map[string]string{"theirs": "1", clusterv1.PausedAnnotation: "true"}, map[string]string{"theirs": "1"}
	for name, test := range map[string]struct {
		until *string
		want  map[string]string
		says  string
		is    bool
	}{
		"not set":          {nil, active, "True/ReconciliationActive: ", false},
		"true":             {ptr.To("true"), paused, "False/ReconciliationPaused: ", true},
		"a later time":     {ptr.To("2026-11-24T12:00:01Z"), paused, "False/ReconciliationPaused: ", true},
		"the current time": {ptr.To("2026-11-24T12:00:00Z"), active, "True/ReconciliationActive: ", false},
		"not a time":       {ptr.To("tomorrow"), active, "False/InvalidPausedUntilValue: ", false},
	} {
		t.Run("When spec.pausedUntil is "+name+", it should pause or resume the Cluster API objects", func(t *testing.T) {
			for _, before := range [][]string{{"theirs", "1"}, {"theirs", "1", clusterv1.PausedAnnotation, "true"}} {
				g, s, r := NewWithT(t), pass(), on(nil, makers(before...)...)
				s.Pool.Spec.PausedUntil = test.until
				result, err := r.reconcilePause(t.Context(), s)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(result.IsZero()).To(BeTrue())
				g.Expect(annotationsOf(t, r)).To(HaveEach(test.want))
				told := s.says(hyperv1.NodePoolReconciliationActiveConditionType)
				g.Expect(told).To(HavePrefix(test.says))
				if test.until != nil && (test.is || test.says[:5] == "False") && *test.until != "true" {
					g.Expect(told).To(ContainSubstring(*test.until))
				}
				g.Expect(s.Paused()).To(Equal(test.is))
				state, err := pauseOf(t.Context(), s)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(state.Paused).To(Equal(test.is))
			}
		})
	}
}

func TestReconcilePauseRefused(t *testing.T) {
	t.Run("When there is nothing to pause, it should succeed", func(t *testing.T) {
		s := pass()
		s.Pool.Spec.PausedUntil = ptr.To("true")
		_, err := on(nil).reconcilePause(t.Context(), s)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	})
	for _, refused := range []string{"get MachineDeployment", "patch MachineDeployment", "get MachineHealthCheck", "patch MachineHealthCheck"} {
		t.Run("When "+refused+" is refused, it should pause the other objects and return the error", func(t *testing.T) {
			g, s, r := NewWithT(t), pass(), on(refusals{refused}, makers()...)
			s.Pool.Spec.PausedUntil = ptr.To("true")
			_, err := r.reconcilePause(t.Context(), s)
			g.Expect(err).To(MatchError(errRefused))
			g.Expect(read(t, r, &clusterv1.MachineSet{}, fixture.PoolName).Annotations).To(HaveKeyWithValue(clusterv1.PausedAnnotation, "true"))
		})
	}
}
