// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/tenancy"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/upsert"
)

const kubeconfigKey = "kubeconfig"

func adminKubeconfigName(hc *hyperv1.HostedCluster) string { return hc.Name + "-admin-kubeconfig" }
func customKubeconfigName(hc *hyperv1.HostedCluster) string {
	return hc.Name + "-custom-admin-kubeconfig"
}
func kubeadminPasswordName(hc *hyperv1.HostedCluster) string { return hc.Name + "-kubeadmin-password" }

// reconcileAccess copies the Secrets that users need to log in to the guest into the HostedCluster's namespace.
func (r *Reconciler) reconcileAccess(ctx context.Context, s *scope) (ctrl.Result, error) {
	if s.HCP == nil {
		return ctrl.Result{}, nil
	}
	status := s.HCP.Status
	return ctrl.Result{}, errors.Join(
		r.copyKubeconfig(ctx, s, status.KubeConfig, adminKubeconfigName(s.HC)),
		r.copyKubeconfig(ctx, s, status.CustomKubeconfig, customKubeconfigName(s.HC)),
		r.copyPassword(ctx, s),
	)
}

func (r *Reconciler) copyKubeconfig(ctx context.Context, s *scope, ref *hyperv1.KubeconfigSecretRef, to string) error {
	target := s.userSecret(to)
	if ref == nil {
		return s.Drop(ctx, r.Client, target)
	}
	data, err := r.hostedSecretData(ctx, s, ref.Name)
	if err != nil || len(data[ref.Key]) == 0 {
		return err
	}
	return r.writeUserSecret(ctx, s, target, map[string][]byte{kubeconfigKey: data[ref.Key]})
}

func (r *Reconciler) copyPassword(ctx context.Context, s *scope) error {
	target := s.userSecret(kubeadminPasswordName(s.HC))
	ref := s.HCP.Status.KubeadminPassword
	if ref == nil || ref.Name == "" {
		return s.Drop(ctx, r.Client, target)
	}
	data, err := r.hostedSecretData(ctx, s, ref.Name)
	if err != nil || len(data) == 0 {
		return err
	}
	return r.writeUserSecret(ctx, s, target, data)
}

// observeAccess checks which copies exist, so that the status never names a deleted Secret. A read error leaves the
// last known state.
func (r *Reconciler) observeAccess(ctx context.Context, s *scope) error {
	last := s.HC.Status
	s.kubeconfig, s.customKubeconfig, s.kubeadminPassword = last.KubeConfig, last.CustomKubeconfig, last.KubeadminPassword
	return errors.Join(
		r.observeCopy(ctx, s, adminKubeconfigName(s.HC), &s.kubeconfig),
		r.observeCopy(ctx, s, customKubeconfigName(s.HC), &s.customKubeconfig),
		r.observeCopy(ctx, s, kubeadminPasswordName(s.HC), &s.kubeadminPassword),
	)
}

func (r *Reconciler) observeCopy(ctx context.Context, s *scope, name string, to **corev1.LocalObjectReference) error {
	secret := s.userSecret(name)
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	*to = nil
	if err == nil && secret.DeletionTimestamp.IsZero() && secret.Annotations[hyperv1.HostedClusterAnnotation] == s.BackPointer() {
		*to = &corev1.LocalObjectReference{Name: name}
	}
	return nil
}

// hostedSecretData reads a Secret that the control plane created; nil if it does not exist yet.
func (r *Reconciler) hostedSecretData(ctx context.Context, s *scope, name string) (map[string][]byte, error) {
	source := s.Secret(name)
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(source), source)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s/%s: %w", s.Namespace, name, err)
	}
	if err := hosted.Trusted(source); err != nil {
		return nil, err
	}
	return source.Data, nil
}

func (r *Reconciler) writeUserSecret(ctx context.Context, s *scope, target *corev1.Secret, data map[string][]byte) error {
	_, err := upsert.Object(ctx, r.Client, target, func() error {
		if err := tenancy.Claim(target, s.Key()); err != nil {
			return err
		}
		cluster.Label(target, s.HC.Labels)
		if target.Type == "" {
			target.Type = corev1.SecretTypeOpaque
		}
		target.Data = maps.Clone(data)
		return controllerutil.SetOwnerReference(s.HC, target, r.Client.Scheme())
	})
	return err
}

func (s *scope) userSecret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.HC.Namespace, Name: name}}
}

// adoptCLISecrets sets the owner of Secrets that the CLI created for this cluster, so that they are deleted with it.
func (r *Reconciler) adoptCLISecrets(ctx context.Context, s *scope) (ctrl.Result, error) {
	secrets := &corev1.SecretList{}
	err := r.Client.List(ctx, secrets, client.InNamespace(s.HC.Namespace),
		client.MatchingLabels{hyperv1.SafeToDeleteWithClusterLabel: "true", hyperv1.AutoCreatedForInfraLabel: s.HC.Spec.InfraID})
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("listing Secrets that were made for the cluster: %w", err)
	}
	var failures []error
	for i := range secrets.Items {
		secret := &secrets.Items[i]
		var ownErr error
		err := upsert.Patch(ctx, r.Client, secret, func() {
			ownErr = controllerutil.SetOwnerReference(s.HC, secret, r.Client.Scheme())
		})
		failures = append(failures, ownErr, err)
	}
	return ctrl.Result{}, errors.Join(failures...)
}
