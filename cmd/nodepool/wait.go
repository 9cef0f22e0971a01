// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/cmd/progress"
)

const pollInterval = 2 * time.Second

// Placer is a Platform that can describe where a machine runs.
type Placer interface {
	// Place describes the machine behind a Machine, such as its hardware and host. It returns "" if no machine is assigned
	// yet.
	Place(ctx context.Context, c client.Reader, machine *clusterv1.Machine) (string, error)
}

// waitReady waits until the pool has its nodes.
func (c *create) waitReady(ctx context.Context, cl client.Client, report *progress.Reporter) error {
	key := client.ObjectKey{Namespace: c.namespace, Name: c.name}
	err := report.Wait(ctx, "NodePool "+key.String(), c.timeout, pollInterval, func(ctx context.Context) (progress.State, error) {
		return c.look(ctx, cl, key)
	})
	if err != nil {
		return fmt.Errorf("%w; look further with: kubectl describe nodepool -n %s %s", err, c.namespace, c.name)
	}
	return nil
}

func (c *create) look(ctx context.Context, cl client.Client, key client.ObjectKey) (progress.State, error) {
	pool := &hyperv1.NodePool{}
	if err := cl.Get(ctx, key, pool); err != nil {
		return progress.State{}, fmt.Errorf("read NodePool %s: %w", key, err)
	}
	machines, err := c.machines(ctx, cl, key)
	if err != nil {
		return progress.State{}, err
	}
	message := fmt.Sprintf("nodes: %d of %d", pool.Status.Replicas, c.replicas)
	if len(machines) > 0 {
		message += "; " + strings.Join(machines, ", ")
	}
	if pool.Status.Replicas >= c.replicas {
		return progress.State{Done: true, Message: message}, nil
	}
	blocking := progress.FirstUnmet(Conditions(pool), ReadyConditions...)
	return progress.State{Message: message + "; " + blocking, Blocking: blocking}, nil
}

// machines describes the state of each Machine of the pool.
func (c *create) machines(ctx context.Context, cl client.Client, pool client.ObjectKey) ([]string, error) {
	namespace := kube.HostedNamespace(c.namespace, c.clusterName)
	list := &clusterv1.MachineList{}
	if err := cl.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list the Machines of namespace %s: %w", namespace, err)
	}
	var told []string
	for i := range list.Items {
		machine := &list.Items[i]
		if machine.Annotations[hyperv1.NodePoolAnnotation] != pool.String() {
			continue
		}
		place := ""
		if placer, ok := c.platform.(Placer); ok {
			var err error
			if place, err = placer.Place(ctx, cl, machine); err != nil {
				return nil, err
			}
		}
		told = append(told, strings.TrimSpace(machine.Name+" "+place))
	}
	slices.Sort(told)
	return told, nil
}
