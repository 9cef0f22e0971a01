// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// RequestByAnnotation returns the request for the HostedCluster that an object's annotation names, if it has one.
func RequestByAnnotation(obj client.Object) (reconcile.Request, bool) {
	namespace, name, ok := strings.Cut(obj.GetAnnotations()[hyperv1.HostedClusterAnnotation], "/")
	return reconcile.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}, ok
}

// RequestByLabels maps an object outside a hosted namespace to the HostedCluster that its labels name.
func RequestByLabels(_ context.Context, obj client.Object) []reconcile.Request {
	labels := obj.GetLabels()
	if labels[OwnerName] == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: labels[OwnerNamespace], Name: labels[OwnerName]}}}
}
