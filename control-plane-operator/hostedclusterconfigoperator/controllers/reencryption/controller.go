// SPDX-License-Identifier: Apache-2.0

// Package reencryption writes all Secrets of the guest anew when its API servers have gone over to another key, by the user's will or
// because the plugin that encrypts has taken another one.
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
	// pageSize bounds what one answer of the API server holds.
	pageSize = 500
	// pausedRetry is how soon a pause without end is looked at again.
	pausedRetry = time.Minute
)

// Reconciler rewrites the guest's Secrets, when the encryption configuration in the hosted namespace is at that stage, and
// says there that it is done. A pass that dies begins again: what is written anew already is not written twice.
type Reconciler struct {
	// Guest lists and patches Secrets, past any cache.
	Guest client.Client
	// Management reads and annotates the Secret of the encryption configuration.
	Management client.Client
	// Namespace is the hosted namespace.
	Namespace string
	// Pause is heeded.
	Pause pause.Gate
	// Metrics reads the metrics of one of the guest's API servers, which tell of the keys of plugins.
	Metrics func(ctx context.Context) ([]byte, error)
	// Clock tells how long ago a plugin took another key.
	Clock clock.PassiveClock
	// taken is the key of the plugin that was last seen, and since when.
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

// migrating tells whether a move to another key waits for what is stored to be written anew.
func migrating(config *corev1.Secret) bool {
	stage, move := config.Annotations[kubeapiserver.EncryptionStage], config.Annotations[kubeapiserver.EncryptionMove]
	return stage == string(hyperv1.EncryptionMigrationMigrating) && config.Annotations[kubeapiserver.EncryptionMigrated] != move
}

// pause is looked at again by time: nothing tells of its end.
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
	ctrl.LoggerFrom(ctx).Info("Wrote all Secrets of the guest anew", "move", move)
	return ctrl.Result{}, upsert.Patch(ctx, r.Management, config, func() { config.Annotations[kubeapiserver.EncryptionMigrated] = move })
}

// rewrite patches each Secret with nothing. The API server writes what it read with another key than the first even when
// nothing changes, so the content need not come here, and what is written anew already is left alone.
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
			// One that somebody else writes at this moment is written with the new key by that.
			err := r.Guest.Patch(ctx, secret, nothing)
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				return fmt.Errorf("writing Secret %s of the guest anew: %w", client.ObjectKeyFromObject(secret), err)
			}
		}
		if list.Continue == "" {
			return nil
		}
	}
}
