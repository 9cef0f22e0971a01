// SPDX-License-Identifier: Apache-2.0

// Package reencryption rewrites all Secrets of the guest when its API servers have switched to a new key. That happens
// when the user changes the key, or when the plugin that encrypts rotates it.
package reencryption

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/kubeapiserver"
	"github.com/openshift/hypershift/support/pause"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/upsert"
)

const (
	// pageSize is the maximum number of objects in one answer of the API server.
	pageSize = 500
	// pausedRetry is the requeue interval of a pause without an end time.
	pausedRetry = time.Minute
)

// Reconciler rewrites the guest's Secrets when the encryption configuration in the hosted namespace is at the stage
// Migrating. It records there when it is done. After a crash it starts again: data that was already rewritten is not
// written twice.
type Reconciler struct {
	// Guest lists and patches Secrets without a cache.
	Guest client.Client
	// Management reads and annotates the Secret of the encryption configuration.
	Management client.Client
	// Namespace is the hosted namespace.
	Namespace string
	// Pause evaluates the pause of the cluster, during which nothing is rewritten.
	Pause pause.Gate
	// Metrics reads the metrics of one of the guest's API servers, which contain the key IDs of plugins.
	Metrics func(ctx context.Context) ([]byte, error)
	// Clock provides the time since a plugin switched to a new key.
	Clock clock.PassiveClock
	// taken is the last observed key of the plugin, with the time of its first observation.
	taken keySeen
}

// SetupWithManager watches the encryption configuration.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, management cache.Cache) error {
	config := predicate.NewTypedPredicateFuncs(func(s *corev1.Secret) bool { return s.Name == kubeapiserver.EncryptionSecret })
	return ctrl.NewControllerManagedBy(mgr).
		Named("reencryption").
		WatchesRawSource(source.Kind(management, &corev1.Secret{}, &handler.TypedEnqueueRequestForObject[*corev1.Secret]{}, config)).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler. The request names the Secret of the encryption configuration.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return phase.Driver[*corev1.Secret, *corev1.Secret]{
		Client: r.Management, Pause: r.pause,
		Observe: func(_ context.Context, config *corev1.Secret) (*corev1.Secret, error) {
			if !migrating(config) && !followsPlugin(config) {
				return nil, phase.ErrStop
			}
			return config, nil
		},
		Phases: func(config *corev1.Secret) []phase.Phase[*corev1.Secret] {
			if migrating(config) {
				return []phase.Phase[*corev1.Secret]{{Name: "Secrets of the guest", Run: r.migrate}}
			}
			return []phase.Phase[*corev1.Secret]{{Name: "key of the plugin", Run: r.follow}}
		},
	}.Reconcile(ctx, req)
}

// migrating reports whether a migration to a new key waits for stored data to be rewritten.
func migrating(config *corev1.Secret) bool {
	stage, move := config.Annotations[kubeapiserver.EncryptionStage], config.Annotations[kubeapiserver.EncryptionMove]
	return stage == string(hyperv1.EncryptionMigrationMigrating) && config.Annotations[kubeapiserver.EncryptionMigrated] != move
}

// pause requeues by time, since no watch reports its end.
func (r *Reconciler) pause(ctx context.Context, _ *corev1.Secret) (pause.State, error) {
	state, err := r.Pause.State(ctx)
	if state.Paused {
		state.For = max(state.For, pausedRetry)
	}
	return state, err
}

func (r *Reconciler) migrate(ctx context.Context, config *corev1.Secret) (ctrl.Result, error) {
	if err := r.rewrite(ctx); err != nil {
		return ctrl.Result{}, err
	}
	move := config.Annotations[kubeapiserver.EncryptionMove]
	ctrl.LoggerFrom(ctx).Info("Rewrote all Secrets of the guest", "move", move)
	return ctrl.Result{}, upsert.Patch(ctx, r.Management, config, func() { config.Annotations[kubeapiserver.EncryptionMigrated] = move })
}

// rewrite sends an empty patch for each Secret. The API server then writes the Secret again if it was encrypted with a
// key other than the first one, even if nothing changes. The content therefore never leaves the API server, and
// rewritten data is not written again.
func (r *Reconciler) rewrite(ctx context.Context) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	nothing := client.RawPatch(types.MergePatchType, []byte("{}"))
	for {
		if err := r.Guest.List(ctx, list, client.Limit(pageSize), client.Continue(list.Continue)); err != nil {
			return fmt.Errorf("listing the guest's Secrets: %w", err)
		}
		for i := range list.Items {
			secret := &list.Items[i]
			secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
			// A concurrent write by another client already uses the new key.
			err := r.Guest.Patch(ctx, secret, nothing)
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				return fmt.Errorf("rewriting Secret %s of the guest: %w", client.ObjectKeyFromObject(secret), err)
			}
		}
		if list.Continue == "" {
			return nil
		}
	}
}
