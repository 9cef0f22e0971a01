// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
)

// ports counts those that this process was given. Processes that start after one another begin far from each other.
var ports atomic.Int64

func init() { ports.Store(int64(os.Getpid()) * 97) }

// FreePort is a TCP port of the loopback that nobody listens on, and that no other process is given while this one lives. It lies below those
// that the kernel gives to connections (net.ipv4.ip_local_port_range, 32768 and up) and below node ports, so that none of the many connections
// of a test run has it before the test's server does.
func FreePort(t testing.TB) int {
	t.Helper()
	var err error
	for range 100 {
		port := int(10000 + ports.Add(1)%20000)
		if err = reserve(t, port); err != nil {
			continue
		}
		var listener net.Listener
		if listener, err = new(net.ListenConfig).Listen(t.Context(), "tcp", address(port)); err == nil {
			listener.Close()
			return port
		}
	}
	t.Fatalf("no port is free: %v", err)
	return 0
}

// reserved holds what reserve opened.
var reserved sync.Map

// reserve keeps a port from tests of other processes until this one ends: between the choice of a port and the server that listens on it lie
// seconds on a busy machine. Of a socket with a name of the kernel (it is no file) there can be but one.
func reserve(t testing.TB, port int) error {
	t.Helper()
	name, err := new(net.ListenConfig).Listen(t.Context(), "unix", "@hypershift-test-port-"+strconv.Itoa(port))
	if err == nil {
		reserved.Store(port, name)
	}
	return err
}

// FreeAddress is the loopback with a FreePort.
func FreeAddress(t testing.TB) string {
	t.Helper()
	return address(FreePort(t))
}

// loopback is where all servers of a test listen.
const loopback = "127.0.0.1"

func address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }
