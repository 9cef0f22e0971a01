// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	component "github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/etcd"
	"github.com/openshift/hypershift/support/condition"
)

// grow requests the size of the spec for volumes that are smaller. The component manages the quota and the claim
// template of the StatefulSet, which only applies to new claims.
func (r *Reconciler) grow(ctx context.Context, s *scope) (ctrl.Result, error) {
	want := component.Size(s.hcp)
	for _, m := range s.seen.members {
		if m.claim == nil || !m.claim.DeletionTimestamp.IsZero() || m.claim.Status.Phase != corev1.ClaimBound ||
			m.claim.Spec.Resources.Requests.Storage().Cmp(want) >= 0 {
			continue
		}
		before := m.claim.DeepCopy()
		m.claim.Spec.Resources.Requests[corev1.ResourceStorage] = want
		err := r.Client.Patch(ctx, m.claim, client.MergeFrom(before))
		switch {
		case apierrors.IsForbidden(err) || apierrors.IsInvalid(err):
			// The StorageClass does not allow expansion. It may allow it later: the next reconcile tries again.
			m.claim, s.refused = before, err.Error()
		case err != nil:
			return ctrl.Result{}, fmt.Errorf("asking for %s in PersistentVolumeClaim %s: %w", want.String(), client.ObjectKeyFromObject(before), err)
		}
	}
	return ctrl.Result{}, nil
}

// resized reports the progress of volume expansions. There is no condition if no expansion was requested.
func (s *scope) resized() (metav1.Condition, bool) {
	t, want := string(hyperv1.EtcdVolumesResized), component.Size(s.hcp)
	var growing []string
	for _, m := range s.seen.members {
		if m.claim == nil {
			continue
		}
		if has := m.claim.Status.Capacity.Storage(); !has.IsZero() && has.Cmp(want) < 0 {
			growing = append(growing, fmt.Sprintf("that of %s has %s%s", m.pod, has.String(), obstacle(m.claim)))
		}
	}
	switch {
	case len(growing) == 0:
		return condition.True(t, hyperv1.AsExpectedReason, ""), meta.FindStatusCondition(s.hcp.Status.Conditions, t) != nil
	case s.refused != "":
		return condition.False(t, hyperv1.EtcdVolumesFixedReason, fmt.Sprintf("etcd.managed.storage.persistentVolume.size is %s, and the volumes cannot grow (%s): %s. "+
			"The database may use 80 %% of their size. Set allowVolumeExpansion in their StorageClass if its driver supports it",
			want.String(), strings.Join(growing, ", "), s.refused)), true
	}
	return condition.False(t, hyperv1.EtcdVolumesGrowReason, fmt.Sprintf("Waiting for the volumes to have %s: %s", want.String(), strings.Join(growing, ", "))), true
}

// obstacle returns the storage's message about a claim that it cannot enlarge, or cannot enlarge yet.
func obstacle(claim *corev1.PersistentVolumeClaim) string {
	for _, c := range claim.Status.Conditions {
		if c.Status == corev1.ConditionTrue && c.Message != "" {
			return " (" + condition.Shorten(c.Message, 200) + ")"
		}
	}
	return ""
}
