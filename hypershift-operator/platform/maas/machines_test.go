// SPDX-License-Identifier: Apache-2.0

package maas_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform/maas"
	"github.com/openshift/hypershift/support/condition"
)

// TestMachineProblem checks that the most specific condition comes first. The host of a virtual machine is reported
// only if no other condition explains why it is not ready.
func TestMachineProblem(t *testing.T) {
	t.Parallel()
	ready, deployed := condition.True(clusterv1.ReadyCondition, "Ready", ""), condition.True("MachineDeployed", "MachineDeployed", "")
	host := condition.False("LXDHostSelected", "HostUnavailable", "LXD host h1 does not answer MAAS")
	for name, test := range map[string]struct {
		conditions []metav1.Condition
		want       string
	}{
		"When all conditions are true, it should report nothing":                       {[]metav1.Condition{ready, deployed, condition.True("LXDHostSelected", "HostSelected", "h1")}, ""},
		"When the host of a virtual machine is unavailable, it should report the host": {[]metav1.Condition{ready, deployed, host}, "HostUnavailable LXD host h1 does not answer MAAS"},
		"When the machine itself is not ready, it should report that and not the host": {[]metav1.Condition{host, condition.False(clusterv1.ReadyCondition, "MachineNotFound", "gone")}, "MachineNotFound gone"},
		"When there are no conditions, it should report nothing":                       {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &infrav1.MaasMachine{Status: infrav1.MaasMachineStatus{Conditions: test.conditions}}
			reason, message := (&maas.Platform{}).MachineProblem(m)
			got := reason
			if message != "" {
				got += " " + message
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
