// SPDX-License-Identifier: Apache-2.0

package token

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/pace"
)

// Janitor deletes token and user-data Secrets whose pool is gone. The NodePool reconciler maintains those of existing
// pools, because a machine may be installing with them.
type Janitor struct {
	Client client.Client
}

// SetupWithManager registers the controller.
func (j *Janitor) SetupWithManager(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("nodepool-secret-janitor").
		WithOptions(pace.Options()).
		For(&corev1.Secret{}, builder.OnlyMetadata, builder.WithPredicates(predicate.NewPredicateFuncs(ofPool))).
		Complete(pace.ByNamespace(j))
	if err != nil {
		return fmt.Errorf("setting up the janitor of NodePool Secrets: %w", err)
	}
	return nil
}

// ofPool reports whether obj is a token or user-data Secret of a pool.
func ofPool(obj client.Object) bool {
	named := strings.HasPrefix(obj.GetName(), scope.TokenPrefix+"-") || strings.HasPrefix(obj.GetName(), scope.UserDataPrefix+"-")
	return named && obj.GetAnnotations()[hyperv1.NodePoolAnnotation] != ""
}

// Reconcile deletes one Secret if its pool is gone.
func (j *Janitor) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	secret := &corev1.Secret{}
	if err := j.Client.Get(ctx, req.NamespacedName, secret); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !ofPool(secret) || !secret.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	namespace, name, _ := strings.Cut(secret.Annotations[hyperv1.NodePoolAnnotation], "/")
	pool := &hyperv1.NodePool{}
	err := j.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, pool)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("reading NodePool %s/%s: %w", namespace, name, err)
	}
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(j.Client.Delete(ctx, secret))
	}
	return ctrl.Result{}, nil
}
