// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/handover"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

// TestDeadBMC lets the power controllers of two machines fail after their deployment. The provider removes the
// finalizers of their MaasMachines and is killed. The next process releases the machines once the power controllers
// answer again.
func TestDeadBMC(t *testing.T) {
	t.Parallel()
	d := newDriver(t, testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI), "clusters-dead")
	s, err := simulator.New(simulator.Options{Seed: seed(4), RandomSeed: 1})
	d.Expect(err).NotTo(HaveOccurred())
	d.endpoint, d.key = simtest.Serve(t, s), s.Key("alice")
	d.region, err = maas.NewClient(maas.Config{Endpoint: d.endpoint, APIKey: d.key})
	d.Expect(err).NotTo(HaveOccurred())
	for range 3 {
		d.add()
	}
	l := d.live(killPoint{}, "--release-timeout=2s")
	d.Eventually(d.unready, patience, tick).Should(BeEmpty())

	dead := []string{*d.machines()[0].Spec.SystemID, *d.machines()[1].Spec.SystemID}
	repairs := []func(){
		simtest.Fault(t, s, faults.Rule{Kind: faults.ReleaseFails, Machine: dead[0]}),
		simtest.Refuse(t, s, "machine.release", dead[1], 503, "the BMC does not answer"),
	}
	for _, m := range d.machines() {
		d.remove(m)
	}
	d.Eventually(d.machines, patience, tick).Should(BeEmpty())
	records := func() map[string]handover.Record {
		infra := &infrav1.MaasCluster{}
		d.Expect(d.client.Get(t.Context(), client.ObjectKey{Namespace: d.namespace, Name: "demo"}, infra)).To(Succeed())
		return handover.Records.Of(infra)
	}
	d.Expect(records()).To(And(HaveKey(dead[0]), HaveKey(dead[1])))
	d.Eventually(records, patience, tick).Should(HaveLen(2), "on a busy machine the third takes too long as well, and is found released then")
	l.kill()
	<-l.dead
	for _, repair := range repairs {
		repair()
	}
	l = d.live(killPoint{})
	d.Eventually(records, patience, tick).Should(BeEmpty())
	l.kill()
	<-l.dead
	d.settle()
	d.Expect(d.machines()).To(BeEmpty())
}
