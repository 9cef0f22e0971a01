// SPDX-License-Identifier: Apache-2.0

// Package nodepool reconciles NodePools. It renders the configuration of a pool's nodes and serves it to machines that
// present a token. It also maintains the Cluster API objects that create the machines.
//
// A reconcile runs a list of phases over one scope, which package scope defines. Packages health and token contain the
// phases that check machines and that write Secrets. The phases set conditions, and the controller writes them once.
package nodepool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/health"
	"github.com/openshift/hypershift/hypershift-operator/platform/registry"
	"github.com/openshift/hypershift/hypershift-operator/release"
	"github.com/openshift/hypershift/hypershift-operator/tenancy"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/tenantlimits"
)

const (
	finalizerName = hyperv1.HostedClusterFinalizer
	deletionPoll  = 5 * time.Second
	// waitPoll is the interval after which the controller checks objects that it does not watch.
	waitPoll = 5 * time.Second
)

// phaseFunc runs a phase.
type phaseFunc = func(ctx context.Context, s *reconciliation) (ctrl.Result, error)

// Reconciler reconciles NodePools.
type Reconciler struct {
	Client    client.Client
	Clock     clock.Clock
	Recorder  events.EventRecorder
	Releases  release.Lookup
	Platforms registry.Registry
	// Limits restrict what tenants may choose; nil means no limits.
	Limits *tenantlimits.Limits
}

// Reconcile moves one NodePool towards its spec.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return phase.Driver[*hyperv1.NodePool, *reconciliation]{
		Client: r.Client, Finalizers: []string{finalizerName}, Observe: r.observe, Pause: pauseOf, Prepare: r.prepare,
		Phases: r.phases, Deletion: r.deletion, Report: r.report,
	}.Reconcile(ctx, req)
}

// observe reads the pool's HostedCluster and the pool's machines. The HostedCluster need not exist.
func (r *Reconciler) observe(ctx context.Context, pool *hyperv1.NodePool) (*reconciliation, error) {
	s := newReconciliation(pool)
	s.Now = r.Clock.Now()
	hc := &hyperv1.HostedCluster{}
	key := client.ObjectKey{Namespace: s.Pool.Namespace, Name: s.Pool.Spec.ClusterName}
	err := r.Client.Get(ctx, key, hc)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading HostedCluster %s: %w", key, err)
	}
	if err == nil {
		s.HC = hc
	}
	s.Platform, s.PlatformServed = r.Platforms.For(s.Pool.Spec.Platform.Type)
	why, err := tenancy.Namespace(ctx, r.Client, s.Namespace(), key)
	if s.refused = why; err != nil || why != "" {
		return s, err
	}
	return s, r.observeMachines(ctx, s)
}

// prepare sets the owner reference. A cluster that was restored from a backup has a new UID, while its pools still
// refer to the old one. The garbage collector would delete such pools.
func (r *Reconciler) prepare(s *reconciliation) error {
	if s.HC == nil {
		return nil
	}
	if err := controllerutil.SetOwnerReference(s.HC, s.Pool, r.Client.Scheme()); err != nil {
		return fmt.Errorf("making HostedCluster %s the owner of NodePool %s: %w", s.HC.Name, s.Key(), err)
	}
	return nil
}

// phases returns the steps of a reconcile, in order. The validation phases come first and stop a reconcile whose spec
// is unusable. Existing machines are maintained whatever the desired release is. A paused pool runs only the phases
// with WhilePaused.
func (r *Reconciler) phases(s *reconciliation) []phase.Phase[*reconciliation] {
	if s.refused != "" {
		return []phase.Phase[*reconciliation]{{Name: "control plane namespace", WhilePaused: true, Run: r.refuseNamespace}}
	}
	return []phase.Phase[*reconciliation]{
		{Name: "pause", WhilePaused: true, Run: r.reconcilePause},
		{Name: "end of repair", WhilePaused: true, Run: r.check(health.Check.Stop)},
		{Name: "hosted cluster", WhilePaused: true, Critical: true, Run: r.requireCluster},
		{Name: "autoscaling", WhilePaused: true, Run: r.validateAutoscaling},
		{Name: "update management", WhilePaused: true, Critical: true, Run: r.validateManagement},
		{Name: "platform", WhilePaused: true, Critical: true, Run: r.reconcilePlatform},
		{Name: "machines", WhilePaused: true, Run: r.reportMachines},
		{Name: "hold of repair", WhilePaused: true, Run: r.check(health.Check.HoldRepair)},
		{Name: "settings of machines", Run: r.carrySettings},
		{Name: "start of machines", Run: r.check(health.Check.FollowStartups)},
		{Name: "release image", WhilePaused: true, Critical: true, Run: r.reconcileRelease},
		{Name: "fields without effect", WhilePaused: true, Run: r.reportFieldsWithoutEffect},
		{Name: "ranges of pods", WhilePaused: true, Run: r.reportPodRanges},
		{Name: "machine image", Run: r.keepImage},
		{Name: "tuning", Critical: true, Run: r.reconcileTuning},
		{Name: "performance profile", Run: r.reportPerformance},
		{Name: "ignition endpoint", Critical: true, Run: r.requireIgnition},
		{Name: "node configuration", Critical: true, Run: r.reconcileConfig},
		{Name: "token and user-data", Critical: true, Run: r.reconcileToken},
		{Name: "outdated tokens", Run: r.retireTokens},
		{Name: "machines of Cluster API", Critical: true, Run: r.reconcileMachines},
		{Name: "machine health check", Run: r.check(health.Check.Reconcile)},
		{Name: "labels and taints", Run: r.reconcileNodeMarks},
	}
}

// check returns a phase that monitors the pool's machines.
func (r *Reconciler) check(run func(health.Check, context.Context) (ctrl.Result, error)) phaseFunc {
	return func(ctx context.Context, s *reconciliation) (ctrl.Result, error) {
		return run(health.Check{Scope: s.Scope, Client: r.Client}, ctx)
	}
}

// requireCluster stops the reconcile if the HostedCluster is missing or is being deleted. Every later phase depends on
// it.
func (r *Reconciler) requireCluster(_ context.Context, s *reconciliation) (ctrl.Result, error) {
	if s.HC == nil {
		s.SetFalse(hyperv1.NodePoolReadyConditionType, hyperv1.NodePoolNotFoundReason, fmt.Sprintf(
			"There is no HostedCluster %s in namespace %s: create it, or delete this NodePool", s.Pool.Spec.ClusterName, s.Pool.Namespace))
		return ctrl.Result{}, phase.ErrStop
	}
	if !s.HC.DeletionTimestamp.IsZero() {
		s.SetFalse(hyperv1.NodePoolReadyConditionType, "HostedClusterDeleting", "The HostedCluster is being deleted, and this NodePool with it")
		return ctrl.Result{}, phase.ErrStop
	}
	return ctrl.Result{}, nil
}

// refuseNamespace reports that the control plane namespace belongs to another cluster. It is the only phase of such a
// pool.
func (r *Reconciler) refuseNamespace(_ context.Context, s *reconciliation) (ctrl.Result, error) {
	s.SetFalse(hyperv1.NodePoolReadyConditionType, hyperv1.NamespaceNotOwnedReason, s.refused)
	return ctrl.Result{}, errors.New(s.refused)
}

// observeMachines lists the machines of the pool, and of the cluster's other pools.
func (r *Reconciler) observeMachines(ctx context.Context, s *reconciliation) error {
	machines := &clusterv1.MachineList{}
	if err := r.Client.List(ctx, machines, client.InNamespace(s.Namespace())); err != nil {
		return fmt.Errorf("listing Machines of namespace %s: %w", s.Namespace(), err)
	}
	for i := range machines.Items {
		if machines.Items[i].Annotations[hyperv1.NodePoolAnnotation] == s.Key() {
			s.Machines = append(s.Machines, &machines.Items[i])
			continue
		}
		s.Neighbors = append(s.Neighbors, &machines.Items[i])
	}
	return nil
}
