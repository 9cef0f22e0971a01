// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"net/http"
	"testing"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

// TestLooksAnewAfterFailure checks that cached data about the machine is not used after an error. MAAS may have done
// the action, or the machine may be in an unexpected state.
func TestLooksAnewAfterFailure(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		operation string
		do        func(context.Context, *rack)
	}{
		"a mark": {"machine.set_workload_annotations", func(ctx context.Context, k *rack) { _, _ = k.mark(ctx, k.scope) }},
		"power": {"machine.power_on", func(ctx context.Context, k *rack) {
			k.site.Change("m1", func(m *inventory.Machine) { m.PowerState = "off" })
			_, _ = k.powerOn(ctx, k.scope)
		}},
		"a release": {"machine.release", func(ctx context.Context, k *rack) {
			if k.release(ctx, k.scope, k.observed, "a test") == nil {
				k.t.Error("MAAS was not asked")
			}
		}},
	} {
		t.Run("When "+name+" fails, the machine should be read again", func(t *testing.T) {
			t.Parallel()
			k := addressed(t, "admin")
			k.scope.owner, k.scope.cluster = &clusterv1.Machine{}, &clusterv1.Cluster{}
			simtest.Refuse(t, k.site.Simulator, tc.operation, "", http.StatusServiceUnavailable, "busy")
			look := func() int {
				k.site.ResetRequests()
				if _, err := k.identity.Inventory.Machine(t.Context(), "m1", time.Hour); err != nil {
					t.Fatal(err)
				}
				return len(k.site.Requests())
			}
			if look() != 0 {
				t.Fatal("what MAAS said a moment ago is known")
			}
			tc.do(t.Context(), k)
			if look() == 0 {
				t.Error("what MAAS said before is still believed")
			}
		})
	}
}
