// SPDX-License-Identifier: Apache-2.0

// Package pki creates the certificates of the embedded environment and stores them in a folder, so that the next start
// uses the same certificates.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// lifetime is the lifetime of every certificate; the environment runs for hours.
const lifetime = 365 * 24 * time.Hour

// renewBefore is how long before its expiry a certificate is replaced.
const renewBefore = 30 * 24 * time.Hour

// Authority signs certificates.
type Authority struct {
	// PEM is the authority's own certificate.
	PEM []byte

	dir         string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// Leaf describes a certificate that is not an authority's.
type Leaf struct {
	// Name is the file name without its extension.
	Name string
	// User is the common name, which a kube-apiserver uses as the user name.
	User string
	// Groups are the organizations, which a kube-apiserver uses as the groups.
	Groups []string
	// Hosts are the IP addresses and DNS names of a server.
	Hosts []string
}

// Pair is a certificate and its key in PEM.
type Pair struct {
	Certificate, Key []byte
}

// Ensure reads the authority NAME.crt and NAME.key in dir, or creates it.
func Ensure(dir, name string) (*Authority, error) {
	pair, certificate, err := ensure(dir, name, func(key *ecdsa.PrivateKey) ([]byte, error) {
		template := &x509.Certificate{
			Subject:               pkix.Name{CommonName: name},
			KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
			BasicConstraintsValid: true,
			IsCA:                  true,
		}
		return sign(template, template, key, key)
	})
	if err != nil {
		return nil, fmt.Errorf("making the certificate authority %s: %w", name, err)
	}
	key, err := parseKey(pair.Key)
	if err != nil {
		return nil, fmt.Errorf("reading the key of the certificate authority %s: %w", name, err)
	}
	return &Authority{PEM: pair.Certificate, dir: dir, certificate: certificate, key: key}, nil
}

// In returns the same authority with another folder for its leaves.
func (a *Authority) In(dir string) *Authority {
	there := *a
	there.dir = dir
	return &there
}

// Issue reads the certificate and key of the leaf in the authority's folder. It creates them if they are missing,
// about to expire, signed by another authority or valid for other hosts.
func (a *Authority) Issue(leaf Leaf) (Pair, error) {
	pair, _, err := ensure(a.dir, leaf.Name, func(key *ecdsa.PrivateKey) ([]byte, error) {
		template := &x509.Certificate{
			Subject:     pkix.Name{CommonName: leaf.User, Organization: leaf.Groups},
			KeyUsage:    x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}
		template.IPAddresses, template.DNSNames = splitHosts(leaf.Hosts)
		return sign(template, a.certificate, key, a.key)
	}, a.signed, leaf.describes)
	if err != nil {
		return Pair{}, fmt.Errorf("issuing certificate %s: %w", leaf.Name, err)
	}
	return pair, nil
}

func (a *Authority) signed(certificate *x509.Certificate) bool {
	return certificate.CheckSignatureFrom(a.certificate) == nil
}

func (l Leaf) describes(certificate *x509.Certificate) bool {
	addresses, names := splitHosts(l.Hosts)
	return certificate.Subject.CommonName == l.User &&
		slices.Equal(certificate.Subject.Organization, l.Groups) &&
		slices.Equal(certificate.DNSNames, names) &&
		slices.EqualFunc(certificate.IPAddresses, addresses, net.IP.Equal)
}

func splitHosts(hosts []string) (addresses []net.IP, names []string) {
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			addresses = append(addresses, ip)
		} else {
			names = append(names, host)
		}
	}
	return addresses, names
}

// ensure reads the pair if it exists and passes every check; otherwise it creates it.
func ensure(dir, name string, issue func(*ecdsa.PrivateKey) ([]byte, error), checks ...func(*x509.Certificate) bool) (Pair, *x509.Certificate, error) {
	pair, certificate, err := load(dir, name)
	if err == nil && usable(certificate, checks) {
		return pair, certificate, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Pair{}, nil, err
	}
	key, keyPEM, err := newKey()
	if err != nil {
		return Pair{}, nil, err
	}
	der, err := issue(key)
	if err != nil {
		return Pair{}, nil, err
	}
	pair = Pair{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), Key: keyPEM}
	if err := store(dir, name, pair); err != nil {
		return Pair{}, nil, err
	}
	certificate, err = x509.ParseCertificate(der)
	return pair, certificate, err
}

func usable(certificate *x509.Certificate, checks []func(*x509.Certificate) bool) bool {
	for _, check := range checks {
		if !check(certificate) {
			return false
		}
	}
	return time.Until(certificate.NotAfter) > renewBefore
}

// load also returns fs.ErrNotExist for an incomplete pair.
func load(dir, name string) (Pair, *x509.Certificate, error) {
	certificate, err := os.ReadFile(filepath.Join(dir, name+".crt"))
	if err != nil {
		return Pair{}, nil, err
	}
	key, err := os.ReadFile(filepath.Join(dir, name+".key"))
	if err != nil {
		return Pair{}, nil, err
	}
	block, _ := pem.Decode(certificate)
	if block == nil {
		return Pair{}, nil, fs.ErrNotExist
	}
	parsed, err := x509.ParseCertificate(block.Bytes)
	return Pair{Certificate: certificate, Key: key}, parsed, err
}

// store writes the key first: a certificate without its key would be taken for a complete pair.
func store(dir, name string, pair Pair) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	base := filepath.Join(dir, name)
	if err := os.Remove(base + ".crt"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.WriteFile(base+".key", pair.Key, 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(base+".crt.new", pair.Certificate, 0o644); err != nil {
		return err
	}
	return os.Rename(base+".crt.new", base+".crt")
}

func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

func parseKey(data []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, errors.New("not in PEM format")
	}
	return x509.ParseECPrivateKey(block.Bytes)
}

func sign(template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	// The extra hour lets a machine whose clock is behind trust the certificate.
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().Add(lifetime)
	return x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
}
