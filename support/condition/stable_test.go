// SPDX-License-Identifier: Apache-2.0

package condition_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/hypershift/support/condition"
)

func TestStable(t *testing.T) {
	for message, want := range map[string]string{
		"":                                   "",
		"3 -> 2 machines, as of tcp port 80": "3 -> 2 machines, as of tcp port 80",
		"read tcp 10.244.0.5:41000->192.0.2.1:443: read: connection reset by peer":    "read tcp 192.0.2.1:443: read: connection reset by peer",
		"write tcp [fd00::5]:41000->[fd00::1]:443: broken pipe":                       "write tcp [fd00::1]:443: broken pipe",
		"lookup a on 10.96.0.10:53: read udp4 10.0.0.5:999->10.96.0.10:53: timeout":   "lookup a on 10.96.0.10:53: read udp4 10.96.0.10:53: timeout",
		"dial tcp 192.0.2.1:443: connect: connection refused":                         "dial tcp 192.0.2.1:443: connect: connection refused",
		"StatusCode: 403, RequestID: 0f3c2a11-9b7e-4c55-8d6a-1234567890ab, api error": "StatusCode: 403, api error",
		"denied (request id 1234567890abcdef)":                                        "denied ()",
		"the request identifies no user":                                              "the request identifies no user",
	} {
		t.Run(message, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(condition.Stable(message)).To(Equal(want))
			g.Expect(condition.Stable(want)).To(Equal(want), "a stable message does not change")
			g.Expect(condition.False("A", "B", message).Message).To(Equal(want))
			c := metav1.Condition{Type: "A", Status: metav1.ConditionFalse, Reason: "B", Message: message}
			g.Expect(condition.Merge(nil, 1, c)).To(ConsistOf(HaveField("Message", want)))
		})
	}
}
