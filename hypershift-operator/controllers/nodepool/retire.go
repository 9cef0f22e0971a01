// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/upsert"
)

// tokenGrace is how long a token stays valid after its last use ended.
const tokenGrace = 2 * time.Hour

// retireTokens retires the Secrets of outdated configurations. On platforms with a long installation, a machine may
// still be installing with outdated user-data. Both Secrets then stay unchanged until it has joined. While the pool is
// held, the Secrets of the last configuration stay, since the next machine is created with them.
func (r *Reconciler) retireTokens(ctx context.Context, s *scope) (ctrl.Result, error) {
	if s.held() {
		return ctrl.Result{}, nil
	}
	secrets, err := r.poolSecrets(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	used, err := r.userDataInUse(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	updatedFrom, err := r.updatedFrom(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	var failures []error
	for i := range secrets {
		secret := &secrets[i]
		prefix, hash := s.parseSecretName(secret.Name)
		if hash == "" || hash == s.config.hash {
			continue
		}
		if s.traits().KeepsOutdatedUserData && used[s.secret(userDataPrefix, hash).Name] || hash == updatedFrom {
			failures = append(failures, r.keep(ctx, s, prefix, hash, secret))
			continue
		}
		failures = append(failures, r.retire(ctx, s, prefix, secret))
	}
	return ctrl.Result{}, errors.Join(failures...)
}

func (r *Reconciler) poolSecrets(ctx context.Context, s *scope) ([]corev1.Secret, error) {
	secrets := &corev1.SecretList{}
	if err := r.Client.List(ctx, secrets, client.InNamespace(s.namespace())); err != nil {
		return nil, fmt.Errorf("listing Secrets of namespace %s: %w", s.namespace(), err)
	}
	var own []corev1.Secret
	for i := range secrets.Items {
		if secrets.Items[i].Annotations[hyperv1.NodePoolAnnotation] == s.key() {
			own = append(own, secrets.Items[i])
		}
	}
	return own, nil
}

// parseSecretName splits the name of a token or user-data Secret of this pool; the hash is empty for any other.
func (s *scope) parseSecretName(name string) (prefix, hash string) {
	for _, prefix := range []string{tokenPrefix, userDataPrefix} {
		if hash, ok := strings.CutPrefix(name, prefix+"-"+s.pool.Name+"-"); ok {
			return prefix, hash
		}
	}
	return "", ""
}

// userDataInUse returns the names of the user-data Secrets that are in use. They were used to create a machine that is
// no node yet, or a set would create its next machine with them.
func (r *Reconciler) userDataInUse(ctx context.Context, s *scope) (map[string]bool, error) {
	used := map[string]bool{}
	for _, machine := range s.machines {
		if !machine.Status.NodeRef.IsDefined() && machine.Spec.Bootstrap.DataSecretName != nil {
			used[*machine.Spec.Bootstrap.DataSecretName] = true
		}
	}
	sets := &clusterv1.MachineSetList{}
	if err := r.Client.List(ctx, sets, client.InNamespace(s.namespace())); err != nil {
		return nil, fmt.Errorf("listing MachineSets of namespace %s: %w", s.namespace(), err)
	}
	for i := range sets.Items {
		template := sets.Items[i].Spec.Template
		scaled := sets.Items[i].Spec.Replicas == nil || *sets.Items[i].Spec.Replicas > 0
		if scaled && template.Annotations[hyperv1.NodePoolAnnotation] == s.key() && template.Spec.Bootstrap.DataSecretName != nil {
			used[*template.Spec.Bootstrap.DataSecretName] = true
		}
	}
	return used, nil
}

// updatedFrom returns the configuration from which nodes are updated in place; empty if machines are replaced instead.
// Until all nodes are updated, a node may need the old configuration again: one that is reverted, or one that restarts
// during the update.
func (r *Reconciler) updatedFrom(ctx context.Context, s *scope) (string, error) {
	if !s.inPlace() {
		return "", nil
	}
	ms := &clusterv1.MachineSet{}
	key := ctrlKey(s.namespace(), s.pool.Name)
	if err := r.Client.Get(ctx, key, ms); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading MachineSet %s: %w", key, err)
	}
	return ms.Annotations[hyperv1.NodePoolCurrentConfigVersionAnnotation], nil
}

// keep removes a token's expiration, and updates the user-data after a rotation of the token.
func (r *Reconciler) keep(ctx context.Context, s *scope, prefix, hash string, secret *corev1.Secret) error {
	if prefix != tokenPrefix {
		return nil
	}
	err := upsert.Patch(ctx, r.Client, secret, func() { delete(secret.Annotations, hyperv1.IgnitionServerTokenExpirationTimestampAnnotation) })
	if err != nil {
		return err
	}
	if err := r.grantToken(ctx, s, secret); err != nil {
		return err
	}
	_, err = r.writeUserData(ctx, s, hash, secret)
	return err
}

// retire deletes user-data, and lets the ignition-server delete a token after tokenGrace.
func (r *Reconciler) retire(ctx context.Context, s *scope, prefix string, secret *corev1.Secret) error {
	if prefix == userDataPrefix {
		return client.IgnoreNotFound(r.Client.Delete(ctx, secret))
	}
	if err := r.grantToken(ctx, s, secret); err != nil {
		return err
	}
	return r.expire(ctx, s.now, secret)
}

func (r *Reconciler) expire(ctx context.Context, now time.Time, secret *corev1.Secret) error {
	if secret.Annotations[hyperv1.IgnitionServerTokenExpirationTimestampAnnotation] != "" {
		return nil
	}
	return upsert.Patch(ctx, r.Client, secret, func() {
		annotate(secret, hyperv1.IgnitionServerTokenExpirationTimestampAnnotation, now.Add(tokenGrace).UTC().Format(time.RFC3339))
	})
}
