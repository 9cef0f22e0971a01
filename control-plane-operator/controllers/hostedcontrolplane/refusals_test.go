// SPDX-License-Identifier: Apache-2.0

package hostedcontrolplane

import (
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/testenv"
)

// TestRefusals reconciles a control plane from creation to deletion, on a server that fails each request once.
func TestRefusals(t *testing.T) {
	w := newWorld(t)
	server := testenv.NewGrudging(w.client)
	w.r.Client, w.r.Infra.Client, w.r.PKI.Client = server, server, server
	against := func() {
		t.Helper()
		pass := func() (ctrl.Result, error) {
			result, err := w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.hcp)})
			w.rollOut()
			return result, err
		}
		server.Exhaust(t, pass, func() any {
			w.get("demo", w.hcp)
			return w.hcp.Status.Conditions
		})
	}
	against()
	if got := w.condition(hyperv1.HostedControlPlaneAvailable); got != "True/AsExpected" {
		t.Fatalf("Available is %s", got)
	}
	w.edit(func(hcp *hyperv1.HostedControlPlane) { hcp.Spec.ReleaseImage = "registry.example/release:1.36.4" })
	against()
}
