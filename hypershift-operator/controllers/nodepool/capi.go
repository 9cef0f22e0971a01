// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/support/upsert"
)

const maxTemplateName = 253

// reconcileMachines maintains the machine template, and the MachineDeployment or MachineSet that creates machines from
// it.
func (r *Reconciler) reconcileMachines(ctx context.Context, s *reconciliation) (ctrl.Result, error) {
	if s.Kept != nil && s.Kept.Missing {
		return ctrl.Result{}, r.hold(ctx, s, s.Kept.Condition.Reason, s.Kept.Condition.Message)
	}
	template := s.Platform.MachineTemplate(s.View())
	if template == nil {
		return ctrl.Result{}, r.finishWithoutMachines(ctx, s)
	}
	if s.held() {
		return ctrl.Result{}, r.holdUngenerated(ctx, s)
	}
	ref, err := r.applyTemplate(ctx, s, template)
	if err != nil {
		return ctrl.Result{}, err
	}
	if s.InPlace() {
		err = r.applyMachineSet(ctx, s, ref)
	} else {
		err = r.applyMachineDeployment(ctx, s, ref)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.deleteUnusedTemplates(ctx, s, ref.Name)
}

// finishWithoutMachines ends the reconcile of a pool whose machines the user provides. The desired release and
// configuration are then the current ones.
func (r *Reconciler) finishWithoutMachines(ctx context.Context, s *reconciliation) error {
	return r.markCurrent(ctx, s, "")
}

// applyTemplate writes the template. Its name contains a hash of the fields whose change replaces machines. The other
// fields are changed in place.
func (r *Reconciler) applyTemplate(ctx context.Context, s *reconciliation, wanted client.Object) (clusterv1.ContractVersionedObjectReference, error) {
	gvk, err := apiutil.GVKForObject(wanted, r.Client.Scheme())
	if err != nil {
		return clusterv1.ContractVersionedObjectReference{}, fmt.Errorf("finding the kind of the machine template: %w", err)
	}
	hash, err := templateHash(s.Platform.RollingTemplate(wanted))
	if err != nil {
		return clusterv1.ContractVersionedObjectReference{}, fmt.Errorf("encoding the machine template of NodePool %s: %w", s.Key(), err)
	}
	wanted.SetNamespace(s.Namespace())
	wanted.SetName(naming.Join(s.Pool.Name, hash, maxTemplateName))
	live := wanted.DeepCopyObject().(client.Object)
	_, err = upsert.Object(ctx, r.Client, live, func() error {
		scope.Annotate(live, hyperv1.NodePoolAnnotation, s.Key())
		setSpec(live, wanted)
		return nil
	})
	s.capacity = s.Platform.MachineCapacity(live)
	return clusterv1.ContractVersionedObjectReference{APIGroup: gvk.Group, Kind: gvk.Kind, Name: wanted.GetName()}, err
}

// specOf returns the field Spec of any machine template.
func specOf(template client.Object) reflect.Value {
	return reflect.ValueOf(template).Elem().FieldByName("Spec")
}

func setSpec(live, wanted client.Object) {
	if !equality.Semantic.DeepEqual(specOf(live).Interface(), specOf(wanted).Interface()) {
		specOf(live).Set(specOf(wanted))
	}
}

func templateHash(template client.Object) (string, error) {
	raw, err := json.Marshal(specOf(template).Interface())
	if err != nil {
		return "", err
	}
	return naming.HashValue(raw), nil
}

// deleteUnusedTemplates deletes the pool's templates that no MachineSet refers to.
func (r *Reconciler) deleteUnusedTemplates(ctx context.Context, s *reconciliation, current string) error {
	sets := &clusterv1.MachineSetList{}
	if err := r.Client.List(ctx, sets, client.InNamespace(s.Namespace())); err != nil {
		return fmt.Errorf("listing MachineSets of namespace %s: %w", s.Namespace(), err)
	}
	used := map[string]bool{current: true}
	for i := range sets.Items {
		used[sets.Items[i].Spec.Template.Spec.InfrastructureRef.Name] = true
	}
	return r.deleteTemplates(ctx, s, func(name string) bool { return !used[name] })
}

// machineTemplate returns the template of all machines of the pool.
func (s *reconciliation) machineTemplate(ref clusterv1.ContractVersionedObjectReference) clusterv1.MachineTemplateSpec {
	return clusterv1.MachineTemplateSpec{
		ObjectMeta: clusterv1.ObjectMeta{
			Labels: map[string]string{
				s.ResourcesName():          s.ResourcesName(),
				clusterv1.ClusterNameLabel: s.HC.Spec.InfraID,
			},
			Annotations: map[string]string{hyperv1.NodePoolAnnotation: s.Key()},
		},
		Spec: clusterv1.MachineSpec{
			ClusterName:       s.HC.Spec.InfraID,
			Bootstrap:         clusterv1.Bootstrap{DataSecretName: ptr.To(s.userData)},
			InfrastructureRef: ref,
			Version:           s.Release.Version(),
			Deletion: clusterv1.MachineDeletionSpec{
				NodeDrainTimeoutSeconds:        seconds(s.Pool.Spec.NodeDrainTimeout),
				NodeVolumeDetachTimeoutSeconds: seconds(s.Pool.Spec.NodeVolumeDetachTimeout),
			},
		},
	}
}

func seconds(d *metav1.Duration) *int32 {
	if d == nil {
		return nil
	}
	return scope.Seconds(d.Duration)
}

// applyMachineDeployment writes the MachineDeployment, which updates machines by replacing them.
func (r *Reconciler) applyMachineDeployment(ctx context.Context, s *reconciliation, ref clusterv1.ContractVersionedObjectReference) error {
	md := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace(), Name: s.Pool.Name}}
	_, err := upsert.Object(ctx, r.Client, md, func() error {
		s.shapeMeta(md)
		template := s.machineTemplate(ref)
		template.Annotations[hyperv1.NodePoolReleaseVersionAnnotation] = s.Release.Version()
		md.Spec.ClusterName = s.HC.Spec.InfraID
		md.Spec.Replicas = replicas(s.Pool, md.Spec.Replicas)
		md.Spec.Rollout.Strategy = rolloutStrategy(s.Pool.Spec.Management.Replace)
		md.Spec.Selector = metav1.LabelSelector{MatchLabels: template.Labels}
		md.Spec.Template = template
		return nil
	})
	if err != nil {
		return err
	}
	s.observeDeployment(md)
	s.reportTemplate(ref.Name)
	if !s.isRolledOut(ref.Name, md.Spec.Replicas) {
		return nil
	}
	return r.markCurrent(ctx, s, ref.Name)
}

// shapeMeta sets the metadata that a MachineDeployment and a MachineSet have in common.
func (s *reconciliation) shapeMeta(obj metav1.Object) {
	scope.Annotate(obj, hyperv1.NodePoolAnnotation, s.Key())
	s.tellAutoscaler(obj)
	labels := obj.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[clusterv1.ClusterNameLabel] = s.HC.Spec.InfraID
	obj.SetLabels(labels)
}

func rolloutStrategy(replace *hyperv1.ReplaceUpgrade) clusterv1.MachineDeploymentRolloutStrategy {
	strategy := clusterv1.MachineDeploymentRolloutStrategy{
		Type: clusterv1.MachineDeploymentRolloutStrategyType(replace.Strategy),
	}
	if replace.Strategy == hyperv1.UpgradeStrategyRollingUpdate && replace.RollingUpdate != nil {
		strategy.RollingUpdate = clusterv1.MachineDeploymentRolloutStrategyRollingUpdate{
			MaxSurge: replace.RollingUpdate.MaxSurge, MaxUnavailable: replace.RollingUpdate.MaxUnavailable,
		}
	}
	return strategy
}

// markCurrent records the release and the configuration that all machines have. template is empty if the pool has no
// machines.
func (r *Reconciler) markCurrent(ctx context.Context, s *reconciliation, template string) error {
	s.version = s.Release.Version()
	s.reportRolledOut()
	return upsert.Patch(ctx, r.Client, s.Pool, func() {
		scope.Annotate(s.Pool, hyperv1.NodePoolCurrentConfigAnnotation, s.config.HashWithoutVersion)
		scope.Annotate(s.Pool, hyperv1.NodePoolCurrentConfigVersionAnnotation, s.config.Hash)
		if digest := s.Release.Digest(); digest != "" {
			scope.Annotate(s.Pool, hyperv1.NodePoolCurrentReleaseAnnotation, digest)
		}
		if template != "" {
			scope.Annotate(s.Pool, hyperv1.NodePoolPlatformMachineTemplateAnnotation, template)
		}
	})
}
