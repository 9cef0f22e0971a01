// SPDX-License-Identifier: Apache-2.0

// Package orphans deletes the control planes of HostedClusters that disappeared without their deletion steps.
package orphans

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/deletion"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/namespace"
	"github.com/openshift/hypershift/hypershift-operator/metrics"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/hypershift-operator/platform/registry"
	"github.com/openshift/hypershift/hypershift-operator/tenancy"
	"github.com/openshift/hypershift/support/logging"
	"github.com/openshift/hypershift/support/pause"
	"github.com/openshift/hypershift/support/upsert"
)

// DefaultGrace is how long a HostedCluster must be gone before the operator deletes its remaining objects.
const DefaultGrace = time.Hour

// States of a control plane whose HostedCluster is gone.
const (
	stateWaiting  = "waiting"
	stateDeleting = "deleting"
	statePaused   = "paused"
	stateKept     = "kept"
	stateUnproven = "unproven"
)

// Janitor finds the remaining objects of HostedClusters that disappeared without their deletion steps. A user who
// removes a finalizer leaves a namespace with a control plane, its machines, and RBAC objects outside it. The janitor
// runs the deletion that the finalizer would have run.
//
// It only acts on a namespace with the operator's label and with the annotation that records the HostedCluster served
// in it. Before each step it checks again, without the cache, that the HostedCluster does not exist.
type Janitor struct {
	Client client.Client
	// LiveReader bypasses the cache.
	LiveReader client.Reader
	Clock      clock.Clock
	Recorder   events.EventRecorder
	Platforms  registry.Registry
	// OperatorImage is the product's image.
	OperatorImage string
	// OperatorNamespace holds copies of the platforms' credentials.
	OperatorNamespace string
	// Grace is the time between the first observation and the deletion.
	Grace time.Duration

	mu sync.Mutex
	// seen records when the janitor first saw remaining objects of a HostedCluster whose control plane namespace is
	// also gone. The time is zero if the janitor itself deleted the namespace.
	seen map[client.ObjectKey]time.Time
}

// SetupWithManager registers the controller. Its requests are names of HostedClusters.
func (j *Janitor) SetupWithManager(mgr ctrl.Manager) error {
	comesOrGoes := predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
	b := ctrl.NewControllerManagedBy(mgr).Named("orphan-janitor").
		For(&hyperv1.HostedCluster{}, builder.OnlyMetadata, builder.WithPredicates(comesOrGoes)).
		WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(ownerOfNamespace)).
		WatchesMetadata(&rbacv1.ClusterRole{}, handler.EnqueueRequestsFromMapFunc(cluster.RequestByLabels)).
		WatchesMetadata(&rbacv1.ClusterRoleBinding{}, handler.EnqueueRequestsFromMapFunc(cluster.RequestByLabels)).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(j.ownerOfCopy))
	if err := b.Complete(j); err != nil {
		return fmt.Errorf("setting up the janitor of control planes: %w", err)
	}
	return nil
}

func ownerOfNamespace(_ context.Context, obj client.Object) []reconcile.Request {
	if request, ok := cluster.RequestByAnnotation(obj); ok && obj.GetLabels()[hyperv1.ControlPlaneNamespaceLabel] == "true" {
		return []reconcile.Request{request}
	}
	return nil
}

func (j *Janitor) ownerOfCopy(_ context.Context, obj client.Object) []reconcile.Request {
	if request, ok := cluster.RequestByAnnotation(obj); ok && obj.GetNamespace() == j.OperatorNamespace {
		return []reconcile.Request{request}
	}
	return nil
}

// Reconcile checks whether a HostedCluster is gone and has remaining objects.
func (j *Janitor) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	key, namespace := req.NamespacedName, &corev1.Namespace{}
	name := naming.ControlPlaneNamespaceOf(key.Namespace, key.Name)
	there, err := j.exists(ctx, key)
	if err != nil {
		return ctrl.Result{}, err
	}
	err = j.LiveReader.Get(ctx, client.ObjectKey{Name: name}, namespace)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	owned := err == nil && tenancy.Owner(namespace) == key.String()
	switch {
	case there:
		j.forget(key)
		metrics.Orphaned.Forget(name)
		return ctrl.Result{}, j.unmark(ctx, namespace, owned)
	case owned && namespace.Labels[hyperv1.ControlPlaneNamespaceLabel] == "true":
		return j.orphan(ctx, key, namespace)
	case owned:
		return ctrl.Result{}, nil // An administrator removed the label.
	}
	metrics.Orphaned.Forget(name)
	return j.leftovers(ctx, key)
}

// exists reports whether the API server has a HostedCluster. It uses List, because Get also returns NotFound if the
// kind is not served.
func (j *Janitor) exists(ctx context.Context, key client.ObjectKey) (bool, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(hyperv1.GroupVersion.WithKind("HostedClusterList"))
	if err := j.LiveReader.List(ctx, list, client.InNamespace(key.Namespace)); err != nil {
		return false, fmt.Errorf("looking for HostedCluster %s: %w", key, err)
	}
	for i := range list.Items {
		if list.Items[i].Name == key.Name {
			return true, nil
		}
	}
	return false, nil
}

// unmark ends the grace period of a namespace whose HostedCluster exists.
func (j *Janitor) unmark(ctx context.Context, namespace *corev1.Namespace, owned bool) error {
	if !owned || namespace.Annotations[hyperv1.OrphanedSinceAnnotation] == "" {
		return nil
	}
	return client.IgnoreNotFound(upsert.PatchLatest(ctx, j.Client, namespace, func() {
		delete(namespace.Annotations, hyperv1.OrphanedSinceAnnotation)
	}))
}

// orphan handles a namespace whose HostedCluster is gone.
func (j *Janitor) orphan(ctx context.Context, key client.ObjectKey, space *corev1.Namespace) (ctrl.Result, error) {
	policy := space.Annotations[hyperv1.OrphanPolicyAnnotation]
	_, proven := namespace.ServedIn(space)
	switch {
	case policy == hyperv1.OrphanPolicyKeep:
		metrics.Orphaned.Set(space.Name, stateKept)
		return ctrl.Result{}, nil
	case policy == hyperv1.OrphanPolicyDelete:
		return j.takeApart(ctx, key, space)
	case !proven:
		metrics.Orphaned.Set(space.Name, stateUnproven)
		j.event(space, "OrphanedControlPlane",
			"HostedCluster %s does not exist, and no record shows that it did in this management cluster. "+
				"Restore it, or have its control plane deleted by the annotation %s=%s of this namespace", key,
			hyperv1.OrphanPolicyAnnotation, hyperv1.OrphanPolicyDelete)
		return ctrl.Result{}, nil
	}
	paused, err := j.paused(ctx, key, space.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if paused.Paused {
		metrics.Orphaned.Set(space.Name, statePaused)
		return ctrl.Result{RequeueAfter: paused.For}, nil
	}
	left, err := j.graceLeft(ctx, key, space)
	if err != nil {
		return ctrl.Result{}, err
	}
	if left > 0 {
		metrics.Orphaned.Set(space.Name, stateWaiting)
		return ctrl.Result{RequeueAfter: left}, nil
	}
	return j.takeApart(ctx, key, space)
}

// paused reports whether the control plane was paused when its HostedCluster disappeared.
func (j *Janitor) paused(ctx context.Context, key client.ObjectKey, namespace string) (pause.State, error) {
	hcp := &hyperv1.HostedControlPlane{}
	name := client.ObjectKey{Namespace: namespace, Name: key.Name}
	if err := j.LiveReader.Get(ctx, name, hcp); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return pause.State{}, nil
		}
		return pause.State{}, fmt.Errorf("reading HostedControlPlane %s: %w", name, err)
	}
	if !hcp.DeletionTimestamp.IsZero() {
		return pause.State{}, nil
	}
	return pause.Until(hcp.Spec.PausedUntil, j.Clock.Now()), nil
}

// graceLeft returns the rest of the grace period. The start is stored in the namespace, so it survives a restart of the
// operator.
func (j *Janitor) graceLeft(ctx context.Context, key client.ObjectKey, namespace *corev1.Namespace) (time.Duration,
	error) {
	now := j.Clock.Now()
	since, err := time.Parse(time.RFC3339, namespace.Annotations[hyperv1.OrphanedSinceAnnotation])
	if err == nil && !since.After(now) {
		return since.Add(j.Grace).Sub(now), nil
	}
	err = upsert.PatchLatest(ctx, j.Client, namespace, func() {
		cluster.Annotate(namespace, hyperv1.OrphanedSinceAnnotation, now.UTC().Format(time.RFC3339))
	})
	if err != nil {
		return 0, fmt.Errorf("marking namespace %s as orphaned: %w", namespace.Name, err)
	}
	ctrl.LoggerFrom(ctx).Info("The HostedCluster of a control plane is gone", "namespace", namespace.Name, "grace",
		j.Grace.String())
	j.event(namespace, "OrphanedControlPlane",
		"HostedCluster %s is gone, but its control plane is not. The control plane is deleted with its machines "+
			"after %s, unless the HostedCluster is created again or the annotation %s=%s is set on this namespace",
		key, j.Grace, hyperv1.OrphanPolicyAnnotation, hyperv1.OrphanPolicyKeep)
	return j.Grace, nil
}

// takeApart runs the deletion of the HostedCluster. It stops if the HostedCluster exists again.
func (j *Janitor) takeApart(ctx context.Context, key client.ObjectKey, namespace *corev1.Namespace) (ctrl.Result,
	error) {
	metrics.Orphaned.Set(namespace.Name, stateDeleting)
	hc, err := j.missing(ctx, key, namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	s, err := cluster.Reader{Client: j.Client, Clock: j.Clock, Platforms: j.Platforms}.Observe(ctx, hc)
	if err != nil {
		return ctrl.Result{}, err
	}
	for _, p := range j.deleter().Steps(s) {
		there, err := j.exists(ctx, key)
		if err != nil || there {
			return ctrl.Result{}, err
		}
		j.apart(key)
		waitsFor, err := p.Run(logging.InPhase(ctx, phaseOf(p)), s)
		if err != nil {
			return ctrl.Result{}, fmt.Errorf("deleting what HostedCluster %s left: %s: %w", key, phaseOf(p), err)
		}
		if waitsFor != "" {
			ctrl.LoggerFrom(ctx).V(1).Info("Deleting an orphaned control plane", "namespace", namespace.Name, "waitsFor", waitsFor)
			return ctrl.Result{RequeueAfter: deletion.Poll}, nil
		}
	}
	return j.leftovers(ctx, key)
}

// phaseOf returns the name of a step in logs and errors, as in the deletion of a HostedCluster.
func phaseOf(step deletion.Step) string { return "deleting the " + step.Name }

func (j *Janitor) deleter() deletion.Deleter {
	return deletion.Deleter{Client: j.Client, LiveReader: j.LiveReader, OperatorImage: j.OperatorImage}
}

// leftovers deletes RBAC objects and credentials outside a hosted namespace that is gone.
func (j *Janitor) leftovers(ctx context.Context, key client.ObjectKey) (ctrl.Result, error) {
	first := j.firstSeen(key)
	if left := j.Grace - j.Clock.Since(first); left > 0 && !first.IsZero() {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	s := cluster.NewScope(&hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})
	_, err := j.deleter().DeleteClusterRoles(ctx, s)
	failures := []error{err}
	for _, platformType := range j.Platforms.Supported() {
		s.HC.Spec.Platform.Type = platformType
		if plugin, served := j.Platforms.For(platformType); served {
			failures = append(failures, j.deleteCopies(ctx, plugin, s))
		}
	}
	if err := errors.Join(failures...); err != nil {
		return ctrl.Result{}, fmt.Errorf("deleting what HostedCluster %s left outside of its namespace: %w", key, err)
	}
	j.forget(key)
	if first.IsZero() {
		ctrl.LoggerFrom(ctx).Info("Deleted a control plane whose HostedCluster was gone", "namespace", s.Namespace)
		metrics.Orphaned.Deleted(s.Namespace)
	}
	return ctrl.Result{}, nil
}

func (j *Janitor) deleteCopies(ctx context.Context, plugin platform.Platform, s *cluster.Scope) error {
	return plugin.DeleteCredentials(ctx, j.Client, s.ForPlatform(j.OperatorImage))
}

func (j *Janitor) firstSeen(key client.ObjectKey) time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.seen == nil {
		j.seen = map[client.ObjectKey]time.Time{}
	}
	if _, known := j.seen[key]; !known {
		j.seen[key] = j.Clock.Now()
	}
	return j.seen[key]
}

// apart records that the grace period of a HostedCluster is over.
func (j *Janitor) apart(key client.ObjectKey) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.seen == nil {
		j.seen = map[client.ObjectKey]time.Time{}
	}
	j.seen[key] = time.Time{}
}

func (j *Janitor) forget(key client.ObjectKey) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.seen, key)
}

func (j *Janitor) event(namespace *corev1.Namespace, reason, message string, args ...any) {
	j.Recorder.Eventf(namespace, nil, corev1.EventTypeWarning, reason, "Delete", message, args...)
}
