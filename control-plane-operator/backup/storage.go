// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// Storage stores bundles by name. The content under a name is always complete: an interrupted write never gets the
// name.
type Storage interface {
	// Put stores the content under the name and replaces what was stored there.
	Put(ctx context.Context, name string, content io.Reader) error
	// Get returns the content that is stored under the name.
	Get(ctx context.Context, name string) (io.ReadCloser, error)
	// Delete removes what is stored, and the remains of attempts to store it. It returns no error if there is nothing.
	Delete(ctx context.Context, name string) error
	// Sweep removes the remains of interrupted attempts beside name.
	Sweep(ctx context.Context, name string) error
	// URL returns the location of a name, for users and for the restore.
	URL(name string) string
}

// Open returns the storage of a spec. Its credentials are files in a directory.
func Open(spec hyperv1.HCPEtcdBackupStorage, credentials string) (Storage, error) {
	switch spec.StorageType {
	case hyperv1.S3BackupStorage:
		return newBucket(spec.S3, credentials)
	case hyperv1.PVCBackupStorage:
		return folder{claim: spec.PVC.ClaimName, root: VolumeDir}, nil
	}
	return nil, fmt.Errorf("storage.storageType %s is not supported: use S3 or PVC", spec.StorageType)
}

// VolumeDir is where the volume of a claim is mounted in the pod.
const VolumeDir = "/var/lib/backup"

// folder stores bundles on a volume.
type folder struct{ claim, root string }

// partial is the suffix of files that are not completely written.
const partial = ".partial"

// Put implements Storage.
func (f folder) Put(_ context.Context, name string, content io.Reader) (err error) {
	path := filepath.Join(f.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return f.explain(err)
	}
	file, err := os.OpenFile(path+partial, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return f.explain(err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(path + partial)
		}
	}()
	_, err = io.Copy(file, content)
	// The name must not be on the disk before the content is: flush the file before the rename.
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return f.explain(err)
	}
	return f.explain(os.Rename(path+partial, path))
}

// Get implements Storage.
func (f folder) Get(_ context.Context, name string) (io.ReadCloser, error) {
	file, err := os.Open(filepath.Join(f.root, name))
	return file, f.explain(err)
}

// Delete implements Storage.
func (f folder) Delete(_ context.Context, name string) error {
	for _, path := range []string{name, name + partial} {
		if err := os.Remove(filepath.Join(f.root, path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return f.explain(err)
		}
	}
	return nil
}

// Sweep implements Storage. Backups of a control plane run one after the other, so every partial file is a leftover.
func (f folder) Sweep(_ context.Context, name string) error {
	left, err := filepath.Glob(filepath.Join(f.root, filepath.Dir(name), "*"+partial))
	for _, path := range left {
		err = errors.Join(err, os.Remove(path))
	}
	return f.explain(err)
}

// URL implements Storage.
func (f folder) URL(name string) string { return "pvc://" + f.claim + "/" + name }

func (f folder) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("the volume of PersistentVolumeClaim %s is full: make room on it, or a larger one", f.claim)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("the volume of PersistentVolumeClaim %s cannot be written: %w", f.claim, err)
	}
	return fmt.Errorf("PersistentVolumeClaim %s: %w", f.claim, err)
}
