// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/handover"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// nothingLeft holds the states in which nothing of the allocation is left, or in which an administrator wants the
// machine to stay as it is.
var nothingLeft = map[status.Status]bool{
	status.New: true, status.Commissioning: true, status.FailedCommissioning: true, status.Missing: true, status.Ready: true,
	status.Retired: true, status.Broken: true,
}

// TestNoStateHolds leaves the machine of a deleted MaasMachine in each MAAS state indefinitely. The MaasMachine is
// deleted, and the remaining allocation is recorded.
func TestNoStateHolds(t *testing.T) {
	cfg := testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI)
	for _, stays := range status.All() {
		t.Run(fmt.Sprintf("When MAAS stays at %s, the MaasMachine should be deleted", stays), func(t *testing.T) {
			k, id := newRun(t, cfg, "m")
			simtest.Refuse(t, k.Simulator, "machine.release", id, http.StatusConflict, "no")
			k.Change(id, func(m *inventory.Machine) { m.Status, m.Task = stays, nil })
			k.end("m")
			for _, after := range []time.Duration{time.Minute, 9 * time.Minute, 2 * time.Minute, 25 * time.Hour, time.Minute, time.Minute} {
				k.clock.SetTime(k.clock.Now().Add(after))
				if !k.gone("m") {
					k.pass("m")
				}
			}
			k.Expect(k.gone("m")).To(BeTrue())
			k.look()
			if nothingLeft[stays] {
				k.Expect(handover.Records.Of(k.cluster())).To(BeEmpty())
				return
			}
			k.Expect(handover.Records.Of(k.cluster())).To(HaveKeyWithValue(id, HaveField("Words", Not(BeEmpty()))))
			k.notReleased("machine one (aaaaa1) of the deleted MaasMachine m")
		})
	}
}
