// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/x509"
	"encoding/pem"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// FirstToExpire returns the earliest expiry of the certificates in a Secret that are still needed; zero if there are
// none. A leaf's signer is not counted: its own Secret covers it. A previous authority is not counted either: it is
// only trusted, and is dropped when it expires. The chain from a previous authority counts, because machines that were
// installed before know only that authority.
func FirstToExpire(secret *corev1.Secret) time.Time {
	var first time.Time
	for _, cert := range certificatesOf(secret) {
		if first.IsZero() || cert.NotAfter.Before(first) {
			first = cert.NotAfter
		}
	}
	return first
}

// Overdue is like FirstToExpire, but considers only certificates whose renewal is overdue. Such certificates have less
// than DefaultRenewBefore left, or less than a quarter of a short lifetime. The threshold is up to an hour later than
// that, to leave time for the renewal.
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

// certificatesIn returns the certificates of a file: all of them if each is set, else only the first, which is the
// leaf.
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
