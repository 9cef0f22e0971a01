// SPDX-License-Identifier: Apache-2.0

package agent

import corev1 "k8s.io/api/core/v1"

// overlayAnnotation is the annotation by which Flannel announces the backend of a node.
const overlayAnnotation = "flannel.alpha.coreos.com/backend-type"

// inOverlay reports whether the overlay runs on a node.
func inOverlay(node *corev1.Node) bool {
	return node.Annotations[overlayAnnotation] != ""
}
