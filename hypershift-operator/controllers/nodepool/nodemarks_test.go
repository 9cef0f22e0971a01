// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope/scopetest"
)

func TestTaintsJSON(t *testing.T) {
	for want, taints := range map[string][]hyperv1.Taint{
		`[]`: nil,
		`[{"key":"gpu","value":"1","effect":"NoSchedule"}]`: {{Key: "gpu", Value: "1", Effect: corev1.TaintEffectNoSchedule}},
	} {
		pool := &hyperv1.NodePool{}
		pool.Spec.Taints = taints
		if diff := cmp.Diff(want, taintsJSON(pool)); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	}
}

func TestReconcileNodeMarks(t *testing.T) {
	marked := func(m *clusterv1.Machine) {
		m.Labels = map[string]string{"managed.hypershift.openshift.io.old": "1", "theirs": "1"}
		scope.Annotate(m, hyperv1.NodePoolTaintsAnnotation, "old")
	}
	labels := map[string]string{"managed.hypershift.openshift.io.rack": "1", "theirs": "1"}
	t.Run("When a pool has labels and taints, it should set them on its machines", func(t *testing.T) {
		g := NewWithT(t)
		a, b, gone := scopetest.Machine("a", "wanted", housed, marked), scopetest.Machine("b", "wanted", housed, marked), scopetest.Machine("gone", "wanted", housed)
		leaves := scopetest.Machine("leaves", "wanted", housed, marked)
		r := on(nil, a.DeepCopy(), b.DeepCopy(), leaves.DeepCopy())
		scopetest.Leaving(leaves)
		s := pass(gone, leaves, a, b)
		s.Pool.Spec.NodeLabels = map[string]string{"rack": "1"}
		s.Pool.Spec.Taints = []hyperv1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
		result, err := r.reconcileNodeMarks(t.Context(), s)
		g.Expect(err).NotTo(HaveOccurred(), "a machine that has just gone needs no marks")
		g.Expect(result.IsZero()).To(BeTrue())
		for _, name := range []string{"a", "b"} {
			m := read(t, r, &clusterv1.Machine{}, name)
			g.Expect(m.Labels).To(Equal(labels))
			g.Expect(m.Annotations).To(HaveKeyWithValue(hyperv1.NodePoolTaintsAnnotation, `[{"key":"gpu","effect":"NoSchedule"}]`))
		}
		g.Expect(read(t, r, &clusterv1.Machine{}, "leaves").Annotations).To(HaveKeyWithValue(hyperv1.NodePoolTaintsAnnotation, "old"))
	})
	t.Run("When a machine cannot be patched, it should return an error", func(t *testing.T) {
		a := scopetest.Machine("a", "wanted", housed)
		_, err := on(refusals{"patch Machine"}, a.DeepCopy()).reconcileNodeMarks(t.Context(), pass(a))
		NewWithT(t).Expect(err).To(MatchError(errRefused))
	})
}
