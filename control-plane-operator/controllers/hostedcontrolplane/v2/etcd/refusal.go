// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/openshift/hypershift/support/addressguard"
)

// alertTimeout is how long a server that accepted a connection has to reject the client. It does so immediately or
// never.
const alertTimeout = 2 * time.Second

// asker connects to an etcd that the user provides.
type asker struct {
	tls *tls.Config
	// net applies the address policy.
	net net.Dialer
	// refused reports that the address policy blocked a connection. It is recorded here because gRPC drops the cause.
	refused atomic.Bool
}

// dial connects to host:port, which gRPC passes as the user wrote it.
func (a *asker) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := a.net.DialContext(ctx, "tcp", address)
	var refused *addressguard.RefusedError
	if errors.As(err, &refused) {
		a.refused.Store(true)
	}
	return conn, err
}

// refusal returns the TLS alert of a server that rejects the client's certificate; otherwise it returns the given
// error. In TLS 1.3 a server sends the alert after the handshake and closes the connection. A client that writes at
// that moment gets a broken pipe instead of the alert, so refusal only reads.
func (a *asker) refusal(ctx context.Context, endpoints []string, otherwise error) error {
	for _, endpoint := range endpoints {
		u, err := url.Parse(endpoint)
		if err != nil {
			continue
		}
		var alert *net.OpError
		if err := a.listen(ctx, u.Host); errors.As(err, &alert) && alert.Op == "remote error" {
			return err
		}
	}
	return otherwise
}

// listen connects and returns the error of the first read.
func (a *asker) listen(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, alertTimeout)
	defer cancel()
	conn, err := (&tls.Dialer{NetDialer: &a.net, Config: a.tls}).DialContext(ctx, "tcp", address)
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
