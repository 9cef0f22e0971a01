// SPDX-License-Identifier: Apache-2.0

// Package pki creates the certificate authorities, certificates, keys and kubeconfigs of a hosted cluster, and reports
// when one of them must be replaced.
package pki

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/md5" //nolint:gosec // It names a key pair, see Hash.
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"
)

const (
	rsaBits = 2048
	// CAValidity is the lifetime of a certificate authority. A successor replaces it step by step; see Rotation.
	CAValidity = 10 * 365 * 24 * time.Hour
	// DefaultValidity is the lifetime of a leaf certificate.
	DefaultValidity = 365 * 24 * time.Hour
	// DefaultRenewBefore is the remaining lifetime at which a leaf certificate is renewed.
	DefaultRenewBefore = 30 * 24 * time.Hour
	// backdate covers node clocks that lag behind the clock of the signer.
	backdate = 5 * time.Minute
)

// KeyPair is a certificate with its private key.
type KeyPair struct {
	// Cert is the parsed certificate.
	Cert *x509.Certificate
	// CertPEM and KeyPEM are the PEM data for a Secret.
	CertPEM, KeyPEM []byte
	// Chain (PEM) leads clients that know only a previous authority to this one. Servers send it together with the
	// certificates that the authority signs. Empty for an authority that has no predecessor.
	Chain []byte
	// Others (PEM) are the authorities that are trusted in addition to this one during a rotation: its predecessor or its
	// successor.
	Others []byte
	key    crypto.Signer
}

// Trust returns the bundle that verifies certificates signed by this authority or by its predecessor.
func (ca *KeyPair) Trust() []byte { return Bundle(ca.CertPEM, ca.Others) }

// sent returns the certificate in the form that is sent to others: with the chain of its signer.
func (ca *KeyPair) sent(leaf *KeyPair) *KeyPair {
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Cert.Raw})
	return &KeyPair{Cert: leaf.Cert, CertPEM: slices.Concat(own, ca.Chain), KeyPEM: leaf.KeyPEM, key: leaf.key}
}

// Name is the subject of a certificate.
type Name struct {
	// CommonName is the user name of a client certificate.
	CommonName string
	// Organizations are the groups of a client certificate.
	Organizations []string
	// OrganizationalUnits mark certificate authorities.
	OrganizationalUnits []string
}

func (n Name) subject() pkix.Name {
	return pkix.Name{CommonName: n.CommonName, Organization: n.Organizations, OrganizationalUnit: n.OrganizationalUnits}
}

// Leaf describes the purpose of a certificate.
type Leaf struct {
	Name
	// Server and Client are the extended key usages; at least one must be set.
	Server, Client bool
	// Hosts are the DNS names and IP addresses that the certificate is valid for.
	Hosts []string
}

// Lifetime defines how long leaf certificates last and when they are renewed.
type Lifetime struct {
	// Validity is the lifetime of a new certificate; zero means DefaultValidity.
	Validity time.Duration
	// CAValidity is the lifetime of a new authority; zero means the constant of that name.
	CAValidity time.Duration
	// RenewAfter is the elapsed fraction of its lifetime (0 to 1) after which a certificate is renewed. Zero means that
	// it is renewed when DefaultRenewBefore is left.
	RenewAfter float64
}

func (l Lifetime) validity() time.Duration {
	if l.Validity == 0 {
		return DefaultValidity
	}
	return l.Validity
}

// expiring reports whether the remaining lifetime of a certificate is so short that it must be renewed.
func (l Lifetime) expiring(cert *x509.Certificate, now time.Time) bool {
	life := cert.NotAfter.Sub(cert.NotBefore)
	if l.RenewAfter > 0 {
		return now.Sub(cert.NotBefore) >= time.Duration(float64(life)*l.RenewAfter)
	}
	// A certificate whose lifetime is shorter than the default margin would be renewed on every reconcile.
	margin := min(DefaultRenewBefore, life/4)
	return cert.NotAfter.Sub(now) <= margin
}

// NewCA creates a self-signed certificate authority. Authorities have RSA keys, because every client supports them.
func NewCA(name Name, now time.Time) (*KeyPair, error) { return newCA(name, CAValidity, now) }

func newCA(name Name, validity time.Duration, now time.Time) (*KeyPair, error) {
	key, err := rsa.GenerateKey(rand.Reader, rsaBits)
	if err != nil {
		return nil, fmt.Errorf("generating the key of CA %q: %w", name.CommonName, err)
	}
	template := &x509.Certificate{
		Subject:               name.subject(),
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(validity),
		KeyUsage:              x509.KeyUsageKeyEncipherment | x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	return sign(template, template, key, key)
}

// Issue creates a certificate that ca signs. Leaves have P-256 keys. A control plane needs two dozen of them, and RSA
// keys would delay its start by several seconds on a small machine.
func (ca *KeyPair) Issue(leaf Leaf, lifetime Lifetime, now time.Time) (*KeyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating the key of certificate %q: %w", leaf.CommonName, err)
	}
	dns, ips := split(leaf.Hosts)
	template := &x509.Certificate{
		Subject:     leaf.subject(),
		NotBefore:   now.Add(-backdate),
		NotAfter:    earlier(now.Add(lifetime.validity()), ca.Cert.NotAfter),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: leaf.usages(),
		DNSNames:    dns,
		IPAddresses: ips,
	}
	return sign(template, ca.Cert, key, ca.key)
}

func (l Leaf) usages() []x509.ExtKeyUsage {
	var usages []x509.ExtKeyUsage
	if l.Server {
		usages = append(usages, x509.ExtKeyUsageServerAuth)
	}
	if l.Client {
		usages = append(usages, x509.ExtKeyUsageClientAuth)
	}
	return usages
}

// cross returns a certificate for the key of next, signed by ca. With it, clients that trust ca also accept what next
// signs.
func (ca *KeyPair) cross(next *KeyPair) ([]byte, error) {
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: next.Cert.Subject, SubjectKeyId: next.Cert.SubjectKeyId,
		NotBefore: next.Cert.NotBefore, NotAfter: earlier(next.Cert.NotAfter, ca.Cert.NotAfter),
		KeyUsage: next.Cert.KeyUsage, BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.Cert, next.key.Public(), ca.key)
	if err != nil {
		return nil, fmt.Errorf("signing CA %q by the one before it: %w", next.Cert.Subject.CommonName, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

func newSerial() (*big.Int, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("choosing a serial number: %w", err)
	}
	return serial, nil
}

func sign(template, parent *x509.Certificate, key, signer crypto.Signer) (*KeyPair, error) {
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, fmt.Errorf("signing certificate %q: %w", template.Subject.CommonName, err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding the key of certificate %q: %w", template.Subject.CommonName, err)
	}
	return Parse(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), keyPEM)
}

func encodeKey(key crypto.Signer) ([]byte, error) {
	if k, ok := key.(*rsa.PrivateKey); ok {
		return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(k)}), nil
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// Parse reads a key pair from PEM and checks that key and certificate belong together.
func Parse(certPEM, keyPEM []byte) (*KeyPair, error) {
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("reading a key pair: %w", err)
	}
	key, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, errors.New("reading a key pair: the private key cannot sign")
	}
	cert, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return nil, fmt.Errorf("reading a certificate: %w", err)
	}
	return &KeyPair{Cert: cert, CertPEM: certPEM, KeyPEM: keyPEM, key: key}, nil
}

// Hash identifies a key pair; it is no secret and protects nothing.
func (ca *KeyPair) Hash() string {
	//nolint:gosec // see above
	sum := md5.Sum(slices.Concat(ca.CertPEM, ca.KeyPEM))
	return hex.EncodeToString(sum[:])
}

// Mismatch describes how pair differs from the given leaf, signer and lifetime; empty if it matches.
func (ca *KeyPair) Mismatch(pair *KeyPair, leaf Leaf, lifetime Lifetime, now time.Time) string {
	dns, ips := split(leaf.Hosts)
	checks := []struct {
		differs bool
		reason  string
	}{
		{lifetime.expiring(pair.Cert, now), "it is about to expire"},
		{now.Before(pair.Cert.NotBefore), "it is not valid yet"},
		{pair.Cert.CheckSignatureFrom(ca.Cert) != nil, "its signer changed"},
		{pair.Cert.Subject.CommonName != leaf.CommonName, "its common name changed"},
		{!sameSet(pair.Cert.Subject.Organization, leaf.Organizations), "its organizations changed"},
		{!sameSet(pair.Cert.DNSNames, dns), "its DNS names changed"},
		{!sameAddresses(pair.Cert.IPAddresses, ips), "its IP addresses changed"},
		{!slices.Equal(pair.Cert.ExtKeyUsage, leaf.usages()), "its usages changed"},
	}
	for _, check := range checks {
		if check.differs {
			return check.reason
		}
	}
	return ""
}

// split separates IP addresses from DNS names and drops empty and repeated hosts.
func split(hosts []string) (dns []string, ips []net.IP) {
	for i, host := range hosts {
		if host == "" || slices.Contains(hosts[:i], host) {
			continue
		}
		if ip := net.ParseIP(host); ip != nil {
			ips = append(ips, ip)
		} else {
			dns = append(dns, host)
		}
	}
	return dns, ips
}

func sameSet(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}

func sameAddresses(a, b []net.IP) bool {
	text := func(ips []net.IP) []string {
		var all []string
		for _, ip := range ips {
			all = append(all, ip.String())
		}
		return all
	}
	return sameSet(text(a), text(b))
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Bundle joins PEM certificates, each once, in the order given.
func Bundle(certificates ...[]byte) []byte {
	var bundle []byte
	for _, c := range certificates {
		c = bytes.TrimSpace(c)
		if len(c) == 0 || bytes.Contains(bundle, c) {
			continue
		}
		bundle = append(append(bundle, c...), '\n')
	}
	return bundle
}
