// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/support/bundle"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/pki"
)

var etcdClientKeys = []string{"etcd-client.crt", "etcd-client.key", "etcd-client-ca.crt"}

// EtcdClient copies the client certificate that spec.etcd.unmanaged names.
type EtcdClient struct{ Copier }

// Reconcile copies the client certificate of an etcd that the user runs.
func (r EtcdClient) Reconcile(ctx context.Context, s *cluster.Scope) (ctrl.Result, error) {
	etcd := s.HC.Spec.Etcd
	if etcd.ManagementType != hyperv1.Unmanaged || etcd.Unmanaged == nil {
		return ctrl.Result{}, nil
	}
	name := etcd.Unmanaged.TLS.ClientSecret.Name
	err := r.checkEtcdClient(ctx, s, name)
	if err == nil {
		err = r.copySecret(ctx, s, hosted.UseEtcdClient, name, etcdClientKeys...)
	}
	if err != nil {
		s.Reject(hyperv1.UnmanagedEtcdAvailable, hyperv1.UnmanagedEtcdMisconfiguredReason, err.Error())
		return ctrl.Result{}, fmt.Errorf("spec.etcd.unmanaged.tls: %w", err)
	}
	s.SetCondition(metav1.Condition{
		Type: string(hyperv1.UnmanagedEtcdAvailable), Status: metav1.ConditionTrue,
		Reason: hyperv1.UnmanagedEtcdAsExpected, Message: hyperv1.AllIsWellMessage,
	})
	return ctrl.Result{}, nil
}

// checkEtcdClient rejects a certificate that no API server could use, so that running API servers keep the old one. The
// usual cause is a new certificate with the key of the previous one.
func (r EtcdClient) checkEtcdClient(ctx context.Context, s *cluster.Scope, name string) error {
	source, err := r.Secret(ctx, s, name, etcdClientKeys...)
	if err != nil {
		return err
	}
	certificate, key, ca := source.Data[etcdClientKeys[0]], source.Data[etcdClientKeys[1]], source.Data[etcdClientKeys[2]]
	if _, err := pki.ClientTLS(certificate, key, ca); err != nil {
		return fmt.Errorf("the Secret %s/%s: %w", s.HC.Namespace, name, err)
	}
	return nil
}

// EtcdBackup copies what spec.etcd.managed.automatedBackup names.
type EtcdBackup struct{ Copier }

// Reconcile copies the inputs of scheduled backups: the encryption recipients and the credentials of the
// storage. It does not copy a private key that a user stored in the same Secret.
func (r EtcdBackup) Reconcile(ctx context.Context, s *cluster.Scope) (ctrl.Result, error) {
	managed := s.HC.Spec.Etcd.Managed
	if managed == nil || managed.AutomatedBackup == nil {
		return ctrl.Result{}, nil
	}
	key := managed.AutomatedBackup.EncryptionKey.Name
	if err := r.copySecret(ctx, s, hosted.UseBackupKey, key, bundle.RecipientsKey); err != nil {
		return ctrl.Result{}, fmt.Errorf("spec.etcd.managed.automatedBackup.encryptionKey: %w", err)
	}
	s3 := managed.AutomatedBackup.Storage.S3
	if s3 == nil {
		return ctrl.Result{}, nil
	}
	const credentials, caBundle = "credentials", "ca-bundle.crt"
	name := s3.Credentials.Name
	source, err := r.Secret(ctx, s, name, credentials)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("spec.etcd.managed.automatedBackup.storage.s3.credentials: %w", err)
	}
	keys := []string{credentials}
	if len(source.Data[caBundle]) > 0 {
		keys = append(keys, caBundle)
	}
	if err := r.copySecret(ctx, s, hosted.UseBackupStorage, name, keys...); err != nil {
		return ctrl.Result{}, fmt.Errorf("spec.etcd.managed.automatedBackup.storage.s3.credentials: %w", err)
	}
	return ctrl.Result{}, nil
}
