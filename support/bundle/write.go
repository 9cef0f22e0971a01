// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"filippo.io/age"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Write writes a bundle while it reads the snapshot. It holds at most some hundred KiB of the snapshot in memory. The
// snapshot must have the size and the checksum in the header; otherwise Write returns an error. After an error, what
// was written is not a bundle: Open refuses it. A nil signer leaves the bundle unsigned.
func Write(
	ctx context.Context, w io.Writer, contents Contents, snapshot io.Reader, signer *Signer, recipients ...age.Recipient,
) error {
	contents.Header.Format = Format
	encrypted, err := age.Encrypt(w, recipients...)
	if err != nil {
		return fmt.Errorf("encrypting the backup: %w", err)
	}
	compressed := gzip.NewWriter(encrypted)
	archive := tar.NewWriter(compressed)
	if err := writeEntries(archive, contents, signer); err != nil {
		return err
	}
	if err := writeSnapshot(archive, contents.Header, &cancelled{ctx, snapshot}); err != nil {
		return err
	}
	// Closing encrypted last writes the final part, which distinguishes a complete bundle from a truncated one.
	for _, c := range []io.Closer{archive, compressed, encrypted} {
		if err := c.Close(); err != nil {
			return fmt.Errorf("writing the end of the backup: %w", err)
		}
	}
	return nil
}

func writeEntries(archive *tar.Writer, contents Contents, signer *Signer) error {
	secrets := corev1.SecretList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "SecretList"}}
	for i := range contents.Secrets {
		secrets.Items = append(secrets.Items, Of(&contents.Secrets[i]))
	}
	objects := unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}, Items: contents.Objects}
	sum := newEntries()
	for _, entry := range []struct {
		name    string
		content any
	}{{headerEntry, contents.Header}, {secretsEntry, secrets}, {objectsEntry, objects.UnstructuredContent()}} {
		data, err := writeEntry(archive, entry.name, entry.content, contents.Header)
		if err != nil {
			return err
		}
		sum.add(entry.name, data)
	}
	if signer == nil {
		return nil
	}
	_, err := writeEntry(archive, signatureEntry, signer.sign(sum.digest()), contents.Header)
	return err
}

func writeEntry(archive *tar.Writer, name string, content any, header Header) ([]byte, error) {
	data, err := json.Marshal(content)
	if err == nil {
		err = archive.WriteHeader(named(name, int64(len(data)), header))
	}
	if err == nil {
		_, err = archive.Write(data)
	}
	if err != nil {
		return nil, fmt.Errorf("writing %s of the backup: %w", name, err)
	}
	return data, nil
}

func writeSnapshot(archive *tar.Writer, header Header, snapshot io.Reader) error {
	if err := archive.WriteHeader(named(snapshotEntry, header.Snapshot.Size, header)); err != nil {
		return fmt.Errorf("writing %s of the backup: %w", snapshotEntry, err)
	}
	sum := sha256.New()
	n, err := io.Copy(archive, io.TeeReader(snapshot, sum))
	if errors.Is(err, tar.ErrWriteTooLong) {
		return fmt.Errorf("the snapshot is longer than the %d bytes that the header says", header.Snapshot.Size)
	}
	if err != nil {
		return fmt.Errorf("writing %s of the backup: %w", snapshotEntry, err)
	}
	if n != header.Snapshot.Size {
		return fmt.Errorf("the snapshot ended after %d of %d bytes", n, header.Snapshot.Size)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != header.Snapshot.SHA256 {
		return fmt.Errorf("the snapshot has the SHA-256 %s, and the header says %s", got, header.Snapshot.SHA256)
	}
	return nil
}

func named(name string, size int64, header Header) *tar.Header {
	return &tar.Header{Name: name, Size: size, Mode: 0o600, ModTime: header.Created, Format: tar.FormatPAX}
}

// cancelled is a reader that fails when its context ends.
type cancelled struct {
	// Read has no context parameter.
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader.
func (c *cancelled) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
