// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/phase"
)

func TestGraceLeft(t *testing.T) {
	since := func(status metav1.ConditionStatus, ago time.Duration) []metav1.Condition {
		return []metav1.Condition{
			{Type: "Another", Status: status, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour))},
			{Type: string(hyperv1.HostedClusterDestroyed), Status: status, LastTransitionTime: metav1.NewTime(now.Add(-ago))},
			{Type: "More", Status: status, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour))},
		}
	}
	for name, tc := range map[string]struct {
		grace string
		last  []metav1.Condition
		want  time.Duration
	}{
		"the cluster has no grace period":                                     {"", nil, 0},
		"the grace period is not a duration":                                  {"soon", nil, 0},
		"the grace period is zero":                                            {"0s", nil, 0},
		"the grace period is negative":                                        {"-1m", nil, 0},
		"everything was deleted just now":                                     {"10m", nil, 10 * time.Minute},
		"the cluster was not completely deleted before":                       {"10m", since("False", time.Minute), 10 * time.Minute},
		"everything was deleted before, and most of the grace period remains": {"10m", since("True", 4*time.Minute), 6 * time.Minute},
		"one second of the grace period remains":                              {"10m", since("True", 10*time.Minute-time.Second), time.Second},
		"the grace period has just ended":                                     {"10m", since("True", 10*time.Minute), 0},
		"the grace period ended long ago":                                     {"10m", since("True", 20*time.Minute), 0},
		"the grace period has the shortest possible length":                   {"1ns", nil, 1},
	} {
		t.Run("When "+name+", it should wait for the rest of the grace period", func(t *testing.T) {
			g, s := NewWithT(t), withScope()
			s.HC.Annotations = map[string]string{hyperv1.HCDestroyGracePeriodAnnotation: tc.grace}
			s.HC.Status.Conditions = tc.last
			result, err := waitForGrace(t.Context(), s)
			g.Expect(result.RequeueAfter).To(Equal(tc.want))
			c, said := s.Conditions[string(hyperv1.HostedClusterDestroyed)]
			if grace, err := time.ParseDuration(tc.grace); err == nil && grace > 0 {
				g.Expect(string(c.Status) + "/" + c.Reason).To(Equal("True/" + hyperv1.WaitingForGracePeriodReason))
				g.Expect(c.Message).NotTo(BeEmpty())
			} else {
				g.Expect(said).To(BeFalse())
			}
			if tc.want == 0 {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(s.deletion).To(BeEmpty())
				return
			}
			g.Expect(errors.Is(err, phase.ErrStop)).To(BeTrue())
			g.Expect(s.deletion).To(HaveSuffix(now.Add(tc.want).Format(time.RFC3339)))
		})
	}
}
