// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/nodeaddress"
	"github.com/openshift/hypershift/support/platforms"
)

// defaults sets absent fields of an object in a namespace from other objects of the cluster. Existing values stay, even
// if they have the wrong type: the API server validates them next, and returns a better error message. An error means
// that an object could not be read; fields that were set before it remain set.
type defaults func(ctx context.Context, cluster client.Reader, namespace string, obj map[string]any) error

// nodePoolDefaults takes the release and the platform from the pool's HostedCluster, and the upgrade type from the
// platform. Without a HostedCluster it sets nothing and returns no error.
func nodePoolDefaults(ctx context.Context, cluster client.Reader, namespace string, pool map[string]any) error {
	hc, err := hostedClusterOf(ctx, cluster, namespace, pool)
	if hc != nil {
		fill(pool, hc.Spec.Release.Image, "spec", "release", "image")
		fill(pool, string(hc.Spec.Platform.Type), "spec", "platform", "type")
	}
	platform, _, _ := unstructured.NestedString(pool, "spec", "platform", "type")
	if traits, known := platforms.Of(hyperv1.PlatformType(platform)); known {
		fill(pool, string(traits.DefaultUpgradeType), "spec", "management", "upgradeType")
	}
	return err
}

func hostedClusterOf(ctx context.Context, cluster client.Reader, namespace string, pool map[string]any) (*hyperv1.HostedCluster, error) {
	name, _, _ := unstructured.NestedString(pool, "spec", "clusterName")
	if name == "" {
		return nil, nil
	}
	hc := &hyperv1.HostedCluster{}
	err := cluster.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, hc)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading HostedCluster %s/%s for its release and platform: %w", namespace, name, err)
	}
	return hc, nil
}

// hostedClusterDefaults sets the address of services that are published by NodePort, as `create cluster` does. It is
// the management cluster's virtual IP, or the address of its first Ready node.
func hostedClusterDefaults(ctx context.Context, cluster client.Reader, _ string, hc map[string]any) error {
	services, _, _ := unstructured.NestedFieldNoCopy(hc, "spec", "services")
	list, _ := services.([]any)
	var lacking []map[string]any
	for _, service := range list {
		if service, ok := service.(map[string]any); ok && lacksAddress(service) {
			lacking = append(lacking, service)
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	address, err := nodeaddress.Find(ctx, cluster)
	if err != nil {
		return fmt.Errorf("choosing nodePort.address: %w", err)
	}
	for _, service := range lacking {
		fill(service, address, "servicePublishingStrategy", "nodePort", "address")
	}
	return nil
}

func lacksAddress(service map[string]any) bool {
	kind, _, _ := unstructured.NestedString(service, "servicePublishingStrategy", "type")
	address, _, err := unstructured.NestedString(service, "servicePublishingStrategy", "nodePort", "address")
	return kind == string(hyperv1.NodePort) && address == "" && err == nil
}

// fill sets a field that is absent or empty. Go clients send an empty value for a required field that is not set.
func fill(obj map[string]any, value string, path ...string) {
	current, _, err := unstructured.NestedString(obj, path...)
	if err != nil || current != "" || value == "" {
		return
	}
	// It fails if a parent is not an object, which the API server then reports.
	_ = unstructured.SetNestedField(obj, value, path...)
}
