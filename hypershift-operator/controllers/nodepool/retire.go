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

// tokenGrace is how long a token stays valid after nothing uses it any more.
const tokenGrace = 2 * time.Hour

// retireTokens lets the Secrets of outdated configurations go. On platforms where an installation takes long, a machine may
// still be on its way with outdated user-data: then both Secrets stay as they are until it has arrived. While machines are
// held, those of the last configuration are what the next machine is made with.
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

// userDataInUse names the user-data Secrets that a machine without a node was made with, or that a set of machines would
// make the next one with.
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

// updatedFrom is the configuration that nodes are updated from in place; empty while all have the wanted one. A node may need it again until then: one that goes
// back to it, or that starts anew in the middle.
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

// keep takes an expiration back, and follows a token that was rotated.
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

// retire deletes user-data, and has the ignition-server delete a token after its grace.
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
