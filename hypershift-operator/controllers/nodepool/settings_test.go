// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope/scopetest"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/testenv"
)

// TestSettings covers changes of existing machines.
func TestSettings(t *testing.T) {
	c := fixture.Start(t)
	hour := &metav1.Duration{Duration: time.Hour}

	t.Run("When erase and timeout settings change, it should update existing machines and replace none", func(t *testing.T) {
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

	t.Run("When nothing changes, it should write nothing", func(t *testing.T) {
		s := newWorld(t, c, "settings")
		counted := fixture.NewFaulty(c)
		s.Reconciler.Client = counted
		s.mustPass()
		s.Expect(counted.Log).To(BeEmpty())
	})

	t.Run("When settings are removed while the release cannot be read, it should reset existing machines to the defaults", func(t *testing.T) {
		s := newWorld(t, c, "settings")
		s.Releases = fixture.Releases{}
		s.change(func(p *hyperv1.NodePool) { p.Spec.Platform.MAAS = &hyperv1.MAASNodePoolPlatform{} })
		s.mustPass()
		spec := look(s, &infrav1.MaasMachine{}, "a").Spec
		s.Expect(spec.Erase).To(HaveValue(Equal(infrav1.EraseConfig{Mode: "Quick"})))
		s.Expect(spec.Timeouts).To(BeZero())
	})

	t.Run("When erase is set just before the pool is deleted, it should still update the existing machines", func(t *testing.T) {
		s := newWorld(t, c, "settings")
		s.change(func(p *hyperv1.NodePool) { p.Spec.Platform.MAAS.Erase = "Full" })
		s.Expect(c.Delete(t.Context(), s.pool())).To(Succeed())
		_, err := s.pass()
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(look(s, &infrav1.MaasMachine{}, "b").Spec.Erase).To(HaveValue(Equal(infrav1.EraseConfig{Mode: "Full"})))
	})
}

// fleet returns an in-memory world and the scope of a pool with existing machines and their MaasMachines.
func fleet(t *testing.T, names ...string) (*world, *reconciliation) {
	t.Helper()
	w, s := inMemory(t), pass()
	w.client, s.Scope = scopetest.Fleet(t, names...)
	w.Reconciler.Client = w.client
	return w, s
}

// TestAdjustMachines checks that a failure at one machine does not prevent the settings on others.
func TestAdjustMachines(t *testing.T) {
	for name, tc := range map[string]struct {
		run    func(*Reconciler, context.Context, *reconciliation) (ctrl.Result, error)
		before func(*world, *reconciliation)
		// adjusted lists which of the machines a, b and c have the pool's settings.
		adjusted []string
		err      error
	}{
		"When the pool exists, it should update all machines": {
			run: (*Reconciler).carrySettings, adjusted: []string{"a", "b", "c"}},
		"When a platform machine is unknown, it should update the others": {
			run: (*Reconciler).carrySettings, before: func(_ *world, s *reconciliation) { delete(s.Infra, "a") }, adjusted: []string{"b", "c"}},
		"When a platform machine is deleted concurrently, it should update the others and succeed": {
			run: (*Reconciler).carrySettings, adjusted: []string{"b", "c"}, before: func(w *world, s *reconciliation) {
				w.Expect(w.client.Delete(t.Context(), s.Infra["a"].DeepCopyObject().(client.Object))).To(Succeed())
			}},
		"When a patch fails, it should update the others and return an error": {
			run: (*Reconciler).carrySettings, adjusted: []string{"b", "c"}, err: testenv.ErrRefused, before: func(w *world, _ *reconciliation) {
				w.Reconciler.Client = scopetest.Answering(w.client, "patch .*MaasMachine .*/a", testenv.ErrRefused)
			}},
		"When the pool is deleted, it should list the platform machines and update them": {
			run: (*Reconciler).carryLastSettings, before: func(_ *world, s *reconciliation) { s.Infra = nil }, adjusted: []string{"a", "b", "c"}},
		"When the platform is not supported and the pool is deleted, it should not update machines": {
			run: (*Reconciler).carryLastSettings, before: func(_ *world, s *reconciliation) { s.PlatformServed = false }},
		"When the platform's kinds are gone, the deletion should continue": {
			run: (*Reconciler).carryLastSettings, before: func(w *world, _ *reconciliation) {
				w.Reconciler.Client = scopetest.Answering(w.client, "list .*MaasMachineList .*", &meta.NoKindMatchError{})
			}},
		"When the platform machines cannot be listed, it should return an error and delay the deletion": {
			run: (*Reconciler).carryLastSettings, err: testenv.ErrRefused, before: func(w *world, _ *reconciliation) {
				w.Reconciler.Client = scopetest.Answering(w.client, "list .*MaasMachineList .*", testenv.ErrRefused)
			}},
		"When the last patch fails, it should return an error and delay the deletion": {
			run: (*Reconciler).carryLastSettings, adjusted: []string{"a", "b"}, err: testenv.ErrRefused, before: func(w *world, _ *reconciliation) {
				w.Reconciler.Client = scopetest.Answering(w.client, "patch .*MaasMachine .*/c", testenv.ErrRefused)
			}},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := fleet(t, "a", "b", "c")
			s.Pool.Spec.Platform.MAAS.Erase = "Secure"
			if tc.before != nil {
				tc.before(w, s)
			}
			result, err := tc.run(w.Reconciler, t.Context(), s)
			w.Expect(result).To(BeZero())
			if tc.err != nil {
				w.Expect(err).To(MatchError(tc.err))
			} else {
				w.Expect(err).NotTo(HaveOccurred())
			}
			var adjusted []string
			list := &infrav1.MaasMachineList{}
			w.Expect(w.client.List(t.Context(), list, client.InNamespace(s.Namespace()))).To(Succeed())
			for _, machine := range list.Items {
				if machine.Spec.Erase != nil && machine.Spec.Erase.Mode == "Secure" {
					adjusted = append(adjusted, machine.Name)
				}
			}
			w.Expect(adjusted).To(Equal(tc.adjusted))
		})
	}
}
