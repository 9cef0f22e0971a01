// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

// between connects the reconciler to an API server and a MAAS that fail each request once.
func (w *world) between() *testenv.Grudging {
	w.t.Helper()
	c := testenv.Client(w.t, w.cfg, scheme())
	server := testenv.NewGrudging(c)
	// Most phases report a MAAS error in a condition. All of them retry soon.
	server.Soon = 20 * time.Second
	w.kube, w.transport = server, server.Transport(w.transport)
	w.restart()
	w.reconciler.Reader = server
	return server
}

// against reconciles until no request fails any more.
func (w *world) against(server *testenv.Grudging, name string) {
	w.t.Helper()
	server.Exhaust(w.t, func() (ctrl.Result, error) { return w.attempt(name, 5*time.Minute) }, func() any {
		if w.gone(name) {
			return nil
		}
		return w.machine(name).Status.Conditions
	})
}

// TestRefusedRequests runs the lifecycle of MaasMachines with an API server and a MAAS that fail each request once.
func TestRefusedRequests(t *testing.T) {
	cfg := testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI)
	for name, tc := range map[string]struct {
		world func(*testing.T, *rest.Config) *world
		add   func(*world)
	}{
		"metal": {
			func(t *testing.T, cfg *rest.Config) *world { return newRack(t, cfg, "admin") },
			func(w *world) { w.addPlain("m") },
		},
		"metal that fails once": {
			func(t *testing.T, cfg *rest.Config) *world { return newRack(t, cfg, "admin") },
			func(w *world) {
				simtest.FailDeployments(t, w.Simulator, "one", 1)
				w.addPlain("m")
			},
		},
		"metal with a static address": {
			func(t *testing.T, cfg *rest.Config) *world { return newRack(t, cfg, "admin") },
			func(w *world) {
				w.addStatic("m", infrav1.StaticIPConfig{Range: &infrav1.IPRange{Start: "10.9.0.10", End: "10.9.0.13"}})
			},
		},
		"metal for kubeadm": {
			func(t *testing.T, cfg *rest.Config) *world { return newRack(t, cfg, "admin") },
			func(w *world) { w.byKubeadm("m") },
		},
		"a virtual machine": {
			func(t *testing.T, cfg *rest.Config) *world { return newLXD(t, cfg, lxdHost{name: "host"}) },
			func(w *world) { w.addVM("m") },
		},
	} {
		t.Run("When requests for "+name+" are refused, each reconcile should fail or report it, and the next one should continue", func(t *testing.T) {
			w := tc.world(t, cfg)
			server := w.between()
			tc.add(w)
			w.against(server, "m")
			w.expect("m", "Ready True Ready", "")
			w.remove("m")
			w.against(server, "m")
			w.Expect(w.gone("m")).To(BeTrue())
			w.Expect(w.held()).To(BeEmpty())
			w.Expect(w.vms()).To(BeEmpty())
		})
	}
}
