// SPDX-License-Identifier: Apache-2.0

// Package churn adds and removes addresses on a test's interface, as pods do on a node.
package churn

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
)

// pods is the number of addresses. It is large enough that the kernel reports them in several messages.
const pods = 1000

// Start adds a thousand addresses of 10.0.0.0/16 to the interface. Until the test ends, it removes and adds them again,
// one at a time.
func Start(t *testing.T, handle *netlink.Handle, link netlink.Link) {
	t.Helper()
	all := addresses()
	for _, address := range all {
		if err := handle.AddrAdd(link, address); err != nil {
			t.Fatalf("giving the interface %s: %v", address, err)
		}
	}
	done, stopped := make(chan struct{}), make(chan error, 1)
	go func() { stopped <- comeAndGo(handle, link, all, done) }()
	t.Cleanup(func() {
		close(done)
		if err := <-stopped; err != nil {
			t.Errorf("having addresses come and go: %v", err)
		}
	})
}

func comeAndGo(handle *netlink.Handle, link netlink.Link, all []*netlink.Addr, done <-chan struct{}) error {
	pace := time.NewTicker(time.Millisecond)
	defer pace.Stop()
	for i := 0; ; i++ {
		select {
		case <-done:
			return nil
		case <-pace.C:
		}
		address := all[i%len(all)]
		if err := handle.AddrDel(link, address); err != nil {
			return err
		}
		if err := handle.AddrAdd(link, address); err != nil {
			return err
		}
	}
}

func addresses() []*netlink.Addr {
	var all []*netlink.Addr
	for address := netip.MustParseAddr("10.0.0.0"); len(all) < pods; address = address.Next() {
		all = append(all, &netlink.Addr{IPNet: &net.IPNet{IP: address.AsSlice(), Mask: net.CIDRMask(32, 32)}})
	}
	return all
}
