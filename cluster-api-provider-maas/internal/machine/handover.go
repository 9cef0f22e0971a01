// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/handover"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/identity"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/upsert"
)

// ReasonHandedOver is the reason of the event that reports that the MaasCluster continues the release of a machine.
const ReasonHandedOver = "MachineHandedOver"

// takesOver reports whether a MaasCluster can continue the release after this MaasMachine is deleted. Its finalizer
// keeps it until all delegated releases are done.
func (s *scope) takesOver() bool {
	return s.infra != nil && controllerutil.ContainsFinalizer(s.infra, infrav1.ClusterFinalizer)
}

// handedOver reports whether the release of the machine of this MaasMachine is delegated to the MaasCluster.
func (s *scope) handedOver(systemID string) bool {
	record, ok := handover.Records.Of(s.infra)[systemID]
	return ok && record.UID == s.uid()
}

// overdue reports whether a release has exceeded its timeout without progress. A machine that MAAS does not release
// must not block the deletion of its MaasMachine. A release that is in progress in MAAS ends, or becomes Blocked.
func (r *Reconciler) overdue(s *scope, left lifecycle.Outcome) bool {
	return left.Action != lifecycle.Wait && s.takesOver() && r.Clock.Since(s.machine.DeletionTimestamp.Time) > r.Timing.Release
}

// handOver records on the MaasCluster that the machine of the scope is yet to be released. It writes the record before
// the finalizer of the MaasMachine is removed. The patch requires the resource version that was read: a MaasCluster
// that has since lost its finalizer releases nothing.
func (r *Reconciler) handOver(ctx context.Context, s *scope, left lifecycle.Outcome) error {
	id, m := s.systemID(), s.machine
	if s.handedOver(id) {
		return nil
	}
	record := handover.Record{Machine: m.Name, UID: s.uid(), Keyless: m.Annotations[UIDAnnotation] == "", User: s.user, Since: r.Clock.Now().UTC(),
		Words: left.Message, Erase: m.Spec.Erase, LXD: m.Spec.IsLXD()}
	if addressOf(m).SystemID == id {
		record.Address = m.Annotations[AddressAnnotation]
	}
	if s.observed != nil {
		record.Hostname = s.observed.Hostname
	}
	var encodeErr error
	err := upsert.PatchLatest(ctx, r.Client, s.infra, func() { encodeErr = handover.Records.Set(s.infra, id, record) })
	if err := errors.Join(err, encodeErr); err != nil {
		return fmt.Errorf("delegating the release of machine %s: %w", id, err)
	}
	r.Recorder.Eventf(s.infra, nil, corev1.EventTypeWarning, ReasonHandedOver, ReasonHandedOver, "%s", note(record.Describe(s.infra, id, left.Message)))
	r.warn(s, ReasonHandedOver, fmt.Sprintf("%s; MaasCluster %s continues the release", left.Message, s.infra.Name))
	return nil
}

// GiveBack does the next step of a delegated release, and returns its progress.
func (r *Reconciler) GiveBack(ctx context.Context, infra *infrav1.MaasCluster, id *identity.Identity, systemID string, record handover.Record) lifecycle.Outcome {
	now := metav1.NewTime(r.Clock.Now())
	m := &infrav1.MaasMachine{
		ObjectMeta: metav1.ObjectMeta{Namespace: infra.Namespace, Name: record.Machine, UID: types.UID(record.UID), DeletionTimestamp: &now},
		Spec:       infrav1.MaasMachineSpec{SystemID: &systemID, Erase: record.Erase},
	}
	if record.LXD {
		m.Spec.ProvisioningMode = infrav1.ProvisioningModeLXD
	}
	annotate(m, infrav1.OwnerAnnotation, record.User)
	if !record.Keyless {
		annotate(m, UIDAnnotation, record.UID)
	}
	if record.Address != "" {
		annotate(m, AddressAnnotation, record.Address)
	}
	left := r.giveBackFailed(ctx, &scope{machine: m, infra: infra, identity: id, user: record.User, regarding: infra})
	if left.Action == lifecycle.Gone {
		r.unreleased.end(systemID)
	}
	return left
}

// handOverOutstanding delegates the release of failed machines to the MaasCluster once the MaasMachine is deleted.
func (r *Reconciler) handOverOutstanding(ctx context.Context, s *scope) (ctrl.Result, error) {
	if !s.takesOver() {
		return phase.Done()
	}
	for _, left := range s.findings.outstanding {
		if err := r.handOver(ctx, left.former, left.Outcome); err != nil {
			return ctrl.Result{}, err
		}
	}
	s.findings.outstanding = nil
	return phase.Done()
}

// note limits the message of an event to the length that the API server accepts. It does not cut a multi-byte
// character, since MAAS messages may be in any language.
func note(message string) string {
	const most = 1000
	return condition.Shorten(message, most)
}
