// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func parse(g Gomega, data []byte) *x509.Certificate {
	block, _ := pem.Decode(data)
	g.Expect(block).NotTo(BeNil())
	certificate, err := x509.ParseCertificate(block.Bytes)
	g.Expect(err).NotTo(HaveOccurred())
	return certificate
}

var leaf = Leaf{Name: "server", User: "alice", Groups: []string{"admins"}, Hosts: []string{"192.0.2.1", "example.test"}}

func TestIssue(t *testing.T) {
	t.Run("When a certificate is issued, it should be trusted for its hosts and have the user and groups", func(t *testing.T) {
		g := NewWithT(t)
		authority, err := Ensure(t.TempDir(), "ca")
		g.Expect(err).NotTo(HaveOccurred())
		pair, err := authority.Issue(leaf)
		g.Expect(err).NotTo(HaveOccurred())
		certificate := parse(g, pair.Certificate)
		g.Expect(certificate.Subject.CommonName).To(Equal("alice"))
		g.Expect(certificate.Subject.Organization).To(Equal([]string{"admins"}))
		roots := x509.NewCertPool()
		g.Expect(roots.AppendCertsFromPEM(authority.PEM)).To(BeTrue())
		for _, host := range leaf.Hosts {
			_, err = certificate.Verify(x509.VerifyOptions{Roots: roots, DNSName: host})
			g.Expect(err).NotTo(HaveOccurred())
		}
		_, err = certificate.Verify(x509.VerifyOptions{Roots: roots, DNSName: "other.test"})
		g.Expect(err).To(HaveOccurred())
	})
	t.Run("When a certificate is requested again, it should be the same", func(t *testing.T) {
		g := NewWithT(t)
		dir := t.TempDir()
		authority, err := Ensure(dir, "ca")
		g.Expect(err).NotTo(HaveOccurred())
		first, err := authority.Issue(leaf)
		g.Expect(err).NotTo(HaveOccurred())
		again, err := Ensure(dir, "ca")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again.PEM).To(Equal(authority.PEM))
		second, err := again.Issue(leaf)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(second).To(Equal(first))
	})
	for name, change := range map[string]func(*Leaf){
		"other hosts":  func(l *Leaf) { l.Hosts = []string{"192.0.2.9"} },
		"another user": func(l *Leaf) { l.User = "bob" },
		"other groups": func(l *Leaf) { l.Groups = nil },
	} {
		t.Run("When the certificate must be for "+name+", it should be issued again", func(t *testing.T) {
			g := NewWithT(t)
			authority, err := Ensure(t.TempDir(), "ca")
			g.Expect(err).NotTo(HaveOccurred())
			first, err := authority.Issue(leaf)
			g.Expect(err).NotTo(HaveOccurred())
			changed := leaf
			change(&changed)
			second, err := authority.Issue(changed)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(second.Certificate).NotTo(Equal(first.Certificate))
		})
	}
	t.Run("When another CA replaces the issuer, the certificate should be issued again", func(t *testing.T) {
		g := NewWithT(t)
		dir := t.TempDir()
		authority, err := Ensure(dir, "ca")
		g.Expect(err).NotTo(HaveOccurred())
		first, err := authority.Issue(leaf)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.Remove(filepath.Join(dir, "ca.crt"))).To(Succeed())
		other, err := Ensure(dir, "ca")
		g.Expect(err).NotTo(HaveOccurred())
		second, err := other.Issue(leaf)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(second.Certificate).NotTo(Equal(first.Certificate))
		g.Expect(parse(g, second.Certificate).CheckSignatureFrom(other.certificate)).To(Succeed())
	})
	t.Run("When only half of a key pair was written, the pair should be created again", func(t *testing.T) {
		for _, name := range []string{"server.crt", "server.key"} {
			g := NewWithT(t)
			dir := t.TempDir()
			authority, err := Ensure(dir, "ca")
			g.Expect(err).NotTo(HaveOccurred())
			_, err = authority.Issue(leaf)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(os.Remove(filepath.Join(dir, name))).To(Succeed())
			_, err = authority.Issue(leaf)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(filepath.Join(dir, name)).To(BeARegularFile())
		}
	})
	t.Run("When a key is written, only its owner should be able to read it", func(t *testing.T) {
		g := NewWithT(t)
		dir := t.TempDir()
		_, err := Ensure(dir, "ca")
		g.Expect(err).NotTo(HaveOccurred())
		info, err := os.Stat(filepath.Join(dir, "ca.key"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)))
	})
}

func TestUsable(t *testing.T) {
	for name, test := range map[string]struct {
		left time.Duration
		want bool
	}{
		"When a certificate expires within a month, it should be replaced":     {left: 29 * 24 * time.Hour},
		"When a certificate does not expire within a month, it should be kept": {left: 31 * 24 * time.Hour, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(usable(&x509.Certificate{NotAfter: time.Now().Add(test.left)}, nil)).To(Equal(test.want))
		})
	}
}
