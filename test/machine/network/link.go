// SPDX-License-Identifier: Apache-2.0

package network

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// Ensure creates the missing parts of the network configuration in the machine's namespace, which must exist.
func Ensure(namespace string, config Config) error {
	for _, bridge := range config.Bridges {
		if err := ensureBridge(namespace, bridge); err != nil {
			return fmt.Errorf("bridge %s in namespace %s: %w", bridge.Name, namespace, err)
		}
	}
	for _, link := range config.Links {
		link.Inside.Namespace = namespace
		if err := ensureLink(link); err != nil {
			return fmt.Errorf("link %s in namespace %s to %s: %w", link.Inside.Name, namespace, link.Outside.Name, err)
		}
	}
	return nil
}

// handle returns a netlink handle for one network namespace; the caller closes it.
func handle(namespace string) (*netlink.Handle, error) {
	if namespace == "" {
		return netlink.NewHandle()
	}
	file, err := os.Open(namespacePath(namespace))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("network namespace %s does not exist; start the machine it belongs to first", namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("opening network namespace %s: %w", namespace, err)
	}
	defer file.Close()
	return netlink.NewHandleAt(netns.NsHandle(file.Fd()))
}

func loopbackUp(namespace string) error {
	h, err := handle(namespace)
	if err != nil {
		return err
	}
	defer h.Close()
	lo, err := h.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("finding the loopback device of namespace %s: %w", namespace, err)
	}
	return h.LinkSetUp(lo)
}

func ensureBridge(namespace string, bridge Bridge) error {
	h, err := handle(namespace)
	if err != nil {
		return err
	}
	defer h.Close()
	link, err := h.LinkByName(bridge.Name)
	if isNotFound(err) {
		link = &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: bridge.Name}}
		err = h.LinkAdd(link)
	}
	if err != nil {
		return err
	}
	return configure(h, link, End{Name: bridge.Name, Address: bridge.Address})
}

func ensureLink(link Link) error {
	inside, err := handle(link.Inside.Namespace)
	if err != nil {
		return err
	}
	defer inside.Close()
	outside, err := handle(link.Outside.Namespace)
	if err != nil {
		return err
	}
	defer outside.Close()
	if err := ensurePair(inside, outside, link); err != nil {
		return err
	}
	for _, side := range []struct {
		handle *netlink.Handle
		end    End
	}{{inside, link.Inside}, {outside, link.Outside}} {
		iface, err := side.handle.LinkByName(side.end.Name)
		if err != nil {
			return err
		}
		if err := configure(side.handle, iface, side.end); err != nil {
			return fmt.Errorf("%s: %w", side.end.Name, err)
		}
	}
	return nil
}

// ensurePair creates the veth pair unless both ends exist. A single end is left over from a crash.
func ensurePair(inside, outside *netlink.Handle, link Link) error {
	in, inErr := inside.LinkByName(link.Inside.Name)
	out, outErr := outside.LinkByName(link.Outside.Name)
	if inErr == nil && outErr == nil && in.Attrs().ParentIndex == out.Attrs().Index {
		return nil
	}
	if inErr == nil {
		if err := inside.LinkDel(in); err != nil {
			return fmt.Errorf("removing the stale %s: %w", link.Inside.Name, err)
		}
	}
	if outErr == nil {
		if err := outside.LinkDel(out); err != nil && !isNotFound(err) {
			return fmt.Errorf("removing the stale %s: %w", link.Outside.Name, err)
		}
	}
	file, err := os.Open(namespacePath(link.Inside.Namespace))
	if err != nil {
		return err
	}
	defer file.Close()
	return outside.LinkAdd(&netlink.Veth{
		LinkAttrs:     netlink.LinkAttrs{Name: link.Outside.Name},
		PeerName:      link.Inside.Name,
		PeerNamespace: netlink.NsFd(int(file.Fd())),
	})
}

// configure configures an interface as end specifies; each step is idempotent.
func configure(h *netlink.Handle, link netlink.Link, end End) error {
	if end.MAC != "" {
		mac, err := net.ParseMAC(end.MAC)
		if err != nil {
			return err
		}
		if err := h.LinkSetHardwareAddr(link, mac); err != nil {
			return fmt.Errorf("setting MAC address %s: %w", end.MAC, err)
		}
	}
	if end.MTU != 0 {
		if err := h.LinkSetMTU(link, end.MTU); err != nil {
			return fmt.Errorf("setting MTU %d: %w", end.MTU, err)
		}
	}
	if end.Bridge != "" {
		bridge, err := h.LinkByName(end.Bridge)
		if err != nil {
			return fmt.Errorf("bridge %s: %w", end.Bridge, err)
		}
		if err := h.LinkSetMaster(link, bridge); err != nil {
			return fmt.Errorf("plugging into bridge %s: %w", end.Bridge, err)
		}
	}
	if err := h.LinkSetUp(link); err != nil {
		return fmt.Errorf("setting it up: %w", err)
	}
	return address(h, link, end)
}

func address(h *netlink.Handle, link netlink.Link, end End) error {
	if end.Address != "" {
		addr, err := netlink.ParseAddr(end.Address)
		if err != nil {
			return fmt.Errorf("address %q: %w", end.Address, err)
		}
		if err := h.AddrReplace(link, addr); err != nil {
			return fmt.Errorf("setting address %s: %w", end.Address, err)
		}
	}
	if end.Gateway == "" {
		return nil
	}
	gateway := net.ParseIP(end.Gateway)
	if gateway == nil {
		return fmt.Errorf("gateway %q is not an IP address", end.Gateway)
	}
	if err := h.RouteReplace(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: gateway}); err != nil {
		return fmt.Errorf("setting the default route to %s: %w", end.Gateway, err)
	}
	return nil
}

func isNotFound(err error) bool {
	var notFound netlink.LinkNotFoundError
	return errors.As(err, &notFound)
}
