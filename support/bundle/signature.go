// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"hash"
)

// A bundle is encrypted to public keys, so anyone with a public key can create one. Its signature shows which
// management cluster created it:
//
// 	authority (one for each management cluster)
// 	  -- certifies --> signer (one for each hosted cluster)
// 	  -- signs --> bundle
//
// The authority's key stays in the namespace of the operator. A control plane has only the key of its own signer, and
// cannot sign for another cluster.

// The keys of the Secret of an authority, in the namespace of the operator.
const (
	// AuthorityKey is the private key: PKCS #8 in PEM, of Ed25519.
	AuthorityKey = "authority-key"
	// VerificationKey is the public key in PEM. To restore on another management cluster, a user needs this key or the
	// checksum of the bundle.
	VerificationKey = "verification-key"
)

// The keys of the Secret of a signer, in the hosted namespace.
const (
	// SignerKey is the private key: PKCS #8 in PEM, of Ed25519.
	SignerKey = "signer-key"
	// SignerCertificate is a Certificate in JSON.
	SignerCertificate = "signer-certificate"
)

// These errors are the reasons why a signature is rejected.
var (
	// ErrUnsigned means that the bundle has no signature. Release 0.1.0 did not sign bundles.
	ErrUnsigned = errors.New("the backup is not signed")
	// ErrSignature means that this authority did not sign the bundle for its cluster.
	ErrSignature = errors.New("the backup is not signed by this management cluster")
)

// Signed data begins with its purpose, so that a signature is not valid for another purpose.
const (
	certificateContext = "hypershift.openshift.io/backup-signer/v1\n"
	contentsContext    = "hypershift.openshift.io/backup/v1\n"
)

// Certificate states that a key is the signer of a hosted cluster's bundles.
type Certificate struct {
	// Cluster is the HostedCluster, as namespace/name.
	Cluster string `json:"cluster"`
	// Key is the signer's public key.
	Key ed25519.PublicKey `json:"key"`
	// Signature is the authority's signature.
	Signature []byte `json:"signature"`
}

func (c Certificate) signed() []byte {
	return fmt.Appendf(nil, "%s%d\n%s\n%x\n", certificateContext, len(c.Cluster), c.Cluster, []byte(c.Key))
}

// Signature is the signature of a bundle.
type Signature struct {
	Certificate Certificate `json:"certificate"`
	// Value is the signer's signature.
	Value []byte `json:"value"`
}

// Authority certifies signers.
type Authority struct{ key ed25519.PrivateKey }

// NewAuthority returns the data of a new authority's Secret.
func NewAuthority() (map[string][]byte, error) {
	public, encoded, err := newKey()
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return nil, fmt.Errorf("encoding the public key of backups: %w", err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	return map[string][]byte{AuthorityKey: encoded, VerificationKey: text}, nil
}

// ReadAuthority parses the data of an authority's Secret.
func ReadAuthority(data map[string][]byte) (*Authority, error) {
	key, err := decodePrivate(data[AuthorityKey])
	if err != nil {
		return nil, fmt.Errorf("key %q: %w", AuthorityKey, err)
	}
	return &Authority{key: key}, nil
}

// Issue returns the data of the Secret of a new signer for a cluster.
func (a *Authority) Issue(cluster string) (map[string][]byte, error) {
	public, encoded, err := newKey()
	if err != nil {
		return nil, err
	}
	certificate := Certificate{Cluster: cluster, Key: public}
	certificate.Signature = ed25519.Sign(a.key, certificate.signed())
	text, err := json.Marshal(certificate)
	if err != nil {
		return nil, fmt.Errorf("encoding the certificate of a key that signs backups: %w", err)
	}
	return map[string][]byte{SignerKey: encoded, SignerCertificate: text}, nil
}

// Issued reports whether data belongs to a signer of the cluster that this authority certified.
func (a *Authority) Issued(cluster string, data map[string][]byte) bool {
	signer, err := ReadSigner(data)
	return err == nil && signer.certificate.Cluster == cluster && a.verifies(signer.certificate)
}

func (a *Authority) verifies(certificate Certificate) bool {
	public, ok := a.key.Public().(ed25519.PublicKey)
	return ok && ed25519.Verify(public, certificate.signed(), certificate.Signature)
}

// Signer signs bundles of one hosted cluster.
type Signer struct {
	key         ed25519.PrivateKey
	certificate Certificate
}

// ReadSigner parses the data of a signer's Secret.
func ReadSigner(data map[string][]byte) (*Signer, error) {
	key, err := decodePrivate(data[SignerKey])
	if err != nil {
		return nil, fmt.Errorf("key %q: %w", SignerKey, err)
	}
	s := &Signer{key: key}
	if err := json.Unmarshal(data[SignerCertificate], &s.certificate); err != nil {
		return nil, fmt.Errorf("key %q: %w", SignerCertificate, err)
	}
	if public, ok := key.Public().(ed25519.PublicKey); !ok || !public.Equal(s.certificate.Key) {
		return nil, fmt.Errorf("key %q does not match the private key", SignerCertificate)
	}
	return s, nil
}

func (s *Signer) sign(sum digest) Signature {
	return Signature{Certificate: s.certificate, Value: ed25519.Sign(s.key, sum.signed())}
}

// ParseVerificationKey parses the public key of an authority.
func ParseVerificationKey(text []byte) (ed25519.PublicKey, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PUBLIC KEY" {
		return nil, errors.New("not a PEM public key")
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, errors.New("cannot parse the public key")
	}
	key, ok := parsed.(ed25519.PublicKey)
	if !ok {
		return nil, errors.New("not an Ed25519 public key")
	}
	return key, nil
}

// Verify returns nil if the authority with this public key certified the contents' signer for the cluster in their
// header. The signature covers the complete bundle: the header has the checksum of the snapshot.
func (c Contents) Verify(authority ed25519.PublicKey) error {
	if c.signature == nil {
		return ErrUnsigned
	}
	certificate := c.signature.Certificate
	switch {
	case len(authority) != ed25519.PublicKeySize, len(certificate.Key) != ed25519.PublicKeySize,
		certificate.Cluster != c.Header.Namespace+"/"+c.Header.Name,
		!ed25519.Verify(authority, certificate.signed(), certificate.Signature),
		!ed25519.Verify(certificate.Key, c.sum.signed(), c.signature.Value):
		return ErrSignature
	}
	return nil
}

// Digest returns the hexadecimal checksum of the signed entries. It is the same each time a bundle is read.
func (c Contents) Digest() string { return hex.EncodeToString(c.sum.value) }

// digest is the checksum of the entries of a bundle.
type digest struct{ value []byte }

func (d digest) signed() []byte { return append([]byte(contentsContext), d.value...) }

// entries computes a digest.
type entries struct{ hash hash.Hash }

func newEntries() entries { return entries{hash: sha256.New()} }

func (e entries) add(name string, content []byte) {
	fmt.Fprintf(e.hash, "%s\n%d\n", name, len(content))
	_, _ = e.hash.Write(content)
}

func (e entries) digest() digest { return digest{value: e.hash.Sum(nil)} }

// newKey generates a key. It returns the public part, and the private part in PEM.
func newKey() (ed25519.PublicKey, []byte, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("generating a key that signs backups: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding a key that signs backups: %w", err)
	}
	return public, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

func decodePrivate(text []byte) (ed25519.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("not a PEM private key")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("cannot parse the private key")
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, errors.New("not an Ed25519 private key")
	}
	return key, nil
}
