// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// TestSettings covers what changes on machines as they are.
func TestSettings(t *testing.T) {
	c := fixture.Start(t)
	hour := &metav1.Duration{Duration: time.Hour}

	t.Run("When erasing and time-outs change, existing machines should have them, and none be replaced", func(t *testing.T) {
		s := newWorld(t, c, "settings")
		s.settle()
		before := s.deployment().Spec.Template
		s.change(func(p *hyperv1.NodePool) {
			p.Spec.Platform.MAAS.Erase = "Secure"
			p.Spec.Platform.MAAS.AllocateTimeout, p.Spec.Platform.MAAS.DeployTimeout = hour, hour
			p.Spec.Platform.MAAS.BootTimeout, p.Spec.Platform.MAAS.JoinTimeout = hour, hour
		})
		s.mustPass()
		for _, name := range []string{"a", "b"} {
			spec := look(s, &infrav1.MaasMachine{}, name).Spec
			s.Expect(spec.Erase).To(HaveValue(Equal(infrav1.EraseConfig{Mode: "Secure"})))
			s.Expect(spec.Timeouts).To(Equal(infrav1.MachineTimeouts{Allocate: hour, Deploy: hour, Boot: hour, Join: hour}))
			s.Expect(spec.Image).To(Equal("custom/kubernetes-node"), "the rest stays")
		}
		s.Expect(s.deployment().Spec.Template).To(Equal(before))
		s.rests()
	})

	t.Run("When nothing changes any more, it should write nothing", func(t *testing.T) {
		s := newWorld(t, c, "settings")
		counted := fixture.NewFaulty(c)
		s.Reconciler.Client = counted
		s.mustPass()
		s.Expect(counted.Log).To(BeEmpty())
	})

	t.Run("When settings are taken back while the release cannot be read, existing machines should have the defaults", func(t *testing.T) {
		s := newWorld(t, c, "settings")
		s.Releases = fixture.Releases{}
		s.change(func(p *hyperv1.NodePool) { p.Spec.Platform.MAAS = &hyperv1.MAASNodePoolPlatform{} })
		s.mustPass()
		spec := look(s, &infrav1.MaasMachine{}, "a").Spec
		s.Expect(spec.Erase).To(HaveValue(Equal(infrav1.EraseConfig{Mode: "Quick"})))
		s.Expect(spec.Timeouts).To(BeZero())
	})

	t.Run("When erasing is asked for and the pool deleted at once, the disks should be erased", func(t *testing.T) {
		s := newWorld(t, c, "settings")
		s.change(func(p *hyperv1.NodePool) { p.Spec.Platform.MAAS.Erase = "Full" })
		s.Expect(c.Delete(t.Context(), s.pool())).To(Succeed())
		_, err := s.pass()
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(look(s, &infrav1.MaasMachine{}, "b").Spec.Erase).To(HaveValue(Equal(infrav1.EraseConfig{Mode: "Full"})))
	})
}
