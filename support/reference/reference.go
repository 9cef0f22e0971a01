// SPDX-License-Identifier: Apache-2.0

// Package reference reads the optional references of a spec.
package reference

import corev1 "k8s.io/api/core/v1"

// Name returns the name in an optional reference; empty for none. The API accepts a reference with an empty name, which
// means none.
func Name(ref *corev1.LocalObjectReference) string {
	if ref == nil {
		return ""
	}
	return ref.Name
}

// Named returns an optional reference, or nil if its name is empty.
func Named(ref *corev1.LocalObjectReference) *corev1.LocalObjectReference {
	if Name(ref) == "" {
		return nil
	}
	return ref
}
