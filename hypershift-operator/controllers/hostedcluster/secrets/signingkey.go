// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/reference"
	"github.com/openshift/hypershift/support/upsert"
)

// SigningKey copies the key that spec.serviceAccountSigningKey names.
type SigningKey struct{ Copier }

// Reconcile copies the key that signs the guest's service account tokens, and the public keys in the same
// Secret.
func (r SigningKey) Reconcile(ctx context.Context, s *cluster.Scope) (ctrl.Result, error) {
	name := reference.Name(s.HC.Spec.ServiceAccountSigningKey)
	if name == "" {
		return ctrl.Result{}, nil
	}
	source, err := r.Secret(ctx, s, name, hyperv1.ServiceAccountSigningKeySecretKey)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("spec.serviceAccountSigningKey: %w", err)
	}
	private := source.Data[hyperv1.ServiceAccountSigningKeySecretKey]
	public, err := publicKey(private)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("spec.serviceAccountSigningKey: Secret %s: %w", name, err)
	}
	public = append(public, source.Data[hyperv1.OldServiceAccountSigningKeySecretKey]...)
	target := s.Secret(naming.SAKey)
	_, err = upsert.Object(ctx, r.Client, target, func() error {
		s.Own(target)
		hosted.MarkOperatorObject(target)
		target.Type = corev1.SecretTypeOpaque
		target.Data = map[string][]byte{"service-account.key": private, "service-account.pub": public}
		return nil
	})
	return ctrl.Result{}, err
}

// publicKey derives the public half of a PEM private key.
func publicKey(private []byte) ([]byte, error) {
	block, _ := pem.Decode(private)
	if block == nil {
		return nil, errors.New("its key is not PEM")
	}
	var key any
	var err error
	if key, err = x509.ParsePKCS1PrivateKey(block.Bytes); err != nil {
		if key, err = x509.ParsePKCS8PrivateKey(block.Bytes); err != nil {
			return nil, errors.New("its key is neither a PKCS #1 nor a PKCS #8 private key")
		}
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("its key cannot sign")
	}
	der, err := x509.MarshalPKIXPublicKey(signer.Public())
	if err != nil {
		return nil, fmt.Errorf("encoding its public half: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}
