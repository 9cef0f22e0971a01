// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/testenv"
)

// refuses makes the server refuse all requests of a verb.
func (s *world) refuses(verb string) {
	s.Reconciler.Client = testenv.Intercept(s.client, func(request testenv.Request) error {
		if request.Verb == verb {
			return testenv.ErrRefused
		}
		return request.Do()
	})
}

func TestDeleteOneRefused(t *testing.T) {
	for _, verb := range []string{"get", "patch", "delete"} {
		t.Run("When the server refuses to "+verb+" an object, it should not be reported as gone", func(t *testing.T) {
			w := inMemory(t)
			set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.hosted(), Name: fixture.PoolName,
				Annotations: map[string]string{clusterv1.PausedAnnotation: "true"}}}
			fixture.Create(t, w.client, set)
			w.refuses(verb)
			gone, err := pass().Delete(t.Context(), w.Reconciler.Client, &clusterv1.MachineSet{})
			w.Expect(err).To(MatchError(testenv.ErrRefused))
			w.Expect(gone).To(BeFalse())
		})
	}
}

// TestHeldRefused checks that failed requests are also reported for a pool that is held, or that has no machines.
func TestHeldRefused(t *testing.T) {
	for name, test := range map[string]struct {
		verb   string
		change func(*reconciliation)
	}{
		"When the platform image is missing": {"get", func(s *reconciliation) {
			s.Kept = &platform.Kept{Missing: true, Condition: condition.False("ValidPlatformImage", "Copying", "")}
		}},
		"When the configuration is not rendered": {"get", func(*reconciliation) {}},
		"When the platform creates no machines":  {"patch", func(s *reconciliation) { s.Platform = &made{s.Platform, nil} }},
		"When the templates cannot be listed":    {"list", func(s *reconciliation) { s.SetTrue(hyperv1.NodePoolValidGeneratedPayloadConditionType, "") }},
	} {
		t.Run(name+", it should return the error of a failed request", func(t *testing.T) {
			w, s := inMemory(t), configured(func(*reconciliation) {})
			s.Pool.Spec.Management.Replace = rolling()
			fixture.Create(t, w.client, s.Pool)
			test.change(s)
			w.refuses(test.verb)
			_, err := w.reconcileMachines(t.Context(), s)
			w.Expect(err).To(MatchError(testenv.ErrRefused))
		})
	}
}
