// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"strings"
	"syscall"
	"testing"

	"filippo.io/age"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// part is an entry of an archive that another program wrote. size, if it is set, is the size in the entry's tar header.
type part struct {
	name, text string
	size       int64
}

// archived returns a file that is encrypted for the identity and has these entries. tail follows the archive inside the
// gzip stream.
func archived(t *testing.T, identity *age.X25519Identity, tail string, parts ...part) []byte {
	t.Helper()
	var file bytes.Buffer
	encrypted, err := age.Encrypt(&file, identity.Recipient())
	if err != nil {
		t.Fatal(err)
	}
	compressed := gzip.NewWriter(encrypted)
	archive := tar.NewWriter(compressed)
	claims := false
	for _, p := range parts {
		size := int64(len(p.text))
		if p.size != 0 {
			size, claims = p.size, true
		}
		if err := archive.WriteHeader(&tar.Header{Name: p.name, Size: size, Mode: 0o600, Format: tar.FormatPAX}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(archive, p.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil && !claims {
		t.Fatal(err)
	}
	_, err = io.WriteString(compressed, tail)
	if err := errors.Join(err, compressed.Close(), encrypted.Close()); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func headerOf(snapshot string, change func(*Header)) part {
	sum := sha256.Sum256([]byte(snapshot))
	header := Header{Format: Format, Name: "demo", Snapshot: Snapshot{Size: int64(len(snapshot)), SHA256: hex.EncodeToString(sum[:])}}
	if change != nil {
		change(&header)
	}
	raw, err := json.Marshal(header)
	if err != nil {
		panic(err)
	}
	return part{name: headerEntry, text: string(raw)}
}

// TestArchivesOfOthers checks that Open validates the claims of a file. With a public key, any program can create a
// file that decrypts.
func TestArchivesOfOthers(t *testing.T) {
	const text = "snapshot"
	me := identity(t)
	snapshot, secrets := part{name: snapshotEntry, text: text}, part{name: secretsEntry, text: `{"items": []}`}
	for name, tc := range map[string]struct {
		parts []part
		tail  string
		want  error
	}{
		"it has all required entries":                  {[]part{headerOf(text, nil), secrets, snapshot}, "", nil},
		"it has an unknown entry":                      {[]part{headerOf(text, nil), {name: "new.json", text: "{"}, snapshot}, "", nil},
		"it has no header":                             {[]part{secrets, snapshot}, "", ErrForeign},
		"its header comes late":                        {[]part{snapshot, headerOf(text, nil)}, "", ErrForeign},
		"its header has no format":                     {[]part{headerOf(text, func(h *Header) { h.Format = 0 }), snapshot}, "", ErrForeign},
		"its header has another format":                {[]part{headerOf(text, func(h *Header) { h.Format = Format + 1 }), snapshot}, "", ErrNewer},
		"its header is not JSON":                       {[]part{{name: headerEntry, text: "{"}, snapshot}, "", ErrForeign},
		"its Secrets are not a list":                   {[]part{headerOf(text, nil), {name: secretsEntry, text: `{"items": 7}`}, snapshot}, "", ErrForeign},
		"its objects have no kind":                     {[]part{headerOf(text, nil), {name: objectsEntry, text: `{"items": [{}]}`}, snapshot}, "", ErrForeign},
		"its snapshot is shorter than the header says": {[]part{headerOf(text, func(h *Header) { h.Snapshot.Size++ }), snapshot}, "", ErrForeign},
		"its snapshot has another checksum":            {[]part{headerOf(text, func(h *Header) { h.Snapshot.SHA256 = "00" }), snapshot}, "", ErrDamaged},
		"its snapshot differs, with the same size":     {[]part{headerOf(text, nil), {name: snapshotEntry, text: "SNAPSHOT"}}, "", ErrDamaged},
		"it has no snapshot":                           {[]part{headerOf(text, nil), secrets}, "", ErrDamaged},
		"something follows its snapshot":               {[]part{headerOf(text, nil), snapshot, secrets}, "", ErrDamaged},
		"an entry exceeds the size limit":              {[]part{headerOf(text, nil), {name: secretsEntry, size: maxEntry + 1}}, "", ErrForeign},
		"an entry is shorter than its declared size":   {[]part{headerOf(text, nil), {name: secretsEntry, text: "{", size: 100}}, "", ErrDamaged},
		"its snapshot is truncated":                    {[]part{headerOf("more than it has", nil), {name: snapshotEntry, text: "more", size: 16}}, "", ErrDamaged},
		"zeros follow the archive, as tar writes":      {[]part{headerOf(text, nil), snapshot}, strings.Repeat("\x00", 10240), nil},
	} {
		t.Run("When "+name+", it should be read or return the matching error", func(t *testing.T) {
			contents, got, err := read(bytes.NewReader(archived(t, me, tc.tail, tc.parts...)), me)
			if !errors.Is(err, tc.want) || tc.want != nil && errors.Is(err, io.EOF) {
				t.Fatalf("got %v, want %v", err, tc.want)
			}
			if tc.want == nil && (string(got) != text || contents.Header.Name != "demo") {
				t.Errorf("got %q of %+v", got, contents.Header)
			}
		})
	}
	t.Run("When the encrypted content is not compressed, it should return an error", func(t *testing.T) {
		var file bytes.Buffer
		encrypted, err := age.Encrypt(&file, me.Recipient())
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.WriteString(encrypted, "plain text")
		if err := errors.Join(err, encrypted.Close()); err != nil {
			t.Fatal(err)
		}
		if _, _, err := read(&file, me); !errors.Is(err, ErrDamaged) {
			t.Errorf("got %v", err)
		}
	})
}

// disk accepts a number of bytes and is full afterwards.
type disk struct{ left int }

func (d *disk) Write(p []byte) (int, error) {
	if len(p) > d.left {
		n := d.left
		d.left = 0
		return n, syscall.ENOSPC
	}
	d.left -= len(p)
	return len(p), nil
}

// TestFullDisk checks that Write returns an error wherever the disk becomes full. Otherwise the caller would rely on an
// incomplete backup.
func TestFullDisk(t *testing.T) {
	f := newFixture(t)
	f.snapshot = []byte("small")
	sum := sha256.Sum256(f.snapshot)
	f.contents.Header.Snapshot.Size, f.contents.Header.Snapshot.SHA256 = 5, hex.EncodeToString(sum[:])
	whole := len(f.write(t))
	for room := 0; room < whole-1; room += 7 {
		err := Write(t.Context(), &disk{left: room}, f.contents, bytes.NewReader(f.snapshot), nil, f.identity.Recipient())
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("with room for %d of %d bytes: got %v", room, whole, err)
		}
	}
}

func TestNobodyToEncryptFor(t *testing.T) {
	f := newFixture(t)
	var file bytes.Buffer
	if err := Write(t.Context(), &file, f.contents, bytes.NewReader(f.snapshot), nil); err == nil ||
		!strings.Contains(err.Error(), "encrypting the backup") {
		t.Errorf("got %v", err)
	}
	if file.Len() > 0 {
		t.Error("something was written that nobody can read, or everybody")
	}
}

// TestWhatIsKeptOfASecret checks which metadata a bundle keeps. A restorer writes the Secret into another namespace,
// where labels and annotations have effects.
func TestWhatIsKeptOfASecret(t *testing.T) {
	immutable := true
	record := map[string]string{"hypershift.openshift.io/rotated-for": "2026",
		"hypershift.openshift.io/former-since": "2026-11-01T02:03:04Z"}
	annotations := maps.Clone(record)
	annotations["hypershift.openshift.io/revoke-for"] = "2"
	kept := Of(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "n", UID: "u", ResourceVersion: "1", Finalizers: []string{"f/f"}, Labels: map[string]string{"l": "1"},
			Annotations: annotations, OwnerReferences: []metav1.OwnerReference{{Name: "o"}}},
		Type: corev1.SecretTypeTLS, Data: map[string][]byte{"k": []byte("v")}, Immutable: &immutable,
	})
	want := corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: "a",
			Annotations: record},
		Type: corev1.SecretTypeTLS, Data: map[string][]byte{"k": []byte("v")},
	}
	if !equality.Semantic.DeepEqual(kept, want) {
		t.Errorf("got %+v", kept)
	}
}

func TestKeysToOpenWith(t *testing.T) {
	for name, text := range map[string]string{
		"nothing": "", "a public key": "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p", "a key that is cut off": "AGE-SECRET-KEY-1HUSH", "a comment": "# AGE-SECRET-KEY-1HUSH",
	} {
		t.Run("When it is given "+name+", it should name the source and print no key", func(t *testing.T) {
			ids, err := ParseIdentities(text, "file key.txt")
			if err == nil || ids != nil || !strings.HasPrefix(err.Error(), "file key.txt has no private keys") || strings.Contains(err.Error(), "HUSH") {
				t.Errorf("got %v, %v", ids, err)
			}
		})
	}
}

func TestWriteSaysItsFormat(t *testing.T) {
	f := newFixture(t)
	f.contents.Header.Format = Format + 7
	contents, _, err := read(bytes.NewReader(f.write(t)), f.identity)
	if err != nil || contents.Header.Format != Format {
		t.Errorf("got format %d, %v", contents.Header.Format, err)
	}
}

// TestSecretFile opens a file of secrets that is not a backup.
func TestSecretFile(t *testing.T) {
	_, _, err := Open(strings.NewReader("hunter2 is my password\n"), identity(t))
	if !errors.Is(err, ErrForeign) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v, want that it is no backup, and nothing of what it holds", err)
	}
}
