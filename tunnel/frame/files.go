// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// Files names the files of one end of the tunnel. They are read for each connection, so that renewed certificates and
// rotated authorities need no restart.
type Files struct {
	// Certificate and Key are the certificate and private key of this end, in PEM; both may be in one file.
	Certificate, Key string
	// Authorities has the certificate authorities of the other end.
	Authorities string
}

// Server returns the configuration of a server, which requires a client certificate.
func (f Files) Server() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			pair, authorities, err := f.load()
			if err != nil {
				return nil, err
			}
			// A resumed session would skip the authorities of today.
			return &tls.Config{
				MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, SessionTicketsDisabled: true,
				ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authorities,
			}, nil
		},
	}
}

// Client returns the configuration of the next connection of an agent to a server with the given name.
func (f Files) Client(serverName string) (*tls.Config, error) {
	pair, authorities, err := f.load()
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, RootCAs: authorities, ServerName: serverName,
	}, nil
}

func (f Files) load() (tls.Certificate, *x509.CertPool, error) {
	pair, err := tls.LoadX509KeyPair(f.Certificate, f.Key)
	if err != nil {
		return pair, nil, fmt.Errorf("reading the certificate of the tunnel: %w", err)
	}
	raw, err := os.ReadFile(f.Authorities)
	if err != nil {
		return pair, nil, fmt.Errorf("reading the certificate authorities of the tunnel: %w", err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(raw) {
		return pair, nil, errors.New("file " + f.Authorities +
			" has no certificate authority of the tunnel; write PEM certificates into it")
	}
	return pair, authorities, nil
}
