// SPDX-License-Identifier: Apache-2.0

package etcdbackup

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/phase"
)

// reasonLeft is the event reason for a bundle that should have been removed and is still stored.
const reasonLeft = "BackupLeft"

// stop deletes the Job of the backup, so that it stores nothing after the bundle was removed.
func (r *Reconciler) stop(ctx context.Context, s *scope) (ctrl.Result, error) {
	if s.job == nil {
		return ctrl.Result{}, nil
	}
	if s.job.DeletionTimestamp.IsZero() {
		if err := r.Client.Delete(ctx, s.job, client.PropagationPolicy(metav1.DeletePropagationForeground)); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, fmt.Errorf("deleting Job %s/%s: %w", s.job.Namespace, s.job.Name, err)
		}
	}
	return ctrl.Result{RequeueAfter: waiting}, phase.ErrStop
}

// remove removes the stored bundle, if the deletion policy requires that. It makes a best effort: storage that is gone
// or denies access must not keep an object of the management cluster indefinitely. An event names what was left in the
// storage.
func (r *Reconciler) remove(ctx context.Context, s *scope) (ctrl.Result, error) {
	if s.backup.Spec.DeletionPolicy != hyperv1.DeleteBackup || s.hcp == nil {
		return ctrl.Result{}, nil
	}
	job := &batchv1.Job{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.backup.Namespace, Name: removalName(s.backup)}, job)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{RequeueAfter: waiting}, r.beginRemoval(ctx, s)
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading Job %s/%s: %w", s.backup.Namespace, removalName(s.backup), err)
	}
	ended, why := jobOutcome(job)
	switch ended {
	case "":
		return ctrl.Result{RequeueAfter: waiting}, phase.ErrStop
	case batchv1.JobFailed:
		said, err := r.lastWords(ctx, job)
		if err != nil {
			return ctrl.Result{}, err
		}
		if said == "" {
			said = why
		}
		r.tell(s, corev1.EventTypeWarning, reasonLeft, fmt.Sprintf("%s was left where it is: %s", s.backup.Status.SnapshotURL, said))
	}
	return ctrl.Result{}, r.forget(ctx, job.Namespace, job.Name)
}

func (r *Reconciler) beginRemoval(ctx context.Context, s *scope) error {
	task := r.location(s.backup)
	task.Delete = true
	if err := r.allow(ctx, s.hcp); err != nil {
		return err
	}
	job := r.job(removalName(s.backup), s.backup, removal)
	place(s.hcp, &job.Spec.Template.Spec)
	if err := r.launch(ctx, s.backup, job, task); err != nil {
		return err
	}
	return phase.ErrStop
}
