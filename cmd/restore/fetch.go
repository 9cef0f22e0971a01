// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/minio/minio-go/v7"

	"github.com/openshift/hypershift/support/bundle"
	"github.com/openshift/hypershift/support/objectstore"
)

// fetch copies the backup to this machine: it is read once before anything is written, and once for each member. The
// copy is encrypted as in the store, and release removes it.
func (r *restoring) fetch(ctx context.Context) (release func(), err error) {
	scheme, path, isURL := strings.Cut(r.from, "://")
	if !isURL {
		r.file = r.from
		return func() {}, nil
	}
	bucket, key, _ := strings.Cut(path, "/")
	switch {
	case scheme == "pvc":
		return nil, fmt.Errorf("--from %s: a backup on a volume is not read from here: copy the file out of a pod that has the claim, and name the file", r.from)
	case scheme != "s3" || bucket == "" || key == "":
		return nil, fmt.Errorf("--from %s: name a file, or an object as s3://BUCKET/KEY", r.from)
	}
	dir, err := os.MkdirTemp("", "hypershift-restore-")
	if err != nil {
		return nil, fmt.Errorf("make a temporary folder for the backup: %w", err)
	}
	release = func() { _ = os.RemoveAll(dir) }
	r.file = filepath.Join(dir, "backup"+bundle.Extension)
	if err := r.download(ctx, bucket, key); err != nil {
		release()
		return nil, fmt.Errorf("--from %s: %w", r.from, err)
	}
	return release, nil
}

func (r *restoring) download(ctx context.Context, bucket, key string) error {
	store, err := objectstore.New(r.s3)
	if err != nil {
		return err
	}
	err = store.FGetObject(ctx, bucket, key, r.file, minio.GetObjectOptions{})
	switch response := minio.ToErrorResponse(err); {
	case err == nil:
		return nil
	case response.StatusCode == http.StatusForbidden:
		return fmt.Errorf("the store refuses these credentials (%s)", response.Code)
	case response.StatusCode == http.StatusNotFound:
		return errors.New("the store has no such object; list the bucket with the store's own client")
	}
	return err
}
