// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/encrypt"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/addressguard"
	"github.com/openshift/hypershift/support/objectstore"
)

const (
	// partSize is the size in bytes of one part of an upload, which is buffered in memory. S3 allows ten thousand parts,
	// which limits a bundle to 160 GiB.
	partSize = 16 << 20
	// abandoned is the age after which an incomplete upload can be aborted: no Job runs that long.
	abandoned = 2 * Deadline
)

// bucket is a bucket of S3 or of an S3-compatible store.
type bucket struct {
	spec   hyperv1.HCPEtcdBackupS3
	client *minio.Client
	// now returns the current time.
	now func() time.Time
}

func newBucket(spec hyperv1.HCPEtcdBackupS3, dir string) (*bucket, error) {
	guard, err := objectstore.GuardFrom(os.Getenv)
	if err != nil {
		return nil, err
	}
	config := objectstore.Config{Region: spec.Region, Endpoint: spec.Endpoint, Dir: dir, Guard: guard}
	client, err := objectstore.New(config)
	if err != nil {
		return nil, fmt.Errorf("storage.s3 with Secret %s: %w", spec.Credentials.Name, err)
	}
	return &bucket{spec: spec, client: client, now: time.Now}, nil
}

func (b *bucket) key(name string) string { return path.Join(strings.Trim(b.spec.KeyPrefix, "/"), name) }

// Put implements Storage. A multipart upload becomes an object only when it is completed.
func (b *bucket) Put(ctx context.Context, name string, content io.Reader) error {
	options := minio.PutObjectOptions{ContentType: "application/octet-stream", PartSize: partSize}
	if b.spec.KMSKeyARN != "" {
		sse, err := encrypt.NewSSEKMS(b.spec.KMSKeyARN, nil)
		if err != nil {
			return fmt.Errorf("storage.s3.kmsKeyARN: %w", err)
		}
		options.ServerSideEncryption = sse
	}
	_, err := b.client.PutObject(ctx, b.spec.Bucket, b.key(name), &whole{r: content}, -1, options)
	return b.explain(err)
}

// whole is a reader that replaces all errors except io.EOF. The S3 client would treat io.ErrUnexpectedEOF as the end
// of the content.
type whole struct{ r io.Reader }

// Read implements io.Reader.
func (w *whole) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // io.EOF as readers return it, and nothing that wraps it
		err = errors.New(err.Error())
	}
	return n, err
}

// Get implements Storage.
func (b *bucket) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	object, err := b.client.GetObject(ctx, b.spec.Bucket, b.key(name), minio.GetObjectOptions{})
	if err != nil {
		return nil, b.explain(err)
	}
	if _, err := object.Stat(); err != nil {
		return nil, errors.Join(b.explain(err), object.Close())
	}
	return object, nil
}

// Delete implements Storage.
func (b *bucket) Delete(ctx context.Context, name string) error {
	err := b.client.RemoveIncompleteUpload(ctx, b.spec.Bucket, b.key(name))
	if err == nil || noUploads(err) {
		err = b.client.RemoveObject(ctx, b.spec.Bucket, b.key(name), minio.RemoveObjectOptions{})
	}
	// If the bucket does not exist, there is nothing to delete.
	if minio.ToErrorResponse(err).Code == minio.NoSuchBucket {
		return nil
	}
	return b.explain(err)
}

// Sweep implements Storage. For other names, it only aborts uploads whose process can no longer be running.
func (b *bucket) Sweep(ctx context.Context, name string) error {
	var all []string
	for upload := range b.client.ListIncompleteUploads(ctx, b.spec.Bucket, b.key(path.Dir(name))+"/", true) {
		if noUploads(upload.Err) {
			return nil
		}
		if upload.Err != nil {
			return b.explain(upload.Err)
		}
		if upload.Key == b.key(name) || b.now().Sub(upload.Initiated) > abandoned {
			all = append(all, upload.Key)
		}
	}
	for _, key := range all {
		if err := b.client.RemoveIncompleteUpload(ctx, b.spec.Bucket, key); err != nil && !noUploads(err) {
			return b.explain(err)
		}
	}
	return nil
}

// noUploads reports whether the error means that the store lists no multipart uploads: it has none, or it does not
// implement the request.
func noUploads(err error) bool {
	response := minio.ToErrorResponse(err)
	return response.Code == minio.NoSuchUpload || response.StatusCode == http.StatusNotImplemented
}

// URL implements Storage.
func (b *bucket) URL(name string) string { return "s3://" + b.spec.Bucket + "/" + b.key(name) }

// explain adds what the user can do about an error of the storage. No error contains a secret.
func (b *bucket) explain(err error) error {
	if err == nil {
		return nil
	}
	where := "bucket " + b.spec.Bucket
	if b.spec.Endpoint != "" {
		where += " of " + b.spec.Endpoint
	}
	var refused *addressguard.RefusedError
	if errors.As(err, &refused) {
		return fmt.Errorf("%s: %w; an administrator can allow it with hypershift install %s",
			where, refused, objectstore.AllowFlag)
	}
	response := minio.ToErrorResponse(err)
	switch code := response.Code; {
	case code == minio.NoSuchBucket:
		return fmt.Errorf("%s does not exist: make it, or name another one", where)
	case response.StatusCode == http.StatusForbidden, response.StatusCode == http.StatusUnauthorized:
		return fmt.Errorf("%s refuses the credentials of Secret %s (%s); check that they are current and may list the bucket and get, put and delete its objects", where, b.spec.Credentials.Name, code)
	case response.StatusCode == http.StatusInsufficientStorage, code == "XMinioStorageFull", code == "QuotaExceeded", code == "XMinioAdminBucketQuotaExceeded":
		return fmt.Errorf("%s is full (%s): make room in it, or raise its quota", where, code)
	case code == minio.NoSuchKey:
		return fmt.Errorf("%s no longer has this object", where)
	}
	return fmt.Errorf("%s: %w", where, err)
}
