// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"

	"github.com/openshift/hypershift/support/maas"
)

// Subnets returns the subnets.
func (i *Inventory) Subnets(ctx context.Context) ([]maas.Subnet, error) {
	return i.subnets.get(ctx, i.ages.Names)
}

// AddressRanges returns the ranges that people set aside in subnets.
func (i *Inventory) AddressRanges(ctx context.Context) ([]maas.AddressRange, error) {
	return i.ranges.get(ctx, i.ages.Names)
}

// HeldAddresses returns who has which address of a subnet. It may be as old as the list of Ready machines.
func (i *Inventory) HeldAddresses(ctx context.Context, subnetID int) ([]maas.HeldAddress, error) {
	return i.heldIn(subnetID).get(ctx, i.ages.Ready)
}

// ForgetHeldAddresses makes the next HeldAddresses of a subnet ask MAAS.
func (i *Inventory) ForgetHeldAddresses(subnetID int) { i.heldIn(subnetID).forget() }

func (i *Inventory) heldIn(subnetID int) *shared[[]maas.HeldAddress] {
	i.mu.Lock()
	defer i.mu.Unlock()
	held, ok := i.held[subnetID]
	if !ok {
		held = newShared(i.clock, i.ages.Failure, func(ctx context.Context) ([]maas.HeldAddress, error) {
			return i.api.ListHeldAddresses(ctx, subnetID)
		})
		i.held[subnetID] = held
	}
	return held
}
