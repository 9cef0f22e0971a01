// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonsv1beta1 "sigs.k8s.io/cluster-api/api/addons/v1beta1"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1beta1 "sigs.k8s.io/cluster-api/api/ipam/v1beta1"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	runtimev1alpha1 "sigs.k8s.io/cluster-api/api/runtime/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"
)

// newConverter returns a handler that converts objects of Cluster API to the version that the API server requests. It
// uses Cluster API's own conversion functions.
//
// References to other kinds have a version in v1beta1 and none in v1beta2. The converter sets the version that the
// management cluster prefers.
func newConverter(mapper meta.RESTMapper) (http.Handler, error) {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(
		clusterv1.AddToScheme, clusterv1beta1.AddToScheme, addonsv1.AddToScheme, addonsv1beta1.AddToScheme,
		ipamv1.AddToScheme, ipamv1beta1.AddToScheme, runtimev1.AddToScheme, runtimev1alpha1.AddToScheme,
	)
	if err := builder.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering Cluster API's kinds for their conversion: %w", err)
	}
	clusterv1beta1.SetAPIVersionGetter(func(kind schema.GroupKind) (string, error) {
		mapping, err := mapper.RESTMapping(kind)
		if err != nil {
			return "", fmt.Errorf("finding the version of %s for a reference of version v1beta1: %w", kind, err)
		}
		return mapping.GroupVersionKind.GroupVersion().String(), nil
	})
	return conversion.NewWebhookHandler(scheme, conversion.NewRegistry()), nil
}
