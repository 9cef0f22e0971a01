// SPDX-License-Identifier: Apache-2.0

package token

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/ignition-server/payload"
	"github.com/openshift/hypershift/support/hosted"
)

// LookInterval is the polling interval for Secrets, which the controller may read only by name.
const LookInterval = 20 * time.Second

// Generator renders the configuration for a token Secret.
type Generator interface {
	// Generate returns the configuration of a node. A *payload.Problem needs the user's action; other errors are retried.
	Generate(ctx context.Context, request payload.Request) ([]byte, error)
}

// Reconciler serves token Secrets from the cache.
type Reconciler struct {
	Client    client.Client
	Cache     *Cache
	Generator Generator
	Clock     clock.PassiveClock
	Recorder  events.EventRecorder
	// Look is the polling interval of a token and the Secrets of its payload; zero means LookInterval.
	Look time.Duration
}

// SetupWithManager watches the Roles that grant access to token Secrets, and the inputs of payloads except Secrets.
// Secrets can only be read by name, so they are polled.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	all := handler.EnqueueRequestsFromMapFunc(r.allTokens)
	return ctrl.NewControllerManagedBy(mgr).
		Named("token-secret").
		Watches(&rbacv1.Role{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(granted)).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.configMapChanged)).
		Watches(&hyperv1.HostedControlPlane{}, all, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(r)
}

// granted selects the Roles of token Secrets. Each Role has the name of its Secret.
var granted = predicate.NewPredicateFuncs(func(obj client.Object) bool {
	return obj.GetLabels()[hyperv1.SecretGrantLabel] == hosted.IgnitionServer
})

func (r *Reconciler) configMapChanged(ctx context.Context, obj client.Object) []reconcile.Request {
	if payload.IsInputConfigMap(obj.GetName()) || r.named(ctx, obj) {
		return r.allTokens(ctx, obj)
	}
	return nil
}

// named reports whether the configuration of the namespace's control plane names the ConfigMap.
func (r *Reconciler) named(ctx context.Context, obj client.Object) bool {
	var list hyperv1.HostedControlPlaneList
	if err := r.Client.List(ctx, &list, client.InNamespace(obj.GetNamespace())); err != nil {
		return true // An unnecessary rendering is harmless.
	}
	return slices.ContainsFunc(list.Items, func(hcp hyperv1.HostedControlPlane) bool { return payload.Names(&hcp, obj.GetName()) })
}

func (r *Reconciler) allTokens(ctx context.Context, obj client.Object) []reconcile.Request {
	var roles rbacv1.RoleList
	err := r.Client.List(ctx, &roles, client.InNamespace(obj.GetNamespace()), client.MatchingLabels{hyperv1.SecretGrantLabel: hosted.IgnitionServer})
	if err != nil {
		// The list comes from the cache. If it fails, the poll of each token still causes a reconcile.
		ctrl.LoggerFrom(ctx).Error(err, "listing the Roles of token Secrets")
		return nil
	}
	var requests []reconcile.Request
	for i := range roles.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&roles.Items[i])})
	}
	return requests
}

// Reconcile updates the cache and the Secret of a token.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	secret := &corev1.Secret{}
	err := r.Client.Get(ctx, req.NamespacedName, secret)
	if apierrors.IsNotFound(err) {
		r.Cache.Drop(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("read token Secret %s: %w", req.NamespacedName, err)
	}
	if !secret.DeletionTimestamp.IsZero() || !IsTokenSecret(secret.Annotations) {
		r.Cache.Drop(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	now := r.Clock.Now()
	ends, set := expiration(secret)
	if set && !now.Before(ends) {
		return ctrl.Result{}, r.expire(ctx, secret)
	}
	wake := ends.Sub(now)
	if !set {
		var err error
		if wake, err = r.rotate(ctx, secret, now); err != nil {
			return ctrl.Result{}, err
		}
	}
	return r.serve(ctx, secret, wake)
}

func (r *Reconciler) expire(ctx context.Context, secret *corev1.Secret) error {
	r.Cache.Drop(client.ObjectKeyFromObject(secret))
	// The UID precondition protects a new Secret of the same name.
	err := r.Client.Delete(ctx, secret, client.Preconditions{UID: ptr.To(secret.UID)})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete expired token Secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	return nil
}

// rotate replaces a token after half its lifetime, and returns the time until the next rotation. The previous token
// stays valid until the next rotation, because machines may still boot with it. Secrets that expire keep their token,
// because no new user-data would follow.
func (r *Reconciler) rotate(ctx context.Context, secret *corev1.Secret, now time.Time) (time.Duration, error) {
	if due := untilRotation(secret, now); due > 0 {
		return due, nil
	}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	if old := secret.Data[TokenKey]; len(old) > 0 {
		secret.Data[OldTokenKey] = old
	}
	secret.Data[TokenKey] = []byte(uuid.NewString())
	secret.Annotations[GeneratedAnnotation] = now.UTC().Format(time.RFC3339Nano)
	// An update, not a patch: if two replicas rotate at once, one must fail.
	if err := r.Client.Update(ctx, secret); err != nil {
		return 0, fmt.Errorf("rotate the token of Secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	rotations.Inc()
	return untilRotation(secret, now), nil
}

func (r *Reconciler) serve(ctx context.Context, secret *corev1.Secret, wake time.Duration) (ctrl.Result, error) {
	rendered, inPlace, err := r.render(ctx, secret)
	problem, isProblem := errors.AsType[*payload.Problem](err)
	if err != nil && !isProblem {
		return ctrl.Result{}, err
	}
	r.Cache.Put(Entry{
		Secret:       client.ObjectKeyFromObject(secret),
		NodePool:     secret.Annotations[NodePoolAnnotation],
		Architecture: secret.Annotations[ArchitectureAnnotation],
		Hash:         configHash(secret),
		Payload:      rendered,
		InPlace:      inPlace,
	}, string(secret.Data[TokenKey]), string(secret.Data[OldTokenKey]))
	cachedTokens.Set(float64(r.Cache.Len()))
	if err := r.report(ctx, secret, rendered, problem); err != nil {
		return ctrl.Result{}, err
	}
	if isProblem && problem.RetryAfter > 0 {
		wake = min(wake, problem.RetryAfter)
	}
	return ctrl.Result{RequeueAfter: min(wake, cmp.Or(r.Look, LookInterval))}, nil
}

// render renders the configuration of machines that boot, and the plan of Nodes that are updated in place.
func (r *Reconciler) render(ctx context.Context, secret *corev1.Secret) ([]byte, *InPlace, error) {
	start := r.Clock.Now()
	request := requestOf(secret)
	rendered, err := r.Generator.Generate(ctx, request)
	if err != nil {
		return nil, nil, fmt.Errorf("render the node configuration of token Secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	generationSeconds.Observe(r.Clock.Since(start).Seconds())
	switch {
	case secret.Annotations[UpgradeTypeAnnotation] != upgradeTypeInPlace:
		return rendered, nil, nil
	case request.Format == hyperv1.UserDataCloudConfig:
		return rendered, &InPlace{Plan: rendered}, nil
	}
	request.Format = hyperv1.UserDataCloudConfig
	plan, err := r.Generator.Generate(ctx, request)
	// Some settings, such as other partitions, work only for a machine that boots.
	if problem, ok := errors.AsType[*payload.Problem](err); ok {
		return rendered, &InPlace{Refusal: problem.Message}, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("render the node plan of token Secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	return rendered, &InPlace{Plan: plan}, nil
}

func requestOf(secret *corev1.Secret) payload.Request {
	request := payload.Request{
		NodePool:   secret.Annotations[NodePoolAnnotation],
		ConfigHash: configHash(secret),
		Release:    string(secret.Data[ReleaseKey]),
		Config:     secret.Data[ConfigKey],
		Format:     hyperv1.UserDataFormat(secret.Annotations[FormatAnnotation]),
	}
	// If a token was rendered before, it is rendered again from the control plane's current data, without a check of its
	// hashes. Machines may still boot with the token of an outdated configuration, whose hashes never match again.
	if string(secret.Data[ReasonKey]) != hyperv1.AsExpectedReason {
		request.Hashes = payload.Hashes{
			PullSecret:    string(secret.Data[PullSecretHashKey]),
			TrustBundle:   string(secret.Data[TrustBundleHashKey]),
			Configuration: string(secret.Data[ConfigurationHashKey]),
		}
	}
	return request
}

// report writes the outcome to the Secret, where the NodePool controller reads it. It also sets
// MachineTokensAnnotation, which states that this server accepts tokens of single machines.
func (r *Reconciler) report(ctx context.Context, secret *corev1.Secret, rendered []byte, problem *payload.Problem) error {
	want := map[string][]byte{ReasonKey: []byte(hyperv1.AsExpectedReason), MessageKey: []byte("Payload generated successfully")}
	if problem != nil {
		want = map[string][]byte{ReasonKey: []byte(problem.Reason), MessageKey: []byte(problem.Message)}
	}
	if problem == nil && secret.Annotations[UpgradeTypeAnnotation] == upgradeTypeInPlace {
		packed, err := payload.Pack(rendered)
		if err != nil {
			return fmt.Errorf("pack the payload of token Secret %s: %w", client.ObjectKeyFromObject(secret), err)
		}
		want[PayloadKey] = packed
	}
	before := secret.DeepCopy()
	changed := secret.Annotations[MachineTokensAnnotation] != "true"
	secret.Annotations[MachineTokensAnnotation] = "true"
	for key, value := range want {
		if string(secret.Data[key]) != string(value) {
			if secret.Data == nil {
				secret.Data = map[string][]byte{}
			}
			secret.Data[key], changed = value, true
		}
	}
	if !changed {
		return nil
	}
	if err := r.Client.Patch(ctx, secret, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("report on token Secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	return nil
}

// Served records that a machine received its configuration.
func (r *Reconciler) Served(ctx context.Context, e Entry) error {
	requests.WithLabelValues(e.NodePool).Inc()
	secret := &corev1.Secret{}
	if err := r.Client.Get(ctx, e.Secret, secret); err != nil {
		return client.IgnoreNotFound(err)
	}
	r.Recorder.Eventf(secret, nil, corev1.EventTypeNormal, "GetPayload", "Serve", "A machine fetched the node configuration")
	if secret.Annotations[ReachedAnnotation] == "True" {
		return nil
	}
	before := secret.DeepCopy()
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, ReachedAnnotation, "True")
	if err := r.Client.Patch(ctx, secret, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("mark token Secret %s as reached: %w", e.Secret, err)
	}
	return nil
}
