// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var routeKind = schema.GroupVersionKind{Group: "route.openshift.io", Version: "v1", Kind: "Route"}

// routeHost reads the host of a Route; empty while there is none, or where the management cluster has no Routes. It reads
// past the cache, which would otherwise have to watch a kind that few management clusters have.
func (r *Reconciler) routeHost(ctx context.Context, namespace, name string) (string, error) {
	route := &unstructured.Unstructured{}
	route.SetGroupVersionKind(routeKind)
	key := client.ObjectKey{Namespace: namespace, Name: name}
	err := r.LiveReader.Get(ctx, key, route)
	if meta.IsNoMatchError(err) || client.IgnoreNotFound(err) == nil {
		host, _, _ := unstructured.NestedString(route.Object, "spec", "host")
		return host, nil
	}
	return "", fmt.Errorf("reading Route %s: %w", key, err)
}
