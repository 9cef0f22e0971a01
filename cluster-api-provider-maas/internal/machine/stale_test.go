// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machine"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

// outdated returns a client that shows an earlier version of a MaasMachine, like the cache of a process on a lost node.
func (w *world) outdated(former *infrav1.MaasMachine) client.Client {
	w.t.Helper()
	real := testenv.Client(w.t, w.cfg, scheme())
	return interceptor.NewClient(real, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if m, is := obj.(*infrav1.MaasMachine); is && key == client.ObjectKeyFromObject(former) {
				former.DeepCopyInto(m)
				return nil
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
}

// TestOutdatedPass lets a second provider reconcile a stale MaasMachine, as it was before the first provider gave it
// another machine. This happens at each step of the first provider after the machine failed.
func TestOutdatedPass(t *testing.T) {
	t.Parallel()
	cfg := testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI)
	for name, test := range map[string]struct {
		// at reports whether the second provider has this version of the MaasMachine.
		at func(m *infrav1.MaasMachine) bool
	}{
		"nothing was allocated yet": {func(m *infrav1.MaasMachine) bool { return m.Annotations[machine.AttemptAnnotation] == "" }},
		"its machine was deployed":  {func(m *infrav1.MaasMachine) bool { return ptr.Deref(m.Status.MachineState, "") == "Deploying" }},
		"its machine was released":  {func(m *infrav1.MaasMachine) bool { return m.Annotations[machine.FailuresAnnotation] != "" }},
		"its machine was removed from the spec": {func(m *infrav1.MaasMachine) bool {
			return m.Annotations[machine.FailuresAnnotation] != "" && m.Spec.SystemID == nil
		}},
		"the next machine was not recorded": {func(m *infrav1.MaasMachine) bool { return m.Status.Attempts == 1 && m.Spec.SystemID == nil }},
	} {
		t.Run("When another provider continues from a state where "+name+" it should not change later results", func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, cfg, simtest.Machine{ID: "aaa"}, simtest.Machine{ID: "bbb"})
			accept := simtest.Fault(t, w.Simulator, faults.Rule{Kind: faults.DeployFails, Count: 1})
			defer accept()
			w.add("m", infrav1.MaasMachineSpec{})
			var former *infrav1.MaasMachine
			for range 20 {
				if m := w.machine("m"); former == nil && test.at(m) {
					former = m
				}
				w.reconcile("m", 11*time.Second)
			}
			w.Expect(former).NotTo(BeNil(), "that state was never there")
			w.expect("m", "Ready True Ready", "")
			before, held := w.machine("m"), w.holders()
			w.kube = w.outdated(former)
			w.restart()
			w.pass("m")
			if diff := cmp.Diff(before.Spec, w.machine("m").Spec); diff != "" {
				t.Errorf("spec (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(before.Annotations, w.machine("m").Annotations); diff != "" {
				t.Errorf("annotations (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(before.Status, w.machine("m").Status); diff != "" {
				t.Errorf("status (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(held, w.holders()); diff != "" {
				t.Errorf("machines held in MAAS (-before +after):\n%s", diff)
			}
		})
	}
}

// holders returns the owner and the state of each machine in MAAS.
func (w *world) holders() map[string]string {
	all := map[string]string{}
	for _, m := range w.Machines() {
		all[m.SystemID] = m.Owner + " " + m.Status.String()
	}
	return all
}
