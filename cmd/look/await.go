// SPDX-License-Identifier: Apache-2.0

package look

import (
	"context"
	"errors"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/nodepool"
	"github.com/openshift/hypershift/cmd/progress"
	"github.com/openshift/hypershift/support/health"
)

// pollInterval is how often a wait reads.
const pollInterval = 2 * time.Second

// Check reads an object once, and reports whether a wait for it is over.
type Check func(ctx context.Context) (progress.State, error)

// Await waits until a check is done. It does not wait for an object that does not exist or that the user may not read.
func Await(ctx context.Context, report *progress.Reporter, what string, timeout time.Duration, check Check) error {
	var final error
	err := report.Wait(ctx, what, timeout, pollInterval, func(ctx context.Context) (progress.State, error) {
		state, err := check(ctx)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || meta.IsNoMatchError(err) {
			final = err
			return progress.State{Done: true, Message: "stopped waiting for " + what}, nil
		}
		return state, err
	})
	return errors.Join(final, err)
}

// waiting describes a state that is not reached yet, with the first finding.
func waiting(message string, f *health.Finding) progress.State {
	if f == nil {
		return progress.State{Message: message}
	}
	return progress.State{Message: message + "; " + f.String(), Blocking: f.String()}
}

// ClusterAvailable checks whether the control plane of a cluster serves.
func (r *Reader) ClusterAvailable(key client.ObjectKey) Check {
	return func(ctx context.Context) (progress.State, error) {
		hc, err := r.HostedCluster(ctx, key)
		if err != nil {
			return progress.State{}, err
		}
		message := fmt.Sprintf("HostedCluster %s is %s", key, StateOfCluster(hc))
		available := meta.IsStatusConditionTrue(hc.Status.Conditions, string(hyperv1.HostedClusterAvailable))
		if available && hc.DeletionTimestamp.IsZero() {
			return progress.State{Done: true, Message: message}, nil
		}
		return waiting(message, FindingOfCluster(hc)), nil
	}
}

// ClusterUpdated checks whether a cluster has completed the release in its spec.
func (r *Reader) ClusterUpdated(key client.ObjectKey) Check {
	return func(ctx context.Context) (progress.State, error) {
		hc, err := r.HostedCluster(ctx, key)
		if err != nil {
			return progress.State{}, err
		}
		message := fmt.Sprintf("HostedCluster %s is %s, version %s", key, StateOfCluster(hc), Or(CompletedVersion(hc)))
		if desired := DesiredVersion(hc); desired != "" && desired != CompletedVersion(hc) {
			message += " to be " + desired
		}
		progressing := meta.FindStatusCondition(hc.Status.Conditions, string(hyperv1.HostedClusterProgressing))
		done := progressing != nil && progressing.Status == metav1.ConditionFalse &&
			progressing.ObservedGeneration >= hc.Generation
		if done && hc.Status.Version != nil && len(hc.Status.Version.History) > 0 {
			done = hc.Status.Version.History[0].State == configv1.CompletedUpdate
		}
		if done {
			return progress.State{Done: true, Message: message}, nil
		}
		return waiting(message, FindingOfCluster(hc)), nil
	}
}

// NodePoolReady checks whether a pool has its nodes.
func (r *Reader) NodePoolReady(key client.ObjectKey) Check { return r.nodePool(key, hasNodes) }

// NodePoolUpdated checks whether all nodes of a pool have the release and configuration of its spec.
func (r *Reader) NodePoolUpdated(key client.ObjectKey) Check {
	return r.nodePool(key, func(p *hyperv1.NodePool) bool {
		for _, t := range []string{
			hyperv1.NodePoolUpdatingVersionConditionType, hyperv1.NodePoolUpdatingConfigConditionType,
		} {
			c := meta.FindStatusCondition(nodepool.Conditions(p), t)
			if c == nil || c.Status != metav1.ConditionFalse || !observed(p, t) ||
				c.Reason == hyperv1.NodePoolInplaceUpgradeFailedReason {
				return false
			}
		}
		return hasNodes(p)
	})
}

func (r *Reader) nodePool(key client.ObjectKey, done func(*hyperv1.NodePool) bool) Check {
	return func(ctx context.Context) (progress.State, error) {
		pool, err := r.NodePool(ctx, key)
		if err != nil {
			return progress.State{}, err
		}
		message := fmt.Sprintf("NodePool %s is %s, %s nodes, version %s",
			key, StateOfNodePool(pool), Nodes(pool), Or(pool.Status.Version))
		if pool.DeletionTimestamp.IsZero() && done(pool) {
			return progress.State{Done: true, Message: message}, nil
		}
		return waiting(message, FindingOfNodePool(pool)), nil
	}
}

func hasNodes(p *hyperv1.NodePool) bool {
	ready := hyperv1.NodePoolReadyConditionType
	return meta.IsStatusConditionTrue(nodepool.Conditions(p), ready) && observed(p, ready) &&
		p.Status.Replicas == ptr.Deref(p.Spec.Replicas, p.Status.Replicas)
}

// observed reports whether a condition describes the current spec.
func observed(p *hyperv1.NodePool, t string) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == t {
			return c.ObservedGeneration >= p.Generation
		}
	}
	return false
}

// ClusterCondition checks a condition of a cluster.
func (r *Reader) ClusterCondition(key client.ObjectKey, t string, status metav1.ConditionStatus) Check {
	return func(ctx context.Context) (progress.State, error) {
		hc, err := r.HostedCluster(ctx, key)
		if err != nil {
			return progress.State{}, err
		}
		return conditionState(hc.Status.Conditions, t, status), nil
	}
}

// NodePoolCondition checks a condition of a pool.
func (r *Reader) NodePoolCondition(key client.ObjectKey, t string, status metav1.ConditionStatus) Check {
	return func(ctx context.Context) (progress.State, error) {
		pool, err := r.NodePool(ctx, key)
		if err != nil {
			return progress.State{}, err
		}
		return conditionState(nodepool.Conditions(pool), t, status), nil
	}
}

func conditionState(conditions []metav1.Condition, t string, status metav1.ConditionStatus) progress.State {
	c := meta.FindStatusCondition(conditions, t)
	if c == nil {
		return progress.State{Message: "there is no condition " + t + " yet"}
	}
	f := health.Finding{Condition: *c}
	return progress.State{Done: c.Status == status, Message: f.String()}
}

// Gone checks whether an object is deleted. read reads it.
func Gone(what string, read func(ctx context.Context) (*health.Finding, error)) Check {
	return func(ctx context.Context) (progress.State, error) {
		f, err := read(ctx)
		switch {
		case apierrors.IsNotFound(err):
			return progress.State{Done: true, Message: what + " is gone"}, nil
		case err != nil:
			return progress.State{}, err
		}
		return waiting(what+" exists", f), nil
	}
}
