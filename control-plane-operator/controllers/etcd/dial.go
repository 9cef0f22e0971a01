// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"sigs.k8s.io/controller-runtime/pkg/client"

	component "github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/etcd"
)

// Members is a client of etcd.
type Members interface {
	clientv3.Cluster
	clientv3.Maintenance
	clientv3.KV
	Close() error
}

// TLSDialer dials with the client certificate of the hosted namespace, as the API server does. It reads the certificate
// for each dial, since certificates are renewed.
func TLSDialer(reader client.Reader) func(context.Context, string, []string) (Members, error) {
	return func(ctx context.Context, namespace string, urls []string) (Members, error) {
		config, err := component.ClientTLS(ctx, reader, namespace)
		if err != nil {
			return nil, err
		}
		return clientv3.New(clientv3.Config{Endpoints: urls, TLS: config, DialTimeout: AnswerTimeout, Logger: zap.NewNop()})
	}
}
