// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/tenancy"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/upsert"
)

// This file copies objects that users created in the namespace of a HostedCluster into the hosted namespace. keepCopy
// writes all copies whose names derive from names that a user chose. No other object has such names.

// copySecret copies the given keys of a user's Secret into the hosted namespace. It fails if a key is missing.
func (r *Reconciler) copySecret(ctx context.Context, s *scope, use hosted.Use, name string, keys ...string) error {
	source, err := r.sourceSecret(ctx, s, name, keys...)
	if err != nil {
		return err
	}
	data := map[string][]byte{}
	for _, key := range keys {
		data[key] = source.Data[key]
	}
	target := &corev1.Secret{}
	return r.keepCopy(ctx, s, use, name, target, func() {
		if target.Type == "" {
			target.Type = corev1.SecretTypeOpaque
		}
		target.Data = data
	})
}

// copyWholeSecret is like copySecret, but copies all keys and the type of the source.
func (r *Reconciler) copyWholeSecret(ctx context.Context, s *scope, use hosted.Use, name string) error {
	source, err := r.sourceSecret(ctx, s, name)
	if err != nil {
		return err
	}
	target := &corev1.Secret{}
	return r.keepCopy(ctx, s, use, name, target, func() {
		if target.Type == "" {
			target.Type = source.Type
		}
		target.Data = source.Data
	})
}

// copyWholeConfigMap is like copyWholeSecret, for a ConfigMap.
func (r *Reconciler) copyWholeConfigMap(ctx context.Context, s *scope, use hosted.Use, name string) error {
	source, err := r.sourceConfigMap(ctx, s, name)
	if err != nil {
		return err
	}
	target := &corev1.ConfigMap{}
	return r.keepCopy(ctx, s, use, name, target, func() {
		target.Data, target.BinaryData = source.Data,
			source.BinaryData
	})
}

// keepCopy writes the copy of a user's object. It takes over an object of that name without an owning cluster, such as
// one from a restore, because only copies have such names.
func (r *Reconciler) keepCopy(ctx context.Context, s *scope, use hosted.Use, source string, target client.Object,
	shape func()) error {
	target.SetNamespace(s.Namespace)
	target.SetName(hosted.CopyName(use, source))
	result, err := upsert.Object(ctx, r.Client, target, func() error {
		if tenancy.Owner(target) == "" {
			s.Own(target)
		}
		if err := tenancy.Claim(target, s.Key()); err != nil {
			return err
		}
		hosted.MarkCopy(target, source)
		shape()
		return nil
	})
	s.newCopy = s.newCopy || result == upsert.Created
	return err
}

// usersNames replaces the names of copies in a status with the names that the user chose.
func usersNames(hc *hyperv1.HostedCluster, status hyperv1.SecretEncryptionStatus) hyperv1.SecretEncryptionStatus {
	status = *status.DeepCopy()
	for _, ref := range hosted.References(&hc.Spec) {
		for _, key := range []*hyperv1.SecretEncryptionKeyStatus{&status.ActiveKey, &status.TargetKey} {
			if key.AESCBC.Secret.Name == ref.Copy() {
				key.AESCBC.Secret.Name = *ref.Name
			}
		}
	}
	return status
}

// sourceSecret reads a Secret that the user wrote and checks its keys.
func (r *Reconciler) sourceSecret(ctx context.Context, s *scope, name string, keys ...string) (*corev1.Secret, error) {
	source := &corev1.Secret{}
	if err := r.source(ctx, s, name, "Secret", source); err != nil {
		return nil, err
	}
	for _, key := range keys {
		if len(source.Data[key]) == 0 {
			return nil, fmt.Errorf("the Secret %s/%s has no key %q, or an empty one: add it", s.HC.Namespace, name, key)
		}
	}
	return source, nil
}

// sourceConfigMap is like sourceSecret, for a ConfigMap.
func (r *Reconciler) sourceConfigMap(ctx context.Context, s *scope, name string, keys ...string) (*corev1.ConfigMap,
	error) {
	source := &corev1.ConfigMap{}
	if err := r.source(ctx, s, name, "ConfigMap", source); err != nil {
		return nil, err
	}
	for _, key := range keys {
		if source.Data[key] == "" {
			return nil, fmt.Errorf("the ConfigMap %s/%s has no key %q, or an empty one: add it", s.HC.Namespace, name, key)
		}
	}
	return source, nil
}

func (r *Reconciler) source(ctx context.Context, s *scope, name, kind string, obj client.Object) error {
	if name == "" {
		return fmt.Errorf("it names no %s: set its name", kind)
	}
	key := client.ObjectKey{Namespace: s.HC.Namespace, Name: name}
	err := r.Client.Get(ctx, key, obj)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("there is no %s %s: create it", kind, key)
	}
	if err != nil {
		return fmt.Errorf("reading %s %s: %w", kind, key, err)
	}
	return nil
}
