// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Keys of the Secret with the signing keys of service account tokens.
const (
	ServiceAccountPrivateKey = "service-account.key"
	ServiceAccountPublicKey  = "service-account.pub"

	nextServiceAccountKey    = "next-service-account.key"
	formerServiceAccountKeys = "former-service-account.pub"
)

// EnsureServiceAccountKey fills secret with the key pair that signs service account tokens, unless it holds one. It
// does not change an existing key, whatever its type and encoding: every token of the cluster depends on it. For the
// same reason an unreadable key is an error and is not replaced.
func EnsureServiceAccountKey(secret *corev1.Secret) error {
	key, err := parseSigner(secret.Data[ServiceAccountPrivateKey])
	switch {
	case len(secret.Data[ServiceAccountPrivateKey]) == 0:
		generated, err := rsa.GenerateKey(rand.Reader, rsaBits)
		if err != nil {
			return fmt.Errorf("generating the service account key: %w", err)
		}
		key = generated
		set(secret, ServiceAccountPrivateKey, pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(generated)}))
		// A public key of another private key must not survive.
		delete(secret.Data, ServiceAccountPublicKey)
	case err != nil:
		return fmt.Errorf("reading the key %s of Secret %s/%s: it cannot sign; restore it, or remove it to create a new key; "+
			"all tokens of the cluster must then be issued again", ServiceAccountPrivateKey, secret.Namespace, secret.Name)
	}
	setType(secret)
	// The public half may list old keys too, so an existing one is kept.
	if len(secret.Data[ServiceAccountPublicKey]) > 0 {
		return nil
	}
	return setPublicKey(secret, key.Public())
}

func setPublicKey(secret *corev1.Secret, key crypto.PublicKey) error {
	public, err := publicPEM(key)
	if err != nil {
		return err
	}
	set(secret, ServiceAccountPublicKey, public)
	return nil
}

func publicPEM(key crypto.PublicKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a public service account key: %w", err)
	}
	blockType := "PUBLIC KEY"
	if _, ok := key.(*rsa.PublicKey); ok {
		blockType = "RSA PUBLIC KEY"
	}
	return pem.EncodeToMemory(&pem.Block{Type: blockType, Bytes: der}), nil
}

func parseSigner(keyPEM []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(keyPEM)
	if block == nil {
		return nil, errors.New("no PEM block")
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	if key, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, errors.New("the private key cannot sign")
	}
	return key, nil
}

// EnsureServiceAccountKey is like the function of the same name, for keys that are rotated. A new key fulfills any
// rotation that was requested before it existed.
func (r Rotation) EnsureServiceAccountKey(secret *corev1.Secret) error {
	if len(secret.Data[ServiceAccountPrivateKey]) == 0 && r.Request != "" {
		annotate(secret, requestAnnotation, r.Request)
	}
	return EnsureServiceAccountKey(secret)
}

// AdvanceServiceAccountKey moves the rotation of the signing key of service account tokens one step forward if a step
// is due. The steps are the same as for an authority: tokens of the next key are accepted, then it signs, then tokens
// of the previous key are refused.
func (r Rotation) AdvanceServiceAccountKey(secret *corev1.Secret, taken bool, now time.Time) error {
	switch StageOf(secret) {
	case Settled:
		if r.requested(secret) {
			return r.announceKey(secret)
		}
	case Trusting:
		if taken {
			return promoteKey(secret)
		}
	case Signing:
		if taken {
			annotate(secret, formerSinceAnnotation, now.UTC().Format(time.RFC3339))
		}
	case Overlapping:
		if r.overlapped(secret, now) {
			return forgetKeys(secret)
		}
	}
	return nil
}

func (r Rotation) announceKey(secret *corev1.Secret) error {
	next, err := rsa.GenerateKey(rand.Reader, rsaBits)
	if err != nil {
		return fmt.Errorf("generating the next service account key: %w", err)
	}
	public, err := publicPEM(next.Public())
	if err != nil {
		return err
	}
	annotate(secret, requestAnnotation, r.Request)
	set(secret, nextServiceAccountKey, pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(next)}))
	set(secret, ServiceAccountPublicKey, Bundle(secret.Data[ServiceAccountPublicKey], public))
	return nil
}

func promoteKey(secret *corev1.Secret) error {
	next := secret.Data[nextServiceAccountKey]
	public, err := publicOf(next)
	if err != nil {
		return err
	}
	former := bytes.ReplaceAll(secret.Data[ServiceAccountPublicKey], public, nil)
	set(secret, formerServiceAccountKeys, former)
	set(secret, ServiceAccountPrivateKey, next)
	set(secret, ServiceAccountPublicKey, Bundle(public, former))
	delete(secret.Data, nextServiceAccountKey)
	return nil
}

func forgetKeys(secret *corev1.Secret) error {
	public, err := publicOf(secret.Data[ServiceAccountPrivateKey])
	if err != nil {
		return err
	}
	set(secret, ServiceAccountPublicKey, public)
	delete(secret.Data, formerServiceAccountKeys)
	delete(secret.Annotations, formerSinceAnnotation)
	return nil
}

func publicOf(private []byte) ([]byte, error) {
	key, err := parseSigner(private)
	if err != nil {
		return nil, fmt.Errorf("reading a service account key: %w", err)
	}
	return publicPEM(key.Public())
}
