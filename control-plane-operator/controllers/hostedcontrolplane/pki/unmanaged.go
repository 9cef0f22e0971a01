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

// Keys of the Secret with which a user grants access to an etcd of their own.
const (
	etcdClientCert = "etcd-client.crt"
	etcdClientKey  = "etcd-client.key"
	etcdClientCA   = "etcd-client-ca.crt"
)

// bringsEtcd tells whether the user brings an etcd, whose certificates are then not ours to make.
func bringsEtcd(hcp *hyperv1.HostedControlPlane) bool {
	return hcp.Spec.Etcd.ManagementType == hyperv1.Unmanaged && hcp.Spec.Etcd.Unmanaged != nil
}

// reconcileUnmanagedEtcd puts the user's client certificate where the API server finds that of a managed etcd.
func (p *pass) reconcileUnmanagedEtcd(ctx context.Context) error {
	if !bringsEtcd(p.hcp) {
		return nil
	}
	source := &corev1.Secret{}
	key := crclient.ObjectKey{Namespace: p.hcp.Namespace, Name: p.hcp.Spec.Etcd.Unmanaged.TLS.ClientSecret.Name}
	if err := p.Client.Get(ctx, key, source); err != nil {
		return fmt.Errorf("reading the client certificate of the unmanaged etcd in Secret %s: %w", key, err)
	}
	for _, name := range []string{etcdClientCert, etcdClientKey, etcdClientCA} {
		if len(source.Data[name]) == 0 {
			return fmt.Errorf("Secret %s has no key %s, which an unmanaged etcd needs", key, name)
		}
	}
	secret := p.secret(EtcdClient)
	err := p.upsert(ctx, secret, func() error {
		secret.Data = map[string][]byte{etcdClientCert: source.Data[etcdClientCert], etcdClientKey: source.Data[etcdClientKey]}
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
