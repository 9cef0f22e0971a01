// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	clientv3 "go.etcd.io/etcd/client/v3"
	etcdsnapshot "go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"

	"github.com/openshift/hypershift/support/bundle"
)

// Etcd is a client of the one etcd member that a snapshot is taken from.
type Etcd interface {
	SnapshotWithVersion(ctx context.Context) (*clientv3.SnapshotResponse, error)
	Close() error
}

// take writes a snapshot of etcd to a file and checks that it is complete. It uses a file for two reasons. Etcd keeps
// all data that is deleted during the read until the snapshot was read, and the storage may be slow. Also, the bundle
// needs the size of the snapshot before its content.
func take(ctx context.Context, etcd Etcd, path string, progress func(int64)) (bundle.Snapshot, error) {
	response, err := etcd.SnapshotWithVersion(ctx)
	if err != nil {
		return bundle.Snapshot{}, fmt.Errorf("asking etcd for a snapshot: %w", err)
	}
	defer response.Snapshot.Close()
	if err := save(path, response.Snapshot, progress); err != nil {
		return bundle.Snapshot{}, fmt.Errorf("reading the snapshot from etcd: %w", err)
	}
	taken, err := inspect(path)
	if err != nil {
		return bundle.Snapshot{}, err
	}
	taken.EtcdVersion = response.Version
	return taken, nil
}

func save(path string, content io.Reader, progress func(int64)) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, &counted{r: content, tell: progress})
	return errors.Join(err, file.Close())
}

// inspect returns a description of a snapshot, and an error unless it is complete: etcd ends it with a checksum, and
// etcdutl reads all pages.
func inspect(path string) (bundle.Snapshot, error) {
	size, sum, err := sum(path)
	if err != nil {
		return bundle.Snapshot{}, err
	}
	status, err := etcdsnapshot.NewV3(zap.NewNop()).Status(path)
	if err != nil {
		return bundle.Snapshot{}, fmt.Errorf("the snapshot is damaged: %w", err)
	}
	return bundle.Snapshot{Revision: status.Revision, Keys: status.TotalKey, Size: size, SHA256: sum}, nil
}

// sum returns the size and the checksum of the file. A snapshot of etcd ends with the checksum of the content before
// it.
func sum(path string) (int64, string, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return 0, "", err
	}
	content, end := sha256.New(), make([]byte, sha256.Size)
	if _, err := io.CopyN(content, file, info.Size()-sha256.Size); err != nil {
		return 0, "", fmt.Errorf("the snapshot is cut off: %w", err)
	}
	if _, err := io.ReadFull(file, end); err != nil {
		return 0, "", fmt.Errorf("the snapshot is cut off: %w", err)
	}
	if !bytes.Equal(content.Sum(nil), end) {
		return 0, "", errors.New("the snapshot is cut off: it does not end with its checksum")
	}
	_, _ = content.Write(end)
	return info.Size(), hex.EncodeToString(content.Sum(nil)), nil
}

// counted is a reader that reports how many bytes were read.
type counted struct {
	r    io.Reader
	n    int64
	tell func(int64)
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	c.tell(c.n)
	return n, err
}
