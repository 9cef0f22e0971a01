// SPDX-License-Identifier: Apache-2.0

// Package etcdbackup runs the backups that HCPEtcdBackups request, as Jobs in the hosted namespace, and creates the
// HCPEtcdBackups of a schedule. The names of the Job, the Secret and the stored bundle are derived from the
// HCPEtcdBackup. An operator that stops between two steps therefore continues where it was.
package etcdbackup

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/backup"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/upsert"
)

// Finalizer keeps an HCPEtcdBackup until its stored bundle is deleted, if the deletion policy requires that.
const Finalizer = hyperv1.EtcdBackupFinalizer

// waiting is the requeue interval of a backup that cannot begin, for causes that no watch reports.
const waiting = 15 * time.Second

// Reconciler runs backups as Jobs.
type Reconciler struct {
	// Client accesses the management cluster. Its reads are cached.
	Client client.Client
	// Live reads Machines and finished pods without a cache, so that the cache does not have to contain them.
	Live client.Reader
	// Clock provides the current time.
	Clock clock.PassiveClock
	// Events records events for users.
	Events events.EventRecorder
	// Image is the image of the program that takes a backup: the operator's own.
	Image string
	// Env holds environment variables that pods get from the operator, such as a proxy.
	Env []corev1.EnvVar
	// PodUID runs pods as this user where the management cluster does not choose one; nil leaves the choice to the image.
	PodUID *int64
}

// scope is the state of one reconcile.
type scope struct {
	backup *hyperv1.HCPEtcdBackup
	// hcp is the control plane of the namespace; nil if it is deleted or being deleted.
	hcp *hyperv1.HostedControlPlane
	// job is the Job of the backup; nil if there is none.
	job *batchv1.Job
	// outcome is the condition that the reconcile computed; nil keeps the previous one.
	outcome *metav1.Condition
}

// SetupWithManager watches HCPEtcdBackups, their Jobs, and the control plane that some backups wait for.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("etcdbackup").
		For(&hyperv1.HCPEtcdBackup{}).
		Owns(&batchv1.Job{}).
		Watches(&hyperv1.HostedControlPlane{}, handler.EnqueueRequestsFromMapFunc(r.allOf)).
		WithOptions(controller.Options{RateLimiter: phase.Backoff(time.Second, time.Minute)}).
		Complete(r)
}

func (r *Reconciler) allOf(ctx context.Context, hcp client.Object) []reconcile.Request {
	backups := &hyperv1.HCPEtcdBackupList{}
	if err := r.Client.List(ctx, backups, client.InNamespace(hcp.GetNamespace())); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list HCPEtcdBackups")
	}
	var requests []reconcile.Request
	for i := range backups.Items {
		if !over(&backups.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&backups.Items[i])})
		}
	}
	return requests
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return phase.Driver[*hyperv1.HCPEtcdBackup, *scope]{
		Client: r.Client, Finalizers: []string{Finalizer}, Observe: r.observe, Report: r.report,
		Phases: func(s *scope) []phase.Phase[*scope] {
			return []phase.Phase[*scope]{{Name: "backup", Run: r.advance}, {Name: "clean up", Run: r.tidy}}
		},
		Deletion: func(*scope) []phase.Phase[*scope] {
			return []phase.Phase[*scope]{{Name: "stop", Critical: true, Run: r.stop}, {Name: "remove what is stored", Critical: true, Run: r.remove}}
		},
	}.Reconcile(ctx, req)
}

func (r *Reconciler) observe(ctx context.Context, asked *hyperv1.HCPEtcdBackup) (*scope, error) {
	s := &scope{backup: asked, job: &batchv1.Job{}}
	planes := &hyperv1.HostedControlPlaneList{}
	if err := r.Client.List(ctx, planes, client.InNamespace(asked.Namespace)); err != nil {
		return nil, fmt.Errorf("looking for the HostedControlPlane of namespace %s: %w", asked.Namespace, err)
	}
	for i := range planes.Items {
		if planes.Items[i].DeletionTimestamp.IsZero() {
			s.hcp = &planes.Items[i]
		}
	}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: asked.Namespace, Name: jobName(asked)}, s.job)
	if apierrors.IsNotFound(err) {
		s.job, err = nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the Job of backup %s/%s: %w", asked.Namespace, asked.Name, err)
	}
	return s, nil
}

// over reports whether a backup has ended, so that only its deletion remains.
func over(asked *hyperv1.HCPEtcdBackup) bool {
	c := meta.FindStatusCondition(asked.Status.Conditions, hyperv1.HCPEtcdBackupCompleted)
	return c != nil && (c.Status == metav1.ConditionTrue || c.Reason == hyperv1.BackupFailedReason)
}

// advance takes the next step of a backup: it waits, starts, or ends.
func (r *Reconciler) advance(ctx context.Context, s *scope) (ctrl.Result, error) {
	if over(s.backup) {
		return ctrl.Result{}, nil
	}
	if s.job != nil {
		return ctrl.Result{}, r.follow(ctx, s)
	}
	if c := r.hindrance(ctx, s); c != nil {
		if c.Reason == hyperv1.BackupFailedReason {
			r.fail(s, c.Message)
			return ctrl.Result{}, nil
		}
		s.outcome = c
		if r.Clock.Since(s.backup.CreationTimestamp.Time) > backup.Deadline {
			r.fail(s, fmt.Sprintf("It could not begin within %s: %s. Fix this, then create another HCPEtcdBackup", backup.Deadline, c.Message))
			return ctrl.Result{}, nil
		}
		return ctrl.Result{RequeueAfter: waiting}, nil
	}
	task, err := r.task(ctx, s)
	if err != nil {
		s.set(metav1.ConditionUnknown, hyperv1.BackupInProgressReason, "Waiting: "+err.Error())
		if r.Clock.Since(s.backup.CreationTimestamp.Time) > backup.Deadline {
			r.fail(s, fmt.Sprintf("It could not begin within %s: %v", backup.Deadline, err))
		}
		return ctrl.Result{RequeueAfter: waiting}, nil
	}
	if err := r.begin(ctx, s, task); err != nil {
		return ctrl.Result{}, err
	}
	s.set(metav1.ConditionUnknown, hyperv1.BackupInProgressReason, "The backup is being taken")
	return ctrl.Result{}, nil
}

// hindrance returns the reason why a backup cannot begin now; nil if it can.
func (r *Reconciler) hindrance(ctx context.Context, s *scope) *metav1.Condition {
	no := func(reason, message string) *metav1.Condition {
		c := condition.False(hyperv1.HCPEtcdBackupCompleted, reason, message)
		return &c
	}
	storage := s.backup.Spec.Storage.StorageType
	switch {
	case s.hcp == nil:
		return no(hyperv1.EtcdUnhealthyReason, "The namespace has no HostedControlPlane, or it is being deleted")
	case s.hcp.Spec.Etcd.ManagementType == hyperv1.Unmanaged:
		return no(hyperv1.BackupFailedReason, "The etcd of this cluster is unmanaged: back it up where it runs")
	case storage != hyperv1.S3BackupStorage && storage != hyperv1.PVCBackupStorage:
		return no(hyperv1.BackupFailedReason, fmt.Sprintf("spec.storage.storageType %s is not supported: use S3 or PVC", storage))
	case s.backup.Spec.EncryptionKey.Name == "":
		return no(hyperv1.BackupFailedReason, "spec.encryptionKey is missing: name a Secret whose key \"recipients\" has a public key of age")
	case r.paused(s.hcp):
		return no(hyperv1.BackupPausedReason, "Waiting: the cluster is paused; remove spec.pausedUntil")
	}
	if why := unhealthy(s.hcp); why != "" {
		return no(hyperv1.EtcdUnhealthyReason, "Waiting until etcd serves: "+why)
	}
	if why := moving(s.hcp); why != "" {
		return no(hyperv1.BackupEncryptionMovingReason, "Waiting until all Secrets are encrypted with one key: "+why)
	}
	other, err := r.active(ctx, s.backup)
	switch {
	case err != nil:
		return no(hyperv1.BackupAlreadyInProgressReason, err.Error())
	case other != "":
		return no(hyperv1.BackupAlreadyInProgressReason, "Waiting for backup "+other)
	}
	return nil
}

// active returns a backup of the namespace whose Job has not ended; empty if there is none.
func (r *Reconciler) active(ctx context.Context, self *hyperv1.HCPEtcdBackup) (string, error) {
	jobs := &batchv1.JobList{}
	if err := r.Client.List(ctx, jobs, client.InNamespace(self.Namespace), client.MatchingLabels{"app": appLabel}); err != nil {
		return "", fmt.Errorf("listing Jobs: %w", err)
	}
	for i := range jobs.Items {
		owner := metav1.GetControllerOf(&jobs.Items[i])
		if ended, _ := jobOutcome(&jobs.Items[i]); ended == "" && owner != nil && owner.UID != self.UID {
			return owner.Name, nil
		}
	}
	return "", nil
}

// follow reports the status of the Job.
func (r *Reconciler) follow(ctx context.Context, s *scope) error {
	ended, why := jobOutcome(s.job)
	switch {
	case ended == "":
		s.set(metav1.ConditionUnknown, hyperv1.BackupInProgressReason, "The backup is being taken")
	case ended == batchv1.JobComplete && s.backup.Status.SHA256 != "":
		s.set(metav1.ConditionTrue, hyperv1.BackupSucceededReason, fmt.Sprintf("Stored, read back and found complete: %d bytes, revision %d of etcd %s",
			s.backup.Status.Size, s.backup.Status.Revision, s.backup.Status.EtcdVersion))
		r.tell(s, corev1.EventTypeNormal, hyperv1.BackupSucceededReason, "Stored at "+s.backup.Status.SnapshotURL)
	case ended == batchv1.JobComplete:
		// The cache may not have the status yet that the pod wrote.
		live := &hyperv1.HCPEtcdBackup{}
		if err := r.Live.Get(ctx, client.ObjectKeyFromObject(s.backup), live); err != nil {
			return fmt.Errorf("reading HCPEtcdBackup %s/%s: %w", s.backup.Namespace, s.backup.Name, err)
		}
		if live.Status.SHA256 == "" {
			r.fail(s, "The Job ended without saying what it stored")
		}
	default:
		said, err := r.lastWords(ctx, s.job)
		if err != nil {
			return err
		}
		if said == "" {
			said = why
		}
		r.fail(s, said)
	}
	return nil
}

func (s *scope) set(status metav1.ConditionStatus, reason, message string) {
	s.outcome = &metav1.Condition{Type: hyperv1.HCPEtcdBackupCompleted, Status: status, Reason: reason, Message: condition.Shorten(message, maxMessage)}
}

// maxMessage is the maximum length of a message, so that it stays readable.
const maxMessage = 1024

// fail ends a backup as failed.
func (r *Reconciler) fail(s *scope, message string) {
	s.set(metav1.ConditionFalse, hyperv1.BackupFailedReason, message)
	r.tell(s, corev1.EventTypeWarning, hyperv1.BackupFailedReason, message)
}

func (r *Reconciler) tell(s *scope, eventType, reason, message string) {
	r.Events.Eventf(s.backup, nil, eventType, reason, "Backup", "%s", condition.Shorten(message, maxMessage))
}

func (r *Reconciler) report(ctx context.Context, s *scope, _ error) error {
	if s.outcome == nil {
		return nil
	}
	return client.IgnoreNotFound(upsert.Status(ctx, r.Client, s.backup, func() {
		status := &s.backup.Status
		status.Conditions = condition.Merge(status.Conditions, s.backup.Generation, *s.outcome)
		if s.job != nil && status.StartTime == nil {
			status.StartTime = s.job.CreationTimestamp.DeepCopy()
		}
		if over(s.backup) {
			status.Progress = ""
			if status.CompletionTime == nil {
				now := metav1.NewTime(r.Clock.Now())
				status.CompletionTime = &now
			}
			if key := s.backup.Spec.Storage.S3.KMSKeyARN; key != "" && status.SHA256 != "" {
				status.EncryptionMetadata.AWS.KMSKeyARN = key
			}
		}
	}))
}
