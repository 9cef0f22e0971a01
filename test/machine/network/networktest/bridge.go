// SPDX-License-Identifier: Apache-2.0

// Package networktest provides the network of a test's machines: a bridge in its own network namespace, with servers
// that the machines can reach.
package networktest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/openshift/hypershift/test/machine/network"
)

// Name is the name of the bridge in its namespace.
const Name = "br0"

// Bridge is the bridge that the machines are connected to. Its Address is the first of their network, a /24, without
// the prefix length.
type Bridge struct{ Namespace, Address string }

// Make recreates the namespace and the bridge, and removes them when the test ends.
func (b Bridge) Make(t testing.TB) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("namespace %s: %v", b.Namespace, err)
		}
	}
	must(network.RemoveNamespace(b.Namespace))
	must(network.EnsureNamespace(b.Namespace))
	t.Cleanup(func() {
		if err := network.RemoveNamespace(b.Namespace); err != nil {
			t.Errorf("removing namespace %s: %v", b.Namespace, err)
		}
	})
	must(network.Ensure(b.Namespace, network.Config{Bridges: []network.Bridge{{Name: Name, Address: b.Address + "/24"}}}))
}

// Serve runs a server at the bridge's address until the test ends; start is httptest.Server's Start or StartTLS.
func (b Bridge) Serve(t testing.TB, handler http.Handler, start func(*httptest.Server)) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Listener.Close()
	if err := network.Do(b.Namespace, func() (err error) {
		server.Listener, err = new(net.ListenConfig).Listen(t.Context(), "tcp", b.Address+":0")
		return err
	}); err != nil {
		t.Fatalf("listening at the bridge of namespace %s: %v", b.Namespace, err)
	}
	server.TLS = &tls.Config{Certificates: []tls.Certificate{b.Certificate(t)}}
	start(server)
	t.Cleanup(server.Close)
	return server
}

// Certificate returns a self-signed certificate for the address of the bridge, valid for one hour.
func (b Bridge) Certificate(t testing.TB) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.ParseIP(b.Address)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// PEM encodes a DER certificate for a machine that must trust it.
func PEM(certificate []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
}
