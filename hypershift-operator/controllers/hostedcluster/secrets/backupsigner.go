// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/support/bundle"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/upsert"
)

// BackupSigner gives a control plane a key that the key in OperatorNamespace certifies.
type BackupSigner struct {
	Client client.Client
	// OperatorNamespace contains the certifying key; empty for none.
	OperatorNamespace string
}

// Reconcile gives the control plane the key that signs its backups. A restore verifies a backup with this
// signature.
func (r BackupSigner) Reconcile(ctx context.Context, s *cluster.Scope) (ctrl.Result, error) {
	managed := s.HC.Spec.Etcd.ManagementType == hyperv1.Managed && !s.Distribution().OwnOperators
	if !managed || r.OperatorNamespace == "" {
		return ctrl.Result{}, nil
	}
	issuer, err := r.authority(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	target := s.Secret(hosted.BackupSigner)
	_, err = upsert.Object(ctx, r.Client, target, func() error {
		if err := s.Claim(target); err != nil {
			return err
		}
		if issuer.Issued(s.Key().String(), target.Data) {
			return nil
		}
		if target.Type == "" {
			target.Type = corev1.SecretTypeOpaque
		}
		issued, err := issuer.Issue(s.Key().String())
		target.Data = issued
		return err
	})
	return ctrl.Result{}, err
}

// authority reads the key that certifies the backup signers of this management cluster. It creates the key if
// there is none.
func (r BackupSigner) authority(ctx context.Context) (*bundle.Authority, error) {
	key := client.ObjectKey{Namespace: r.OperatorNamespace, Name: hosted.BackupAuthority}
	secret := &corev1.Secret{}
	err := r.Client.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		secret, err = r.newAuthority(ctx, key)
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s, which certifies the signers of backups: %w", key, err)
	}
	authority, err := bundle.ReadAuthority(secret.Data)
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s, which certifies the signers of backups: %w; "+
			"delete it to have another one made", key, err)
	}
	return authority, nil
}

// newAuthority creates the key. It fails if another worker or an earlier process has created the key; the next
// reconcile then reads that key.
func (r BackupSigner) newAuthority(ctx context.Context, key client.ObjectKey) (*corev1.Secret, error) {
	data, err := bundle.NewAuthority()
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Type:       corev1.SecretTypeOpaque, Data: data,
	}
	return secret, r.Client.Create(ctx, secret)
}
