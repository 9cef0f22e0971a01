// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/reference"
	"github.com/openshift/hypershift/support/webhookkubeconfig"
)

// AuditWebhook copies the kubeconfig that spec.auditWebhook names.
type AuditWebhook struct{ Copier }

// Reconcile copies the kubeconfig of the audit webhook.
func (r AuditWebhook) Reconcile(ctx context.Context, s *cluster.Scope) (ctrl.Result, error) {
	name := reference.Name(s.HC.Spec.AuditWebhook)
	if name == "" {
		return ctrl.Result{}, nil
	}
	if err := r.checkWebhook(ctx, s, name, hyperv1.AuditWebhookKubeconfigKey, webhookkubeconfig.Webhook{}); err != nil {
		return ctrl.Result{}, fmt.Errorf("spec.auditWebhook: %w", err)
	}
	if err := r.copySecret(ctx, s, hosted.UseAuditWebhook, name, hyperv1.AuditWebhookKubeconfigKey); err != nil {
		return ctrl.Result{}, fmt.Errorf("spec.auditWebhook: %w", err)
	}
	return ctrl.Result{}, nil
}

// checkWebhook rejects a kubeconfig that would run a program in the API server's pod or expose its files. The
// control-plane-operator of an OpenShift payload does not check this, so no part of it may be copied into the hosted
// namespace.
func (r Copier) checkWebhook(ctx context.Context, s *cluster.Scope, name, key string,
	hook webhookkubeconfig.Webhook) error {
	source, err := r.Secret(ctx, s, name, key)
	if err != nil {
		return err
	}
	if _, err := hook.Accept(source.Data[key]); err != nil {
		return fmt.Errorf("the Secret %s/%s, key %s: %w", s.HC.Namespace, name, key, err)
	}
	return nil
}
