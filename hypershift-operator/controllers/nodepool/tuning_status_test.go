// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope/scopetest"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/testenv"
)

// reported returns the node tuning operator's ConfigMap with the status of a pool's profile.
func reported(name, pool, status string) *corev1.ConfigMap {
	c := handed(name, map[string]string{"status": status}, performanceStatusLabel)
	c.Labels[hyperv1.NodePoolAnnotation] = pool
	return c
}

// TestReportPerformance checks that the node tuning operator's conditions are copied while there is tuning, and
// removed with it.
func TestReportPerformance(t *testing.T) {
	const prefix = "performance.operator.openshift.io/"
	const status = "conditions:\n- {type: Available, status: \"True\", message: ready}\n- {type: Progressing, status: \"False\", reason: Done}\n" +
		"- {type: Upgradeable, status: \"True\"}\n- {type: Degraded, status: \"False\"}\n- {type: Other, status: \"True\"}\n"
	all := map[string]metav1.Condition{
		prefix + "Available":   {Type: prefix + "Available", Status: "True", Reason: "AsExpected", Message: "ready"},
		prefix + "Progressing": {Type: prefix + "Progressing", Status: "False", Reason: "Done"},
		prefix + "Upgradeable": {Type: prefix + "Upgradeable", Status: "True", Reason: "AsExpected"},
		prefix + "Degraded":    {Type: prefix + "Degraded", Status: "False", Reason: "AsExpected"},
	}
	for name, tc := range map[string]struct {
		before func(*world, *reconciliation)
		there  []*corev1.ConfigMap
		want   map[string]metav1.Condition
		err    string
	}{
		"When the node tuning operator reports conditions of the profile, it should copy them": {there: []*corev1.ConfigMap{reported("own", "demo", status)}, want: all},
		"When the ConfigMap is another pool's or not a status, it should copy nothing": {there: []*corev1.ConfigMap{reported("another", "another", status), func() *corev1.ConfigMap {
			c := reported("own", "demo", status)
			delete(c.Labels, performanceStatusLabel)
			return c
		}()}},
		"When the pool has no tuning any more, it should copy nothing": {before: func(_ *world, s *reconciliation) { s.Pool.Spec.TuningConfig = nil },
			there: []*corev1.ConfigMap{reported("own", "demo", status)}},
		"When the release is Kubernetes, it should copy nothing": {before: func(_ *world, s *reconciliation) { s.Release = fixture.Payloads()[fixture.ReleaseImage] },
			there: []*corev1.ConfigMap{reported("own", "demo", status)}},
		"When the reported status is invalid, it should return an error": {there: []*corev1.ConfigMap{reported("own", "demo", "conditions: none")}, err: "clusters-demo/own"},
		"When the ConfigMaps cannot be listed, it should return an error": {before: func(w *world, _ *reconciliation) {
			w.Reconciler.Client = scopetest.Answering(w.client, "list .*", testenv.ErrRefused)
		}, err: testenv.ErrRefused.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := tuningPass(t, [][2]string{{"fast", profileDocument}}, nil)
			for _, obj := range tc.there {
				fixture.Create(t, w.client, obj)
			}
			s.SetTrue(prefix+"Degraded", "of an earlier phase")
			if tc.before != nil {
				tc.before(w, s)
			}
			result, err := w.reportPerformance(t.Context(), s)
			w.Expect(result).To(BeZero())
			if tc.err != "" {
				w.Expect(err).To(MatchError(ContainSubstring(tc.err)))
			} else {
				w.Expect(err).NotTo(HaveOccurred())
			}
			if tc.want == nil {
				tc.want = map[string]metav1.Condition{}
			}
			w.Expect(cmp.Diff(tc.want, s.Conditions)).To(BeEmpty(), "-want +got")
			w.Expect(s.Cleared).To(ConsistOf(prefix+"Available", prefix+"Progressing", prefix+"Upgradeable", prefix+"Degraded"), "what was said last goes")
		})
	}
	t.Run("When the same conditions are reported again, it should keep their transition times", func(t *testing.T) {
		w, s := tuningPass(t, [][2]string{{"fast", profileDocument}}, nil)
		fixture.Create(t, w.client, reported("own", "demo", status))
		_, err := w.reportPerformance(t.Context(), s)
		w.Expect(err).NotTo(HaveOccurred())
		before := merged(nil, s)
		s.Now = s.Now.Add(1e9)
		w.Expect(merged(before, s)).To(Equal(before))
	})
}
