// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/objectstore"
)

const (
	// ownerMark is the metadata key of an object that contains its owner, as namespace/name.
	ownerMark = "Hosted-Cluster"
)

// errTaken is returned instead of overwriting another cluster's documents.
var errTaken = errors.New("the bucket has documents of another cluster under this infraID")

// bucket is where issuer documents are published. The zero value means that there is none.
type bucket struct {
	name, region, endpoint string
	// credentials is the path of a credentials file for AWS's client libraries. The file may change at any time.
	credentials string

	looks looks
}

func (b *bucket) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&b.name, "oidc-storage-provider-s3-bucket-name", "", "bucket that the documents of AWS clusters' issuers go to")
	flags.StringVar(&b.region, "oidc-storage-provider-s3-region", "", "region of the bucket")
	flags.StringVar(&b.credentials, "oidc-storage-provider-s3-credentials", "", "AWS credentials file that may write to the bucket")
	flags.StringVar(&b.endpoint, "oidc-storage-provider-s3-endpoint", "", "URL of an S3-compatible server, instead of AWS's own in the region")
}

// check reports whether the flags are consistent.
func (b *bucket) check() error {
	if (b.name == "") != (b.region == "") || (b.name == "") != (b.credentials == "") {
		return errors.New("set all of --oidc-storage-provider-s3-bucket-name, --oidc-storage-provider-s3-region and --oidc-storage-provider-s3-credentials, or none")
	}
	return nil
}

func (b *bucket) configured() bool { return b.name != "" }

// PublishIssuer writes the documents to the bucket, unless they are already there.
func (p *Platform) PublishIssuer(ctx context.Context, cluster platform.Cluster, documents map[string][]byte) (metav1.Condition, time.Duration) {
	owner, infraID := client.ObjectKeyFromObject(cluster.HostedCluster).String(), cluster.HostedCluster.Spec.InfraID
	again, failure := p.bucket.publish(ctx, owner, infraID, documents)
	where := "s3://" + p.bucket.name + "/" + infraID
	switch {
	case failure == nil:
		return condition.True(validOIDC, hyperv1.AsExpectedReason, "The issuer's documents are in "+where), again
	case definite(failure):
		return condition.False(validOIDC, hyperv1.OIDCConfigurationInvalidReason, "Publishing the issuer's documents in "+where+": "+p.bucket.explain(failure)), again
	}
	// The outcome is unknown: the documents that were published before are still served.
	return condition.Unknown(validOIDC, hyperv1.StatusUnknownReason, "Publishing the issuer's documents in "+where+": "+p.bucket.explain(failure)), again
}

// WithdrawIssuer deletes the documents that the cluster owns.
func (p *Platform) WithdrawIssuer(ctx context.Context, cluster platform.Cluster) error {
	hc := cluster.HostedCluster
	if !p.bucket.configured() {
		return fmt.Errorf("the operator has no bucket configured to remove the issuer's documents from; run `hypershift install` "+
			"with --oidc-storage-provider-s3-*, or remove %s/ of the bucket by hand and then the finalizer %s", hc.Spec.InfraID, hyperv1.AWSOIDCDiscoveryFinalizer)
	}
	if err := p.bucket.withdraw(ctx, client.ObjectKeyFromObject(hc).String(), hc.Spec.InfraID); err != nil {
		return fmt.Errorf("removing the issuer's documents from s3://%s/%s: %s", p.bucket.name, hc.Spec.InfraID, p.bucket.explain(err))
	}
	return nil
}

// publish writes missing or different documents. It reads the bucket only if the cached result has expired.
func (b *bucket) publish(ctx context.Context, owner, infraID string, documents map[string][]byte) (again time.Duration, failure error) {
	_, again, failure = b.looks.once(owner, documents, func() (string, error) {
		ctx, cancel := b.looks.bound(ctx)
		defer cancel()
		return "", b.putAll(ctx, owner, infraID, documents)
	})
	return again, failure
}

func (b *bucket) putAll(ctx context.Context, owner, infraID string, documents map[string][]byte) error {
	store, err := b.open()
	if err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(documents)) {
		if err := b.put(ctx, store, owner, infraID+path, documents[path]); err != nil {
			return err
		}
	}
	return nil
}

// open reads the credentials again, because they may have been rotated.
func (b *bucket) open() (*minio.Client, error) {
	return objectstore.New(objectstore.Config{
		Region: b.region, Endpoint: b.endpoint, Dir: filepath.Dir(b.credentials), Key: filepath.Base(b.credentials),
	})
}

func (b *bucket) put(ctx context.Context, store *minio.Client, owner, name string, content []byte) error {
	there, mark, err := b.read(ctx, store, name)
	if err != nil {
		return err
	}
	same := sameJSON(there, content)
	switch {
	case same && mark == owner:
		return nil
	// An object without an owner was written by upstream HyperShift.
	case there != nil && mark != owner && (mark != "" || !same):
		return fmt.Errorf("%s: %w", name, errTaken)
	}
	_, err = store.PutObject(ctx, b.name, name, bytes.NewReader(content), int64(len(content)), minio.PutObjectOptions{
		ContentType: "application/json", UserMetadata: map[string]string{ownerMark: owner},
	})
	return err
}

// sameJSON reports whether two documents are equal, whatever their formatting is.
func sameJSON(a, b []byte) bool {
	var first, second any
	return json.Unmarshal(a, &first) == nil && json.Unmarshal(b, &second) == nil && reflect.DeepEqual(first, second)
}

// read returns an object and its owner; nil if it does not exist.
func (b *bucket) read(ctx context.Context, store *minio.Client, name string) ([]byte, string, error) {
	object, err := store.GetObject(ctx, b.name, name, minio.GetObjectOptions{})
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = object.Close() }()
	// The operator's documents contain only a few keys.
	content, err := io.ReadAll(io.LimitReader(object, 1<<20))
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	about, err := object.Stat()
	return content, about.UserMetadata[ownerMark], err
}

func (b *bucket) withdraw(ctx context.Context, owner, infraID string) error {
	ctx, cancel := b.looks.bound(ctx)
	defer cancel()
	store, err := b.open()
	if err != nil {
		return err
	}
	for _, path := range []string{discoveryPath, keysPath} {
		there, mark, err := b.read(ctx, store, infraID+path)
		if err == nil && there != nil && (mark == "" || mark == owner) {
			err = store.RemoveObject(ctx, b.name, infraID+path, minio.RemoveObjectOptions{})
		}
		// If the bucket is gone, there is nothing to delete.
		if err != nil && minio.ToErrorResponse(err).Code != minio.NoSuchBucket {
			return err
		}
	}
	b.looks.forget(owner)
	return nil
}

// definite reports whether another attempt would fail in the same way.
func definite(err error) bool {
	response := minio.ToErrorResponse(err)
	return errors.Is(err, errTaken) || response.Code == minio.NoSuchBucket || response.StatusCode == http.StatusForbidden || response.StatusCode == http.StatusUnauthorized
}

// explain says what the operator's administrator can do. Responses contain no secrets.
func (b *bucket) explain(err error) string {
	response := minio.ToErrorResponse(err)
	switch {
	case errors.Is(err, errTaken):
		return err.Error() + ": create the cluster again with another infraID, or remove the documents"
	case response.Code == minio.NoSuchBucket:
		return "the bucket does not exist: make it, or run `hypershift install` with another one"
	case response.StatusCode == http.StatusForbidden, response.StatusCode == http.StatusUnauthorized:
		return fmt.Sprintf("the bucket refuses the operator's credentials (%s); check that they are current and may list the bucket "+
			"and get, put and delete its objects", response.Code)
	}
	return err.Error()
}
