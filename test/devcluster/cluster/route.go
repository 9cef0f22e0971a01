// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"net"

	"github.com/vishvananda/netlink"

	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/machine/network"
)

// ensureServiceRoute gives the management node a way to Services for itself: it has no default route, and without any route
// the kernel refuses before kube-proxy's rules can send the packet elsewhere. The kube-apiserver calls webhooks like that.
func ensureServiceRoute() error {
	_, services, err := net.ParseCIDR(env.ServiceNetwork)
	if err != nil {
		return err
	}
	err = network.Do(env.Namespace, func() error {
		bridge, err := netlink.LinkByName(env.Bridge)
		if err != nil {
			return err
		}
		return netlink.RouteReplace(&netlink.Route{
			Dst: services, LinkIndex: bridge.Attrs().Index, Src: net.ParseIP(env.Gateway), Scope: netlink.SCOPE_LINK,
		})
	})
	if err != nil {
		return fmt.Errorf("making the management node's route to Services: %w", err)
	}
	return nil
}
