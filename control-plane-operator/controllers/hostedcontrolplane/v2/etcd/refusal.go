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

// alertTimeout is how long a server that took a connection has for saying that it refuses the client. It says so at once or never.
const alertTimeout = 2 * time.Second

// refusal is what servers say to a client whose certificate they refuse; else it is the error that there was. By TLS 1.3 a server says it after
// the handshake and hangs up, and a client that writes by then meets a broken pipe instead of the reason: this one only listens.
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

// listen connects and returns what ends the silence.
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
