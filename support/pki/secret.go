// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Keys of the Secrets and ConfigMaps that hold certificates.
const (
	CACertKey = "ca.crt"
	CAKeyKey  = "ca.key"

	// SignerHashAnnotation identifies the signer of a leaf certificate in a Secret.
	SignerHashAnnotation = "hypershiftlite.openshift.io/ca-hash"
)

// Keys names the keys of a Secret that hold a leaf certificate.
type Keys struct {
	// Cert and Key name the certificate and its private key.
	Cert, Key string
	// CA names the signer's certificate; empty leaves it out.
	CA string
}

// TLSKeys is the layout of most leaf Secrets.
var TLSKeys = Keys{Cert: corev1.TLSCertKey, Key: corev1.TLSPrivateKeyKey, CA: CACertKey}

// EnsureCA fills secret with a certificate authority unless it holds one. It keeps an existing authority, whatever its
// subject, because certificates of that authority are in use. For the same reason an unreadable authority is an error
// and is not replaced: only an administrator can restore it, or decide that it is no longer needed.
func EnsureCA(secret *corev1.Secret, name Name, now time.Time) (*KeyPair, error) {
	ca, err := CAOf(secret)
	if len(secret.Data[CACertKey]) == 0 && len(secret.Data[CAKeyKey]) == 0 {
		ca, err = NewCA(name, now)
	} else if err != nil {
		err = fmt.Errorf("%w; restore it, or empty the Secret to create a new CA; all clients must then trust the new CA", err)
	}
	if err != nil {
		return nil, err
	}
	setCA(secret, ca)
	return ca, nil
}

func setCA(secret *corev1.Secret, ca *KeyPair) {
	setType(secret)
	set(secret, CACertKey, ca.CertPEM)
	set(secret, CAKeyKey, ca.KeyPEM)
	set(secret, corev1.TLSCertKey, ca.CertPEM)
	set(secret, corev1.TLSPrivateKeyKey, ca.KeyPEM)
}

// CAOf returns the certificate authority in secret.
func CAOf(secret *corev1.Secret) (*KeyPair, error) {
	ca, err := Parse(secret.Data[CACertKey], secret.Data[CAKeyKey])
	if err != nil {
		return nil, fmt.Errorf("reading the CA in Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	ca.Chain, ca.Others = secret.Data[chainKey], Bundle(secret.Data[nextCertKey], secret.Data[formerCertKey])
	return ca, nil
}

// EnsureLeaf fills secret with a certificate that ca signs, unless it holds one that still matches. It returns the
// certificate in use.
func EnsureLeaf(secret *corev1.Secret, keys Keys, ca *KeyPair, leaf Leaf, lifetime Lifetime, now time.Time) (*KeyPair, error) {
	pair, err := Parse(secret.Data[keys.Cert], secret.Data[keys.Key])
	if err != nil || secret.Annotations[SignerHashAnnotation] != ca.Hash() || ca.Mismatch(pair, leaf, lifetime, now) != "" {
		if pair, err = ca.Issue(leaf, lifetime, now); err != nil {
			return nil, err
		}
	}
	setType(secret)
	annotate(secret, SignerHashAnnotation, ca.Hash())
	pair = ca.sent(pair)
	set(secret, keys.Cert, pair.CertPEM)
	set(secret, keys.Key, pair.KeyPEM)
	if keys.CA != "" {
		set(secret, keys.CA, ca.Trust())
	}
	return pair, nil
}

// setType sets the type of a new Secret. The type of an existing Secret is immutable.
func setType(secret *corev1.Secret) {
	if secret.Type == "" {
		secret.Type = corev1.SecretTypeOpaque
	}
}

func annotate(secret *corev1.Secret, key, value string) {
	if secret.Annotations == nil {
		secret.Annotations = map[string]string{}
	}
	secret.Annotations[key] = value
}

func set(secret *corev1.Secret, key string, value []byte) {
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[key] = value
}
