// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/reference"
)

// Encryption copies the keys and credentials that spec.secretEncryption names.
type Encryption struct {
	Copier
	OperatorImage string
}

// Reconcile copies the keys that encrypt Secrets of the guest.
func (r Encryption) Reconcile(ctx context.Context, s *cluster.Scope) (ctrl.Result, error) {
	encryption := s.HC.Spec.SecretEncryption
	if encryption == nil {
		return ctrl.Result{}, nil
	}
	if plugin := KMSPlugin(s.HC); plugin != nil {
		return ctrl.Result{}, r.copyPluginCredentials(ctx, s, plugin)
	}
	if encryption.Type == hyperv1.KMS {
		return ctrl.Result{}, s.Platform.ReconcileSecretEncryption(ctx, r.Client, s.ForPlatform(r.OperatorImage))
	}
	if encryption.AESCBC == nil {
		return ctrl.Result{}, errors.New("spec.secretEncryption.aescbc is empty: name the Secret of the active key")
	}
	names := []string{encryption.AESCBC.ActiveKey.Name}
	if backup := reference.Name(encryption.AESCBC.BackupKey); backup != "" {
		names = append(names, backup)
	}
	for _, name := range names {
		if err := r.copySecret(ctx, s, hosted.UseEncryptionKey, name, hyperv1.AESCBCKeySecretKey); err != nil {
			return ctrl.Result{}, fmt.Errorf("spec.secretEncryption.aescbc: %w", err)
		}
	}
	return ctrl.Result{}, nil
}

// KMSPlugin returns the KMS plugin of a cluster; nil if it has none.
func KMSPlugin(hc *hyperv1.HostedCluster) *hyperv1.KMSPluginSpec {
	encryption := hc.Spec.SecretEncryption
	if encryption == nil || encryption.Type != hyperv1.KMS || encryption.KMS == nil ||
		encryption.KMS.Provider != hyperv1.KMSPlugin {
		return nil
	}
	return encryption.KMS.Plugin
}

// copyPluginCredentials copies all keys, because only the plugin knows which ones it reads.
func (r Encryption) copyPluginCredentials(ctx context.Context, s *cluster.Scope, plugin *hyperv1.KMSPluginSpec) error {
	const field = "spec.secretEncryption.kms.plugin.credentials"
	name := reference.Name(plugin.Credentials)
	if name == "" {
		return nil
	}
	source, err := r.Secret(ctx, s, name)
	if err != nil {
		return fmt.Errorf(field+": %w", err)
	}
	if err := r.copySecret(ctx, s, hosted.UseKMSCredentials, name, slices.Sorted(maps.Keys(source.Data))...); err != nil {
		return fmt.Errorf(field+": %w", err)
	}
	return nil
}
