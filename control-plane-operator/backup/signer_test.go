// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"crypto/ed25519"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openshift/hypershift/support/bundle"
)

// mountedSigner returns a directory with the signer of a cluster, and the key that verifies its signatures.
func mountedSigner(t *testing.T, cluster string) (dir string, key ed25519.PublicKey) {
	t.Helper()
	data, err := bundle.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	authority, err := bundle.ReadAuthority(data)
	if err != nil {
		t.Fatal(err)
	}
	if key, err = bundle.ParseVerificationKey(data[bundle.VerificationKey]); err != nil {
		t.Fatal(err)
	}
	issued, err := authority.Issue(cluster)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	for name, content := range issued {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, key
}

func TestSigner(t *testing.T) {
	t.Run("When the operator issued no signer, it should return nil", func(t *testing.T) {
		if got, err := signer(t.TempDir()); got != nil || err != nil {
			t.Errorf("got %v, %v", got, err)
		}
	})
	t.Run("When the signer cannot be read, it should fail instead of leaving a bundle unsigned", func(t *testing.T) {
		dir, _ := mountedSigner(t, "clusters/demo")
		if err := os.WriteFile(filepath.Join(dir, bundle.SignerCertificate), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := signer(dir)
		if got != nil || err == nil || !strings.HasPrefix(err.Error(), "reading the key that signs backups: ") {
			t.Errorf("got %v, %v", got, err)
		}
	})
}
