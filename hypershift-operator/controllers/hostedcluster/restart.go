// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/naming"
)

// secondOperator is the label of a payload's control-plane-operator of the second generation, which restarts pods when
// their mounted certificates change. The images of 4.14 to 4.19 do not have it.
const secondOperator = "io.openshift.hypershift.control-plane-operator.v2-isdefault"

// restartWithCertificate restarts the pods of a control plane when the API server's serving certificate changes, if its
// operator does not do that. It only records the first certificate that it observes.
func (r *Reconciler) restartWithCertificate(ctx context.Context, s *scope) (ctrl.Result, error) {
	annotations := s.HC.Annotations
	if annotations[hyperv1.HasBeenAvailableAnnotation] != "true" ||
		annotations[hyperv1.DisablePKIReconciliationAnnotation] == "true" {
		return ctrl.Result{}, nil
	}
	able, err := r.abilities(s)(ctx, secondOperator)
	if err != nil || able {
		return ctrl.Result{}, err
	}
	secret := s.Secret(naming.KASServingCert)
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("reading the API server's serving certificate, Secret %s: %w",
			client.ObjectKeyFromObject(secret), err)
	}
	certificate := secret.Data[corev1.TLSCertKey]
	if len(certificate) == 0 {
		return ctrl.Result{}, nil
	}
	hash := naming.Hash(string(certificate))
	last := s.HCP.Annotations[hyperv1.KASServingCertHashAnnotation]
	if last == hash {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, s.PatchControlPlane(ctx, r.Client, func() {
		cluster.Annotate(s.HCP, hyperv1.KASServingCertHashAnnotation, hash)
		if last != "" {
			cluster.Annotate(s.HCP, hyperv1.RestartDateAnnotation, "CertHash:"+hash)
		}
	})
}
