// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"

	"filippo.io/age"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// These errors are the reasons why a bundle cannot be read. All except ErrKey mean that a different bundle must be
// used.
var (
	// ErrKey means that the file is a bundle, and none of the private keys opens it.
	ErrKey = errors.New("none of the keys decrypts the backup; use the private key of a recipient that was configured " +
		"when it was made")
	// ErrForeign means that the file is not a bundle.
	ErrForeign = errors.New("the file is not a backup of a hosted control plane")
	// ErrDamaged means that the file is not as it was written. A truncated file and an altered one cannot be
	// distinguished: neither is authentic.
	ErrDamaged = errors.New("the backup is damaged: it is cut off or was altered")
	// ErrNewer means that the bundle has a later format.
	ErrNewer = errors.New("the backup is of a newer format than this program reads; use the program of the release that made it")
)

// maxEntry is the maximum size in bytes of an entry that is read into memory, that is, of all but the snapshot. A
// thousand machines take about 10 MiB.
const maxEntry = 256 << 20

// Open reads a bundle up to its snapshot, and returns a reader of the snapshot. The caller must not use the snapshot
// before the reader returns io.EOF, which proves that it is complete and unaltered. Otherwise the reader returns an
// error. Errors wrap an error of this package, or an error of r.
func Open(r io.Reader, identities ...age.Identity) (Contents, io.Reader, error) {
	file := &source{r: r}
	plain, err := age.Decrypt(file, identities...)
	var noMatch *age.NoIdentityMatchError
	switch {
	case errors.As(err, &noMatch):
		return Contents{}, nil, ErrKey
	case file.err != nil:
		return Contents{}, nil, file.err
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return Contents{}, nil, ErrDamaged
	case err != nil:
		// Do not wrap the cause: it would repeat the first line of what may be a file of secrets.
		return Contents{}, nil, ErrForeign
	}
	compressed, err := gzip.NewReader(plain)
	if err != nil {
		return Contents{}, nil, file.damage(err)
	}
	o := &opened{
		file: file, archive: tar.NewReader(compressed), compressed: compressed, sum: sha256.New(), entries: newEntries(),
	}
	return o.open()
}

// opened is a bundle that is being read.
type opened struct {
	file       *source
	archive    *tar.Reader
	compressed io.Reader
	snapshot   Snapshot
	sum        hash.Hash
	read       int64
	// entries computes the digest of the signed entries.
	entries entries
}

func (o *opened) open() (Contents, io.Reader, error) {
	contents := Contents{}
	for {
		entry, err := o.archive.Next()
		if err != nil {
			return Contents{}, nil, o.file.damage(err)
		}
		switch entry.Name {
		case headerEntry:
			if err = o.decode(entry, &contents.Header); err == nil && contents.Header.Format > Format {
				return Contents{}, nil, fmt.Errorf("%w (format %d, and this program reads up to %d)", ErrNewer, contents.Header.Format, Format)
			}
		case secretsEntry:
			list := corev1.SecretList{}
			err = o.decode(entry, &list)
			contents.Secrets = list.Items
		case objectsEntry:
			list := unstructured.UnstructuredList{}
			err = o.decode(entry, &list)
			contents.Objects = list.Items
		case signatureEntry:
			contents.signature = &Signature{}
			err = o.decode(entry, contents.signature)
		case snapshotEntry:
			if contents.Header.Format < 1 || entry.Size != contents.Header.Snapshot.Size {
				return Contents{}, nil, fmt.Errorf("%w: it does not say what its snapshot is", ErrForeign)
			}
			o.snapshot, contents.sum = contents.Header.Snapshot, o.entries.digest()
			return contents, o, nil
		}
		if err != nil {
			return Contents{}, nil, err
		}
	}
}

func (o *opened) decode(entry *tar.Header, into any) error {
	if entry.Size > maxEntry {
		return fmt.Errorf("%w: %s has %d bytes", ErrForeign, entry.Name, entry.Size)
	}
	data, err := io.ReadAll(o.archive)
	if err != nil {
		return o.file.damage(err)
	}
	if entry.Name != signatureEntry {
		o.entries.add(entry.Name, data)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%w: reading %s: %w", ErrForeign, entry.Name, err)
	}
	return nil
}

// Read reads the snapshot. It returns io.EOF after it has also verified everything that follows the snapshot.
func (o *opened) Read(p []byte) (int, error) {
	n, err := o.archive.Read(p)
	o.sum.Write(p[:n])
	o.read += int64(n)
	switch {
	case err == nil:
		return n, nil
	case !errors.Is(err, io.EOF):
		return n, o.file.damage(err)
	}
	return n, o.end()
}

func (o *opened) end() error {
	if got := hex.EncodeToString(o.sum.Sum(nil)); got != o.snapshot.SHA256 || o.read != o.snapshot.Size {
		return fmt.Errorf("%w: the snapshot has the SHA-256 %s, and the header says %s", ErrDamaged, got, o.snapshot.SHA256)
	}
	if _, err := o.archive.Next(); !errors.Is(err, io.EOF) {
		return o.file.damage(err)
	}
	// The encrypted stream ends after the archive.
	if _, err := io.Copy(io.Discard, o.compressed); err != nil {
		return o.file.damage(err)
	}
	return io.EOF
}

// source wraps the file and remembers a read error.
type source struct {
	r   io.Reader
	err error
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// damage returns the reason why the file cannot be read further: the read error of the storage, or the error in its
// contents.
func (s *source) damage(err error) error {
	if s.err != nil {
		return s.err
	}
	// Do not wrap err: a reader would take io.EOF in the chain for the end of the snapshot.
	return fmt.Errorf("%w: %v", ErrDamaged, err) //nolint:errorlint // see above
}
