// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
)

// Members is a client of etcd.
type Members interface {
	clientv3.Cluster
	clientv3.Maintenance
	clientv3.KV
	Close() error
}

// TLSDialer dials with the client certificate of the hosted namespace, as the API server does. It is read each time: certificates
// are renewed.
func TLSDialer(reader client.Reader) func(context.Context, string, []string) (Members, error) {
	return func(ctx context.Context, namespace string, urls []string) (Members, error) {
		config, err := clientTLS(ctx, reader, namespace)
		if err != nil {
			return nil, err
		}
		return clientv3.New(clientv3.Config{Endpoints: urls, TLS: config, DialTimeout: Patience, Logger: zap.NewNop()})
	}
}

func clientTLS(ctx context.Context, reader client.Reader, namespace string) (*tls.Config, error) {
	secret, bundle := &corev1.Secret{}, &corev1.ConfigMap{}
	for name, obj := range map[string]client.Object{pki.EtcdClient: secret, pki.EtcdBundle: bundle} {
		if err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj); err != nil {
			return nil, fmt.Errorf("reading what etcd's clients authenticate with: %w", err)
		}
	}
	pair, err := tls.X509KeyPair(secret.Data["etcd-client.crt"], secret.Data["etcd-client.key"])
	if err != nil {
		return nil, fmt.Errorf("reading the client certificate of Secret %s/%s: %w", namespace, pki.EtcdClient, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(bundle.Data["ca.crt"])) {
		return nil, fmt.Errorf("ConfigMap %s/%s has no certificate in ca.crt", namespace, pki.EtcdBundle)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, MinVersion: tls.VersionTLS12}, nil
}
