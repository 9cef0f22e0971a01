// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/openshift/hypershift/tunnel/agent"
	"github.com/openshift/hypershift/tunnel/frame"
	"github.com/openshift/hypershift/tunnel/server"
)

// serverName is the name in the certificates of servers.
const serverName = "tunnel.test"

// fixture is a cluster with API servers, nodes, and a destination that returns what it receives. The addresses of the
// cluster network, 10.0.0.0/8, lead to this host.
type fixture struct {
	testing.TB

	ca, otherCA *authority
	// echo is the port of a destination that returns what it receives, and silent of one that does not answer.
	echo, silent string
	// balanced are the addresses of the servers behind the load balancer.
	mu       sync.Mutex
	balanced []string
	turn     int
}

func newFixture(tb testing.TB) *fixture {
	tb.Helper()
	f := &fixture{TB: tb, ca: newAuthority(tb), otherCA: newAuthority(tb)}
	f.echo, f.silent = f.listenTo(func(conn net.Conn) { _, _ = io.Copy(conn, conn) }), f.listenTo(func(conn net.Conn) {
		_, _ = io.Copy(io.Discard, conn)
	})
	return f
}

// listenTo returns the port of a destination.
func (f *fixture) listenTo(serve func(net.Conn)) string {
	listener := f.listen("tcp", "127.0.0.1:0")
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				serve(conn)
				_ = conn.Close()
			}()
		}
	}()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return port
}

func (f *fixture) listen(network, address string) net.Listener {
	f.Helper()
	listener, err := net.Listen(network, address)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = listener.Close() })
	return listener
}

// shortDir returns a folder. The path of a Unix socket has at most 107 bytes, and those of TempDir have the test's name.
func (f *fixture) shortDir() string {
	f.Helper()
	dir, err := os.MkdirTemp("", "tunnel")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// apiServer is an API server with its end of the tunnel.
type apiServer struct {
	*server.Server

	socket, address string
	stop            context.CancelFunc
}

func (f *fixture) apiServer(id string, servers int, edit ...func(*server.Config)) *apiServer {
	f.Helper()
	config := server.Config{
		ID: id, Servers: servers, TLS: f.files(f.ca, serverName, "").Server(), Log: logr.Discard(),
		ClusterNetworks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		Direct: func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("no route from the control plane")
		},
	}
	for _, change := range edit {
		change(&config)
	}
	ctx, stop := context.WithCancel(f.Context())
	s := &apiServer{Server: server.New(config), socket: filepath.Join(f.shortDir(), "s"), stop: stop}
	agents := f.listen("tcp", "127.0.0.1:0")
	s.address = agents.Addr().String()
	go func() { _ = s.ServeAgents(ctx, agents) }()
	api := f.listen("unix", s.socket)
	go func() { _ = s.ServeAPI(ctx, api) }()
	f.mu.Lock()
	f.balanced = append(f.balanced, s.address)
	f.mu.Unlock()
	return s
}

// connect opens a connection as the API server does. It returns the answer to CONNECT as an error.
func (s *apiServer) connect(destination string) (net.Conn, error) {
	conn, err := net.Dial("unix", s.socket)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", destination)
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodConnect})
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body)
		return nil, errors.Join(fmt.Errorf("%s: %s", response.Status, text), conn.Close())
	}
	return conn, nil
}

// ask sends a message to the destination and checks the answer.
func ask(conn net.Conn, message string) error {
	answer := make([]byte, len(message))
	if _, err := conn.Write([]byte(message)); err != nil {
		return err
	}
	if _, err := io.ReadFull(conn, answer); err != nil {
		return err
	}
	if string(answer) != message {
		return fmt.Errorf("sent %q, received %q", message, answer)
	}
	return nil
}

// request opens a connection, asks once and closes it.
func (s *apiServer) request(destination string) error {
	conn, err := s.connect(destination)
	if err != nil {
		return err
	}
	return errors.Join(ask(conn, "hello"), conn.Close())
}

// node is a node with an agent.
type node struct {
	*agent.Agent

	// dialed counts the connections to destinations.
	dialed atomic.Int64
	// cut makes the network lose all packets between the node and the servers.
	cut  atomic.Bool
	stop context.CancelFunc
	// done is closed when the agent ended, with the error in err.
	done chan struct{}
	err  error
}

// node starts an agent. network is the network of its pods.
func (f *fixture) node(name, network string, edit ...func(*agent.Config)) *node {
	f.Helper()
	n := &node{done: make(chan struct{})}
	files := f.files(f.ca, "system:node:"+name, "system:nodes")
	config := agent.Config{
		Addresses: []string{"balancer:1"}, Grace: time.Minute, Log: logr.Discard(),
		ClusterNetworks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		TLS:             func() (*tls.Config, error) { return files.Client(serverName) },
		Networks:        func() ([]netip.Prefix, error) { return []netip.Prefix{netip.MustParsePrefix(network)}, nil },
		Dial:            func(ctx context.Context, _, address string) (net.Conn, error) { return f.dial(ctx, n, address) },
	}
	for _, change := range edit {
		change(&config)
	}
	ctx, stop := context.WithCancel(context.Background())
	n.Agent, n.stop = agent.New(config), stop
	go func() {
		n.err = n.Run(ctx)
		close(n.done)
	}()
	f.Cleanup(stop)
	return n
}

// dial is the network of a node: the load balancer, the cluster network, or nothing.
func (f *fixture) dial(ctx context.Context, n *node, address string) (net.Conn, error) {
	dialer := net.Dialer{}
	if strings.HasPrefix(address, "10.") {
		n.dialed.Add(1)
		_, port, _ := net.SplitHostPort(address)
		return dialer.DialContext(ctx, "tcp", "127.0.0.1:"+port)
	}
	if address != "balancer:1" {
		return nil, errors.New("no route to " + address)
	}
	f.mu.Lock()
	chosen := f.balanced[f.turn%len(f.balanced)]
	f.turn++
	f.mu.Unlock()
	conn, err := dialer.DialContext(ctx, "tcp", chosen)
	if err != nil || n.cut.Load() {
		return nil, errors.New("no route to the load balancer")
	}
	return &cuttable{Conn: conn, cut: &n.cut}, nil
}

// cuttable is a connection that loses what it sends and receives while it is cut.
type cuttable struct {
	net.Conn

	cut *atomic.Bool
}

func (c *cuttable) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err != nil || !c.cut.Load() {
			return n, err
		}
	}
}

func (c *cuttable) Write(p []byte) (int, error) {
	if c.cut.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// authority is a certificate authority.
type authority struct {
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
}

func newAuthority(tb testing.TB) *authority {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "signer"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		tb.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		tb.Fatal(err)
	}
	return &authority{key, certificate}
}

// files writes a certificate for a user or a server, signed by an authority, and the fixture's authority.
func (f *fixture) files(signer *authority, user, group string) frame.Files {
	f.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: user}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{serverName},
	}
	if group != "" {
		template.Subject.Organization = []string{group}
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, signer.certificate, key.Public(), signer.key)
	if err != nil {
		f.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		f.Fatal(err)
	}
	dir := f.TempDir()
	pair, ca := filepath.Join(dir, "pair.pem"), filepath.Join(dir, "ca.pem")
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})...)
	trusted := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.ca.certificate.Raw})
	if err := errors.Join(os.WriteFile(pair, text, 0o600), os.WriteFile(ca, trusted, 0o600)); err != nil {
		f.Fatal(err)
	}
	return frame.Files{Certificate: pair, Key: pair, Authorities: ca}
}
