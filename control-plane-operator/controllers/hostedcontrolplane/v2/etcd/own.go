// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/support/hosted"
	supportpki "github.com/openshift/hypershift/support/pki"
)

// healthKey is what an API server asks for to know whether etcd serves it. Nobody writes it.
const healthKey = "/" + Prefix + "/health"

// ValidateEndpoint says why the API server could not go by the endpoint of an etcd that the user brings: it ends at one that is no URL, and
// waits for ever for one without a port.
func ValidateEndpoint(hcp *hyperv1.HostedControlPlane) error {
	if !pki.BringsEtcd(hcp) {
		return nil
	}
	for _, endpoint := range URLs(hcp) {
		if u, err := url.Parse(endpoint); err != nil || u.Scheme != "https" || u.Hostname() == "" || u.Port() == "" {
			return fmt.Errorf("etcd.unmanaged.endpoint: %q is no https URL with a host and a port; write it as in https://etcd.example.com:2379, "+
				"several with a comma and no space between them", endpoint)
		}
	}
	return nil
}

// AskOwn asks an etcd that the user brings what API servers ask theirs, with what they authenticate with; an error says why it does not serve them.
func AskOwn(ctx context.Context, reader client.Reader, hcp *hyperv1.HostedControlPlane) error {
	config, err := ClientTLS(ctx, reader, hcp.Namespace)
	if apierrors.IsNotFound(err) {
		return errors.New("the client certificate for etcd was not taken over yet")
	}
	if err != nil {
		return err
	}
	members, err := clientv3.New(clientv3.Config{Endpoints: URLs(hcp), TLS: config, MaxUnaryRetries: 1, Logger: zap.NewNop()})
	if err == nil {
		defer func() { _ = members.Close() }()
		// The client's own calls wait for a connection, and try again, until their time is up: then nobody knows what was wrong.
		_, err = etcdserverpb.NewKVClient(members.ActiveConnection()).Range(ctx, &etcdserverpb.RangeRequest{Key: []byte(healthKey)})
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("the etcd at %s does not answer", URL(hcp))
	case err != nil:
		return fmt.Errorf("the etcd at %s does not serve the API server: %s", URL(hcp), cause(refusal(ctx, config, URLs(hcp), err)))
	}
	return nil
}

// cause is an error without what gRPC says around it.
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

// ClientTLS is how clients of the hosted namespace, the API server among them, call etcd.
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
