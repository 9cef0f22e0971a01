package csrapproval

import (
	"context"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/support/upsert"
)

const (
	tokenUserPrefix   = "system:bootstrap:"
	tokenSecretPrefix = "bootstrap-token-"
)

// bootstrapper finds out whom the requester's bootstrap credentials were made for; nil when it has none.
func (r *Reconciler) bootstrapper(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) (*bootstrapper, error) {
	if secret := tokenOf(csr); secret != nil {
		if err := r.Live.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
			if client.IgnoreNotFound(err) != nil {
				return nil, fmt.Errorf("reading bootstrap token %s of the guest: %w", secret.Name, err)
			}
			return nil, nil // It was used up.
		}
		return &bootstrapper{machine: secret.Annotations[hyperv1.BootstrapMachineAnnotation]}, nil
	}
	if csr.Spec.Username != pki.NodeBootstrapper {
		return nil, nil
	}
	return &bootstrapper{}, nil // All machines of the cluster boot with these.
}

// tokenOf is where the bootstrap token is that a request was made with; nil for other requesters.
func tokenOf(csr *certificatesv1.CertificateSigningRequest) *corev1.Secret {
	id, isToken := strings.CutPrefix(csr.Spec.Username, tokenUserPrefix)
	if !isToken || !slices.Contains(csr.Spec.Groups, pki.BootstrapGroup) {
		return nil
	}
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = "kube-system", tokenSecretPrefix+id
	return secret
}

// remember writes down, before a first certificate is approved, for which key the machine gets it and which machine used the
// credentials. Of two requests that are looked at together, one loses.
func (r *Reconciler) remember(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, first *claim) error {
	machine := first.machine.DeepCopy()
	if machine.Annotations == nil {
		machine.Annotations = map[string]string{}
	}
	machine.Annotations[hyperv1.NodeIdentityAnnotation] = first.identity()
	locked := client.MergeFromWithOptions(first.machine, client.MergeFromWithOptimisticLock{})
	if first.machine.Annotations[hyperv1.NodeIdentityAnnotation] != first.identity() {
		if err := r.Management.Patch(ctx, machine, locked); err != nil {
			return fmt.Errorf("writing down the key of Machine %s: %w", machine.Name, err)
		}
	}
	secret := tokenOf(csr)
	if secret == nil {
		return nil
	}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
		return fmt.Errorf("reading bootstrap token %s of the guest: %w", secret.Name, err)
	}
	return upsert.Patch(ctx, r.Live, secret, func() {
		if secret.Annotations == nil {
			secret.Annotations = map[string]string{}
		}
		secret.Annotations[hyperv1.BootstrapMachineAnnotation] = machine.Name
	})
}

// useUp deletes the bootstrap tokens of a machine whose node has its certificate.
func (r *Reconciler) useUp(ctx context.Context, machine string) error {
	secrets := &corev1.SecretList{}
	err := r.Live.List(ctx, secrets, client.InNamespace("kube-system"), client.MatchingFields{"type": string(corev1.SecretTypeBootstrapToken)})
	if err != nil {
		return fmt.Errorf("listing bootstrap tokens of the guest: %w", err)
	}
	for i := range secrets.Items {
		if secrets.Items[i].Annotations[hyperv1.BootstrapMachineAnnotation] != machine {
			continue
		}
		if _, err := upsert.Gone(ctx, r.Live, &secrets.Items[i]); err != nil {
			return err
		}
	}
	return nil
}
