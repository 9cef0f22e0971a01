// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	// revokeAnnotation on the Secret of an authority requests its revocation. Each revocation has a different value.
	revokeAnnotation = "hypershift.openshift.io/revoke-for"
	// revokedAnnotation is the value of the last completed revocation.
	revokedAnnotation = "hypershift.openshift.io/revoked-for"
)

// Revoke requests the replacement of the authority in secret. The old authority is trusted only until all components
// have migrated to its successor. mark identifies the revocation.
func Revoke(secret *corev1.Secret, mark string) { annotate(secret, revokeAnnotation, mark) }

// Revoked reports whether the revocation identified by mark is complete: no bundle contains the revoked authority.
func Revoked(secret *corev1.Secret, mark string) bool {
	return secret.Annotations[revokedAnnotation] == mark
}

// Revoking reports whether a revocation is in progress. Certificates that the authority signs in this time may soon
// become invalid.
func Revoking(secret *corev1.Secret) bool {
	return secret.Annotations[revokeAnnotation] != secret.Annotations[revokedAnnotation]
}

// heeding returns the rotation with the revocation that the Secret requests.
func (r Rotation) heeding(secret *corev1.Secret) Rotation {
	mark := secret.Annotations[revokeAnnotation]
	if mark == "" {
		return r
	}
	r.Request = strings.TrimSpace(r.Request + " revoke=" + mark)
	if Revoking(secret) {
		r.Overlap, r.KeepChain = 0, false
	}
	return r
}

// revoked records that the requested revocation is complete.
func revoked(secret *corev1.Secret) {
	if Revoking(secret) {
		annotate(secret, revokedAnnotation, secret.Annotations[revokeAnnotation])
	}
}
