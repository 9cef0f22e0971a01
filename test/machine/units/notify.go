// SPDX-License-Identifier: Apache-2.0

package units

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// readiness returns a channel that is closed when the service reports that it is up. For services without
// Type=notify, the channel is closed immediately. A service with Type=notify sends its report to socket.
func (r *runner) readiness() (ready <-chan struct{}, closer func(), socket string, err error) {
	up := make(chan struct{})
	if r.kind != "notify" {
		close(up)
		return up, func() {}, "", nil
	}
	dir, err := os.MkdirTemp("", "notify-")
	if err != nil {
		return nil, nil, "", fmt.Errorf("making the notification socket: %w", err)
	}
	socket = filepath.Join(dir, "socket")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		os.RemoveAll(dir)
		return nil, nil, "", fmt.Errorf("making the notification socket: %w", err)
	}
	go listen(conn, up)
	return up, func() { _ = errors.Join(conn.Close(), os.RemoveAll(dir)) }, socket, nil
}

// listen closes up at the first READY=1. After that it only discards messages until the socket is closed.
func listen(conn *net.UnixConn, up chan<- struct{}) {
	buffer := make([]byte, 4096)
	for told := false; ; {
		n, err := conn.Read(buffer)
		if err != nil {
			return
		}
		if !told && slices.Contains(strings.Split(string(buffer[:n]), "\n"), "READY=1") {
			close(up)
			told = true
		}
	}
}
