// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/support/bundle"
	"github.com/openshift/hypershift/support/distributions"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/pki"
	"github.com/openshift/hypershift/support/reference"
	"github.com/openshift/hypershift/support/upsert"
	"github.com/openshift/hypershift/support/webhookkubeconfig"
)

// reconcilePullSecret copies the pull secret, which all later steps need.
func (r *Reconciler) reconcilePullSecret(ctx context.Context, s *scope) (ctrl.Result, error) {
	source, err := r.sourceSecret(ctx, s, s.HC.Spec.PullSecret.Name, corev1.DockerConfigJsonKey)
	if err != nil {
		s.Reject(hyperv1.ValidReleaseImage, hyperv1.SecretNotFoundReason,
			fmt.Sprintf("The release image cannot be read without the pull secret: %v", err))
		return ctrl.Result{}, fmt.Errorf("spec.pullSecret: %w", err)
	}
	s.pullSecret = source.Data[corev1.DockerConfigJsonKey]
	target := s.Secret(naming.PullSecret)
	_, err = upsert.Object(ctx, r.Client, target, func() error {
		if err := s.Claim(target); err != nil {
			return err
		}
		if target.Type == "" {
			target.Type = corev1.SecretTypeDockerConfigJson
		}
		target.Data = map[string][]byte{corev1.DockerConfigJsonKey: s.pullSecret}
		return nil
	})
	return ctrl.Result{}, err
}

// reconcileSecretEncryption copies the keys that encrypt Secrets of the guest.
func (r *Reconciler) reconcileSecretEncryption(ctx context.Context, s *scope) (ctrl.Result, error) {
	encryption := s.HC.Spec.SecretEncryption
	if encryption == nil {
		return ctrl.Result{}, nil
	}
	if plugin := pluginOf(s.HC); plugin != nil {
		return ctrl.Result{}, r.copyPluginCredentials(ctx, s, plugin)
	}
	if encryption.Type == hyperv1.KMS {
		return ctrl.Result{}, s.Platform.ReconcileSecretEncryption(ctx, r.Client, s.ForPlatform(r.Settings.OperatorImage))
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

// pluginOf returns the KMS plugin of a cluster; nil if it has none.
func pluginOf(hc *hyperv1.HostedCluster) *hyperv1.KMSPluginSpec {
	encryption := hc.Spec.SecretEncryption
	if encryption == nil || encryption.Type != hyperv1.KMS || encryption.KMS == nil || encryption.KMS.Provider != hyperv1.KMSPlugin {
		return nil
	}
	return encryption.KMS.Plugin
}

// copyPluginCredentials copies all keys, because only the plugin knows which ones it reads.
func (r *Reconciler) copyPluginCredentials(ctx context.Context, s *scope, plugin *hyperv1.KMSPluginSpec) error {
	const field = "spec.secretEncryption.kms.plugin.credentials"
	name := reference.Name(plugin.Credentials)
	if name == "" {
		return nil
	}
	source, err := r.sourceSecret(ctx, s, name)
	if err != nil {
		return fmt.Errorf(field+": %w", err)
	}
	if err := r.copySecret(ctx, s, hosted.UseKMSCredentials, name, slices.Sorted(maps.Keys(source.Data))...); err != nil {
		return fmt.Errorf(field+": %w", err)
	}
	return nil
}

// refusePlugin rejects a KMS plugin of the user for an OpenShift release, because its operators do not support one.
func (s *scope) refusePlugin() error {
	if pluginOf(s.HC) == nil || s.wantedControlPlane == nil || !distributions.Of(s.wantedControlPlane.Distribution()).OwnOperators {
		return nil
	}
	err := errors.New("spec.secretEncryption.kms.provider Plugin needs a Kubernetes release: choose aescbc, or a provider that OpenShift has")
	s.Reject(hyperv1.ValidHostedClusterConfiguration, hyperv1.InvalidConfigurationReason, err.Error())
	return err
}

// reconcileAuditWebhook copies the kubeconfig of the audit webhook.
func (r *Reconciler) reconcileAuditWebhook(ctx context.Context, s *scope) (ctrl.Result, error) {
	name := reference.Name(s.HC.Spec.AuditWebhook)
	if name == "" {
		return ctrl.Result{}, nil
	}
	if err := r.checkWebhook(ctx, s, name, hyperv1.AuditWebhookKubeconfigKey, webhookkubeconfig.Webhook{}); err != nil {
		return ctrl.Result{}, fmt.Errorf("spec.auditWebhook: %w", err)
	}
	if err := r.copySecret(ctx, s, hosted.UseAuditWebhook, name, hyperv1.AuditWebhookKubeconfigKey); err != nil {
		return ctrl.Result{}, fmt.Errorf("spec.auditWebhook: %w", err)
	}
	return ctrl.Result{}, nil
}

// checkWebhook rejects a kubeconfig that would run a program in the API server's pod or expose its files. The
// control-plane-operator of an OpenShift payload does not check this, so no part of it may be copied into the hosted
// namespace.
func (r *Reconciler) checkWebhook(ctx context.Context, s *scope, name, key string, hook webhookkubeconfig.Webhook) error {
	source, err := r.sourceSecret(ctx, s, name, key)
	if err != nil {
		return err
	}
	if _, err := hook.Accept(source.Data[key]); err != nil {
		return fmt.Errorf("the Secret %s/%s, key %s: %w", s.HC.Namespace, name, key, err)
	}
	return nil
}

// reconcileSSHKey copies the SSH key for nodes, and removes the copy when the cluster no longer has a key.
func (r *Reconciler) reconcileSSHKey(ctx context.Context, s *scope) (ctrl.Result, error) {
	if s.HC.Spec.SSHKey.Name == "" {
		return ctrl.Result{}, s.Drop(ctx, r.Client, s.Secret(naming.SSHKey))
	}
	const key = "id_rsa.pub"
	source, err := r.sourceSecret(ctx, s, s.HC.Spec.SSHKey.Name, key)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("spec.sshKey: %w", err)
	}
	target := s.Secret(naming.SSHKey)
	_, err = upsert.Object(ctx, r.Client, target, func() error {
		if target.Type == "" {
			target.Type = corev1.SecretTypeOpaque
		}
		target.Data = map[string][]byte{key: source.Data[key]}
		return s.Claim(target)
	})
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("spec.sshKey: %w", err)
	}
	return ctrl.Result{}, nil
}

// reconcileTrustBundle copies the CAs that the cluster trusts in addition to those of the system.
func (r *Reconciler) reconcileTrustBundle(ctx context.Context, s *scope) (ctrl.Result, error) {
	target := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: naming.TrustBundle}}
	name := reference.Name(s.HC.Spec.AdditionalTrustBundle)
	if name == "" {
		return ctrl.Result{}, r.dropTrustBundle(ctx, s, target)
	}
	source, err := r.sourceConfigMap(ctx, s, name, naming.TrustBundleKey)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("spec.additionalTrustBundle: %w", err)
	}
	s.trustBundle = []byte(source.Data[naming.TrustBundleKey])
	_, err = upsert.Object(ctx, r.Client, target, func() error {
		target.Data = map[string]string{naming.TrustBundleKey: source.Data[naming.TrustBundleKey]}
		return s.Claim(target)
	})
	return ctrl.Result{}, err
}

// dropTrustBundle deletes the copy of a trust bundle that the spec no longer names. An operator of version 0.1.0 copied
// a ConfigMap of the same name there for spec.configuration. Like all copies of that version, it stays until nothing
// uses it.
func (r *Reconciler) dropTrustBundle(ctx context.Context, s *scope, target *corev1.ConfigMap) error {
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(target), target)
	if apierrors.IsNotFound(err) || err == nil && target.Labels[hyperv1.OperatorObjectLabel] == "" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading ConfigMap %s: %w", client.ObjectKeyFromObject(target), err)
	}
	return s.Drop(ctx, r.Client, target)
}

// reconcileSigningKey copies the key that signs the guest's service account tokens, and the public keys in the same
// Secret.
func (r *Reconciler) reconcileSigningKey(ctx context.Context, s *scope) (ctrl.Result, error) {
	name := reference.Name(s.HC.Spec.ServiceAccountSigningKey)
	if name == "" {
		return ctrl.Result{}, nil
	}
	source, err := r.sourceSecret(ctx, s, name, hyperv1.ServiceAccountSigningKeySecretKey)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("spec.serviceAccountSigningKey: %w", err)
	}
	private := source.Data[hyperv1.ServiceAccountSigningKeySecretKey]
	public, err := publicKey(private)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("spec.serviceAccountSigningKey: Secret %s: %w", name, err)
	}
	public = append(public, source.Data[hyperv1.OldServiceAccountSigningKeySecretKey]...)
	target := s.Secret(naming.SAKey)
	_, err = upsert.Object(ctx, r.Client, target, func() error {
		s.Own(target)
		hosted.MarkOperatorObject(target)
		target.Type = corev1.SecretTypeOpaque
		target.Data = map[string][]byte{"service-account.key": private, "service-account.pub": public}
		return nil
	})
	return ctrl.Result{}, err
}

// publicKey derives the public half of a PEM private key.
func publicKey(private []byte) ([]byte, error) {
	block, _ := pem.Decode(private)
	if block == nil {
		return nil, errors.New("its key is not PEM")
	}
	var key any
	var err error
	if key, err = x509.ParsePKCS1PrivateKey(block.Bytes); err != nil {
		if key, err = x509.ParsePKCS8PrivateKey(block.Bytes); err != nil {
			return nil, errors.New("its key is neither a PKCS #1 nor a PKCS #8 private key")
		}
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("its key cannot sign")
	}
	der, err := x509.MarshalPKIXPublicKey(signer.Public())
	if err != nil {
		return nil, fmt.Errorf("encoding its public half: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}

var etcdClientKeys = []string{"etcd-client.crt", "etcd-client.key", "etcd-client-ca.crt"}

// reconcileEtcdClient copies the client certificate of an etcd that the user runs.
func (r *Reconciler) reconcileEtcdClient(ctx context.Context, s *scope) (ctrl.Result, error) {
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
func (r *Reconciler) checkEtcdClient(ctx context.Context, s *scope, name string) error {
	source, err := r.sourceSecret(ctx, s, name, etcdClientKeys...)
	if err != nil {
		return err
	}
	if _, err := pki.ClientTLS(source.Data[etcdClientKeys[0]], source.Data[etcdClientKeys[1]], source.Data[etcdClientKeys[2]]); err != nil {
		return fmt.Errorf("the Secret %s/%s: %w", s.HC.Namespace, name, err)
	}
	return nil
}

// reconcileEtcdBackup copies the inputs of scheduled backups: the encryption recipients and the credentials of the
// storage. It does not copy a private key that a user stored in the same Secret.
func (r *Reconciler) reconcileEtcdBackup(ctx context.Context, s *scope) (ctrl.Result, error) {
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
	source, err := r.sourceSecret(ctx, s, name, credentials)
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
