// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/upsert"
)

// held reports whether the machines must not change. If the configuration could not be rendered, a new machine would
// never become a node. With maxSurge 0, the new machine would even replace a working node.
func (s *reconciliation) held() bool {
	return s.Conditions[hyperv1.NodePoolValidGeneratedPayloadConditionType].Status != metav1.ConditionTrue
}

// holdUngenerated holds the pool while the ignition-server has not rendered the configuration.
func (r *Reconciler) holdUngenerated(ctx context.Context, s *reconciliation) error {
	c := s.Conditions[hyperv1.NodePoolValidGeneratedPayloadConditionType]
	return r.hold(ctx, s, c.Reason, c.Message)
}

// hold keeps the current machine template. Changes that need no new configuration still apply: the number of machines
// and the rollout strategy.
func (r *Reconciler) hold(ctx context.Context, s *reconciliation, reason, why string) error {
	if s.Platform.MachineTemplates() == nil {
		return nil
	}
	s.tellHeld(why)
	s.SetFalse(hyperv1.NodePoolReadyConditionType, reason, "No machine is made yet. "+why)
	if s.InPlace() {
		ms := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace(), Name: s.Pool.Name}}
		return r.holdSet(ctx, s, ms, func() { ms.Spec.Replicas = replicas(s.Pool, ms.Spec.Replicas) }, func() { s.observeMachineSet(ms) })
	}
	md := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace(), Name: s.Pool.Name}}
	return r.holdSet(ctx, s, md, func() {
		md.Spec.Replicas = replicas(s.Pool, md.Spec.Replicas)
		md.Spec.Rollout.Strategy = rolloutStrategy(s.Pool.Spec.Management.Replace)
	}, func() { s.observeDeployment(md) })
}

// stopHolding holds the pool and ends a reconcile that has no usable configuration.
func (r *Reconciler) stopHolding(ctx context.Context, s *reconciliation, reason, why string) error {
	if err := r.hold(ctx, s, reason, why); err != nil {
		return err
	}
	return phase.ErrStop
}

// holdSet updates the MachineDeployment or MachineSet if it exists.
func (r *Reconciler) holdSet(ctx context.Context, s *reconciliation, set client.Object, shape, observe func()) error {
	key := client.ObjectKeyFromObject(set)
	err := r.Client.Get(ctx, key, set)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %T %s: %w", set, key, err)
	}
	if err := upsert.Patch(ctx, r.Client, set, func() { s.shapeMeta(set); shape() }); err != nil {
		return err
	}
	observe()
	return nil
}

// tellHeld adds to the updating conditions that the update has not begun, and why.
func (s *reconciliation) tellHeld(why string) {
	for _, conditionType := range []string{hyperv1.NodePoolUpdatingConfigConditionType, hyperv1.NodePoolUpdatingVersionConditionType} {
		if c, known := s.Conditions[conditionType]; known && c.Status == metav1.ConditionTrue {
			c.Message += ". Machines stay unchanged until then. " + why
			s.SetCondition(c)
		}
	}
}
