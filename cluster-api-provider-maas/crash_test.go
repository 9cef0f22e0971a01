// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
)

// crashKillsEnv is the variable with the number of kills in TestCrash.
const crashKillsEnv = "CRASH_KILLS"

// driver creates and deletes MaasMachines in waves while it kills their provider.
type driver struct {
	*world
	// kube is the connection to the management cluster, and region the connection to MAAS.
	kube   http.RoundTripper
	region *maas.Client
	random *rand.Rand
	// The driver creates MaasMachines until there are crest of them, then it deletes them all. ebb is true while it
	// deletes. turned is set when the deletion starts.
	crest       int
	ebb, turned bool
	// kills counts the kills by moment.
	kills map[moment]int
}

// TestCrash repeatedly kills the provider around a random call while machines are created and deleted. Two machines
// cannot be deployed, so retries with another machine are interrupted as well.
func TestCrash(t *testing.T) {
	t.Parallel()
	kills := 500
	if testing.Short() {
		kills = 60
	}
	kills = setting(t, crashKillsEnv, kills, strconv.Atoi)
	cfg := testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI)
	for _, tc := range []struct {
		name, namespace string
		kube            bool
	}{
		{"When the provider is killed around a MAAS call, no machine should leak or get lost", "clusters-maas", false},
		{"When the provider is killed around a write to the management cluster, no machine should leak or get lost", "clusters-kube", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel() // The processes mostly wait for caches.
			d := newDriver(t, cfg, tc.namespace)
			d.waves(tc.kube, kills/2, d.settle)
			d.Expect(d.machines()).To(BeEmpty())
		})
	}
}

func newDriver(t *testing.T, cfg *rest.Config, namespace string) *driver {
	const machines = 50
	endpoint, key := region(t, machines+10,
		faults.Rule{Kind: faults.DeployFails, Machine: "m00003"}, faults.Rule{Kind: faults.DeployFails, Machine: "m00017"})
	return newDriverAt(t, cfg, namespace, endpoint, key, machines)
}

func newDriverAt(t *testing.T, cfg *rest.Config, namespace, endpoint, key string, crest int) *driver {
	d := &driver{world: newWorld(t, cfg, namespace, endpoint, key), random: testenv.Random(t), crest: crest, kills: map[moment]int{}}
	var err error
	d.kube, err = rest.TransportFor(cfg)
	d.Expect(err).NotTo(HaveOccurred())
	d.region, err = maas.NewClient(maas.Config{Endpoint: endpoint, APIKey: key})
	d.Expect(err).NotTo(HaveOccurred())
	return d
}

// waves kills the provider the given number of times. It calls settle each time the driver starts to delete machines,
// and at the end, when no machine is desired.
func (d *driver) waves(kube bool, kills int, settle func()) {
	d.t.Helper()
	for n := range kills {
		d.crash(killPoint{kube: kube, when: moments[n%len(moments)], nth: 1 + d.random.Int64N(20), late: d.random.Float64()})
		if d.turned {
			d.turned = false
			settle()
		}
	}
	d.t.Logf("killed over %d machines: %v", d.next, d.kills)
	d.expectEveryMoment(kills)
	settle()
	for _, m := range d.living() {
		d.remove(m)
	}
	settle()
}

// crash runs one provider process until it is killed.
func (d *driver) crash(at killPoint) {
	d.t.Helper()
	l := d.live(at)
	for {
		d.stir()
		select {
		case <-l.dead:
			d.Expect(l.struck.Load()).To(BeTrue(), "the provider ended on its own: %s", l.output.String())
			d.kills[at.when]++
			return
		case <-time.After(time.Second):
			// The process makes too few calls to reach the kill point.
		}
	}
}

// stir creates MaasMachines and sometimes deletes one, until their number reaches crest. Then it deletes them until
// none is left.
func (d *driver) stir() {
	d.t.Helper()
	living := d.living()
	if d.ebb {
		d.ebb = len(living) > 0
	} else if len(d.machines()) >= d.crest {
		d.ebb, d.turned = true, true
	}
	removed := d.random.IntN(2)
	if d.ebb {
		removed = 3
	} else {
		d.add()
		d.add()
	}
	for range min(removed, len(living)) {
		d.remove(living[d.random.IntN(len(living))])
	}
}

// living returns the MaasMachines that are not being deleted.
func (d *driver) living() []infrav1.MaasMachine {
	d.t.Helper()
	return slices.DeleteFunc(d.machines(), func(m infrav1.MaasMachine) bool { return !m.DeletionTimestamp.IsZero() })
}

// settle runs a process until all objects are in their desired state. It checks that allocations and MaasMachines match
// one to one.
func (d *driver) settle() {
	d.t.Helper()
	l := d.live(killPoint{})
	d.Eventually(d.unready, patience, 200*time.Millisecond).Should(BeEmpty())
	l.kill()
	<-l.dead
	d.expectNoLeak(d.allocated())
}

// allocated returns, for each allocated machine in MAAS, the UID of its MaasMachine.
func (d *driver) allocated() map[string]string {
	d.t.Helper()
	machines, err := d.region.ListMachines(d.t.Context(), maas.MachineFilter{})
	d.Expect(err).NotTo(HaveOccurred())
	allocated := map[string]string{}
	for _, m := range machines {
		if m.Owner != "" {
			allocated[m.SystemID] = m.Annotations[maas.AnnotationMachineUID]
		}
	}
	return allocated
}

// expectEveryMoment checks the number of kills, and that they cover all moments.
func (d *driver) expectEveryMoment(kills int) {
	d.t.Helper()
	sum := 0
	for _, when := range moments {
		d.Expect(d.kills[when]).To(BeNumerically(">=", kills/len(moments)), string(when))
		sum += d.kills[when]
	}
	d.Expect(sum).To(Equal(kills))
}
