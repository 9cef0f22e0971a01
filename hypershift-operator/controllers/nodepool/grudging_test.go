// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"

	. "github.com/onsi/gomega"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/testenv"
)

// TestRefusalsInMemory leads pools through their lives in memory, against a server that refuses each request once.
func TestRefusalsInMemory(t *testing.T) {
	for name, lead := range map[string]func(s *world, live func()){
		"a pool whose machines are replaced": func(s *world, live func()) {
			s.begin(nil)
			live()
			s.born("a")
			s.born("b")
			live()
			s.Reconciler.Client = s.client
			s.reach()
			live()
			s.configure("extra", goodConfig)
			s.change(func(p *hyperv1.NodePool) { p.Spec.Replicas, p.Spec.Management.AutoRepair = ptr.To[int32](3), false })
		},
		"a pool that is updated in place": func(s *world, live func()) {
			s.begin(func(p *hyperv1.NodePool) { p.Spec.Management.UpgradeType = hyperv1.UpgradeTypeInPlace })
			live()
			s.configure("extra", goodConfig)
		},
		"a pool of OpenShift": func(s *world, live func()) {
			s.openShift(hyperv1.UpgradeTypeReplace)
			s.change(func(p *hyperv1.NodePool) { p.Spec.Management.Replace = rolling() })
			s.coreConfigs()
		},
	} {
		t.Run("When a request is refused, a pass over "+name+" should fail, and the next go on", func(t *testing.T) {
			s := inMemory(t)
			server := testenv.NewGrudging(s.client)
			live := func() { s.against(server) }
			lead(s, live)
			live()
			for _, paused := range []*string{ptr.To("true"), nil} {
				s.change(func(p *hyperv1.NodePool) { p.Spec.PausedUntil = paused })
				live()
			}
			s.Expect(s.client.Delete(t.Context(), s.pool())).To(Succeed())
			live()
			machines := &clusterv1.MachineList{}
			s.Expect(s.client.List(t.Context(), machines)).To(Succeed())
			for _, machine := range machines.Items {
				s.bury(machine.Name)
			}
			live()
			s.Expect(s.gone(&hyperv1.NodePool{}, s.key())).To(BeTrue())
			s.Expect(s.templates()).To(BeEmpty())
		})
	}
}
