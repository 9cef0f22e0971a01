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

// ports counts the ports that this process has tried. Processes with consecutive IDs start far apart.
var ports atomic.Int64

func init() { ports.Store(int64(os.Getpid()) * 97) }

// FreePort returns a TCP port of the loopback address on which no process listens. Other test processes do not get it
// while this one lives. The port is below the kernel's range for outgoing connections (net.ipv4.ip_local_port_range,
// 32768 and up) and below node ports. So no connection of a test run takes it before the test's server does.
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

// reserved holds the sockets that reserve opened.
var reserved sync.Map

// reserve reserves a port until this process ends. On a busy machine, seconds pass between the choice of a port and the
// start of its server. Only one process can hold an abstract unix socket (a name in the kernel, not a file).
func reserve(t testing.TB, port int) error {
	t.Helper()
	name, err := new(net.ListenConfig).Listen(t.Context(), "unix", "@hypershift-test-port-"+strconv.Itoa(port))
	if err == nil {
		reserved.Store(port, name)
	}
	return err
}

// FreeAddress returns the loopback address with a FreePort.
func FreeAddress(t testing.TB) string {
	t.Helper()
	return address(FreePort(t))
}

// loopback is the address on which all servers of a test listen.
const loopback = "127.0.0.1"

func address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }
