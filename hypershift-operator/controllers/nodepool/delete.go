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
)

// deletion deletes the pool's objects and waits for its machines. It needs neither the cluster nor any other object,
// and treats a missing object as deleted. In the namespace of another cluster, the pool owns nothing.
func (r *Reconciler) deletion(s *reconciliation) []phase.Phase[*reconciliation] {
	if s.refused != "" {
		return nil
	}
	return []phase.Phase[*reconciliation]{
		{Name: "last settings of machines", Critical: true, Run: r.carryLastSettings},
		{Name: "deletion of machines", Critical: true, Run: r.deleteMachines},
		{Name: "deletion of the machine image", Critical: true, Run: r.dropImage},
		{Name: "deletion of what machines need", Critical: true, Run: r.deleteLeftovers},
	}
}

func (r *Reconciler) deleteMachines(ctx context.Context, s *reconciliation) (ctrl.Result, error) {
	left, err := r.deleteOwned(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	if len(s.Machines) > 0 {
		left = r.whyMachinesStay(ctx, s)
	}
	if left == "" {
		return phase.Done()
	}
	s.SetFalse(hyperv1.NodePoolReadyConditionType, "Deleting", left+s.whyNothingGoes())
	return ctrl.Result{RequeueAfter: deletionPoll}, phase.ErrStop
}

// deleteOwned deletes the objects that create machines, so that Cluster API deletes the machines. It returns which of
// them is left. A set that is being deleted may still create a machine, so a pool without machines waits for its sets
// too.
func (r *Reconciler) deleteOwned(ctx context.Context, s *reconciliation) (left string, err error) {
	var failures []error
	for _, kind := range []struct {
		name string
		obj  client.Object
	}{
		{"MachineHealthCheck", &clusterv1.MachineHealthCheck{}},
		{"MachineDeployment", &clusterv1.MachineDeployment{}},
		{"MachineSet", &clusterv1.MachineSet{}},
	} {
		gone, err := s.Delete(ctx, r.Client, kind.obj)
		if err == nil && !gone {
			left = fmt.Sprintf("Waiting for Cluster API to delete %s %s/%s", kind.name, s.Namespace(), s.Pool.Name)
		}
		failures = append(failures, err)
	}
	return left, errors.Join(failures...)
}

// whyNothingGoes returns what prevents Cluster API from deleting any object; empty if nothing does.
func (s *reconciliation) whyNothingGoes() string {
	if s.HC == nil || !s.HC.DeletionTimestamp.IsZero() || !pause.Until(s.HC.Spec.PausedUntil, s.Now).Paused {
		return ""
	}
	return fmt.Sprintf("\nHostedCluster %s is paused, and no machine is deleted until that is over: remove its spec.pausedUntil", s.HC.Name)
}

// whyMachinesStay returns what the deletion waits for. An error only makes the message less detailed.
func (r *Reconciler) whyMachinesStay(ctx context.Context, s *reconciliation) string {
	message := fmt.Sprintf("Waiting for %s to be deleted", condition.Count(len(s.Machines), "machine"))
	for _, machine := range s.Machines {
		if c := meta.FindStatusCondition(machine.Status.Conditions, clusterv1.MachineDeletingCondition); c != nil && c.Message != "" {
			message += fmt.Sprintf("\nMachine %s: %s", machine.Name, c.Message)
		}
	}
	if !s.PlatformServed {
		return message
	}
	infra, err := r.infraMachines(ctx, s)
	if err != nil {
		return message
	}
	for _, machine := range s.Machines {
		if obj := infra[machine.Spec.InfrastructureRef.Name]; obj != nil {
			if _, problem := s.Platform.MachineProblem(obj); problem != "" {
				message += fmt.Sprintf("\nMachine %s: %s", machine.Name, problem)
			}
		}
	}
	return message
}

// deleteLeftovers deletes what no machine needs any more: templates, Secrets, and ConfigMaps.
func (r *Reconciler) deleteLeftovers(ctx context.Context, s *reconciliation) (ctrl.Result, error) {
	failures := []error{r.deleteTemplates(ctx, s, func(string) bool { return true })}
	secrets, err := r.secrets(s).List(ctx)
	failures = append(failures, err)
	for i := range secrets {
		failures = append(failures, client.IgnoreNotFound(r.Client.Delete(ctx, &secrets[i])))
	}
	configs := &corev1.ConfigMapList{}
	if err := r.Client.List(ctx, configs, client.InNamespace(s.Namespace()), client.MatchingLabels{hyperv1.NodePoolAnnotation: s.Pool.Name}); err != nil {
		failures = append(failures, fmt.Errorf("listing ConfigMaps of NodePool %s: %w", s.Key(), err))
	}
	for i := range configs.Items {
		failures = append(failures, client.IgnoreNotFound(r.Client.Delete(ctx, &configs.Items[i])))
	}
	return ctrl.Result{}, errors.Join(failures...)
}

// deleteTemplates deletes the pool's machine templates for whose names unwanted returns true.
func (r *Reconciler) deleteTemplates(ctx context.Context, s *reconciliation, unwanted func(name string) bool) error {
	if !s.PlatformServed || s.Platform.MachineTemplates() == nil {
		return nil
	}
	list := s.Platform.MachineTemplates()
	if err := r.Client.List(ctx, list, client.InNamespace(s.Namespace())); err != nil {
		return fmt.Errorf("listing machine templates of namespace %s: %w", s.Namespace(), err)
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return fmt.Errorf("reading the list of machine templates: %w", err)
	}
	var failures []error
	for _, item := range items {
		template, ok := item.(client.Object)
		if !ok || template.GetAnnotations()[hyperv1.NodePoolAnnotation] != s.Key() || !unwanted(template.GetName()) || !template.GetDeletionTimestamp().IsZero() {
			continue
		}
		failures = append(failures, client.IgnoreNotFound(r.Client.Delete(ctx, template)))
	}
	return errors.Join(failures...)
}
