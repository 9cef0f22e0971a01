// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/support/upsert"
)

// CLI owns the Secrets that the CLI created for the cluster.
type CLI struct{ Client client.Client }

// Reconcile sets the owner of Secrets that the CLI created for this cluster, so that they are deleted with it.
func (r CLI) Reconcile(ctx context.Context, s *cluster.Scope) (ctrl.Result, error) {
	secrets := &corev1.SecretList{}
	err := r.Client.List(ctx, secrets, client.InNamespace(s.HC.Namespace),
		client.MatchingLabels{
			hyperv1.SafeToDeleteWithClusterLabel: "true", hyperv1.AutoCreatedForInfraLabel: s.HC.Spec.InfraID,
		})
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("listing Secrets that were made for the cluster: %w", err)
	}
	var failures []error
	for i := range secrets.Items {
		secret := &secrets.Items[i]
		var ownErr error
		err := upsert.Patch(ctx, r.Client, secret, func() {
			ownErr = controllerutil.SetOwnerReference(s.HC, secret, r.Client.Scheme())
		})
		failures = append(failures, ownErr, err)
	}
	return ctrl.Result{}, errors.Join(failures...)
}
