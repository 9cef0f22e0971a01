// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/doctor"
	"github.com/openshift/hypershift/cmd/nodepool"
	"github.com/openshift/hypershift/cmd/progress"
)

// waitReady waits until the cluster is available and its NodePools have their nodes.
func (c *create) waitReady(ctx context.Context, report *progress.Reporter) error {
	key := client.ObjectKey{Namespace: c.namespace, Name: c.name}
	err := report.Wait(ctx, "HostedCluster "+key.String(), c.timeout, pollInterval, func(ctx context.Context) (progress.State, error) {
		return readState(ctx, c.client, key)
	})
	if err != nil {
		return fmt.Errorf("%w; look further with: kubectl describe hostedcluster,nodepool -n %s", err, c.namespace)
	}
	report.Printf("next: hypershift create kubeconfig --namespace %s --name %s", c.namespace, c.name)
	return nil
}

func readState(ctx context.Context, c client.Client, key client.ObjectKey) (progress.State, error) {
	hc := &hyperv1.HostedCluster{}
	if err := c.Get(ctx, key, hc); err != nil {
		return progress.State{}, fmt.Errorf("read HostedCluster %s: %w", key, err)
	}
	var pools hyperv1.NodePoolList
	if err := c.List(ctx, &pools, client.InNamespace(key.Namespace)); err != nil {
		return progress.State{}, fmt.Errorf("list the NodePools of namespace %s: %w", key.Namespace, err)
	}
	pools.Items = slices.DeleteFunc(pools.Items, func(p hyperv1.NodePool) bool { return p.Spec.ClusterName != key.Name })
	return stateOf(hc, pools.Items), nil
}

// stateOf describes the progress of a cluster.
func stateOf(hc *hyperv1.HostedCluster, pools []hyperv1.NodePool) progress.State {
	if !meta.IsStatusConditionTrue(hc.Status.Conditions, string(hyperv1.HostedClusterAvailable)) {
		blocking := progress.FirstUnmet(hc.Status.Conditions, doctor.ReadyConditions...)
		return progress.State{Message: "control plane: " + blocking, Blocking: "HostedCluster: " + blocking}
	}
	var nodes []string
	done, blocking := true, ""
	for i := range pools {
		want := int32(0)
		if pools[i].Spec.Replicas != nil {
			want = *pools[i].Spec.Replicas
		}
		nodes = append(nodes, fmt.Sprintf("%s %d/%d", pools[i].Name, pools[i].Status.Replicas, want))
		if pools[i].Status.Replicas >= want {
			continue
		}
		done = false
		if blocking == "" {
			blocking = fmt.Sprintf("NodePool %s: %s", pools[i].Name, progress.FirstUnmet(nodepool.Conditions(&pools[i]), nodepool.ReadyConditions...))
		}
	}
	message := "control plane available, nodes: " + strings.Join(nodes, ", ")
	if blocking != "" {
		message += "; " + blocking
	}
	return progress.State{Done: done, Message: message, Blocking: blocking}
}
