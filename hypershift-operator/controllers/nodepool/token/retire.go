// SPDX-License-Identifier: Apache-2.0

package token

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/support/upsert"
)

// tokenGrace is how long a token stays valid after its last use ended.
const tokenGrace = 2 * time.Hour

// Retire retires the Secrets of outdated configurations. On platforms with a long installation, a machine may
// still be installing with outdated user-data. Both Secrets then stay unchanged until it has joined.
func (s Secrets) Retire(ctx context.Context) error {
	secrets, err := s.List(ctx)
	if err != nil {
		return err
	}
	used, err := s.userDataInUse(ctx)
	if err != nil {
		return err
	}
	updatedFrom, err := s.updatedFrom(ctx)
	if err != nil {
		return err
	}
	var failures []error
	for i := range secrets {
		secret := &secrets[i]
		prefix, hash := s.ParseSecretName(secret.Name)
		if hash == "" || hash == s.Config.Hash {
			continue
		}
		if s.Traits().KeepsOutdatedUserData && used[s.Secret(scope.UserDataPrefix, hash).Name] || hash == updatedFrom {
			failures = append(failures, s.keep(ctx, prefix, hash, secret))
			continue
		}
		failures = append(failures, s.retire(ctx, prefix, secret))
	}
	return errors.Join(failures...)
}

// List returns the Secrets that belong to the pool.
func (s Secrets) List(ctx context.Context) ([]corev1.Secret, error) {
	secrets := &corev1.SecretList{}
	if err := s.Client.List(ctx, secrets, client.InNamespace(s.Namespace())); err != nil {
		return nil, fmt.Errorf("listing Secrets of namespace %s: %w", s.Namespace(), err)
	}
	var own []corev1.Secret
	for i := range secrets.Items {
		if secrets.Items[i].Annotations[hyperv1.NodePoolAnnotation] == s.Key() {
			own = append(own, secrets.Items[i])
		}
	}
	return own, nil
}

// userDataInUse returns the names of the user-data Secrets that are in use. They were used to create a machine that is
// no node yet, or a set would create its next machine with them.
func (s Secrets) userDataInUse(ctx context.Context) (map[string]bool, error) {
	used := map[string]bool{}
	for _, machine := range s.Machines {
		if !machine.Status.NodeRef.IsDefined() && machine.Spec.Bootstrap.DataSecretName != nil {
			used[*machine.Spec.Bootstrap.DataSecretName] = true
		}
	}
	sets := &clusterv1.MachineSetList{}
	if err := s.Client.List(ctx, sets, client.InNamespace(s.Namespace())); err != nil {
		return nil, fmt.Errorf("listing MachineSets of namespace %s: %w", s.Namespace(), err)
	}
	for i := range sets.Items {
		template := sets.Items[i].Spec.Template
		scaled := sets.Items[i].Spec.Replicas == nil || *sets.Items[i].Spec.Replicas > 0
		if scaled && template.Annotations[hyperv1.NodePoolAnnotation] == s.Key() && template.Spec.Bootstrap.DataSecretName != nil {
			used[*template.Spec.Bootstrap.DataSecretName] = true
		}
	}
	return used, nil
}

// updatedFrom returns the configuration from which nodes are updated in place; empty if machines are replaced instead.
// Until all nodes are updated, a node may need the old configuration again: one that is reverted, or one that restarts
// during the update.
func (s Secrets) updatedFrom(ctx context.Context) (string, error) {
	if !s.InPlace() {
		return "", nil
	}
	ms := &clusterv1.MachineSet{}
	key := client.ObjectKey{Namespace: s.Namespace(), Name: s.Pool.Name}
	if err := s.Client.Get(ctx, key, ms); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading MachineSet %s: %w", key, err)
	}
	return ms.Annotations[hyperv1.NodePoolCurrentConfigVersionAnnotation], nil
}

// keep removes a token's expiration, and updates the user-data after a rotation of the token.
func (s Secrets) keep(ctx context.Context, prefix, hash string, secret *corev1.Secret) error {
	if prefix != scope.TokenPrefix {
		return nil
	}
	err := upsert.Patch(ctx, s.Client, secret, func() { delete(secret.Annotations, hyperv1.IgnitionServerTokenExpirationTimestampAnnotation) })
	if err != nil {
		return err
	}
	if err := s.grantToken(ctx, secret); err != nil {
		return err
	}
	_, err = s.writeUserData(ctx, hash, secret)
	return err
}

// retire deletes user-data, and lets the ignition-server delete a token after tokenGrace.
func (s Secrets) retire(ctx context.Context, prefix string, secret *corev1.Secret) error {
	if prefix == scope.UserDataPrefix {
		return client.IgnoreNotFound(s.Client.Delete(ctx, secret))
	}
	if err := s.grantToken(ctx, secret); err != nil {
		return err
	}
	return s.expire(ctx, s.Now, secret)
}

func (s Secrets) expire(ctx context.Context, now time.Time, secret *corev1.Secret) error {
	if secret.Annotations[hyperv1.IgnitionServerTokenExpirationTimestampAnnotation] != "" {
		return nil
	}
	return upsert.Patch(ctx, s.Client, secret, func() {
		scope.Annotate(secret, hyperv1.IgnitionServerTokenExpirationTimestampAnnotation, now.Add(tokenGrace).UTC().Format(time.RFC3339))
	})
}
