// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/x509"
	"encoding/pem"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// FirstToExpire is when the first of the certificates in a Secret ends that somebody needs; zero for none. That of a leaf's signer is in
// the signer's Secret. A former authority is only trusted, and goes when it expires; the chain from one counts, as it is all that is
// known to machines which were installed before.
func FirstToExpire(secret *corev1.Secret) time.Time {
	var first time.Time
	for _, cert := range certificatesOf(secret) {
		if first.IsZero() || cert.NotAfter.Before(first) {
			first = cert.NotAfter
		}
	}
	return first
}

// Overdue is FirstToExpire of those certificates alone that have less than DefaultRenewBefore to live, or than a quarter of a life that
// is short: what renews itself was renewed before. The last hour of that is left for the renewal.
func Overdue(secret *corev1.Secret, now time.Time) time.Time {
	var first time.Time
	for _, cert := range certificatesOf(secret) {
		margin := min(DefaultRenewBefore, cert.NotAfter.Sub(cert.NotBefore)/4)
		margin -= min(time.Hour, margin/10)
		if cert.NotAfter.Sub(now) < margin && (first.IsZero() || cert.NotAfter.Before(first)) {
			first = cert.NotAfter
		}
	}
	return first
}

func certificatesOf(secret *corev1.Secret) []*x509.Certificate {
	var all []*x509.Certificate
	for key, data := range secret.Data {
		if !strings.HasSuffix(key, ".crt") || key == formerCertKey || key == CACertKey && len(secret.Data[CAKeyKey]) == 0 {
			continue
		}
		all = append(all, certificatesIn(data, key == chainKey)...)
	}
	return all
}

// certificatesIn are the certificates of a file: each, or the first, which is the leaf.
func certificatesIn(data []byte, each bool) []*x509.Certificate {
	var all []*x509.Certificate
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
			all = append(all, cert)
		}
		if !each {
			break
		}
	}
	return all
}
