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

// AddressRanges returns the address ranges that administrators defined in subnets.
func (i *Inventory) AddressRanges(ctx context.Context) ([]maas.AddressRange, error) {
	return i.ranges.get(ctx, i.ages.Names)
}

// HeldAddresses returns the addresses of a subnet that are in use. The maximum age is that of the list of Ready
// machines.
func (i *Inventory) HeldAddresses(ctx context.Context, subnetID int) ([]maas.HeldAddress, error) {
	return i.heldIn(subnetID).get(ctx, i.ages.Ready)
}

// ForgetHeldAddresses invalidates the cached addresses of a subnet.
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
