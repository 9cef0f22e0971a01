// SPDX-License-Identifier: Apache-2.0

package systemtrust_test

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/pki"
	"github.com/openshift/hypershift/support/systemtrust"
)

func authority(t *testing.T, name string) *pki.KeyPair {
	t.Helper()
	ca, err := pki.NewCA(pki.Name{CommonName: name}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// names returns the subjects in a bundle, in order. The test fails if the bundle contains anything else.
func names(t *testing.T, bundle []byte) []string {
	t.Helper()
	var all []string
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatalf("a block of type %s is no certificate: %v", block.Type, err)
		}
		all = append(all, certificate.Subject.CommonName)
	}
	return all
}

func TestRead(t *testing.T) {
	g, dir := NewWithT(t), t.TempDir()
	root, private, users := authority(t, "root"), authority(t, "private"), authority(t, "users")
	write := func(name string, text []byte) string {
		file := filepath.Join(dir, name)
		g.Expect(os.MkdirAll(filepath.Dir(file), 0o700)).To(Succeed())
		g.Expect(os.WriteFile(file, text, 0o600)).To(Succeed())
		return file
	}
	system := write("system/ca-certificates.crt", slices.Concat([]byte("# the system's\n"), root.CertPEM))
	write("trust/ca-bundle.crt", slices.Concat(private.CertPEM, root.CertPEM, private.KeyPEM))
	write("trust/README", []byte("no certificate"))
	t.Run("returns each certificate of files and directories once, and nothing else", func(t *testing.T) {
		bundle, err := systemtrust.Store{Files: []string{filepath.Join(dir, "missing"), system},
			Dirs: []string{filepath.Join(dir, "system"), filepath.Join(dir, "missing"), filepath.Join(dir, "trust")}}.Read()
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(names(t, bundle)).To(Equal([]string{"root", "private"}))
		g.Expect(string(bundle)).NotTo(ContainSubstring("PRIVATE KEY"))
	})
	t.Run("reads the locations from the environment variables of Go", func(t *testing.T) {
		store := systemtrust.FromEnvironment(func(name string) string {
			return map[string]string{"SSL_CERT_FILE": system, "SSL_CERT_DIR": filepath.Join(dir, "trust") + ":/missing"}[name]
		})
		bundle, err := store.Read()
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(names(t, bundle)).To(Equal([]string{"root", "private"}))
	})
	t.Run("uses the locations of the system without these variables", func(t *testing.T) {
		store := systemtrust.FromEnvironment(func(string) string { return "" })
		NewWithT(t).Expect(store.Files).To(ContainElement("/etc/ssl/certs/ca-certificates.crt"))
		NewWithT(t).Expect(store.Dirs).To(ContainElement("/etc/ssl/certs"))
	})
	t.Run("returns an error that names a directory which cannot be listed", func(t *testing.T) {
		_, err := systemtrust.Store{Dirs: []string{system}}.Read()
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("reading the trusted certificates in " + system)))
	})
	t.Run("merges bundles in their order, without broken blocks", func(t *testing.T) {
		broken := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("broken")})
		merged := systemtrust.Merge(root.CertPEM, broken, []byte("-----BEGIN CERTIFICATE-----\n"), users.CertPEM, root.CertPEM)
		NewWithT(t).Expect(names(t, merged)).To(Equal([]string{"root", "users"}))
		NewWithT(t).Expect(systemtrust.Merge()).To(BeEmpty())
	})
}
