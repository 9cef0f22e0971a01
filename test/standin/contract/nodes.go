// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/upsert"
)

// guestTimeout bounds a call of the hosted cluster's API.
const guestTimeout = 5 * time.Second

// ByKubeconfig returns a function that sets the provider IDs of Nodes. It connects to the cluster with the kubeconfig
// that Cluster API uses.
func ByKubeconfig(c client.Reader) func(context.Context, client.ObjectKey, []string, string) (bool, error) {
	return func(ctx context.Context, cluster client.ObjectKey, names []string, providerID string) (bool, error) {
		secret := &corev1.Secret{}
		key := client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Name + "-kubeconfig"}
		if err := c.Get(ctx, key, secret); err != nil {
			return false, fmt.Errorf("reading the kubeconfig of the cluster in Secret %s: %w", key, err)
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["value"])
		if err != nil {
			return false, fmt.Errorf("reading the kubeconfig in Secret %s: %w", key, err)
		}
		config.Timeout = guestTimeout
		guest, err := client.New(config, client.Options{})
		if err != nil {
			return false, fmt.Errorf("connecting to cluster %s: %w", cluster, err)
		}
		return tellNode(ctx, guest, names, providerID)
	}
}

// tellNode sets the provider ID of the Node with one of the names. It reports whether there is such a Node.
func tellNode(ctx context.Context, guest client.Client, names []string, providerID string) (bool, error) {
	nodes := &corev1.NodeList{}
	if err := guest.List(ctx, nodes); err != nil {
		return false, fmt.Errorf("listing the nodes of the guest: %w", err)
	}
	for i := range nodes.Items {
		node := &nodes.Items[i]
		if !slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, node.Name) }) {
			continue
		}
		return true, upsert.Patch(ctx, guest, node, func() { node.Spec.ProviderID = providerID })
	}
	return false, nil
}
