// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cmd/look"
	"github.com/openshift/hypershift/support/health"
)

// underway are reasons of a machine's conditions that need no action of the user.
var underway = []string{"Allocating", "MachineAllocated", "MachineDeploying", "VMCommissioning", "WaitingForNode", "StaticIPPending"}

// Hardware reads the machines in MAAS from their MaasMachines.
type Hardware struct{}

// Kind implements look.HardwareReader.
func (Hardware) Kind() string { return "MaasMachine" }

// List implements look.HardwareReader.
func (Hardware) List(ctx context.Context, c client.Reader, namespace string) ([]look.Hardware, error) {
	list := &infrav1.MaasMachineList{}
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list the MaasMachines of namespace %q: %w", namespace, err)
	}
	var all []look.Hardware
	for i := range list.Items {
		all = append(all, describe(&list.Items[i]))
	}
	return all, nil
}

func describe(m *infrav1.MaasMachine) look.Hardware {
	h := look.Hardware{
		Kind: "MaasMachine", Name: m.Name, Namespace: m.Namespace, Created: m.CreationTimestamp,
		Host: ptr.Deref(m.Status.Hostname, ""), ID: ptr.Deref(m.Spec.SystemID, ""),
		Zone: m.Status.Zone, Parent: m.Status.LXDHost,
		Pool: ptr.Deref(m.Spec.ResourcePool, ""), ProviderID: ptr.Deref(m.Spec.ProviderID, ""),
		State:   ptr.Deref(m.Status.MachineState, ""),
		Finding: health.FirstNotTrue(m.Status.Conditions, clusterv1.ReadyCondition),
	}
	if h.Finding != nil && slices.Contains(underway, h.Finding.Reason) {
		h.Finding.Progress = true
	}
	for _, address := range m.Status.Addresses {
		if address.Type == infrav1.MachineInternalIP {
			h.Addresses = append(h.Addresses, address.Address)
		}
	}
	return h
}
