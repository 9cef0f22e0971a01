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

// What may be wrong with a bundle. All but ErrKey mean that another one must be taken.
var (
	// ErrKey: the bundle is one, and none of the private keys opens it.
	ErrKey = errors.New("none of the keys opens the backup: it was encrypted for others; give the private key that belongs to the recipients " +
		"of the time when it was made")
	// ErrForeign: the file is no bundle.
	ErrForeign = errors.New("the file is no backup of a hosted control plane")
	// ErrDamaged: the file is not as it was written. A last part that is missing and one that was altered look the same: neither is
	// authentic.
	ErrDamaged = errors.New("the backup is damaged: it is cut off or was altered")
	// ErrNewer: the bundle is of a later format.
	ErrNewer = errors.New("the backup is of a newer format than this program reads; use the program of the release that made it")
)

// maxEntry bounds what is read into memory of an entry other than the snapshot. A thousand machines take some 10 MiB.
const maxEntry = 256 << 20

// Open reads all of a bundle up to its snapshot, and returns a reader of that. The snapshot must not be used before the reader has said
// io.EOF: only then it is known to be whole and unaltered, otherwise the reader returns an error. Errors are those of this package,
// wrapped, or those of r.
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
		return Contents{}, nil, ErrForeign // Its cause would repeat the first line of what may be a file of secrets.
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
	// entries is the digest of what a signature covers.
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

// Read reads the snapshot, and says io.EOF after all that follows it was found in order too.
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
	// The end of what is encrypted is behind that of the archive.
	if _, err := io.Copy(io.Discard, o.compressed); err != nil {
		return o.file.damage(err)
	}
	return io.EOF
}

// source is the file, and what went wrong when it was read.
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

// damage is why the file cannot be read on: storage that broke off, or what is in it.
func (s *source) damage(err error) error {
	if s.err != nil {
		return s.err
	}
	// What io.EOF means to a reader must not stay in the chain.
	return fmt.Errorf("%w: %v", ErrDamaged, err) //nolint:errorlint // see above
}
