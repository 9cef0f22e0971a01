// SPDX-License-Identifier: Apache-2.0

// Package tokenminter keeps a token of a guest service account in a file, for another container that presents the token
// to a cloud provider.
package tokenminter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/kubeconfig"
	"github.com/openshift/hypershift/support/logging"
)

const (
	requestTimeout = 10 * time.Second
	// kubeconfigKey is the key in kubeconfig Secrets.
	kubeconfigKey = "kubeconfig"
	// lifetime is the requested lifetime; the API server may grant less or more.
	lifetime = time.Hour
	// retry is the interval at which a failed token request is repeated: the guest's API may not serve yet.
	retry = 5 * time.Second
)

type options struct {
	namespace, name, audience string
	file, kubeconfig          string
	secretNamespace           string
	secretName                string
	oneshot                   bool
	log                       logging.Options
}

// NewCommand returns the subcommand, with the flags of the token-minter of release payloads.
func NewCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "token-minter",
		Short: "Keeps a token of a service account of the guest in a file",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(o.validate(), o.log.Install()); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.namespace, "service-account-namespace", "kube-system", "Namespace of the service account")
	flags.StringVar(&o.name, "service-account-name", "", "Name of the service account; it is created if it does not exist (required)")
	flags.StringVar(&o.audience, "token-audience", "openshift", "Audience of the token")
	flags.StringVar(&o.file, "token-file", "/var/run/secrets/openshift/serviceaccount/token", "File to keep the token in")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "/etc/kubernetes/kubeconfig", "Kubeconfig of the guest")
	flags.StringVar(&o.secretName, "kubeconfig-secret-name", "", "Secret that has the kubeconfig of the guest under the key kubeconfig, instead of --kubeconfig")
	flags.StringVar(&o.secretNamespace, "kubeconfig-secret-namespace", "", "Namespace of that Secret, in the cluster that the pod runs in")
	flags.BoolVar(&o.oneshot, "oneshot", false, "End when there is a token")
	o.log.AddFlags(flags)
	return cmd
}

func (o *options) validate() error {
	for _, flag := range []struct{ name, value string }{
		{"service-account-namespace", o.namespace}, {"service-account-name", o.name}, {"token-file", o.file},
	} {
		if flag.value == "" {
			return fmt.Errorf("--%s is missing", flag.name)
		}
	}
	if (o.secretName == "") != (o.secretNamespace == "") {
		return errors.New("--kubeconfig-secret-name and --kubeconfig-secret-namespace go together: set both, or neither")
	}
	return nil
}

// run mints tokens until the context ends: it replaces a token after four fifths of its lifetime.
func (o *options) run(ctx context.Context) error {
	log := ctrl.Log.WithName("token-minter").WithValues("serviceAccount", o.namespace+"/"+o.name)
	for {
		next := retry
		expires, err := o.mint(ctx)
		if err != nil {
			log.Error(err, "No token yet")
		} else {
			if o.oneshot {
				return nil
			}
			next = max(time.Until(expires)*4/5, retry)
			log.Info("Minted a token", "expires", expires)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(next):
		}
	}
}

// guestConfig reads the kubeconfig. It is called for each token, since the kubeconfig's certificate is renewed in
// place. A kubeconfig in a Secret is not mounted: the Secret may be created later, and a volume would keep the pod
// from starting until then.
func (o *options) guestConfig(ctx context.Context) (*rest.Config, error) {
	if o.secretName == "" {
		access, err := kubeconfig.ReadFile(o.kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("--kubeconfig: %w", err)
		}
		return access.Config(kubeconfig.Options{Timeout: requestTimeout})
	}
	own, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster that the pod runs in: %w", err)
	}
	c, err := client.New(own, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster that the pod runs in: %w", err)
	}
	secret, key := &corev1.Secret{}, client.ObjectKey{Namespace: o.secretNamespace, Name: o.secretName}
	if err := c.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	config, err := kubeconfig.Load(secret.Data[kubeconfigKey], kubeconfig.Options{Timeout: requestTimeout})
	if err != nil {
		return nil, fmt.Errorf("kubeconfig under key %[2]s of Secret %[1]s: %[3]w", key, kubeconfigKey, err)
	}
	return config, nil
}

// mint writes a new token and returns its expiry time.
func (o *options) mint(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	config, err := o.guestConfig(ctx)
	if err != nil {
		return time.Time{}, err
	}
	guest, err := client.New(config, client.Options{})
	if err != nil {
		return time.Time{}, fmt.Errorf("connecting to the guest: %w", err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: o.name}}
	if err := guest.Create(ctx, account); err != nil && !apierrors.IsAlreadyExists(err) {
		return time.Time{}, fmt.Errorf("making the service account %s/%s of the guest: %w", o.namespace, o.name, err)
	}
	seconds := int64(lifetime / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{o.audience}, ExpirationSeconds: &seconds}}
	if err := guest.SubResource("token").Create(ctx, account, request); err != nil {
		return time.Time{}, fmt.Errorf("asking for a token of service account %s/%s of the guest: %w", o.namespace, o.name, err)
	}
	return request.Status.ExpirationTimestamp.Time, write(o.file, request.Status.Token)
}

// write replaces the file atomically, so that readers never see a partial token.
func write(file, token string) error {
	next, err := os.CreateTemp(filepath.Dir(file), ".token-")
	if err != nil {
		return fmt.Errorf("making the token file: %w", err)
	}
	_, err = next.WriteString(token)
	// The reader is another container, which may run as another user in the pod's group.
	err = errors.Join(err, next.Chmod(0o640), next.Close())
	if err == nil {
		err = os.Rename(next.Name(), file)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing the token file %s: %w", file, err), os.Remove(next.Name()))
	}
	return nil
}
