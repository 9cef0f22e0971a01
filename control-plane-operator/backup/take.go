// SPDX-License-Identifier: Apache-2.0

// Package backup is the program that takes a backup of a hosted control plane, and removes one. It runs in a Job in the
// hosted namespace, which the etcdbackup controller creates:
//
//	etcd -> snapshot in scratch -> inspected -> bundle, encrypted -> storage -> read back, decrypted, inspected -> status
//
// It may stop at any line: the next attempt first removes the remains of this one, and writes under the same name.
package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"filippo.io/age"

	"github.com/openshift/hypershift/support/bundle"
)

// Deadline limits all attempts at a backup together: 8 GiB over a link of 100 Mbit/s take 12 minutes each way.
const Deadline = time.Hour

// Taker takes one backup.
type Taker struct {
	// Dial connects to one member of etcd.
	Dial func(ctx context.Context) (Etcd, error)
	// Storage stores the bundle under Name.
	Storage Storage
	Name    string
	// Contents holds everything in the bundle except the snapshot.
	Contents bundle.Contents
	// Signer signs the bundle; nil leaves it unsigned.
	Signer *bundle.Signer
	// Recipients can open the bundle.
	Recipients []age.Recipient
	// Scratch is a directory with space for the snapshot.
	Scratch string
	// Report receives the progress of the backup, at most every few seconds.
	Report func(ctx context.Context, progress string)
	// Now returns the current time.
	Now func() time.Time

	reported time.Time
}

// Result describes the stored bundle.
type Result struct {
	URL string
	// Size is the size of the bundle in bytes, and SHA256 its hexadecimal checksum.
	Size   int64
	SHA256 string
	// Snapshot describes the snapshot that was read back from the storage.
	Snapshot bundle.Snapshot
	Created  time.Time
}

// Take takes the backup. The result describes what was read back; a bundle that cannot be read back is deleted.
func (t *Taker) Take(ctx context.Context) (Result, error) {
	if err := t.Storage.Sweep(ctx, t.Name); err != nil {
		return Result{}, err
	}
	path := filepath.Join(t.Scratch, "snapshot.db")
	defer func() { _ = os.Remove(path) }()
	if err := t.snapshot(ctx, path); err != nil {
		return Result{}, full(err)
	}
	// This temporary identity can open the bundle, so that verify does not need the users' private keys. It is never
	// stored.
	witness, err := age.GenerateX25519Identity()
	if err != nil {
		return Result{}, err
	}
	result, err := t.upload(ctx, path, append(t.Recipients, witness.Recipient()))
	if err != nil {
		return Result{}, err
	}
	if err := t.verify(ctx, path, result, witness); err != nil {
		return Result{}, errors.Join(err, t.Storage.Delete(ctx, t.Name))
	}
	return result, nil
}

func (t *Taker) snapshot(ctx context.Context, path string) error {
	etcd, err := t.Dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = etcd.Close() }()
	created := t.Now()
	taken, err := take(ctx, etcd, path, func(n int64) { t.tell(ctx, "Snapshot: %d MiB read", n>>20) })
	if err != nil {
		return err
	}
	t.Contents.Header.Created, t.Contents.Header.Snapshot = created.UTC().Truncate(time.Second), taken
	return nil
}

func (t *Taker) upload(ctx context.Context, path string, recipients []age.Recipient) (Result, error) {
	file, err := os.Open(path)
	if err != nil {
		return Result{}, err
	}
	defer file.Close()
	total := t.Contents.Header.Snapshot.Size
	snapshot := &counted{r: file, tell: func(n int64) { t.tell(ctx, "Upload: %d of %d MiB", n>>20, total>>20) }}
	out, in := io.Pipe()
	written := make(chan struct{})
	go func() {
		defer close(written)
		_ = in.CloseWithError(bundle.Write(ctx, in, t.Contents, snapshot, t.Signer, recipients...))
	}()
	sum, size := sha256.New(), &counted{r: out, tell: func(int64) {}}
	err = t.Storage.Put(ctx, t.Name, io.TeeReader(size, sum))
	// The writer must not wait for a reader that has stopped.
	_ = out.CloseWithError(errors.New("the storage stopped reading the backup"))
	<-written
	if err != nil {
		return Result{}, fmt.Errorf("storing the backup: %w", err)
	}
	return Result{
		URL: t.Storage.URL(t.Name), Size: size.n, SHA256: hex.EncodeToString(sum.Sum(nil)),
		Snapshot: t.Contents.Header.Snapshot, Created: t.Contents.Header.Created,
	}, nil
}

// verify reads the stored bundle back, as a restore does.
func (t *Taker) verify(ctx context.Context, path string, stored Result, witness age.Identity) error {
	// The scratch directory has space for only one snapshot.
	if err := os.Remove(path); err != nil {
		return err
	}
	content, err := t.Storage.Get(ctx, t.Name)
	if err != nil {
		return fmt.Errorf("reading the backup back: %w", err)
	}
	defer content.Close()
	_, snapshot, err := bundle.Open(content, witness)
	if err == nil {
		err = save(path, snapshot, func(n int64) { t.tell(ctx, "Verification: %d of %d MiB", n>>20, stored.Snapshot.Size>>20) })
	}
	if err != nil {
		return fmt.Errorf("reading the backup back: %w", full(err))
	}
	found, err := inspect(path)
	if err != nil {
		return fmt.Errorf("reading the backup back: %w", err)
	}
	if found.EtcdVersion = stored.Snapshot.EtcdVersion; found != stored.Snapshot {
		return fmt.Errorf("reading the backup back: the storage has a snapshot of revision %d, and revision %d was stored", found.Revision, stored.Snapshot.Revision)
	}
	return nil
}

// tell reports the progress at intervals, since each report is a write to the management cluster's API.
func (t *Taker) tell(ctx context.Context, format string, args ...any) {
	const pace = 5 * time.Second
	if now := t.Now(); now.Sub(t.reported) >= pace {
		t.reported = now
		t.Report(ctx, fmt.Sprintf(format, args...))
	}
}

func full(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return errors.New("the management cluster's node has no room for the snapshot: it passes through an emptyDir as large as etcd's volume")
	}
	return err
}
