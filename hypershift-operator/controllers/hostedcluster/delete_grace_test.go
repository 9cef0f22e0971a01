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
		"no time is asked for":                 {"", nil, 0},
		"what is asked for is no time":         {"soon", nil, 0},
		"none is asked for":                    {"0s", nil, 0},
		"less than none is":                    {"-1m", nil, 0},
		"all is gone just now":                 {"10m", nil, 10 * time.Minute},
		"it was not all gone":                  {"10m", since("False", time.Minute), 10 * time.Minute},
		"all was gone a while ago":             {"10m", since("True", 4*time.Minute), 6 * time.Minute},
		"all was gone a second less ago":       {"10m", since("True", 10*time.Minute-time.Second), time.Second},
		"all was gone as long ago as that":     {"10m", since("True", 10*time.Minute), 0},
		"all was gone even longer":             {"10m", since("True", 20*time.Minute), 0},
		"the shortest that there is asked for": {"1ns", nil, 1},
	} {
		t.Run("When "+name+", it should wait for what is left of it", func(t *testing.T) {
			g, s := NewWithT(t), withScope()
			s.hc.Annotations = map[string]string{hyperv1.HCDestroyGracePeriodAnnotation: tc.grace}
			s.hc.Status.Conditions = tc.last
			result, err := waitForGrace(t.Context(), s)
			g.Expect(result.RequeueAfter).To(Equal(tc.want))
			c, said := s.conditions[string(hyperv1.HostedClusterDestroyed)]
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
