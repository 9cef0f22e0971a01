// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/nodeaddress"
	"github.com/openshift/hypershift/support/platforms"
	"github.com/openshift/hypershift/support/supportedversions"
)

// defaults sets absent fields of an object in a namespace from other objects of the cluster. Existing values stay, even
// if they have the wrong type: the API server validates them next, and returns a better error message. Notes tell the
// user what was chosen, or what to add. An error means that an object could not be read; fields that were set before it
// remain set.
type defaults func(ctx context.Context, cluster client.Reader, namespace string, obj map[string]any) (notes []string, err error)

// nodePoolDefaults takes the release and the platform from the pool's HostedCluster, and the upgrade type from the
// platform. Without a HostedCluster it sets nothing of it and returns no error.
func nodePoolDefaults(ctx context.Context, cluster client.Reader, namespace string, pool map[string]any) ([]string, error) {
	notes, err := clusterName(ctx, cluster, namespace, pool)
	if err != nil {
		return nil, err
	}
	hc, err := hostedClusterOf(ctx, cluster, namespace, pool)
	if hc != nil {
		fill(pool, hc.Spec.Release.Image, "spec", "release", "image")
		fill(pool, string(hc.Spec.Platform.Type), "spec", "platform", "type")
	}
	platform, _, _ := unstructured.NestedString(pool, "spec", "platform", "type")
	if traits, known := platforms.Of(hyperv1.PlatformType(platform)); known {
		fill(pool, string(traits.DefaultUpgradeType), "spec", "management", "upgradeType")
	}
	return notes, err
}

// clusterName sets spec.clusterName if the namespace has exactly one HostedCluster.
func clusterName(ctx context.Context, cluster client.Reader, namespace string, pool map[string]any) ([]string, error) {
	name, _, err := unstructured.NestedString(pool, "spec", "clusterName")
	if name != "" || err != nil {
		return nil, nil //nolint:nilerr // The API server reports a value of the wrong type.
	}
	clusters := &hyperv1.HostedClusterList{}
	if err := cluster.List(ctx, clusters, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing the HostedClusters of namespace %s: %w", namespace, err)
	}
	if len(clusters.Items) != 1 {
		return []string{fmt.Sprintf("namespace %s has %s: set spec.clusterName", namespace, condition.Count(len(clusters.Items), "HostedCluster"))}, nil
	}
	only := clusters.Items[0].Name
	fill(pool, only, "spec", "clusterName")
	return []string{fmt.Sprintf("spec.clusterName is %s, the only HostedCluster of namespace %s", only, namespace)}, nil
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

// hostedClusterDefaults returns the defaults of HostedClusters. release is the default release of the installation; empty
// for none.
func hostedClusterDefaults(release string) defaults {
	return func(ctx context.Context, cluster client.Reader, _ string, hc map[string]any) ([]string, error) {
		notes := releaseImage(hc, release)
		if missing := missingFrom(hc); len(missing) > 0 {
			notes = append(notes, fmt.Sprintf("the HostedCluster is incomplete, add %s: "+
				"`hypershift create cluster` with --render prints a complete one", strings.Join(missing, ", ")))
		}
		return notes, addresses(ctx, cluster, hc)
	}
}

// releaseImage sets the release if none is given. The limits of the installation apply to it as to any other.
func releaseImage(hc map[string]any, release string) []string {
	given, _, err := unstructured.NestedString(hc, "spec", "release", "image")
	switch {
	case given != "" || err != nil:
		return nil
	case release == "":
		return []string{"set spec.release.image: this installation has no default release (`hypershift install --" +
			supportedversions.DefaultReleaseFlag + "`)"}
	}
	fill(hc, release, "spec", "release", "image")
	return []string{fmt.Sprintf("spec.release.image is %s, the default release of this installation", release)}
}

// missingFrom returns the required fields that have no safe default. A default of services would not last: the next
// kubectl apply of the same manifest would remove it, which is refused.
func missingFrom(hc map[string]any) []string {
	var missing []string
	if _, found, err := unstructured.NestedFieldNoCopy(hc, "spec", "pullSecret"); err == nil && !found {
		missing = append(missing, `spec.pullSecret, the name of a Secret that may hold {"auths":{}}`)
	}
	services, _, err := unstructured.NestedSlice(hc, "spec", "services")
	if err != nil {
		return missing
	}
	for _, required := range []hyperv1.ServiceType{hyperv1.APIServer, hyperv1.OAuthServer, hyperv1.Konnectivity, hyperv1.Ignition} {
		if !slices.ContainsFunc(services, func(service any) bool { return publishes(service, required) }) {
			missing = append(missing, fmt.Sprintf("service %s in spec.services", required))
		}
	}
	return missing
}

func publishes(service any, required hyperv1.ServiceType) bool {
	mapping, ok := service.(map[string]any)
	return ok && mapping["service"] == string(required)
}

// addresses sets the address of services that are published by NodePort, as `create cluster` does. It is the management
// cluster's virtual IP, or the address of its first Ready node.
func addresses(ctx context.Context, cluster client.Reader, hc map[string]any) error {
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
