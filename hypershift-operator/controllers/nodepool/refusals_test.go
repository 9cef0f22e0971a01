// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"

	. "github.com/onsi/gomega"

	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/testenv"
)

// against makes passes until the server refuses nothing any more.
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

// TestRefusals leads a pool through its life, against a server that refuses each request once.
func TestRefusals(t *testing.T) {
	c := fixture.Start(t)
	for _, upgrade := range []hyperv1.UpgradeType{hyperv1.UpgradeTypeReplace, hyperv1.UpgradeTypeInPlace} {
		t.Run("When a request is refused, a pass over a pool of "+string(upgrade)+" should fail, and the next go on", func(t *testing.T) {
			s := newWorld(t, c, "refused-"+map[hyperv1.UpgradeType]string{hyperv1.UpgradeTypeReplace: "replace", hyperv1.UpgradeTypeInPlace: "in-place"}[upgrade])
			server := testenv.NewGrudging(c)
			s.ready(nil)
			pool := fixture.NodePool(s.namespace)
			pool.Spec.Management = hyperv1.NodePoolManagement{UpgradeType: upgrade, AutoRepair: true}
			fixture.Create(t, c, pool)
			s.against(server)
			if upgrade == hyperv1.UpgradeTypeReplace {
				s.born("a")
				s.born("b")
			}
			s.against(server)
			s.configure("extra", goodConfig)
			s.change(func(p *hyperv1.NodePool) { p.Spec.Replicas, p.Spec.Management.AutoRepair = ptr.To[int32](3), false })
			s.against(server)
			for _, paused := range []*string{ptr.To("true"), nil} {
				s.change(func(p *hyperv1.NodePool) { p.Spec.PausedUntil = paused })
				s.against(server)
			}
			s.Expect(c.Delete(t.Context(), s.pool())).To(Succeed())
			if upgrade == hyperv1.UpgradeTypeReplace {
				s.against(server)
				s.bury("a", "b")
			}
			s.against(server)
			s.Expect(s.gone(&hyperv1.NodePool{}, s.key())).To(BeTrue())
		})
	}
}
