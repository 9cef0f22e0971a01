// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	// revokeAnnotation of the Secret of an authority asks for its revocation by its value, which is another for each.
	revokeAnnotation = "hypershift.openshift.io/revoke-for"
	// revokedAnnotation is the value that was last done.
	revokedAnnotation = "hypershift.openshift.io/revoked-for"
)

// Revoke asks that the authority in secret gives way to another, and is trusted no longer than it takes everybody to go over to that. mark
// tells one revocation from others.
func Revoke(secret *corev1.Secret, mark string) { annotate(secret, revokeAnnotation, mark) }

// Revoked tells whether the revocation of that mark is done: what the authority signed before is in no bundle any more.
func Revoked(secret *corev1.Secret, mark string) bool {
	return secret.Annotations[revokedAnnotation] == mark
}

// Revoking tells whether a revocation goes on. What the authority signs meanwhile may be worth nothing in a moment.
func Revoking(secret *corev1.Secret) bool {
	return secret.Annotations[revokeAnnotation] != secret.Annotations[revokedAnnotation]
}

// heeding is the rotation with the revocation that is asked for on the Secret.
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

// revoked notes that the revocation that was asked for is done.
func revoked(secret *corev1.Secret) {
	if Revoking(secret) {
		annotate(secret, revokedAnnotation, secret.Annotations[revokeAnnotation])
	}
}
