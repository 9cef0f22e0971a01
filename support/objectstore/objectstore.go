// SPDX-License-Identifier: Apache-2.0

// Package objectstore opens object stores that speak the S3 protocol, with credentials from the files of a Secret.
package objectstore

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/openshift/hypershift/support/addressguard"
	"github.com/openshift/hypershift/support/awscredentials"
)

const dialTimeout = 15 * time.Second

// CredentialsKey and CABundleKey are keys of a Secret with access to a store: an AWS credentials file, and optionally
// the CAs of the endpoint.
const (
	CredentialsKey = "credentials"
	CABundleKey    = "ca-bundle.crt"
)

// Config identifies the store and the credentials for it.
type Config struct {
	// Region is the store's region, such as eu-west-1.
	Region string
	// Endpoint is the store's URL; empty means AWS in the region.
	Endpoint string
	// Dir is a folder with the files of the Secret. They are read once. Empty means the caller's own credentials. These
	// are AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of the environment, or else the file named by
	// AWS_SHARED_CREDENTIALS_FILE, or ~/.aws/credentials.
	Dir string
	// Key is the name of the credentials file; empty means CredentialsKey.
	Key string
	// CABundle is a file with the CAs of the endpoint, which must exist. Empty means CABundleKey in Dir, if that exists.
	CABundle string
	// Guard is the address policy if a tenant chose the endpoint; nil allows every address.
	Guard *addressguard.Guard
}

// Environment variables with the addresses that tenants' object stores may have, for the pods of hosted control planes;
// see GuardFrom. EnvHostIP is the address of the pod's node, which is refused unless it is allowed.
const (
	EnvAllowCIDRs  = "OBJECT_STORE_ALLOW_CIDRS"
	EnvRefuseCIDRs = "OBJECT_STORE_REFUSE_CIDRS"
	EnvHostIP      = "OBJECT_STORE_HOST_IP"
)

// AllowFlag is the flag of install with which an administrator allows address ranges.
const AllowFlag = "--object-store-allow-cidrs"

// GuardFrom reads the address policy from the environment. It refuses the addresses of the management cluster, see
// addressguard.New, and the pod's own node.
func GuardFrom(getenv func(string) string) (*addressguard.Guard, error) {
	guard, err := addressguard.New(getenv(EnvAllowCIDRs), getenv(EnvRefuseCIDRs))
	if err != nil {
		return nil, fmt.Errorf("%s or %s: %w", EnvAllowCIDRs, EnvRefuseCIDRs, err)
	}
	if node, err := netip.ParseAddr(getenv(EnvHostIP)); err == nil {
		guard.Refuse = append(guard.Refuse, netip.PrefixFrom(node, node.BitLen()))
	}
	return guard, nil
}

// New returns a client that tries each request at most three times. It sends no request yet. Its errors contain no
// secrets.
func New(config Config) (*minio.Client, error) {
	endpoint := &url.URL{Scheme: "https", Host: "s3." + config.Region + ".amazonaws.com"}
	if config.Endpoint != "" {
		var err error
		if endpoint, err = url.Parse(config.Endpoint); err != nil {
			return nil, fmt.Errorf("the endpoint is not a URL: %w", err)
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
	// The library's own reader runs the program that the credentials file names. A tenant wrote the file.
	file, err := os.ReadFile(filepath.Join(c.Dir, key))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading key %q: %w", key, err)
	}
	read, err := awscredentials.Parse(file)
	if err != nil {
		return nil, fmt.Errorf("key %q: %w", key, err)
	}
	return credentials.NewStaticV4(read.AccessKeyID, read.SecretAccessKey, read.SessionToken), nil
}

// transport trusts the CAs of the file in addition to the system's.
func (c Config) transport() (*http.Transport, error) {
	transport, err := minio.DefaultTransport(true)
	if err != nil {
		return nil, err
	}
	if c.Guard != nil {
		dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: dialTimeout, Control: c.Guard.Control}
		transport.DialContext = dialer.DialContext
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
