// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"encoding/base64"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	testingclock "k8s.io/utils/clock/testing"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/platform/maas"
	maasapi "github.com/openshift/hypershift/support/maas"
)

// TestFirstBoot covers the user-data of machines that run cloud-init.
func TestFirstBoot(t *testing.T) {
	c := fixture.Start(t)
	userDataOf := func(s *world) (name, text string) {
		name = *s.deployment().Spec.Template.Spec.Bootstrap.DataSecretName
		return name, string(s.secret(name).Data["value"])
	}
	bearer := func(s *world, userData string) string {
		return "Authorization: Bearer " + base64.StdEncoding.EncodeToString(s.tokenOf(userData).Data["token"])
	}

	t.Run("When the image is a MAAS Ubuntu image, machines should get a cloud-config with the token", func(t *testing.T) {
		s := newWorld(t, c, "ubuntu")
		s.ready(nil)
		pool := fixture.NodePool(s.namespace)
		pool.Spec.Platform.MAAS.Image = "ubuntu/noble"
		fixture.Create(t, c, pool)
		s.mustPass()
		name, text := userDataOf(s)
		s.Expect(text).To(And(HavePrefix("#cloud-config\n"), ContainSubstring(bearer(s, name)), ContainSubstring("172.30.240.1:30443\n"), ContainSubstring("    CA\n")))
		s.Expect(s.tokenOf(name).Annotations).To(HaveKeyWithValue("hypershift.openshift.io/user-data-format", "CloudConfig"))
		s.Expect(s.templates()[0].Spec.Template.Spec.Image).To(Equal("ubuntu/noble"))
		s.Expect(s.condition("ValidPlatformConfig").Status).To(Equal(corev1.ConditionTrue))
	})

	t.Run("When nothing changes, it should write nothing", func(t *testing.T) {
		s := newWorld(t, c, "ubuntu")
		counted := fixture.NewFaulty(c)
		s.Reconciler.Client = counted
		s.mustPass()
		s.Expect(counted.Log).To(BeEmpty())
	})

	t.Run("When the pool changes to Ignition during a cloud-config install, both should keep their format", func(t *testing.T) {
		s := newWorld(t, c, "ubuntu")
		before, _ := userDataOf(s)
		s.machine("old", before)
		s.change(func(p *hyperv1.NodePool) { p.Spec.Platform.MAAS.Image = "custom/kubernetes-node" })
		s.mustPass()
		after, text := userDataOf(s)
		s.Expect(after).NotTo(Equal(before))
		s.Expect(text).To(HavePrefix(`{"ignition"`))
		s.Expect(s.tokenOf(after).Annotations).NotTo(HaveKey("hypershift.openshift.io/user-data-format"))
		s.Expect(string(s.secret(before).Data["value"])).To(And(HavePrefix("#cloud-config\n"), ContainSubstring(bearer(s, before))))
	})

	t.Run("When the pool's architecture is not amd64, the token should name the architecture for the node-agent", func(t *testing.T) {
		for arch, want := range map[string]string{"amd64": "", "arm64": "arm64"} {
			s := newWorld(t, c, "arch-"+arch)
			s.ready(nil)
			pool := fixture.NodePool(s.namespace)
			pool.Spec.Arch = arch
			fixture.Create(t, c, pool)
			s.mustPass()
			name, _ := userDataOf(s)
			s.Expect(s.tokenOf(name).Annotations[hyperv1.TokenSecretArchitectureAnnotation]).To(Equal(want))
		}
	})
}

// TestChosenFormat covers what determines the format of an image, and that it does not change for existing machines.
func TestChosenFormat(t *testing.T) {
	c := fixture.Start(t)
	s := newWorld(t, c, "chosen")
	base, away := "ubuntu/jammy", false
	clock := testingclock.NewFakeClock(time.Now())
	s.Reconciler.Platforms = fixture.PlatformsWith(&maas.Options{
		WhoAmI: func(context.Context, maasapi.Config) (string, error) { return "admin", nil }, Clock: clock,
		Images: func(context.Context, maasapi.Config) ([]maasapi.BootResource, error) {
			if away {
				return nil, errors.New("no answer")
			}
			return []maasapi.BootResource{{Type: "Uploaded", Name: "golden", BaseImage: base}}, nil
		},
	})
	s.ready(nil)
	pool := fixture.NodePool(s.namespace)
	pool.Spec.Platform.MAAS.Image = "custom/golden"
	fixture.Create(t, c, pool)
	userData := func() string {
		return string(s.secret(*s.deployment().Spec.Template.Spec.Bootstrap.DataSecretName).Data["value"])
	}

	t.Run("When MAAS reports Ubuntu as base image, it should create a cloud-config and a condition should report why", func(t *testing.T) {
		_, err := s.pass()
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(s.condition(hyperv1.NodePoolValidMachineConfigConditionType).Status).To(Equal(corev1.ConditionTrue), "writing the choice down holds nothing up")
		s.mustPass()
		s.Expect(userData()).To(HavePrefix("#cloud-config\n"))
		s.Expect(s.condition("ValidPlatformConfig")).To(And(HaveField("Status", corev1.ConditionTrue),
			HaveField("Message", "Machines get user-data for cloud-init, since MAAS says that custom/golden is made of ubuntu/jammy")))
	})
	t.Run("When nothing changes, it should write nothing", func(t *testing.T) {
		counted := fixture.NewFaulty(c)
		s.Reconciler.Client = counted
		defer func() { s.Reconciler.Client = c }()
		s.mustPass()
		s.Expect(counted.Log).To(BeEmpty())
	})
	t.Run("When MAAS reports another base image or is unavailable, the user-data format should not change", func(t *testing.T) {
		base = ""
		clock.Step(time.Hour)
		s.mustPass()
		s.Expect(userData()).To(HavePrefix("#cloud-config\n"))
		away = true
		clock.Step(time.Hour)
		s.mustPass()
		s.Expect(userData()).To(HavePrefix("#cloud-config\n"))
		s.Expect(s.condition("ValidPlatformConfig").Message).To(ContainSubstring("is made of ubuntu/jammy"))
	})
	t.Run("When the pool sets userDataFormat, it should use that format", func(t *testing.T) {
		s.change(func(p *hyperv1.NodePool) { p.Spec.Platform.MAAS.UserDataFormat = hyperv1.UserDataIgnition })
		s.mustPass()
		s.Expect(userData()).To(HavePrefix(`{"ignition"`))
		s.Expect(s.condition("ValidPlatformConfig").Message).To(Equal("Machines get user-data for Ignition, as spec.platform.maas.userDataFormat says"))
	})
}
