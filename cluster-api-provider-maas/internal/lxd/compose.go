// SPDX-License-Identifier: Apache-2.0

package lxd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/openshift/hypershift/support/maas"
)

// API is the part of the MAAS API for virtual machines.
type API interface {
	ComposeMachine(ctx context.Context, vmHostID int, request maas.ComposeRequest) (*maas.Machine, error)
	ListMachines(ctx context.Context, filter maas.MachineFilter) ([]maas.Machine, error)
	DeleteMachine(ctx context.Context, systemID string) error
}

// ComposeRequest converts a Request and its placement to MAAS parameters. The zone must be explicit: otherwise MAAS uses the
// default zone instead of the host's zone.
func ComposeRequest(w Request, p Placement, host Host) maas.ComposeRequest {
	request := maas.ComposeRequest{Hostname: p.Hostname, Cores: w.Cores, MemoryMiB: w.MemoryMiB, Storage: fmt.Sprintf("root:%d", w.DiskGB),
		Interfaces: w.Interfaces, Zone: &host.ZoneID, Pool: &host.PoolID}
	if p.Store != "" {
		request.Storage += "(" + p.Store + ")"
	}
	for _, architecture := range host.Architectures {
		if w.ofArchitecture(architecture) {
			request.Architecture = architecture
			break
		}
	}
	return request
}

// Find returns the virtual machine with the given name; nil if MAAS has none.
func Find(ctx context.Context, api API, name string) (*maas.Machine, error) {
	machines, err := api.ListMachines(ctx, maas.MachineFilter{Hostnames: []string{name}})
	if err != nil {
		return nil, err
	}
	machines = slices.DeleteFunc(machines, func(m maas.Machine) bool { return m.Hostname != name || !IsVM(m) })
	if len(machines) == 0 {
		return nil, nil
	}
	return &machines[0], nil
}

// IsVM reports whether a machine is a virtual machine on an LXD host, by its power type.
func IsVM(m maas.Machine) bool { return m.PowerType == typeLXD }

// OneHost reports whether MAAS rejected the compose call for a reason that may affect one host only. The host may have
// fewer resources than it reported, be unreachable, or be unknown to MAAS now.
func OneHost(err error) bool {
	return noRoom(err) || !maas.IsUncertain(err) && (maas.IsInvalid(err) || maas.IsConflict(err) || maas.IsUnavailable(err) || maas.IsNotFound(err))
}

// noRoom reports whether a storage pool is full. MAAS does not handle this and returns status 500; it composed nothing.
func noRoom(err error) bool {
	var refusal *maas.Error
	return errors.As(err, &refusal) && refusal.StatusCode == http.StatusInternalServerError && strings.Contains(refusal.Message, "Not enough")
}

// Delete deletes a virtual machine in MAAS and on its host. A missing one is not an error.
func Delete(ctx context.Context, api API, systemID string) error {
	err := api.DeleteMachine(ctx, systemID)
	if maas.IsNotFound(err) {
		return nil
	}
	return err
}

// ReasonIn derives a condition reason from the error of a compose call; empty if no specific reason matches.
func ReasonIn(words string) string {
	words = strings.ToLower(words)
	for _, sign := range []struct{ text, reason string }{
		{"overcommit", ReasonInsufficientResources}, {"not enough", ReasonInsufficientResources}, {"no space", ReasonInsufficientResources},
		// A request beyond the total capacity of the host fails form validation.
		{"less than or equal to", ReasonInsufficientResources},
		{"storage pool", ReasonStoragePoolNotFound}, {"profile", ReasonProfileNotFound}, {"project", ReasonProjectNotFound},
	} {
		if strings.Contains(words, sign.text) {
			return sign.reason
		}
	}
	return ""
}
