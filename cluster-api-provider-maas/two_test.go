// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
)

// TestTwoProcesses runs two providers without leader election for the same machines, as happens briefly if a lost node
// still runs the pod of a Deployment. They may repeat actions, but must not leak or lose machines.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	d := newDriver(t, testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI), "clusters-two")
	const machines = 20
	first, second := d.live(killPoint{}), d.live(killPoint{})
	for range machines {
		d.add()
	}
	d.Eventually(d.unready, patience, tick).Should(BeEmpty())
	for _, m := range d.machines()[:machines/2] {
		d.remove(m)
	}
	for range machines / 2 {
		d.add()
	}
	d.Eventually(d.unready, patience, tick).Should(BeEmpty())
	first.kill()
	<-first.dead
	second.kill()
	<-second.dead
	last := d.live(killPoint{})
	d.Eventually(d.unready, patience, tick).Should(BeEmpty())
	d.Expect(d.machines()).To(HaveLen(machines))
	allocated := d.allocated()
	for _, m := range d.machines() {
		d.Expect(m.Spec.SystemID).NotTo(BeNil(), m.Name)
		d.Expect(allocated).To(HaveKeyWithValue(*m.Spec.SystemID, string(m.UID)), "nothing is lost")
		d.remove(m)
	}
	d.Eventually(d.unready, patience, tick).Should(BeEmpty())
	// If both allocated a machine for one MaasMachine, a sweep releases one of them, at the latest before the MaasCluster
	// is deleted.
	infra := &infrav1.MaasCluster{ObjectMeta: d.meta("demo")}
	d.Expect(d.client.Delete(t.Context(), infra)).To(Succeed())
	d.Eventually(func() bool {
		return apierrors.IsNotFound(d.client.Get(t.Context(), client.ObjectKeyFromObject(infra), infra))
	}, patience, tick).Should(BeTrue())
	d.Expect(d.allocated()).To(BeEmpty(), "nothing is leaked")
	last.kill()
	<-last.dead
}
