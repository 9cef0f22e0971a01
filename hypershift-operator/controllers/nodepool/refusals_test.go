// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"

	. "github.com/onsi/gomega"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/testenv"
)

// against reconciles until the server refuses no more requests.
func (s *world) against(server *testenv.Grudging) {
	s.t.Helper()
	s.Reconciler.Client = server
	pass := func() (ctrl.Result, error) {
		result, err := s.pass()
		s.answer()
		return result, err
	}
	server.Exhaust(s.t, pass, func() any { return s.pool().Status.Conditions })
}

// TestRefusals runs the lifecycle of pools against a server that fails each request once.
func TestRefusals(t *testing.T) {
	c := fixture.Start(t)
	for name, lead := range map[string]func(s *world, live func()){
		"replaced": func(s *world, live func()) {
			s.begin(nil)
			live()
			s.born("a")
			s.born("b")
			live()
			s.Reconciler.Client = c
			s.reach()
			live()
			s.configure("extra", goodConfig)
			s.change(func(p *hyperv1.NodePool) { p.Spec.Replicas, p.Spec.Management.AutoRepair = ptr.To[int32](3), false })
		},
		"in-place": func(s *world, live func()) {
			s.begin(func(p *hyperv1.NodePool) {
				p.Spec.Management = hyperv1.NodePoolManagement{UpgradeType: hyperv1.UpgradeTypeInPlace, AutoRepair: true}
			})
			live()
			s.configure("extra", goodConfig)
		},
		"openshift": func(s *world, _ func()) {
			s.openShift(hyperv1.UpgradeTypeReplace)
			s.coreConfigs()
		},
	} {
		t.Run("When each request for the pool "+name+" fails once, the next reconcile should continue", func(t *testing.T) {
			s := newWorld(t, c, "refused-"+name)
			server := testenv.NewGrudging(c)
			live := func() { s.against(server) }
			lead(s, live)
			live()
			for _, paused := range []*string{ptr.To("true"), nil} {
				s.change(func(p *hyperv1.NodePool) { p.Spec.PausedUntil = paused })
				live()
			}
			s.Expect(c.Delete(t.Context(), s.pool())).To(Succeed())
			live()
			machines := &clusterv1.MachineList{}
			s.Expect(c.List(t.Context(), machines, client.InNamespace(s.hosted()))).To(Succeed())
			for _, machine := range machines.Items {
				s.bury(machine.Name)
			}
			live()
			s.Expect(s.gone(&hyperv1.NodePool{}, s.key())).To(BeTrue())
			s.Expect(s.templates()).To(BeEmpty())
		})
	}
}
