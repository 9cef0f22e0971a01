// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/finalizer"
)

// deleteOrphanedMachines deletes the machines that outlived their Cluster, as they do when somebody takes its finalizer off.
// Cluster API does nothing without a Cluster, but the platform's provider still releases its machines, so it must not be let
// go of before. Then nobody is left to end what Cluster API had made.
func (r *Reconciler) deleteOrphanedMachines(ctx context.Context, s *scope) (string, error) {
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
		why, err := s.platform.OrphanedMachines(ctx, r.Client, s.cluster(r.Settings.OperatorImage))
		waitsFor := fmt.Sprintf("Waiting for %s that outlived their Cluster to be released: %s. %s", condition.Count(len(machines), "machine"), firstFew(names(machines)), why)
		return waitsFor, errors.Join(append(failures, err)...)
	}
	for _, obj := range sets {
		if obj.GetDeletionTimestamp() == nil {
			continue // It has changed since it was read: it was asked to go.
		}
		failures = append(failures, finalizer.Remove(ctx, r.Client, obj,
			clusterv1.MachineDeploymentFinalizer, clusterv1.MachineSetFinalizer, clusterv1.MachineFinalizer))
	}
	if len(sets) > 0 {
		return fmt.Sprintf("Waiting for what outlived its Cluster to be deleted: %s", firstFew(names(sets))), errors.Join(failures...)
	}
	return "", errors.Join(failures...)
}

// infraMachines is the list of the platform's machines, where it makes some.
func (r *Reconciler) infraMachines(s *scope) []client.ObjectList {
	if !s.platformServed || s.platform.Machines() == nil {
		return nil
	}
	return []client.ObjectList{s.platform.Machines()}
}

// objects reads all objects of some kinds in the hosted namespace.
func (r *Reconciler) objects(ctx context.Context, s *scope, lists ...client.ObjectList) ([]client.Object, error) {
	var all []client.Object
	for _, list := range lists {
		if err := r.Client.List(ctx, list, client.InNamespace(s.namespace)); err != nil {
			return nil, fmt.Errorf("listing %T of namespace %s: %w", list, s.namespace, err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			if obj, ok := item.(client.Object); ok {
				all = append(all, obj)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("reading %T of namespace %s: %w", list, s.namespace, err)
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
