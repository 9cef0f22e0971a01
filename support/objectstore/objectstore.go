// SPDX-License-Identifier: Apache-2.0

// Package objectstore opens what speaks S3's protocol, with the files of a Secret.
package objectstore

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// CredentialsKey and CABundleKey are keys of a Secret that opens a store: an AWS credentials file, and optionally the CAs of the
// endpoint.
const (
	CredentialsKey = "credentials"
	CABundleKey    = "ca-bundle.crt"
)

// Config says which store is opened.
type Config struct {
	// Region is the store's, such as eu-west-1.
	Region string
	// Endpoint is the store's URL; empty means AWS's own in the region.
	Endpoint string
	// Dir is a folder with the files of the Secret. They are read once.
	Dir string
	// Key is the name of the credentials file; empty means CredentialsKey.
	Key string
}

// New makes a client, which asks three times at most. It calls nobody yet. No error has a secret in it.
func New(config Config) (*minio.Client, error) {
	endpoint := &url.URL{Scheme: "https", Host: "s3." + config.Region + ".amazonaws.com"}
	if config.Endpoint != "" {
		var err error
		if endpoint, err = url.Parse(config.Endpoint); err != nil {
			return nil, fmt.Errorf("the endpoint is no URL: %w", err)
		}
	}
	transport, err := trusting(config.Dir)
	if err != nil {
		return nil, fmt.Errorf("key %s: %w", CABundleKey, err)
	}
	key := config.Key
	if key == "" {
		key = CredentialsKey
	}
	keys := credentials.NewFileAWSCredentials(filepath.Join(config.Dir, key), "default")
	if value, err := keys.GetWithContext(nil); err != nil || value.AccessKeyID == "" {
		return nil, fmt.Errorf("key %q is no AWS credentials file with a profile [default] that has aws_access_key_id and aws_secret_access_key", key)
	}
	client, err := minio.New(endpoint.Host, &minio.Options{
		Creds: keys, Secure: endpoint.Scheme == "https", Region: config.Region, Transport: transport, MaxRetries: 3,
	})
	if err != nil {
		return nil, fmt.Errorf("the endpoint: %w", err)
	}
	return client, nil
}

// trusting is a transport that trusts the CAs of the folder beside the system's.
func trusting(dir string) (*http.Transport, error) {
	transport, err := minio.DefaultTransport(true)
	if err != nil {
		return nil, err
	}
	bundle, err := os.ReadFile(filepath.Join(dir, CABundleKey))
	if errors.Is(err, fs.ErrNotExist) {
		return transport, nil
	}
	if err != nil {
		return nil, err
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		return nil, err
	}
	if !roots.AppendCertsFromPEM(bundle) {
		return nil, errors.New("it has no certificate")
	}
	transport.TLSClientConfig.RootCAs = roots
	return transport, nil
}
