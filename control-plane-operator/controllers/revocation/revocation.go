// SPDX-License-Identifier: Apache-2.0

// Package revocation answers CertificateRevocationRequests. A control plane of a Kubernetes release has no signers of break-glass
// certificates, so there is nothing to revoke, and whoever asks must not believe that it was done.
package revocation

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	certificatesv1alpha1 "github.com/openshift/hypershift/api/certificates/v1alpha1"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/upsert"
)

// reasonNoSuchSigner is one of SignerClassValid.
const reasonNoSuchSigner = "SignerNotSupported"

// Reconciler says of every request in the hosted namespace that nothing is revoked.
type Reconciler struct {
	// Client reads (cached) and writes the management cluster.
	Client client.Client
}

// SetupWithManager watches the requests. Their CRD must be there.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&certificatesv1alpha1.CertificateRevocationRequest{}).Complete(r)
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	type request = *certificatesv1alpha1.CertificateRevocationRequest
	return phase.Driver[request, request]{Client: r.Client, Observe: phase.Itself[request], Report: r.answer}.Reconcile(ctx, req)
}

func (r *Reconciler) answer(ctx context.Context, request *certificatesv1alpha1.CertificateRevocationRequest, _ error) error {
	invalid := condition.False(certificatesv1alpha1.SignerClassValidType, reasonNoSuchSigner, fmt.Sprintf(
		"Nothing is revoked: a control plane of a Kubernetes release has no signer %q of break-glass certificates, so none was issued; delete this request",
		request.Spec.SignerClass))
	return client.IgnoreNotFound(upsert.Status(ctx, r.Client, request, func() {
		request.Status.Conditions = condition.Merge(request.Status.Conditions, request.Generation, invalid)
	}))
}
