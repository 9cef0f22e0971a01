// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/dataguard"
)

// observeTerminating reports irreplaceable objects of the control plane that are being deleted. They can be backed up
// until they are gone: a volume stays until its pod stops.
func (r *Reconciler) observeTerminating(ctx context.Context, s *scope) error {
	conditionType := hyperv1.ControlPlaneDataRetained
	if s.HCP == nil || !s.HC.DeletionTimestamp.IsZero() || !s.HCP.DeletionTimestamp.IsZero() {
		s.Clear(conditionType)
		return nil
	}
	var names []string
	// The control-plane-operator itself deletes the volume of a member that it replaces.
	if !condition.IsTrue(s.Reported(), string(hyperv1.EtcdRecoveryActive)) {
		claims, err := r.terminating(ctx, s.Namespace, "PersistentVolumeClaim", dataguard.GuardsClaim)
		if err != nil {
			return err
		}
		names = claims
	}
	secrets, err := r.terminating(ctx, s.Namespace, "Secret", dataguard.GuardsSecret)
	if err != nil {
		return err
	}
	if names = append(names, secrets...); len(names) == 0 {
		s.Clear(conditionType)
		return nil
	}
	s.Reject(conditionType, hyperv1.DataTerminatingReason, fmt.Sprintf(
		"%s in namespace %s is being deleted and cannot be made again; a volume stays until its pod stops: "+
			"take a backup with hypershift create etcd-backup before you restart or move the pod", strings.Join(names, ", "), s.Namespace))
	return nil
}

// terminating returns the kind and name of guarded objects of a kind that are being deleted, sorted.
func (r *Reconciler) terminating(ctx context.Context, namespace, kind string, guards func(client.Object) bool) ([]string, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
	if err := r.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing objects of kind %s in namespace %s: %w", kind, namespace, err)
	}
	var names []string
	for i := range list.Items {
		if obj := &list.Items[i]; obj.DeletionTimestamp != nil && guards(obj) {
			names = append(names, kind+" "+obj.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}
