// SPDX-License-Identifier: Apache-2.0

package secrets

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

// AdminKubeconfigName returns the name of the copy of the administrator's kubeconfig.
func AdminKubeconfigName(hc *hyperv1.HostedCluster) string { return hc.Name + "-admin-kubeconfig" }

// CustomKubeconfigName returns the name of the copy of the kubeconfig with the user's own API server name.
func CustomKubeconfigName(hc *hyperv1.HostedCluster) string {
	return hc.Name + "-custom-admin-kubeconfig"
}

// KubeadminPasswordName returns the name of the copy of the password of kubeadmin.
func KubeadminPasswordName(hc *hyperv1.HostedCluster) string { return hc.Name + "-kubeadmin-password" }

// Access copies the Secrets that users need to log in to the guest.
type Access struct{ Client client.Client }

// Names are the copies in the namespace of the cluster, nil for those that do not exist.
type Names struct{ Kubeconfig, CustomKubeconfig, KubeadminPassword *corev1.LocalObjectReference }

// Reconcile copies the Secrets that users need to log in to the guest into the HostedCluster's namespace.
func (r Access) Reconcile(ctx context.Context, s *cluster.Scope) (ctrl.Result, error) {
	if s.HCP == nil {
		return ctrl.Result{}, nil
	}
	status := s.HCP.Status
	return ctrl.Result{}, errors.Join(
		r.copyKubeconfig(ctx, s, status.KubeConfig, AdminKubeconfigName(s.HC)),
		r.copyKubeconfig(ctx, s, status.CustomKubeconfig, CustomKubeconfigName(s.HC)),
		r.copyPassword(ctx, s),
	)
}

func (r Access) copyKubeconfig(ctx context.Context, s *cluster.Scope, ref *hyperv1.KubeconfigSecretRef,
	to string) error {
	target := userSecret(s, to)
	if ref == nil {
		return s.Drop(ctx, r.Client, target)
	}
	data, err := hostedSecretData(ctx, r.Client, s, ref.Name)
	if err != nil || len(data[ref.Key]) == 0 {
		return err
	}
	return r.writeUserSecret(ctx, s, target, map[string][]byte{kubeconfigKey: data[ref.Key]})
}

func (r Access) copyPassword(ctx context.Context, s *cluster.Scope) error {
	target := userSecret(s, KubeadminPasswordName(s.HC))
	ref := s.HCP.Status.KubeadminPassword
	if ref == nil || ref.Name == "" {
		return s.Drop(ctx, r.Client, target)
	}
	data, err := hostedSecretData(ctx, r.Client, s, ref.Name)
	if err != nil || len(data) == 0 {
		return err
	}
	return r.writeUserSecret(ctx, s, target, data)
}

// Observe checks which copies exist, so that the status never names a deleted Secret. A read error leaves the
// last known state.
func (r Access) Observe(ctx context.Context, s *cluster.Scope) (Names, error) {
	last := s.HC.Status
	names := Names{last.KubeConfig, last.CustomKubeconfig, last.KubeadminPassword}
	err := errors.Join(
		r.observeCopy(ctx, s, AdminKubeconfigName(s.HC), &names.Kubeconfig),
		r.observeCopy(ctx, s, CustomKubeconfigName(s.HC), &names.CustomKubeconfig),
		r.observeCopy(ctx, s, KubeadminPasswordName(s.HC), &names.KubeadminPassword),
	)
	return names, err
}

func (r Access) observeCopy(ctx context.Context, s *cluster.Scope, name string,
	to **corev1.LocalObjectReference) error {
	secret := userSecret(s, name)
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	*to = nil
	if err == nil && secret.DeletionTimestamp.IsZero() &&
		secret.Annotations[hyperv1.HostedClusterAnnotation] == s.BackPointer() {
		*to = &corev1.LocalObjectReference{Name: name}
	}
	return nil
}

// hostedSecretData reads a Secret that the control plane created; nil if it does not exist yet.
func hostedSecretData(ctx context.Context, c client.Client, s *cluster.Scope, name string) (map[string][]byte, error) {
	source := s.Secret(name)
	err := c.Get(ctx, client.ObjectKeyFromObject(source), source)
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

func (r Access) writeUserSecret(ctx context.Context, s *cluster.Scope, target *corev1.Secret,
	data map[string][]byte) error {
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

func userSecret(s *cluster.Scope, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.HC.Namespace, Name: name}}
}
