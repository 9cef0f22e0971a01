// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"net/http"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// TestSwapOff checks that swap is turned off only for machines with a kubeadm bootstrap config. MAAS gets no request
// about any other machine.
func TestSwapOff(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		is     status.Status
		kind   string
		has    *int64
		set    func(*rack)
		calls  int
		off    bool
		reason string
		again  time.Duration
		events []string
	}{
		"no amount is set":                   {is: status.Allocated, kind: kubeadmBootstrap, calls: 1, off: true},
		"it has swap":                        {is: status.Allocated, kind: kubeadmBootstrap, has: ptr.To[int64](1024), calls: 1, off: true},
		"it has no swap":                     {is: status.Allocated, kind: kubeadmBootstrap, has: ptr.To[int64](0), off: true},
		"another bootstrap provider is used": {is: status.Allocated, kind: "NodePool"},
		"it runs":                            {is: status.Deployed, kind: kubeadmBootstrap},
		"the machine was not read":           {is: status.Allocated, kind: kubeadmBootstrap, set: func(k *rack) { k.observed = nil }},
		"the user may not turn swap off": {is: status.Allocated, kind: kubeadmBootstrap, events: []string{"SwapKept"}, set: func(k *rack) {
			simtest.Refuse(k.t, k.site.Simulator, "machine.update", "", http.StatusForbidden, "no")
		}},
		"MAAS is busy": {is: status.Allocated, kind: kubeadmBootstrap, reason: ReasonUnavailable, again: 15 * time.Second, set: func(k *rack) {
			simtest.Refuse(k.t, k.site.Simulator, "machine.update", "", http.StatusServiceUnavailable, "busy")
		}},
	} {
		t.Run("When "+name+", swap should be turned off only if it is on", func(t *testing.T) {
			t.Parallel()
			k := seeker(t, "admin", sibling("self", holds("m1")), simtest.Machine{ID: "m1", Status: tc.is, Owner: "admin"})
			k.site.Change("m1", func(m *inventory.Machine) { m.SwapSize = tc.has })
			k.look("m1")
			k.owner.Spec.Bootstrap.ConfigRef.Kind = tc.kind
			maybe(tc.set, k)
			k.asked("")
			result, err := k.swapOff(t.Context(), k.scope)
			k.expectReason(result, err, tc.reason, tc.again)
			k.expectEvents(tc.events...)
			if n := k.asked("machine.update"); n != tc.calls {
				t.Errorf("MAAS was asked %d times", n)
			}
			is := k.site.Has("m1").SwapSize
			if off := is != nil && *is == 0; off != tc.off || off && (k.observed.SwapSize == nil || *k.observed.SwapSize != 0) {
				t.Errorf("its swap is off: %t, and the pass knows %v", off, k.observed.SwapSize)
			}
		})
	}
}
