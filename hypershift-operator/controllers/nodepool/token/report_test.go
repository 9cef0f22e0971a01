// SPDX-License-Identifier: Apache-2.0

package token

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope/scopetest"
)

func TestReportPayload(t *testing.T) {
	kind := hyperv1.NodePoolValidGeneratedPayloadConditionType
	for name, test := range map[string]struct {
		reason, message, want string
	}{
		"has reported nothing":                    {"", "", "Unknown/WaitingForIgnitionServer: "},
		"has rendered it":                         {hyperv1.AsExpectedReason, "rendered", "True/AsExpected: rendered"},
		"cannot render it":                        {"InvalidConfig", "no such unit", "False/InvalidConfig: no such unit"},
		"has reported a message without a reason": {"", "words", "Unknown/WaitingForIgnitionServer: "},
	} {
		t.Run("When the ignition-server "+name+", the updating conditions should report it", func(t *testing.T) {
			g, s := NewWithT(t), pass()
			s.reportPayload(&corev1.Secret{Data: map[string][]byte{
				hyperv1.TokenSecretReasonKey: []byte(test.reason), hyperv1.TokenSecretMessageKey: []byte(test.message)}})
			g.Expect(scopetest.Says(s.Scope, kind)).To(HavePrefix(test.want))
		})
	}
}

func TestNoIgnitionTrouble(t *testing.T) {
	NewWithT(t).Expect(EndpointTrouble(pass().HC)).To(BeEmpty())
}

func TestIgnitionTrouble(t *testing.T) {
	told := func(kind hyperv1.ConditionType, status metav1.ConditionStatus) string {
		s := pass()
		s.HC.Status.Conditions = []metav1.Condition{{Type: string(kind), Status: status, Reason: "PodsFailing", Message: "image not found"}}
		s.reportPayload(&corev1.Secret{})
		return s.Conditions[hyperv1.NodePoolValidGeneratedPayloadConditionType].Message
	}
	g := NewWithT(t)
	g.Expect(told(hyperv1.IgnitionEndpointAvailable, metav1.ConditionFalse)).To(And(ContainSubstring("PodsFailing"), ContainSubstring("image not found")))
	g.Expect(told(hyperv1.IgnitionEndpointAvailable, metav1.ConditionTrue)).NotTo(ContainSubstring("image not found"))
	g.Expect(told(hyperv1.EtcdAvailable, metav1.ConditionFalse)).NotTo(ContainSubstring("image not found"))
}
