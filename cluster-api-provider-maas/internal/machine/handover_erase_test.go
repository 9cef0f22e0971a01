// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// erasedLater delegates the release of a machine whose disks must be erased. The erasure fails, which proves that it
// was requested.
func erasedLater(t *testing.T, cfg *rest.Config) {
	k := newRack(t, cfg, "alice")
	k.owned()
	k.look()
	k.add("m", infrav1.MaasMachineSpec{Image: "custom/node", MinCPU: ptr.To(1), MinMemory: ptr.To(1024), Erase: &infrav1.EraseConfig{Mode: "Quick"}})
	id := k.runsOn("m")
	accept := simtest.Refuse(t, k.Simulator, "machine.release", id, http.StatusConflict, "no")
	k.end("m")
	k.minutes(12, "m")
	k.Expect(k.gone("m")).To(BeTrue())
	k.Expect(k.client.Delete(t.Context(), k.cluster())).To(Succeed())
	k.clock.SetTime(k.clock.Now().Add(time.Hour))
	k.look()
	accept()
	k.look()
	k.Expect(k.Machine(id).Status).To(Equal(status.Deployed), "the sweep does not know how to erase it")
	cure := simtest.Fault(t, k.Simulator, faults.Rule{Kind: faults.EraseFails, Machine: id})
	k.clock.SetTime(k.clock.Now().Add(5 * time.Minute))
	k.look()
	k.inState(id, status.FailedDiskErasing)
	cure()
	k.clock.SetTime(k.clock.Now().Add(2 * time.Hour))
	k.taken()
	k.inState(id, status.Ready)
}
