// SPDX-License-Identifier: Apache-2.0

// Package secrets copies the Secrets and ConfigMaps that a HostedCluster names into its hosted namespace. It copies the
// credentials of the guest back for the users, and writes what the control plane gets from the operator itself.
package secrets

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/tenancy"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/upsert"
)

// Inputs are the contents that phases of this package read, for later phases of the same reconcile.
type Inputs struct {
	// PullSecret is the content of .dockerconfigjson.
	PullSecret []byte
	// TrustBundle is in PEM format, empty if there is none.
	TrustBundle []byte
	// NewCopy reports that this reconcile created a copy.
	NewCopy bool
}

// Sources reads Secrets and ConfigMaps in the namespace of a HostedCluster.
type Sources struct{ Client client.Client }

// Copier keeps copies of Secrets and ConfigMaps in the hosted namespace.
type Copier struct {
	Sources
	Inputs *Inputs
}

// NewCopier returns a Copier that reports in the Inputs what it read and created.
func NewCopier(c client.Client, inputs *Inputs) Copier {
	return Copier{Sources: Sources{Client: c}, Inputs: inputs}
}

// This file copies objects that users created in the namespace of a HostedCluster into the hosted namespace. keepCopy
// writes all copies whose names derive from names that a user chose. No other object has such names.

// copySecret copies the given keys of a user's Secret into the hosted namespace. It fails if a key is missing.
func (r Copier) copySecret(ctx context.Context, s *cluster.Scope, use hosted.Use, name string, keys ...string) error {
	source, err := r.Secret(ctx, s, name, keys...)
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
func (r Copier) copyWholeSecret(ctx context.Context, s *cluster.Scope, use hosted.Use, name string) error {
	source, err := r.Secret(ctx, s, name)
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
func (r Copier) copyWholeConfigMap(ctx context.Context, s *cluster.Scope, use hosted.Use, name string) error {
	source, err := r.ConfigMap(ctx, s, name)
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
func (r Copier) keepCopy(ctx context.Context, s *cluster.Scope, use hosted.Use, source string, target client.Object,
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
	r.Inputs.NewCopy = r.Inputs.NewCopy || result == upsert.Created
	return err
}

// UserNames replaces the names of copies in a status with the names that the user chose.
func UserNames(hc *hyperv1.HostedCluster, status hyperv1.SecretEncryptionStatus) hyperv1.SecretEncryptionStatus {
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

// Secret reads a Secret that the user wrote and checks its keys.
func (r Sources) Secret(ctx context.Context, s *cluster.Scope, name string, keys ...string) (*corev1.Secret, error) {
	source := &corev1.Secret{}
	if err := r.read(ctx, s, name, "Secret", source); err != nil {
		return nil, err
	}
	for _, key := range keys {
		if len(source.Data[key]) == 0 {
			return nil, fmt.Errorf("the Secret %s/%s has no key %q, or an empty one: add it", s.HC.Namespace, name, key)
		}
	}
	return source, nil
}

// ConfigMap is like sourceSecret, for a ConfigMap.
func (r Sources) ConfigMap(ctx context.Context, s *cluster.Scope, name string, keys ...string) (*corev1.ConfigMap,
	error) {
	source := &corev1.ConfigMap{}
	if err := r.read(ctx, s, name, "ConfigMap", source); err != nil {
		return nil, err
	}
	for _, key := range keys {
		if source.Data[key] == "" {
			return nil, fmt.Errorf("the ConfigMap %s/%s has no key %q, or an empty one: add it", s.HC.Namespace, name, key)
		}
	}
	return source, nil
}

func (r Sources) read(ctx context.Context, s *cluster.Scope, name, kind string, obj client.Object) error {
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
