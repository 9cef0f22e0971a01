// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/pause"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/upsert"
)

// deletion deletes the pool's objects and waits for its machines. It needs neither the cluster nor any other object,
// and treats a missing object as deleted. In the namespace of another cluster, the pool owns nothing.
func (r *Reconciler) deletion(s *scope) []phase.Phase[*scope] {
	if s.refused != "" {
		return nil
	}
	return []phase.Phase[*scope]{
		{Name: "last settings of machines", Critical: true, Run: r.carryLastSettings},
		{Name: "deletion of machines", Critical: true, Run: r.deleteMachines},
		{Name: "deletion of the machine image", Critical: true, Run: r.dropImage},
		{Name: "deletion of what machines need", Critical: true, Run: r.deleteLeftovers},
	}
}

func (r *Reconciler) deleteMachines(ctx context.Context, s *scope) (ctrl.Result, error) {
	left, err := r.deleteOwned(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	if len(s.machines) > 0 {
		left = r.whyMachinesStay(ctx, s)
	}
	if left == "" {
		return phase.Done()
	}
	s.reject(hyperv1.NodePoolReadyConditionType, "Deleting", left+s.whyNothingGoes())
	return ctrl.Result{RequeueAfter: deletionPoll}, phase.ErrStop
}

// deleteOwned deletes the objects that create machines, so that Cluster API deletes the machines. It returns which of
// them is left. A set that is being deleted may still create a machine, so a pool without machines waits for its sets
// too.
func (r *Reconciler) deleteOwned(ctx context.Context, s *scope) (left string, err error) {
	var failures []error
	for _, kind := range []struct {
		name string
		obj  client.Object
	}{
		{"MachineHealthCheck", &clusterv1.MachineHealthCheck{}},
		{"MachineDeployment", &clusterv1.MachineDeployment{}},
		{"MachineSet", &clusterv1.MachineSet{}},
	} {
		gone, err := r.deleteOne(ctx, s, kind.obj)
		if err == nil && !gone {
			left = fmt.Sprintf("Waiting for Cluster API to delete %s %s/%s", kind.name, s.namespace(), s.pool.Name)
		}
		failures = append(failures, err)
	}
	return left, errors.Join(failures...)
}

// deleteOne deletes an object that has the pool's name, and reports whether it is gone. It does not delete an object
// of another pool. Such an object can exist if the operator refused this cluster because another one has the same
// control plane namespace. Cluster API does not delete paused objects, so deleteOne removes the pause.
func (r *Reconciler) deleteOne(ctx context.Context, s *scope, obj client.Object) (bool, error) {
	key := ctrlKey(s.namespace(), s.pool.Name)
	if err := r.Client.Get(ctx, key, obj); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return true, nil
		}
		return false, fmt.Errorf("reading %T %s to delete it: %w", obj, key, err)
	}
	if owner := obj.GetAnnotations()[hyperv1.NodePoolAnnotation]; owner != "" && owner != s.key() {
		return true, nil
	}
	if err := r.setPaused(ctx, obj, false); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return upsert.Gone(ctx, r.Client, obj)
}

// whyNothingGoes returns what prevents Cluster API from deleting any object; empty if nothing does.
func (s *scope) whyNothingGoes() string {
	if s.hc == nil || !s.hc.DeletionTimestamp.IsZero() || !pause.Until(s.hc.Spec.PausedUntil, s.now).Paused {
		return ""
	}
	return fmt.Sprintf("\nHostedCluster %s is paused, and no machine is deleted until that is over: remove its spec.pausedUntil", s.hc.Name)
}

// whyMachinesStay returns what the deletion waits for. An error only makes the message less detailed.
func (r *Reconciler) whyMachinesStay(ctx context.Context, s *scope) string {
	message := fmt.Sprintf("Waiting for %s to be deleted", condition.Count(len(s.machines), "machine"))
	for _, machine := range s.machines {
		if c := meta.FindStatusCondition(machine.Status.Conditions, clusterv1.MachineDeletingCondition); c != nil && c.Message != "" {
			message += fmt.Sprintf("\nMachine %s: %s", machine.Name, c.Message)
		}
	}
	if !s.platformServed {
		return message
	}
	infra, err := r.infraMachines(ctx, s)
	if err != nil {
		return message
	}
	for _, machine := range s.machines {
		if obj := infra[machine.Spec.InfrastructureRef.Name]; obj != nil {
			if _, problem := s.platform.MachineProblem(obj); problem != "" {
				message += fmt.Sprintf("\nMachine %s: %s", machine.Name, problem)
			}
		}
	}
	return message
}

// deleteLeftovers deletes what no machine needs any more: templates, Secrets, and ConfigMaps.
func (r *Reconciler) deleteLeftovers(ctx context.Context, s *scope) (ctrl.Result, error) {
	failures := []error{r.deleteTemplates(ctx, s, func(string) bool { return true })}
	secrets, err := r.poolSecrets(ctx, s)
	failures = append(failures, err)
	for i := range secrets {
		failures = append(failures, client.IgnoreNotFound(r.Client.Delete(ctx, &secrets[i])))
	}
	configs := &corev1.ConfigMapList{}
	if err := r.Client.List(ctx, configs, client.InNamespace(s.namespace()), client.MatchingLabels{hyperv1.NodePoolAnnotation: s.pool.Name}); err != nil {
		failures = append(failures, fmt.Errorf("listing ConfigMaps of NodePool %s: %w", s.key(), err))
	}
	for i := range configs.Items {
		failures = append(failures, client.IgnoreNotFound(r.Client.Delete(ctx, &configs.Items[i])))
	}
	return ctrl.Result{}, errors.Join(failures...)
}

// deleteTemplates deletes the pool's machine templates for whose names unwanted returns true.
func (r *Reconciler) deleteTemplates(ctx context.Context, s *scope, unwanted func(name string) bool) error {
	if !s.platformServed || s.platform.MachineTemplates() == nil {
		return nil
	}
	list := s.platform.MachineTemplates()
	if err := r.Client.List(ctx, list, client.InNamespace(s.namespace())); err != nil {
		return fmt.Errorf("listing machine templates of namespace %s: %w", s.namespace(), err)
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return fmt.Errorf("reading the list of machine templates: %w", err)
	}
	var failures []error
	for _, item := range items {
		template, ok := item.(client.Object)
		if !ok || template.GetAnnotations()[hyperv1.NodePoolAnnotation] != s.key() || !unwanted(template.GetName()) || !template.GetDeletionTimestamp().IsZero() {
			continue
		}
		failures = append(failures, client.IgnoreNotFound(r.Client.Delete(ctx, template)))
	}
	return errors.Join(failures...)
}
