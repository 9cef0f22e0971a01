// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/health"
)

// ownCauses are conditions that no component or pod explains: most are about what a user wrote. They are in the order in
// which they become true.
var ownCauses = []string{
	string(hyperv1.ReconciliationActive), string(hyperv1.ValidHostedClusterConfiguration),
	string(hyperv1.ValidReleaseImage),
	string(hyperv1.SupportedHostedCluster), string(hyperv1.PlatformCredentialsFound),
	string(hyperv1.ValidHostedControlPlaneConfiguration),
	string(hyperv1.ValidReleaseInfo), string(hyperv1.InfrastructureReady),
}

// ReadyConditions lists the conditions of an available HostedCluster, in the order in which they become true.
var ReadyConditions = slices.Concat(ownCauses, []string{
	string(hyperv1.EtcdAvailable), string(hyperv1.KubeAPIServerAvailable),
	string(hyperv1.IgnitionEndpointAvailable), string(hyperv1.IgnitionServerValidReleaseInfo),
	string(hyperv1.HostedClusterAvailable),
})

// firstUnmet returns the first of the conditions that exists and is not True. A False condition precedes those that are
// only Unknown. A pause is not among them.
func firstUnmet(conditions []metav1.Condition, inOrder []string) *metav1.Condition {
	var unknown *metav1.Condition
	for _, name := range inOrder {
		c := meta.FindStatusCondition(conditions, name)
		switch {
		case c == nil || c.Status == metav1.ConditionTrue || name == string(hyperv1.ReconciliationActive):
		case c.Status == metav1.ConditionFalse:
			return c
		case unknown == nil:
			unknown = c
		}
	}
	return unknown
}

// further returns the other conditions that report a fault. Those that are Unknown or report progress do not.
func further(conditions []metav1.Condition) []metav1.Condition {
	var bad []metav1.Condition
	for _, expected := range health.HostedCluster() {
		if slices.Contains(ReadyConditions, expected.Type) {
			continue
		}
		found := health.First(conditions, []health.Expectation{expected})
		if found != nil && !found.Progress && found.Status != metav1.ConditionUnknown {
			bad = append(bad, found.Condition)
		}
	}
	return bad
}

func describe(c *metav1.Condition) string {
	return fmt.Sprintf("%s is %s (%s): %s", c.Type, c.Status, c.Reason, c.Message)
}
