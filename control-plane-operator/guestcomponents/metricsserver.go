// SPDX-License-Identifier: Apache-2.0

package guestcomponents

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/component"
)

const (
	// metricsServer is the name of the component and the tag of its image. Payloads of version 0.1.0 do not have it.
	metricsServer = "metrics-server"
	metricsAPI    = "v1beta1.metrics.k8s.io"

	// authenticationConfig is the ConfigMap in which API servers publish the CAs of clients and of kubelets.
	authenticationConfig = "extension-apiserver-authentication"
	kubeletCAKey         = "client-ca-file"
	kubeletCAHash        = "hypershift.openshift.io/kubelet-ca-hash"
)

// newMetricsServer runs metrics-server, unless the user disables it. It needs the tunnel, through which API servers
// reach it.
func newMetricsServer() *component.Component {
	return &component.Component{
		Name:      metricsServer,
		Manifests: folder(metricsServer),
		Enabled:   func(_ context.Context, scope *component.Scope) (bool, error) { return runsMetricsServer(scope), nil },
		Adapters:  map[string]component.Adapter{"deployment.yaml": component.Adapt(adaptMetricsServer)},
		Options:   component.Options{Guest: true},
	}
}

func runsMetricsServer(scope *component.Scope) bool {
	_, has := scope.Images.ComponentImage(metricsServer)
	return has && tunnelled(scope.HCP) && addons(scope.HCP).MetricsServer != hyperv1.AddonDisabled
}

// adaptMetricsServer restarts metrics-server when the CAs of kubelets change, since it reads them only once. The
// ConfigMap is the API server's, so the cache of the guest does not have it.
func adaptMetricsServer(ctx context.Context, scope *component.Scope, deployment *appsv1.Deployment) error {
	key := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: authenticationConfig}
	published := &corev1.ConfigMap{}
	if err := scope.Guest.Live.Get(ctx, key, published); err != nil {
		return fmt.Errorf("reading the CAs of kubelets in ConfigMap %s: %w", key, err)
	}
	sum := sha256.Sum256([]byte(published.Data[kubeletCAKey]))
	metav1.SetMetaDataAnnotation(&deployment.Spec.Template.ObjectMeta, kubeletCAHash, hex.EncodeToString(sum[:8]))
	return nil
}

// ReconcileMetricsAPI registers the API of metrics-server while metrics-server and the tunnel are available. An API
// that does not answer would block the deletion of all namespaces, for example in a cluster without nodes. It keeps an
// APIService that the user created.
func ReconcileMetricsAPI(ctx context.Context, scope *component.Scope) error {
	live := newMetricsAPI()
	err := scope.Guest.Client.Get(ctx, client.ObjectKeyFromObject(live), live)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading APIService %s: %w", metricsAPI, err)
	}
	exists := err == nil
	if exists && live.GetLabels()[component.GuestLabel] == "" {
		return nil
	}
	serves, err := metricsServed(ctx, scope)
	if err != nil || !serves && !exists {
		return err
	}
	if !serves {
		if err := scope.Guest.Client.Delete(ctx, live); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting APIService %s: %w", metricsAPI, err)
		}
		return nil
	}
	return component.ApplyGuest(ctx, scope.Guest.Client, newMetricsAPI())
}

// newMetricsAPI returns the APIService of metrics-server. The API server does not verify the certificate, which
// metrics-server makes at its start; the tunnel verifies the node.
func newMetricsAPI() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1",
		"kind":       "APIService",
		"metadata":   map[string]any{"name": metricsAPI},
		"spec": map[string]any{
			"group": "metrics.k8s.io", "version": "v1beta1",
			"groupPriorityMinimum": int64(100), "versionPriority": int64(100),
			"insecureSkipTLSVerify": true,
			"service": map[string]any{
				"namespace": metav1.NamespaceSystem, "name": metricsServer, "port": int64(443),
			},
		},
	}}
}

// metricsServed reports whether API servers reach an available metrics-server.
func metricsServed(ctx context.Context, scope *component.Scope) (bool, error) {
	if !runsMetricsServer(scope) {
		return false, nil
	}
	deployment, agents := &appsv1.Deployment{}, &appsv1.DaemonSet{}
	for name, obj := range map[string]client.Object{metricsServer: deployment, TunnelAgent: agents} {
		key := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: name}
		if err := scope.Guest.Client.Get(ctx, key, obj); client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("reading %T %s: %w", obj, key, err)
		}
	}
	return deployment.Status.AvailableReplicas > 0 && agents.Status.NumberAvailable > 0, nil
}
