// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/support/reference"
	"github.com/openshift/hypershift/support/upsert"
)

// TrustBundle copies what spec.additionalTrustBundle names, and sets Inputs.TrustBundle.
type TrustBundle struct{ Copier }

// Reconcile copies the CAs that the cluster trusts in addition to those of the system.
func (r TrustBundle) Reconcile(ctx context.Context, s *cluster.Scope) (ctrl.Result, error) {
	target := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: naming.TrustBundle}}
	name := reference.Name(s.HC.Spec.AdditionalTrustBundle)
	if name == "" {
		return ctrl.Result{}, r.dropTrustBundle(ctx, s, target)
	}
	source, err := r.ConfigMap(ctx, s, name, naming.TrustBundleKey)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("spec.additionalTrustBundle: %w", err)
	}
	r.Inputs.TrustBundle = []byte(source.Data[naming.TrustBundleKey])
	_, err = upsert.Object(ctx, r.Client, target, func() error {
		target.Data = map[string]string{naming.TrustBundleKey: source.Data[naming.TrustBundleKey]}
		return s.Claim(target)
	})
	return ctrl.Result{}, err
}

// dropTrustBundle deletes the copy of a trust bundle that the spec no longer names. An operator of version 0.1.0 copied
// a ConfigMap of the same name there for spec.configuration. Like all copies of that version, it stays until nothing
// uses it.
func (r TrustBundle) dropTrustBundle(ctx context.Context, s *cluster.Scope, target *corev1.ConfigMap) error {
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(target), target)
	if apierrors.IsNotFound(err) || err == nil && target.Labels[hyperv1.OperatorObjectLabel] == "" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading ConfigMap %s: %w", client.ObjectKeyFromObject(target), err)
	}
	return s.Drop(ctx, r.Client, target)
}
