package main

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
)

// TestTwoProcesses runs two providers without leader election over the same machines, as a Deployment does for a moment whose pod a lost
// node still runs: they may do things twice, and must neither leak nor lose.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	d := newDriver(t, testenv.Start(t, crds.Infrastructure, crds.ClusterAPI), "clusters-two", 1)
	const machines = 20
	first, second := d.live(killPoint{}), d.live(killPoint{})
	for range machines {
		d.add()
	}
	d.Eventually(d.unready, 2*time.Minute, tick).Should(BeEmpty())
	for _, m := range d.machines()[:machines/2] {
		d.remove(m)
	}
	for range machines / 2 {
		d.add()
	}
	d.Eventually(d.unready, 2*time.Minute, tick).Should(BeEmpty())
	first.kill()
	<-first.dead
	second.kill()
	<-second.dead
	d.settle()
	d.Expect(d.machines()).To(HaveLen(machines))
	for _, m := range d.machines() {
		d.remove(m)
	}
	d.settle()
	d.Expect(d.machines()).To(BeEmpty())
}
