// SPDX-License-Identifier: Apache-2.0

package journey

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// EnsureCluster creates a cluster with one pool of the same name, unless an earlier run did. It returns the desired
// number of nodes of the pool: an existing pool may have been scaled since.
func (w *Walker) EnsureCluster(ctx context.Context, name string, replicas int, extra ...string) (int, error) {
	c, err := w.Management()
	if err != nil {
		return 0, err
	}
	hc := &hyperv1.HostedCluster{}
	switch err := c.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: name}, hc); {
	case apierrors.IsNotFound(err):
		return replicas, w.CreateCluster(ctx, name, replicas, extra...)
	case err != nil:
		return 0, err
	case hc.DeletionTimestamp != nil:
		w.Say("An earlier run began to destroy the cluster %s.", name)
		if err := w.DestroyCluster(ctx, name); err != nil {
			return 0, err
		}
		return replicas, w.CreateCluster(ctx, name, replicas, extra...)
	}
	w.Say("The cluster %s exists already, from an earlier run.", name)
	return w.ensurePool(ctx, name, replicas, func() error {
		argv := []string{"hypershift", "create", "nodepool", "maas", "--name", name, "--cluster-name", name,
			"--replicas", fmt.Sprint(replicas), "--erase", "None"}
		return w.Type(ctx, append(argv, image(extra)...)...)
	})
}

// image returns the flag that names the machines' image, with its value.
func image(flags []string) []string {
	for i, flag := range flags[:max(0, len(flags)-1)] {
		if flag == "--image" {
			return flags[i : i+2]
		}
	}
	return nil
}

// EnsureVirtualPool calls CreateVirtualPool unless an earlier run created the pool. It returns the pool's replicas.
func (w *Walker) EnsureVirtualPool(ctx context.Context, cluster, pool string, replicas int) (int, error) {
	return w.ensurePool(ctx, pool, replicas, func() error { return w.CreateVirtualPool(ctx, cluster, pool, replicas) })
}

// ensurePool creates a pool unless it exists, and returns its replicas.
func (w *Walker) ensurePool(ctx context.Context, name string, replicas int, create func() error) (int, error) {
	c, err := w.Management()
	if err != nil {
		return 0, err
	}
	pool := &hyperv1.NodePool{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: name}, pool); apierrors.IsNotFound(err) {
		return replicas, create()
	} else if err != nil {
		return 0, err
	}
	if pool.Spec.Replicas != nil {
		return int(*pool.Spec.Replicas), nil
	}
	return replicas, nil
}
