// SPDX-License-Identifier: Apache-2.0

package lxdhost

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cmd/progress"
	"github.com/openshift/hypershift/support/maas"
)

// replace deletes the Machine of a VM. It waits until the VM is gone and the Machine's owner has all its machines
// again. It returns false for a VM that no Machine of the management cluster represents.
func (d *drain) replace(ctx context.Context, k client.Client, m *maas.Client, vm *maas.Machine, report *progress.Reporter) (bool, error) {
	machine, err := machineOf(ctx, k, vm.SystemID)
	if err != nil || machine == nil {
		return false, err
	}
	owner, err := ownerOf(ctx, k, machine)
	if err != nil {
		return true, err
	}
	if owner == nil {
		return true, fmt.Errorf("Machine %s on VM %s has no MachineSet that would replace it: delete it by hand when it may go", client.ObjectKeyFromObject(machine), naming(vm))
	}
	// At most one machine of a pool is missing at a time.
	if machine.DeletionTimestamp.IsZero() {
		if err := d.awaitOwner(ctx, k, owner, report); err != nil {
			return true, err
		}
		if err := k.Delete(ctx, machine); client.IgnoreNotFound(err) != nil {
			return true, fmt.Errorf("delete Machine %s: %w", client.ObjectKeyFromObject(machine), err)
		}
	}
	report.Printf("Machine %s on VM %s is being replaced", client.ObjectKeyFromObject(machine), naming(vm))
	if err := d.awaitGone(ctx, k, m, machine, vm, report); err != nil {
		return true, err
	}
	return true, d.awaitOwner(ctx, k, owner, report)
}

// machineOf returns the Machine for which a VM was composed; nil if there is none.
func machineOf(ctx context.Context, k client.Client, systemID string) (*clusterv1.Machine, error) {
	var all infrav1.MaasMachineList
	if err := k.List(ctx, &all); err != nil {
		return nil, fmt.Errorf("list the MaasMachines of the management cluster: %w", err)
	}
	for i := range all.Items {
		if id := all.Items[i].Spec.SystemID; id == nil || *id != systemID {
			continue
		}
		for _, ref := range all.Items[i].OwnerReferences {
			if ref.Kind != "Machine" || !strings.HasPrefix(ref.APIVersion, clusterv1.GroupVersion.Group+"/") {
				continue
			}
			machine := &clusterv1.Machine{}
			err := k.Get(ctx, client.ObjectKey{Namespace: all.Items[i].Namespace, Name: ref.Name}, machine)
			if apierrors.IsNotFound(err) {
				return nil, nil
			}
			if err != nil {
				return nil, fmt.Errorf("read Machine %s/%s: %w", all.Items[i].Namespace, ref.Name, err)
			}
			return machine, nil
		}
	}
	return nil, nil
}

// ownerOf returns the MachineSet that replaces the Machine; nil if there is none.
func ownerOf(ctx context.Context, k client.Client, machine *clusterv1.Machine) (*clusterv1.MachineSet, error) {
	for _, ref := range machine.OwnerReferences {
		if ref.Kind != "MachineSet" || ref.Controller == nil || !*ref.Controller {
			continue
		}
		set := &clusterv1.MachineSet{}
		key := client.ObjectKey{Namespace: machine.Namespace, Name: ref.Name}
		if err := k.Get(ctx, key, set); err != nil {
			return nil, fmt.Errorf("read MachineSet %s: %w", key, err)
		}
		return set, nil
	}
	return nil, nil
}

// awaitGone waits until Cluster API has drained the node and MAAS has removed the VM.
func (d *drain) awaitGone(ctx context.Context, k client.Client, m *maas.Client, machine *clusterv1.Machine, vm *maas.Machine, report *progress.Reporter) error {
	key := client.ObjectKeyFromObject(machine)
	return report.Wait(ctx, "deletion of Machine "+key.String(), d.timeout, d.interval, func(ctx context.Context) (progress.State, error) {
		now := &clusterv1.Machine{}
		err := k.Get(ctx, key, now)
		if err == nil && now.UID == machine.UID {
			return progress.State{Message: deleting(now)}, nil
		}
		if client.IgnoreNotFound(err) != nil {
			return progress.State{}, fmt.Errorf("read Machine %s: %w", key, err)
		}
		_, err = m.GetMachine(ctx, vm.SystemID)
		if maas.IsNotFound(err) {
			return progress.State{Done: true, Message: "VM " + naming(vm) + " is gone"}, nil
		}
		return progress.State{Message: "Machine " + key.String() + " is gone; MAAS still has VM " + naming(vm)}, err
	})
}

// deleting describes what blocks the deletion of a Machine, such as a PodDisruptionBudget.
func deleting(machine *clusterv1.Machine) string {
	message := "Machine " + client.ObjectKeyFromObject(machine).String() + " is being deleted"
	for _, condition := range machine.Status.Conditions {
		if condition.Type == clusterv1.MachineDeletingCondition && condition.Message != "" {
			message += ": " + strings.Join(strings.Fields(condition.Message), " ")
		}
	}
	return message
}

// awaitOwner waits until the MachineSet has all its machines, each Ready. If the MachineSet is deleted, it stops
// waiting. It counts the machines itself, since the set's status is outdated for a while after the deletion.
func (d *drain) awaitOwner(ctx context.Context, k client.Client, owner *clusterv1.MachineSet, report *progress.Reporter) error {
	key := client.ObjectKeyFromObject(owner)
	return report.Wait(ctx, "MachineSet "+key.String(), d.timeout, d.interval, func(ctx context.Context) (progress.State, error) {
		now := &clusterv1.MachineSet{}
		err := k.Get(ctx, key, now)
		if apierrors.IsNotFound(err) {
			return progress.State{Done: true, Message: "MachineSet " + key.String() + " is gone"}, nil
		}
		if err != nil {
			return progress.State{}, fmt.Errorf("read MachineSet %s: %w", key, err)
		}
		ready, all, err := machinesOf(ctx, k, now)
		if err != nil {
			return progress.State{}, err
		}
		want := int(ptr.Deref(now.Spec.Replicas, 1))
		message := fmt.Sprintf("MachineSet %s has %d of %d machines ready", key, ready, want)
		return progress.State{Done: ready >= want && all == ready, Message: message}, nil
	})
}

// machinesOf counts the Machines of a set. Machines that are being deleted count in all, but not in ready.
func machinesOf(ctx context.Context, k client.Client, set *clusterv1.MachineSet) (ready, all int, err error) {
	var machines clusterv1.MachineList
	if err := k.List(ctx, &machines, client.InNamespace(set.Namespace)); err != nil {
		return 0, 0, fmt.Errorf("list the Machines of namespace %s: %w", set.Namespace, err)
	}
	for i := range machines.Items {
		m := &machines.Items[i]
		if !metav1.IsControlledBy(m, set) {
			continue
		}
		all++
		if m.DeletionTimestamp.IsZero() && meta.IsStatusConditionTrue(m.Status.Conditions, clusterv1.MachineReadyCondition) {
			ready++
		}
	}
	return ready, all, nil
}
