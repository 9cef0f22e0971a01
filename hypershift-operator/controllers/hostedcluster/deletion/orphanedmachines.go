// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/finalizer"
)

// deleteOrphanedMachines deletes machines without a Cluster, for example after a user removed the Cluster's finalizer.
// Cluster API does nothing without a Cluster, but the platform's provider still releases its machines, so it must keep
// running until then. After that, no controller finalizes the objects of Cluster API, so this function removes their
// finalizers.
func (r Deleter) deleteOrphanedMachines(ctx context.Context, s *cluster.Scope) (string, error) {
	sets, err := r.objects(ctx, s, &clusterv1.MachineDeploymentList{}, &clusterv1.MachineSetList{}, &clusterv1.MachineList{})
	if err != nil {
		return "", err
	}
	machines, err := r.objects(ctx, s, r.infraMachines(s)...)
	if err != nil {
		return "", err
	}
	var failures []error
	for _, obj := range append(sets, machines...) {
		if obj.GetDeletionTimestamp() == nil {
			failures = append(failures, client.IgnoreNotFound(r.Client.Delete(ctx, obj)))
		}
	}
	if len(machines) > 0 {
		why, err := s.Platform.OrphanedMachines(ctx, r.Client, s.ForPlatform(r.OperatorImage))
		waitsFor := fmt.Sprintf("Waiting for %s that outlived their Cluster to be released: %s. %s", condition.Count(len(machines), "machine"), firstFew(names(machines)), why)
		return waitsFor, errors.Join(append(failures, err)...)
	}
	for _, obj := range sets {
		if obj.GetDeletionTimestamp() == nil {
			continue // The object has changed since it was read; its deletion was requested above.
		}
		failures = append(failures, finalizer.Remove(ctx, r.Client, obj,
			clusterv1.MachineDeploymentFinalizer, clusterv1.MachineSetFinalizer, clusterv1.MachineFinalizer))
	}
	if len(sets) > 0 {
		return fmt.Sprintf("Waiting for what outlived its Cluster to be deleted: %s", firstFew(names(sets))), errors.Join(failures...)
	}
	return "", errors.Join(failures...)
}

// infraMachines returns the list type of the platform's machines, if it has any.
func (r Deleter) infraMachines(s *cluster.Scope) []client.ObjectList {
	if !s.PlatformServed || s.Platform.Machines() == nil {
		return nil
	}
	return []client.ObjectList{s.Platform.Machines()}
}

// objects lists all objects of the given kinds in the hosted namespace.
func (r Deleter) objects(ctx context.Context, s *cluster.Scope, lists ...client.ObjectList) ([]client.Object, error) {
	var all []client.Object
	for _, list := range lists {
		if err := r.Client.List(ctx, list, client.InNamespace(s.Namespace)); err != nil {
			return nil, fmt.Errorf("listing %T of namespace %s: %w", list, s.Namespace, err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			if obj, ok := item.(client.Object); ok {
				all = append(all, obj)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("reading %T of namespace %s: %w", list, s.Namespace, err)
		}
	}
	return all, nil
}

func names(objects []client.Object) []string {
	all := make([]string, 0, len(objects))
	for _, obj := range objects {
		all = append(all, obj.GetName())
	}
	return all
}
