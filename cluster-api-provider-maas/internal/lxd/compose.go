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

// API is what is asked of MAAS about virtual machines.
type API interface {
	ComposeMachine(ctx context.Context, vmHostID int, request maas.ComposeRequest) (*maas.Machine, error)
	ListMachines(ctx context.Context, filter maas.MachineFilter) ([]maas.Machine, error)
	DeleteMachine(ctx context.Context, systemID string) error
}

// Request turns a wish into MAAS's parameters, for its place. The zone must be said: MAAS takes the default one else, and not the host's.
func Request(w Wish, p Placement, host Host) maas.ComposeRequest {
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

// Find returns the virtual machine of a name; nil when MAAS has none.
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

// IsVM tells that MAAS switches a machine as one of an LXD host.
func IsVM(m maas.Machine) bool { return m.PowerType == typeLXD }

// OneHost tells that MAAS refuses to compose for a reason that another host may not have. It may have none left of what it said that it had,
// not reach the host, or not know it any more.
func OneHost(err error) bool {
	return noRoom(err) || !maas.IsUncertain(err) && (maas.IsInvalid(err) || maas.IsConflict(err) || maas.IsUnavailable(err) || maas.IsNotFound(err))
}

// noRoom tells that a storage pool is full, which MAAS does not expect and says with a 500: nothing was made.
func noRoom(err error) bool {
	var refusal *maas.Error
	return errors.As(err, &refusal) && refusal.StatusCode == http.StatusInternalServerError && strings.Contains(refusal.Message, "Not enough")
}

// Delete does away with a virtual machine, in MAAS and on its host. One that is not there is no error.
func Delete(ctx context.Context, api API, systemID string) error {
	err := api.DeleteMachine(ctx, systemID)
	if maas.IsNotFound(err) {
		return nil
	}
	return err
}

// ReasonIn finds out what MAAS complains about when it does not compose; empty when it is none of what has a reason of its own.
func ReasonIn(words string) string {
	words = strings.ToLower(words)
	for _, sign := range []struct{ text, reason string }{
		{"overcommit", ReasonInsufficientResources}, {"not enough", ReasonInsufficientResources}, {"no space", ReasonInsufficientResources},
		// What exceeds all that the host has is refused as a form is.
		{"less than or equal to", ReasonInsufficientResources},
		{"storage pool", ReasonStoragePoolNotFound}, {"profile", ReasonProfileNotFound}, {"project", ReasonProjectNotFound},
	} {
		if strings.Contains(words, sign.text) {
			return sign.reason
		}
	}
	return ""
}
