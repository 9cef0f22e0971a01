// SPDX-License-Identifier: Apache-2.0

// Package reference reads what a spec refers to.
package reference

import corev1 "k8s.io/api/core/v1"

// Name is what an optional reference names; empty for none. The API takes a reference with an empty name, which is none.
func Name(ref *corev1.LocalObjectReference) string {
	if ref == nil {
		return ""
	}
	return ref.Name
}

// Named is an optional reference to hand on; nil when it names nothing.
func Named(ref *corev1.LocalObjectReference) *corev1.LocalObjectReference {
	if Name(ref) == "" {
		return nil
	}
	return ref
}
