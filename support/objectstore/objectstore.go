// SPDX-License-Identifier: Apache-2.0

// Package objectstore opens what speaks S3's protocol, with the files of a Secret.
package objectstore

import (
	"cmp"
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
	// Dir is a folder with the files of the Secret. They are read once. Empty means the caller's own credentials: AWS_ACCESS_KEY_ID and
	// AWS_SECRET_ACCESS_KEY of the environment, or else the file that AWS_SHARED_CREDENTIALS_FILE names, or ~/.aws/credentials.
	Dir string
	// Key is the name of the credentials file; empty means CredentialsKey.
	Key string
	// CABundle is a file of CAs of the endpoint, which must be there; empty means CABundleKey in Dir, if that is there.
	CABundle string
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
	transport, err := config.transport()
	if err != nil {
		return nil, err
	}
	keys, err := config.keys()
	if err != nil {
		return nil, err
	}
	client, err := minio.New(endpoint.Host, &minio.Options{
		Creds: keys, Secure: endpoint.Scheme == "https", Region: config.Region, Transport: transport, MaxRetries: 3,
	})
	if err != nil {
		return nil, fmt.Errorf("the endpoint: %w", err)
	}
	return client, nil
}

func (c Config) keys() (*credentials.Credentials, error) {
	if c.Dir == "" {
		keys := credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}})
		if value, err := keys.GetWithContext(nil); err != nil || value.AccessKeyID == "" {
			return nil, errors.New("there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SHARED_CREDENTIALS_FILE to an AWS credentials file")
		}
		return keys, nil
	}
	key := cmp.Or(c.Key, CredentialsKey)
	keys := credentials.NewFileAWSCredentials(filepath.Join(c.Dir, key), "default")
	if value, err := keys.GetWithContext(nil); err != nil || value.AccessKeyID == "" {
		return nil, fmt.Errorf("key %q is no AWS credentials file with a profile [default] that has aws_access_key_id and aws_secret_access_key", key)
	}
	return keys, nil
}

// transport trusts the CAs of the file beside the system's.
func (c Config) transport() (*http.Transport, error) {
	transport, err := minio.DefaultTransport(true)
	if err != nil {
		return nil, err
	}
	file := c.CABundle
	if file == "" && c.Dir != "" {
		file = filepath.Join(c.Dir, CABundleKey)
	}
	bundle, err := os.ReadFile(file)
	if file == "" || c.CABundle == "" && errors.Is(err, fs.ErrNotExist) {
		return transport, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the CAs of the endpoint: %w", err)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		return nil, err
	}
	if !roots.AppendCertsFromPEM(bundle) {
		return nil, fmt.Errorf("key %s: it has no certificate", filepath.Base(file))
	}
	transport.TLSClientConfig.RootCAs = roots
	return transport, nil
}
