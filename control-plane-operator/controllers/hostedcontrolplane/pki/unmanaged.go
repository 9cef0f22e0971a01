// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/pki"
)

// Keys of the Secret with which a user grants access to an external etcd. The operator's own Secrets use the first two
// as well.
const (
	EtcdClientCert = "etcd-client.crt"
	EtcdClientKey  = "etcd-client.key"
	etcdClientCA   = "etcd-client-ca.crt"
)

// OwnEtcdError is a fault in the Secret of an etcd that the user provides.
type OwnEtcdError struct{ Err error }

// Error implements error.
func (e *OwnEtcdError) Error() string { return e.Err.Error() }

// Unwrap returns the cause for errors.Is.
func (e *OwnEtcdError) Unwrap() error { return e.Err }

// BringsEtcd reports whether the user provides an etcd, so that the operator does not create its certificates.
func BringsEtcd(hcp *hyperv1.HostedControlPlane) bool {
	return hcp.Spec.Etcd.ManagementType == hyperv1.Unmanaged && hcp.Spec.Etcd.Unmanaged != nil
}

// reconcileUnmanagedEtcd copies the user's client certificate to the Secret that holds the API server's client
// certificate for a managed etcd.
func (p *pass) reconcileUnmanagedEtcd(ctx context.Context) error {
	if !BringsEtcd(p.hcp) {
		return nil
	}
	source := &corev1.Secret{}
	key := crclient.ObjectKey{Namespace: p.hcp.Namespace, Name: p.hcp.Spec.Etcd.Unmanaged.TLS.ClientSecret.Name}
	if err := p.Client.Get(ctx, key, source); err != nil {
		return &OwnEtcdError{fmt.Errorf("reading the client certificate of the unmanaged etcd in Secret %s: %w", key, err)}
	}
	for _, name := range []string{EtcdClientCert, EtcdClientKey, etcdClientCA} {
		if len(source.Data[name]) == 0 {
			return &OwnEtcdError{fmt.Errorf("Secret %s has no key %s, which an unmanaged etcd needs: add it", key, name)}
		}
	}
	secret := p.secret(EtcdClient)
	err := p.upsert(ctx, secret, func() error {
		secret.Data = map[string][]byte{EtcdClientCert: source.Data[EtcdClientCert], EtcdClientKey: source.Data[EtcdClientKey]}
		return nil
	})
	if err != nil {
		return err
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.hcp.Namespace, Name: EtcdBundle}}
	return p.upsert(ctx, cm, func() error {
		cm.Data = map[string]string{pki.CACertKey: string(source.Data[etcdClientCA])}
		return nil
	})
}
