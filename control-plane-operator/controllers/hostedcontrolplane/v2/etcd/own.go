// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/support/addressguard"
	"github.com/openshift/hypershift/support/hosted"
	supportpki "github.com/openshift/hypershift/support/pki"
)

// healthKey is the key that an API server reads to check whether etcd serves. It is never written.
const healthKey = "/" + Prefix + "/health"

// ValidateEndpoint returns the reason why the API server could not use the endpoint of an etcd that the user provides.
// The API server exits if the endpoint is not a URL, and waits indefinitely if it has no port.
func ValidateEndpoint(hcp *hyperv1.HostedControlPlane) error {
	if !pki.BringsEtcd(hcp) {
		return nil
	}
	for _, endpoint := range URLs(hcp) {
		if u, err := url.Parse(endpoint); err != nil || u.Scheme != "https" || u.Hostname() == "" || u.Port() == "" {
			return fmt.Errorf("etcd.unmanaged.endpoint: %q is not an https URL with a host and a port; write it as in https://etcd.example.com:2379, "+
				"several with a comma and no space between them", endpoint)
		}
	}
	return nil
}

// AskOwn sends the request of the API server's health check to an etcd that the user provides. It uses the API
// server's credentials. The error says why the etcd does not serve. The guard enforces an address policy for the
// endpoint; nil allows every address.
func AskOwn(ctx context.Context, reader client.Reader, hcp *hyperv1.HostedControlPlane, guard *addressguard.Guard) error {
	config, err := ClientTLS(ctx, reader, hcp.Namespace)
	if apierrors.IsNotFound(err) {
		return errors.New("the client certificate for etcd has not been copied yet")
	}
	if err != nil {
		return err
	}
	asker := &asker{tls: config, net: net.Dialer{Control: guard.Control}}
	members, err := clientv3.New(clientv3.Config{Endpoints: URLs(hcp), TLS: config, MaxUnaryRetries: 1, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(asker.dial)}})
	if err == nil {
		defer func() { _ = members.Close() }()
		// The methods of the etcd client wait for a connection and retry until the deadline, which hides the cause. Call gRPC
		// directly.
		_, err = etcdserverpb.NewKVClient(members.ActiveConnection()).Range(ctx, &etcdserverpb.RangeRequest{Key: []byte(healthKey)})
	}
	switch {
	case asker.refused.Load():
		return fmt.Errorf("the etcd at %s is not called: %w", URL(hcp), &addressguard.RefusedError{})
	case ctx.Err() != nil:
		return fmt.Errorf("the etcd at %s does not answer", URL(hcp))
	case err != nil:
		return fmt.Errorf("the etcd at %s does not serve the API server: %s", URL(hcp), cause(asker.refusal(ctx, URLs(hcp), err)))
	}
	return nil
}

// cause returns the text of an error without gRPC's prefix.
func cause(err error) string {
	const before = "desc = "
	text := err.Error()
	if at := strings.LastIndex(text, before); at >= 0 {
		text = text[at+len(before):]
		if quoted, ok := strings.CutPrefix(text, `"`); ok {
			text = strings.TrimSuffix(quoted, `"`)
		}
		text = strings.ReplaceAll(text, `\"`, `"`)
	}
	return text
}

// ClientTLS returns the TLS configuration of etcd's clients in the hosted namespace, such as the API server.
func ClientTLS(ctx context.Context, reader client.Reader, namespace string) (*tls.Config, error) {
	secret, bundle := &corev1.Secret{}, &corev1.ConfigMap{}
	for name, obj := range map[string]client.Object{pki.EtcdClient: secret, pki.EtcdBundle: bundle} {
		if err := hosted.ReadTrusted(ctx, reader, client.ObjectKey{Namespace: namespace, Name: name}, obj); err != nil {
			return nil, fmt.Errorf("reading what etcd's clients authenticate with: %w", err)
		}
	}
	config, err := supportpki.ClientTLS(secret.Data[pki.EtcdClientCert], secret.Data[pki.EtcdClientKey], []byte(bundle.Data[supportpki.CACertKey]))
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s and ConfigMap %s of namespace %s: %w", pki.EtcdClient, pki.EtcdBundle, namespace, err)
	}
	return config, nil
}
