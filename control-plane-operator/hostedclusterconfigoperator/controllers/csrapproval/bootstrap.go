// SPDX-License-Identifier: Apache-2.0

package csrapproval

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/support/upsert"
)

// replacing is how long an upgrade may take to replace the pods of the ignition-server.
const replacing = time.Hour

const (
	tokenUserPrefix   = "system:bootstrap:"
	tokenSecretPrefix = "bootstrap-token-"
)

// bootstrapper returns the description of the requester's bootstrap credentials; nil if it has none.
func (r *Reconciler) bootstrapper(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) (*bootstrapper, error) {
	if secret := tokenOf(csr); secret != nil {
		if err := r.Live.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
			if client.IgnoreNotFound(err) != nil {
				return nil, fmt.Errorf("reading bootstrap token %s of the guest: %w", secret.Name, err)
			}
			return nil, nil // The token was already used and deleted.
		}
		return &bootstrapper{machine: secret.Annotations[hyperv1.BootstrapMachineAnnotation]}, nil
	}
	if csr.Spec.Username != pki.NodeBootstrapper {
		return nil, nil
	}
	until, err := r.sharedUntil(ctx)
	return &bootstrapper{until: until}, err
}

// sharedUntil returns the latest creation time of Machines that may have booted with the shared certificate. Once the
// RoleBinding allows the ignition-server to create tokens, it hands out tokens instead. The result adds the time that
// an upgrade needs to replace the server's pods.
func (r *Reconciler) sharedUntil(ctx context.Context) (time.Time, error) {
	right := &rbacv1.RoleBinding{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: pki.IgnitionUser}, right)
	if apierrors.IsNotFound(err) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("reading RoleBinding %s of the guest: %w", pki.IgnitionUser, err)
	}
	return right.CreationTimestamp.Add(replacing), nil
}

// tokenOf returns the Secret of the bootstrap token that authenticated a CertificateSigningRequest; nil for other
// requesters.
func tokenOf(csr *certificatesv1.CertificateSigningRequest) *corev1.Secret {
	id, isToken := strings.CutPrefix(csr.Spec.Username, tokenUserPrefix)
	if !isToken || !slices.Contains(csr.Spec.Groups, pki.BootstrapGroup) {
		return nil
	}
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = metav1.NamespaceSystem, tokenSecretPrefix+id
	return secret
}

// remember stores, before a first certificate is approved, the key of the machine and the machine that used the
// credentials. If two requests are processed concurrently, the write of one fails.
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
