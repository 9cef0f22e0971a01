// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// fixture holds a bundle, its contents, and the identity that opens it.
type fixture struct {
	contents Contents
	snapshot []byte
	identity *age.X25519Identity
	file     []byte
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	f := fixture{snapshot: make([]byte, 300<<10)}
	noise := rand.NewChaCha8([32]byte{1})
	_, _ = noise.Read(f.snapshot)
	sum := sha256.Sum256(f.snapshot)
	f.contents = Contents{
		Header: Header{
			Format: Format, Created: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC), Name: "demo", Namespace: "clusters", HostedNamespace: "clusters-demo",
			InfraID: "demo-x7", ClusterID: "c1", ReleaseImage: "registry.example.com/release@sha256:1", APIServer: "192.0.2.1:6443",
			Snapshot: Snapshot{EtcdVersion: "3.6.10", Revision: 42, Keys: 7, Size: int64(len(f.snapshot)), SHA256: hex.EncodeToString(sum[:])},
		},
		Secrets: []corev1.Secret{Of(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "root-ca", Namespace: "clusters-demo", UID: "u", ResourceVersion: "7", Labels: map[string]string{"a": "b"}},
			Type:       corev1.SecretTypeTLS, Data: map[string][]byte{"tls.crt": []byte("CERT"), "tls.key": []byte("KEY")},
		})},
		Objects: []unstructured.Unstructured{{Object: map[string]any{
			"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "MaasMachine", "metadata": map[string]any{"name": "m", "uid": "u1"}}}},
	}
	f.identity = identity(t)
	f.file = f.write(t)
	return f
}

func identity(t *testing.T) *age.X25519Identity {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (f fixture) write(t *testing.T) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := Write(t.Context(), &file, f.contents, bytes.NewReader(f.snapshot), nil, f.identity.Recipient()); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func read(file io.Reader, identities ...age.Identity) (Contents, []byte, error) {
	contents, r, err := Open(file, identities...)
	if err != nil {
		return contents, nil, err
	}
	snapshot, err := io.ReadAll(r)
	return contents, snapshot, err
}

func TestABundleIsReadAsItWasWritten(t *testing.T) {
	f := newFixture(t)
	contents, snapshot, err := read(iotest.OneByteReader(bytes.NewReader(f.file)), f.identity)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f.contents, contents, cmpopts.IgnoreUnexported(Contents{})); diff != "" {
		t.Error(diff)
	}
	if !bytes.Equal(f.snapshot, snapshot) {
		t.Error("another snapshot came out")
	}
	if s := contents.Secret("root-ca"); s == nil || string(s.Data["tls.key"]) != "KEY" || contents.Secret("none") != nil {
		t.Errorf("Secrets are not found by name: %v", s)
	}
	for _, clear := range []string{"demo", "KEY", "root-ca"} {
		if bytes.Contains(f.file, []byte(clear)) {
			t.Errorf("%q is readable in the file", clear)
		}
	}
}

// TestABundleIsReadByOtherPrograms reads a bundle with age, gzip and tar, without this package.
func TestABundleIsReadByOtherPrograms(t *testing.T) {
	f := newFixture(t)
	plain, err := age.Decrypt(bytes.NewReader(f.file), f.identity)
	if err != nil {
		t.Fatal(err)
	}
	compressed, err := gzip.NewReader(plain)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for archive := tar.NewReader(compressed); ; {
		entry, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, entry.Name)
	}
	if diff := cmp.Diff([]string{"header.json", "secrets.json", "objects.json", "snapshot.db"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsWrongWithABundleIsSaid(t *testing.T) {
	f := newFixture(t)
	flipped := func(at int) []byte {
		file := bytes.Clone(f.file)
		file[at] ^= 1
		return file
	}
	for _, tc := range []struct {
		name     string
		file     []byte
		identity age.Identity
		want     error
	}{
		{"another key", f.file, identity(t), ErrKey},
		{"a file that is not a backup", []byte("PK\x03\x04 some other file\n"), f.identity, ErrForeign},
		{"empty", nil, f.identity, ErrForeign},
		{"truncated in its beginning", f.file[:30], f.identity, ErrDamaged},
		{"truncated in the middle", f.file[:len(f.file)/2], f.identity, ErrDamaged},
		{"truncated between two encrypted chunks", f.file[:len(f.file)/65536*65536], f.identity, ErrDamaged},
		{"without its last byte", f.file[:len(f.file)-1], f.identity, ErrDamaged},
		{"altered in the middle", flipped(len(f.file) / 2), f.identity, ErrDamaged},
		{"altered at its end", flipped(len(f.file) - 1), f.identity, ErrDamaged},
		{"with trailing data", append(bytes.Clone(f.file), 'x'), f.identity, ErrDamaged},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, _, err := read(bytes.NewReader(tc.file), tc.identity); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

func TestStorageThatBreaksOffIsNoDamage(t *testing.T) {
	f := newFixture(t)
	for _, n := range []int{0, 30, len(f.file) / 2} {
		broken := errors.New("connection reset")
		_, _, err := read(io.MultiReader(bytes.NewReader(f.file[:n]), iotest.ErrReader(broken)), f.identity)
		if !errors.Is(err, broken) || errors.Is(err, ErrDamaged) {
			t.Errorf("after %d bytes: got %v", n, err)
		}
	}
}

// TestNoPrefixOfABundleIsOne checks that Open refuses a truncated file, wherever it was truncated.
func TestNoPrefixOfABundleIsOne(t *testing.T) {
	f := newFixture(t)
	f.snapshot = []byte("small")
	sum := sha256.Sum256(f.snapshot)
	f.contents.Header.Snapshot.Size, f.contents.Header.Snapshot.SHA256 = 5, hex.EncodeToString(sum[:])
	file := f.write(t)
	for n := range file {
		if _, _, err := read(bytes.NewReader(file[:n]), f.identity); err == nil {
			t.Fatalf("the first %d of %d bytes were taken for a backup", n, len(file))
		}
	}
}

func TestABundleOfANewerFormatIsRefused(t *testing.T) {
	f := newFixture(t)
	var file bytes.Buffer
	encrypted, _ := age.Encrypt(&file, f.identity.Recipient())
	compressed := gzip.NewWriter(encrypted)
	archive := tar.NewWriter(compressed)
	text := `{"format": 2}`
	_ = archive.WriteHeader(&tar.Header{Name: headerEntry, Size: int64(len(text)), Mode: 0o600})
	_, _ = io.WriteString(archive, text)
	for _, c := range []io.Closer{archive, compressed, encrypted} {
		_ = c.Close()
	}
	if _, _, err := read(&file, f.identity); !errors.Is(err, ErrNewer) {
		t.Errorf("got %v", err)
	}
}

func TestASnapshotThatIsNotTheHeadersIsNotWritten(t *testing.T) {
	f := newFixture(t)
	for name, tc := range map[string]struct {
		snapshot io.Reader
		want     string
	}{
		"shorter": {bytes.NewReader(f.snapshot[:10]), "ended after 10 of"},
		"longer":  {io.MultiReader(bytes.NewReader(f.snapshot), strings.NewReader("x")), "longer than"},
		"another": {bytes.NewReader(append([]byte{f.snapshot[0] ^ 1}, f.snapshot[1:]...)), "SHA-256"},
		"broken":  {iotest.ErrReader(errors.New("disk died")), "disk died"},
	} {
		t.Run(name, func(t *testing.T) {
			var file bytes.Buffer
			err := Write(t.Context(), &file, f.contents, tc.snapshot, nil, f.identity.Recipient())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if _, _, err := read(&file, f.identity); err == nil {
				t.Error("what was written before the error is taken for a backup")
			}
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := Write(ctx, io.Discard, f.contents, bytes.NewReader(f.snapshot), nil,
			f.identity.Recipient()); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

func TestKeys(t *testing.T) {
	mine, other := identity(t), identity(t)
	hybrid, err := age.GenerateHybridIdentity()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name    string
		data    map[string]string
		openers []age.Identity
		wrong   string
	}{
		{"public keys", map[string]string{RecipientsKey: fmt.Sprintf("# two people\n%s\n%s\n", mine.Recipient(), other.Recipient())}, []age.Identity{mine, other}, ""},
		{"only a private key", map[string]string{IdentityKey: mine.String()}, []age.Identity{mine}, ""},
		{"a hybrid private key", map[string]string{IdentityKey: hybrid.String()}, []age.Identity{hybrid}, ""},
		{"nothing", nil, nil, `key "recipients" of Secret k has no public keys of age`},
		{"a private key in place of a public key", map[string]string{RecipientsKey: mine.String()}, nil, `key "recipients" of Secret k has no public keys`},
		{"an invalid private key", map[string]string{IdentityKey: "AGE-SECRET-KEY-1HELLO"}, nil, `key "identity" of Secret k has no private keys`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "k"}, Data: map[string][]byte{}}
			for k, v := range tc.data {
				secret.Data[k] = []byte(v)
			}
			recipients, err := Recipients(secret)
			if tc.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wrong) || strings.Contains(err.Error(), "AGE-SECRET-KEY-1"+mine.String()[16:30]) {
					t.Errorf("got %v, want %q and no key", err, tc.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			f := newFixture(t)
			var file bytes.Buffer
			if err := Write(t.Context(), &file, f.contents, bytes.NewReader(f.snapshot), nil, recipients...); err != nil {
				t.Fatal(err)
			}
			for _, opener := range tc.openers {
				if _, _, err := read(bytes.NewReader(file.Bytes()), opener); err != nil {
					t.Error(err)
				}
			}
		})
	}
	t.Run("When the Secret has a private key, it should return one identity", func(t *testing.T) {
		ids, err := Identities(&corev1.Secret{Data: map[string][]byte{IdentityKey: []byte(mine.String())}})
		if err != nil || len(ids) != 1 {
			t.Errorf("got %v, %v", ids, err)
		}
	})
}
