// SPDX-License-Identifier: Apache-2.0

package platform_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/openshift/hypershift/api/util/contract"
	"github.com/openshift/hypershift/hypershift-operator/platform"
)

func TestProviderSays(t *testing.T) {
	at := time.Date(2026, 11, 23, 4, 0, 0, 0, time.UTC)
	is := func(conditionType string, status metav1.ConditionStatus, reason string) contract.Condition {
		return contract.Condition{Type: conditionType, Status: status, Reason: reason, Message: "about " + reason, LastTransitionTime: metav1.NewTime(at)}
	}
	for name, test := range map[string]struct {
		says            platform.ProviderSays
		reason, message string
		start           platform.MachineStart
	}{
		"When the provider reports nothing, it should return neither a problem nor a start": {},
		"When a stage is not reached, it should return the reason of that stage": {
			says:   platform.ProviderSays{Conditions: []contract.Condition{is("Reserved", "False", "NoHost"), is("Installed", "False", "Waiting")}},
			reason: "NoHost", message: "about NoHost",
		},
		"When the first stage is reached, it should report the start and the reason of the next stage": {
			says:   platform.ProviderSays{Conditions: []contract.Condition{is("Installed", "False", "Waiting"), is("Reserved", "True", "")}},
			reason: "Waiting", message: "about Waiting", start: platform.MachineStart{Begun: at},
		},
		"When a stage has no reason yet, it should return no problem": {
			says: platform.ProviderSays{Conditions: []contract.Condition{is("Reserved", "Unknown", "")}},
		},
		"When the machine has failed terminally, it should return the failure whatever the stages report": {
			says:   platform.ProviderSays{FailureReason: ptr.To("CreateError"), FailureMessage: ptr.To("no quota"), Conditions: []contract.Condition{is("Reserved", "False", "NoHost")}},
			reason: "CreateError", message: "no quota", start: platform.MachineStart{Reason: "CreateError", Message: "no quota"},
		},
		"When the failure message is empty, it should return a default message": {
			says:   platform.ProviderSays{FailureReason: ptr.To("CreateError"), FailureMessage: ptr.To("")},
			reason: "CreateError", message: "the provider reported a terminal failure",
			start: platform.MachineStart{Reason: "CreateError", Message: "the provider reported a terminal failure"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			reason, message := test.says.Problem("Reserved", "Installed")
			if diff := cmp.Diff([]string{test.reason, test.message}, []string{reason, message}); diff != "" {
				t.Errorf("problem (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.start, test.says.StartedWith("Reserved")); diff != "" {
				t.Errorf("start (-want +got):\n%s", diff)
			}
		})
	}
}
