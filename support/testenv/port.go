// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
)

// ports counts those that this process was given. Processes that start after one another begin far from each other.
var ports atomic.Int64

func init() { ports.Store(int64(os.Getpid()) * 97) }

// FreePort is a TCP port of the loopback that nobody listens on. It lies below those that the kernel gives to connections
// (net.ipv4.ip_local_port_range, 32768 and up) and below node ports, so that none of the many connections of a test run has it before
// the test's server does.
func FreePort(t testing.TB) int {
	t.Helper()
	var err error
	for range 100 {
		port := int(10000 + ports.Add(1)%20000)
		var listener net.Listener
		if listener, err = new(net.ListenConfig).Listen(t.Context(), "tcp", address(port)); err == nil {
			listener.Close()
			return port
		}
	}
	t.Fatalf("no port is free: %v", err)
	return 0
}

// FreeAddress is the loopback with a FreePort.
func FreeAddress(t testing.TB) string {
	t.Helper()
	return address(FreePort(t))
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
