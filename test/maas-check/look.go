// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/openshift/hypershift/support/maas"
)

// look only reads from MAAS, and prints one line for each finding.
func (c *check) look(ctx context.Context) error {
	for _, step := range []struct {
		what string
		do   func(context.Context) (string, error)
	}{
		{"version", c.version}, {"user", c.user}, {"zones and pools", c.places}, {"networks", c.networks}, {"images", c.images},
		{"machines", c.machines}, {"VM hosts", c.vmHosts},
	} {
		found, err := step.do(ctx)
		if err != nil {
			return fmt.Errorf("checking the %s: %w", step.what, err)
		}
		c.report.Printf("%s: %s", step.what, found)
	}
	return nil
}

func (c *check) version(ctx context.Context) (string, error) {
	version, err := c.maas.GetVersion(ctx)
	return "MAAS " + version.Version, err
}

func (c *check) user(ctx context.Context) (string, error) {
	user, err := c.maas.WhoAmI(ctx)
	if c.admin = user.IsSuperuser; c.admin {
		return user.Username + ", an administrator", err
	}
	return user.Username + ", not an administrator: static addresses, swap sizes and LXD hosts need an administrator's key", err
}

func (c *check) places(ctx context.Context) (string, error) {
	zones, err := c.maas.ListZones(ctx)
	if err != nil {
		return "", err
	}
	pools, err := c.maas.ListPools(ctx)
	return fmt.Sprintf("%d zones, %d resource pools", len(zones), len(pools)), err
}

func (c *check) networks(ctx context.Context) (string, error) {
	subnets, err := c.maas.ListSubnets(ctx)
	dhcp := 0
	for _, s := range subnets {
		if s.VLAN != nil && s.VLAN.DHCPOn {
			dhcp++
		}
	}
	if err == nil && dhcp == 0 {
		err = fmt.Errorf("none of %d subnets is on a VLAN with MAAS's DHCP: no machine boots", len(subnets))
	}
	return fmt.Sprintf("%d subnets, %d with DHCP of MAAS", len(subnets), dhcp), err
}

func (c *check) images(ctx context.Context) (string, error) {
	images, err := c.maas.ListBootResources(ctx, "")
	if err == nil && len(images) == 0 {
		err = fmt.Errorf("MAAS has no image")
	}
	return fmt.Sprintf("%d", len(images)), err
}

func (c *check) machines(ctx context.Context) (string, error) {
	all, err := c.maas.ListMachines(ctx, maas.MachineFilter{})
	ready := 0
	for i := range all {
		if all[i].Status == maas.StatusReady {
			ready++
		}
	}
	return fmt.Sprintf("%d, of which %d are Ready", len(all), ready), err
}

func (c *check) vmHosts(ctx context.Context) (string, error) {
	hosts, err := c.maas.ListVMHosts(ctx)
	if maas.IsGone(err) {
		return "this version has none", nil
	}
	for _, h := range hosts {
		c.report.Printf("VM host %s: %s %s, zone %s, pool %s, %d of %d cores and %d of %d MiB free, %d storage pools", h.Name, h.Type, h.Version,
			h.Zone.Name, h.Pool.Name, h.Available.Cores, h.Total.Cores, h.Available.Memory, h.Total.Memory, len(h.StoragePools))
		if !c.admin {
			continue
		}
		if _, err := c.maas.GetVMHostParameters(ctx, h.ID); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%d", len(hosts)), err
}
