package kubeapiserver

import (
	"context"
	"errors"
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/reference"
)

const (
	// webhooksSecret holds the kubeconfigs that were found good. The API server reads these and not the user's, which may
	// change at any moment.
	webhooksSecret = "kas-webhooks"
	webhooksDir    = "/etc/kubernetes/webhooks"

	auditWebhook = "audit.kubeconfig"
	tokenWebhook = "token.kubeconfig"
)

// webhook is a kubeconfig of the user's by which the API server calls somebody.
type webhook struct {
	// file is its name in webhooksDir.
	file string
	// field names Secret and key.
	field, secret, key string
	// misplaced says why it cannot be where it is; nil if it can.
	misplaced error
	// decides tells that the answers let users in.
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

// acceptedWebhooks reads the kubeconfigs, by file, and says why others are not served.
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
			refusals = append(refusals, fmt.Errorf("%s: Secret %s, key %s: %w: the webhook is not called until that is mended", hook.field, hook.secret, hook.key, fault))
			continue
		}
		accepted[hook.file] = kubeconfig
	}
	return accepted, refusals, nil
}

// accept returns the kubeconfig as the API server gets it, with what was looked at and nothing else. Its errors repeat nothing of
// the content.
func (w webhook) accept(raw []byte) ([]byte, error) {
	if w.misplaced != nil {
		return nil, w.misplaced
	}
	config, err := clientcmd.Load(raw)
	if err != nil || len(config.Contexts) == 0 {
		return nil, errors.New("it holds no kubeconfig")
	}
	for _, user := range config.AuthInfos {
		if err := checkUser(user); err != nil {
			return nil, err
		}
	}
	for _, cluster := range config.Clusters {
		if err := w.checkCluster(cluster); err != nil {
			return nil, err
		}
	}
	used, err := clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err == nil {
		_, err = rest.TLSConfigFor(used)
	}
	if err != nil {
		return nil, errors.New("its current context has no server, or certificates that cannot be read")
	}
	return clientcmd.Write(*config)
}

// checkUser refuses what would run in the API server's pod, or hand out a file of it.
func checkUser(user *clientcmdapi.AuthInfo) error {
	switch {
	case user.Exec != nil:
		return errors.New("exec would run a program beside the API server: use token, or client-certificate-data and client-key-data")
	case user.AuthProvider != nil:
		return errors.New("auth-provider is gone from Kubernetes: use token, or client-certificate-data and client-key-data")
	case user.TokenFile != "":
		return errors.New("tokenFile would hand out a file of the API server: use token")
	case user.ClientCertificate != "" || user.ClientKey != "":
		return errors.New("client-certificate and client-key would read files of the API server: use client-certificate-data and client-key-data")
	}
	return nil
}

func (w webhook) checkCluster(cluster *clientcmdapi.Cluster) error {
	switch {
	case cluster.CertificateAuthority != "":
		return errors.New("certificate-authority would read a file of the API server: use certificate-authority-data")
	case w.decides && (cluster.InsecureSkipTLSVerify || !strings.HasPrefix(cluster.Server, "https://")):
		return errors.New("anybody on the way could say who is let in: use a server of https:// without insecure-skip-tls-verify")
	}
	return nil
}

func adaptWebhooks(ctx context.Context, scope *component.Scope, secret *corev1.Secret) error {
	accepted, _, err := acceptedWebhooks(ctx, scope.Client, scope.HCP)
	secret.Data = accepted
	return err
}
