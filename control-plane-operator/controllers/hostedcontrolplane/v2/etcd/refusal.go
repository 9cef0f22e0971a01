// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"time"
)

// alertTimeout is how long a server that accepted a connection has to reject the client. It does so immediately or
// never.
const alertTimeout = 2 * time.Second

// refusal returns the TLS alert of a server that rejects the client's certificate; otherwise it returns the given
// error. In TLS 1.3 a server sends the alert after the handshake and closes the connection. A client that writes at
// that moment gets a broken pipe instead of the alert, so this one only reads.
func refusal(ctx context.Context, config *tls.Config, endpoints []string, otherwise error) error {
	for _, endpoint := range endpoints {
		u, err := url.Parse(endpoint)
		if err != nil {
			continue
		}
		var alert *net.OpError
		if err := listen(ctx, config, u.Host); errors.As(err, &alert) && alert.Op == "remote error" {
			return err
		}
	}
	return otherwise
}

// listen connects and returns the error of the first read.
func listen(ctx context.Context, config *tls.Config, address string) error {
	ctx, cancel := context.WithTimeout(ctx, alertTimeout)
	defer cancel()
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	deadline, _ := ctx.Deadline()
	if err := conn.SetReadDeadline(deadline); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}
