// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/openshift/hypershift/support/netlists"
)

// routeProtocol marks the agent's own routes, so that it never removes other routes. It is not one of the numbers in
// /etc/iproute2/rt_protos.
const routeProtocol = 89

// Route is a route to the pods of another node.
type Route struct {
	// To is a pod network of the node.
	To netip.Prefix
	// Via is the node's address.
	Via netip.Addr
}

// Routes are the routes of the network namespace in which they were opened.
type Routes struct {
	handle *netlink.Handle
}

// NewRoutes opens the routes of the current network namespace.
func NewRoutes() (*Routes, error) {
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("opening the node's routes: %w", err)
	}
	return &Routes{handle: handle}, nil
}

// List returns the agent's own routes.
func (r *Routes) List() ([]Route, error) {
	filter := &netlink.Route{Protocol: routeProtocol, Table: unix.RT_TABLE_MAIN}
	found, err := netlists.Whole(func() ([]netlink.Route, error) {
		return r.handle.RouteListFiltered(netlink.FAMILY_ALL, filter, netlink.RT_FILTER_PROTOCOL|netlink.RT_FILTER_TABLE)
	})
	if err != nil {
		return nil, fmt.Errorf("listing the node's routes: %w", err)
	}
	var routes []Route
	for _, one := range found {
		if route, ok := fromKernel(one); ok {
			routes = append(routes, route)
		}
	}
	return routes, nil
}

func fromKernel(found netlink.Route) (Route, bool) {
	if found.Dst == nil {
		return Route{}, false
	}
	to, okTo := netip.AddrFromSlice(found.Dst.IP)
	via, okVia := netip.AddrFromSlice(found.Gw)
	ones, _ := found.Dst.Mask.Size()
	return Route{To: netip.PrefixFrom(to.Unmap(), ones), Via: via.Unmap()}, okTo && okVia
}

func (r Route) toKernel() *netlink.Route {
	return &netlink.Route{
		Dst:      &net.IPNet{IP: r.To.Addr().AsSlice(), Mask: net.CIDRMask(r.To.Bits(), r.To.Addr().BitLen())},
		Gw:       r.Via.AsSlice(),
		Protocol: routeProtocol,
		Table:    unix.RT_TABLE_MAIN,
	}
}

// Replace creates the route; it replaces a route to the same network.
func (r *Routes) Replace(route Route) error {
	err := r.handle.RouteReplace(route.toKernel())
	if errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EHOSTUNREACH) {
		return fmt.Errorf("pods %s cannot be reached: node %s is not on a network of this node; the default network needs nodes that share a layer 2 network: %w",
			route.To, route.Via, err)
	}
	if err != nil {
		return fmt.Errorf("making the route to pods %s via node %s: %w", route.To, route.Via, err)
	}
	return nil
}

// Delete removes the route.
func (r *Routes) Delete(route Route) error {
	err := r.handle.RouteDel(route.toKernel())
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("removing the route to pods %s via node %s: %w", route.To, route.Via, err)
	}
	return nil
}

// MTU returns the MTU, in bytes, of the interface with the address.
func (r *Routes) MTU(address netip.Addr) (int, error) {
	links, err := netlists.Whole(r.handle.LinkList)
	if err != nil {
		return 0, fmt.Errorf("listing the node's network interfaces: %w", err)
	}
	for _, link := range links {
		addresses, err := netlists.Whole(func() ([]netlink.Addr, error) { return r.handle.AddrList(link, netlink.FAMILY_ALL) })
		if err != nil {
			return 0, fmt.Errorf("listing the addresses of network interface %s: %w", link.Attrs().Name, err)
		}
		for _, one := range addresses {
			if ip, ok := netip.AddrFromSlice(one.IP); ok && ip.Unmap() == address {
				return link.Attrs().MTU, nil
			}
		}
	}
	return 0, fmt.Errorf("no network interface of this node has its InternalIP %s", address)
}
