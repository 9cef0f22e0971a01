// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"context"
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/reference"
	"github.com/openshift/hypershift/support/webhookkubeconfig"
)

const (
	// webhooksSecret holds the kubeconfigs that passed validation. The API server reads these copies: the user may change
	// the original Secrets at any time.
	webhooksSecret = "kas-webhooks"
	webhooksDir    = "/etc/kubernetes/webhooks"

	auditWebhook = "audit.kubeconfig"
	tokenWebhook = "token.kubeconfig"
)

// webhook is a kubeconfig of the user with which the API server calls a webhook.
type webhook struct {
	// file is its file name in webhooksDir.
	file string
	// field is the field of the spec that refers to it; secret and key locate the kubeconfig.
	field, secret, key string
	// misplaced is why it cannot be used in that field; nil if it can.
	misplaced error
	// decides reports that the webhook's answers grant access to users.
	decides bool
}

func webhooks(hcp *hyperv1.HostedControlPlane) []webhook {
	var all []webhook
	if name := reference.Name(hcp.Spec.AuditWebhook); name != "" {
		all = append(all, webhook{file: auditWebhook, field: "auditWebhook", secret: name, key: hyperv1.AuditWebhookKubeconfigKey})
	}
	authentication := authenticationOf(hcp)
	if asked := authentication.WebhookTokenAuthenticator; asked != nil {
		hook := webhook{
			file: tokenWebhook, field: "configuration.authentication.webhookTokenAuthenticator.kubeConfig",
			secret: asked.KubeConfig.Name, key: configv1.KubeConfigKey, decides: true,
		}
		if authentication.Type != configv1.AuthenticationTypeNone {
			hook.misplaced = errors.New("it needs configuration.authentication.type None")
		}
		all = append(all, hook)
	}
	return all
}

func hasWebhooks(scope *component.Scope) bool { return len(webhooks(scope.HCP)) > 0 }

// acceptedWebhooks returns the accepted kubeconfigs by file name, and an error for each rejected kubeconfig.
func acceptedWebhooks(ctx context.Context, c client.Reader, hcp *hyperv1.HostedControlPlane) (map[string][]byte, []error, error) {
	accepted := map[string][]byte{}
	var refusals []error
	for _, hook := range webhooks(hcp) {
		secret := &corev1.Secret{}
		err := c.Get(ctx, client.ObjectKey{Namespace: hcp.Namespace, Name: hook.secret}, secret)
		if client.IgnoreNotFound(err) != nil {
			return nil, nil, fmt.Errorf("%s: reading Secret %s: %w", hook.field, hook.secret, err)
		}
		kubeconfig, fault := hook.accept(secret.Data[hook.key])
		if fault != nil {
			refusals = append(refusals, fmt.Errorf("%s: Secret %s, key %s: %w: the webhook is not called until this is fixed", hook.field, hook.secret, hook.key, fault))
			continue
		}
		accepted[hook.file] = kubeconfig
	}
	return accepted, refusals, nil
}

func (w webhook) accept(raw []byte) ([]byte, error) {
	if w.misplaced != nil {
		return nil, w.misplaced
	}
	return webhookkubeconfig.Webhook{Decides: w.decides}.Accept(raw)
}

func adaptWebhooks(ctx context.Context, scope *component.Scope, secret *corev1.Secret) error {
	accepted, _, err := acceptedWebhooks(ctx, scope.Client, scope.HCP)
	secret.Data = accepted
	return err
}
