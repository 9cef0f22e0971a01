// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"
)

type authorityFixture struct {
	authority *Authority
	public    ed25519.PublicKey
}

func newAuthority(t *testing.T) authorityFixture {
	t.Helper()
	data, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	authority, err := ReadAuthority(data)
	if err != nil {
		t.Fatal(err)
	}
	public, err := ParseVerificationKey(data[VerificationKey])
	if err != nil {
		t.Fatal(err)
	}
	return authorityFixture{authority, public}
}

func (a authorityFixture) signer(t *testing.T, cluster string) *Signer {
	t.Helper()
	data, err := a.authority.Issue(cluster)
	if err != nil {
		t.Fatal(err)
	}
	if !a.authority.Issued(cluster, data) || a.authority.Issued("another/"+cluster, data) {
		t.Errorf("Issued does not tell %s from another cluster", cluster)
	}
	signer, err := ReadSigner(data)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// signed returns the contents of a bundle of the fixture that a signer signed.
func (f fixture) signed(t *testing.T, signer *Signer) Contents {
	t.Helper()
	var file bytes.Buffer
	if err := Write(t.Context(), &file, f.contents, bytes.NewReader(f.snapshot), signer,
		f.identity.Recipient()); err != nil {
		t.Fatal(err)
	}
	contents, _, err := read(&file, f.identity)
	if err != nil {
		t.Fatal(err)
	}
	return contents
}

func TestVerify(t *testing.T) {
	f := newFixture(t)
	ours, other := newAuthority(t), newAuthority(t)
	cluster := f.contents.Header.Namespace + "/" + f.contents.Header.Name
	signed := f.signed(t, ours.signer(t, cluster))
	changed := func(change func(*Contents)) Contents {
		c := signed
		signature := *signed.signature
		c.signature = &signature
		change(&c)
		return c
	}
	for name, tt := range map[string]struct {
		contents Contents
		key      ed25519.PublicKey
		want     error
	}{
		"accepts what the signer of the cluster signed": {signed, ours.public, nil},
		"refuses another authority":                     {signed, other.public, ErrSignature},
		"refuses no authority":                          {signed, nil, ErrSignature},
		"refuses the signer of another cluster": {f.signed(t, ours.signer(t, "clusters/other")), ours.public,
			ErrSignature},
		"refuses no signature": {f.signed(t, nil), ours.public, ErrUnsigned},
		"refuses the name of another cluster": {changed(func(c *Contents) { c.Header.Name = "other" }),
			ours.public, ErrSignature},
		"refuses other entries": {changed(func(c *Contents) { c.sum = newEntries().digest() }),
			ours.public, ErrSignature},
		"refuses a certificate for another key": {changed(func(c *Contents) {
			c.signature.Certificate = ours.signer(t, cluster).certificate
		}), ours.public, ErrSignature},
		"refuses a certificate that was changed": {changed(func(c *Contents) {
			c.signature.Certificate.Key = other.public
		}), ours.public, ErrSignature},
		"refuses a certificate without a key": {changed(func(c *Contents) { c.signature.Certificate.Key = nil }),
			ours.public, ErrSignature},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tt.contents.Verify(tt.key); !errors.Is(err, tt.want) || tt.want == nil && err != nil {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
	t.Run("covers every entry", func(t *testing.T) {
		sums := map[string]bool{signed.Digest(): true}
		for _, change := range []func(*fixture){
			func(f *fixture) { f.contents.Header.InfraID = "x" },
			func(f *fixture) { f.contents.Secrets = nil },
			func(f *fixture) { f.contents.Objects = nil },
		} {
			altered := newFixture(t)
			change(&altered)
			sums[altered.signed(t, nil).Digest()] = true
		}
		if len(sums) != 4 {
			t.Errorf("contents that differ have the same digest: %v", sums)
		}
	})
}

func TestKeysThatCannotBeRead(t *testing.T) {
	authority, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	other, err := newAuthority(t).authority.Issue("a/b")
	if err != nil {
		t.Fatal(err)
	}
	issued, err := newAuthority(t).authority.Issue("a/b")
	if err != nil {
		t.Fatal(err)
	}
	_, noAuthority := ReadAuthority(map[string][]byte{AuthorityKey: authority[VerificationKey]})
	_, noSigner := ReadSigner(map[string][]byte{SignerKey: other[SignerKey], SignerCertificate: issued[SignerCertificate]})
	_, noCertificate := ReadSigner(map[string][]byte{SignerKey: other[SignerKey], SignerCertificate: []byte("{")})
	_, noKey := ParseVerificationKey(authority[AuthorityKey])
	for want, err := range map[string]error{
		`key "authority-key": cannot parse the private key`:       noAuthority,
		`key "signer-certificate" does not match the private key`: noSigner,
		`key "signer-certificate": unexpected end`:                noCertificate,
		"not a PEM public key":                                    noKey,
	} {
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
