// SPDX-License-Identifier: Apache-2.0

package etcdbackup

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/metrics"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/phase"
)

const (
	// hourly is the default schedule.
	hourly = "0 * * * *"
	// keptFailures is how many failed backups of a schedule are kept for inspection.
	keptFailures = 3
)

// Scheduler creates the backups of a schedule, deletes old ones, and reports the results of the last ones on the
// HostedControlPlane.
type Scheduler struct {
	// Client accesses the management cluster. Its reads are cached.
	Client client.Client
	// Clock provides the current time.
	Clock clock.PassiveClock
	// Metrics records when the last successful backup was taken; nil records nothing.
	Metrics *metrics.EtcdBackup
}

// SetupWithManager watches HostedControlPlanes and the results of their backups.
func (r *Scheduler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("etcdbackupschedule").
		For(&hyperv1.HostedControlPlane{}).
		Watches(&hyperv1.HCPEtcdBackup{}, handler.EnqueueRequestsFromMapFunc(r.planes)).
		Complete(r)
}

func (r *Scheduler) planes(ctx context.Context, changed client.Object) []reconcile.Request {
	planes := &hyperv1.HostedControlPlaneList{}
	if err := r.Client.List(ctx, planes, client.InNamespace(changed.GetNamespace())); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list HostedControlPlanes")
	}
	var requests []reconcile.Request
	for i := range planes.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&planes.Items[i])})
	}
	return requests
}

// history is the state of one reconcile of the Scheduler.
type history struct {
	hcp *hyperv1.HostedControlPlane
	// all are the backups of the control plane, newest first.
	all []hyperv1.HCPEtcdBackup
	// wrong is the error in the schedule; empty if there is none.
	wrong string
}

// Reconcile implements reconcile.Reconciler.
func (r *Scheduler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return phase.Driver[*hyperv1.HostedControlPlane, *history]{
		Client: r.Client, Observe: r.observe, Report: r.report,
		Phases: func(*history) []phase.Phase[*history] {
			return []phase.Phase[*history]{{Name: "backup schedule", Run: r.ask}, {Name: "backup retention", Run: r.retain}}
		},
	}.Reconcile(ctx, req)
}

func (r *Scheduler) observe(ctx context.Context, hcp *hyperv1.HostedControlPlane) (*history, error) {
	if !hcp.DeletionTimestamp.IsZero() {
		return nil, phase.ErrStop
	}
	list := &hyperv1.HCPEtcdBackupList{}
	if err := r.Client.List(ctx, list, client.InNamespace(hcp.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the HCPEtcdBackups of namespace %s: %w", hcp.Namespace, err)
	}
	slices.SortFunc(list.Items, func(a, b hyperv1.HCPEtcdBackup) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(b.Name, a.Name))
	})
	return &history{hcp: hcp, all: list.Items}, nil
}

// config returns the schedule of a control plane; nil if it has none.
func (h *history) config() *hyperv1.AutomatedEtcdBackupConfig {
	if h.hcp.Spec.Etcd.Managed == nil {
		return nil
	}
	return h.hcp.Spec.Etcd.Managed.AutomatedBackup
}

// ask creates the backup for the latest due time of the schedule, unless it exists. Its name is derived from that time,
// so that it is created only once. If several times passed while no operator ran, only the last one counts.
func (r *Scheduler) ask(ctx context.Context, h *history) (ctrl.Result, error) {
	config := h.config()
	if config == nil {
		return ctrl.Result{}, nil
	}
	schedule, err := cron.ParseStandard(cmp.Or(config.Schedule, hourly))
	if err != nil {
		h.wrong = fmt.Sprintf("spec.etcd.managed.automatedBackup.schedule %q is not a cron schedule: %v", config.Schedule, err)
		return ctrl.Result{}, nil
	}
	now := r.Clock.Now().UTC()
	due, next := slot(schedule, h.since(), now)
	if !due.IsZero() {
		asked := h.backup(config, due)
		if err := r.Client.Create(ctx, asked); err != nil && !apierrors.IsAlreadyExists(err) {
			return ctrl.Result{}, fmt.Errorf("asking for backup %s/%s: %w", asked.Namespace, asked.Name, err)
		}
	}
	return ctrl.Result{RequeueAfter: next.Sub(now)}, nil
}

// since returns the time of the last scheduled backup, or else the creation time of the control plane. Earlier due
// times of the schedule are ignored.
func (h *history) since() time.Time {
	for i := range h.all {
		if slotTime, ok := h.all[i].Annotations[slotAnnotation]; ok {
			if at, err := time.Parse(time.RFC3339, slotTime); err == nil {
				return at
			}
		}
	}
	return h.hcp.CreationTimestamp.UTC()
}

// slotAnnotation holds the time of the schedule that a backup belongs to.
const slotAnnotation = hyperv1.EtcdBackupSlotAnnotation

// slot returns the last due time of the schedule after since, zero if there is none, and the next time. After a long
// interruption it first searches only the last day, which avoids iterating over years of minutes. It searches longer
// intervals only if no time was due.
func slot(schedule cron.Schedule, since, now time.Time) (due, next time.Time) {
	const day = 24 * time.Hour
	for _, back := range []time.Duration{day, 8 * day, 32 * day, 367 * day} {
		if begin := now.Add(-back); begin.After(since) {
			if due, next = between(schedule, begin, now); !due.IsZero() {
				return due, next
			}
		}
	}
	return between(schedule, since.UTC(), now)
}

// between does the same as slot, but iterates over the complete interval.
func between(schedule cron.Schedule, since, now time.Time) (due, next time.Time) {
	next = schedule.Next(since)
	for !next.IsZero() && !next.After(now) {
		due, next = next, schedule.Next(next)
	}
	if next.IsZero() {
		next = now.Add(24 * time.Hour) // The schedule has no such time, for example the 30th of February.
	}
	return due, next
}

func (h *history) backup(config *hyperv1.AutomatedEtcdBackupConfig, due time.Time) *hyperv1.HCPEtcdBackup {
	storage := hyperv1.HCPEtcdBackupStorage{StorageType: hyperv1.HCPEtcdBackupStorageType(config.Storage.Type)}
	if config.Storage.S3 != nil {
		storage.S3 = *config.Storage.S3
	}
	if config.Storage.PVC != nil {
		storage.PVC = *config.Storage.PVC
	}
	return &hyperv1.HCPEtcdBackup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: h.hcp.Namespace, Name: fmt.Sprintf("%s-%s", h.hcp.Name, due.UTC().Format("20060102-1504")),
			Annotations: map[string]string{slotAnnotation: due.UTC().Format(time.RFC3339)},
		},
		Spec: hyperv1.HCPEtcdBackupSpec{Storage: storage, EncryptionKey: config.EncryptionKey, DeletionPolicy: hyperv1.DeleteBackup},
	}
}

// retain deletes scheduled backups beyond the retention limit, and with them what is stored. Backups that a user
// requested stay.
func (r *Scheduler) retain(ctx context.Context, h *history) (ctrl.Result, error) {
	config := h.config()
	if config == nil {
		return ctrl.Result{}, nil
	}
	good, failed := 0, 0
	for i := range h.all {
		b := &h.all[i]
		if _, scheduled := b.Annotations[slotAnnotation]; !scheduled || !over(b) || !b.DeletionTimestamp.IsZero() {
			continue
		}
		count, limit := &failed, keptFailures
		if condition.IsTrue(b.Status.Conditions, hyperv1.HCPEtcdBackupCompleted) {
			count, limit = &good, int(max(config.Retention, 1))
		}
		if *count++; *count <= limit {
			continue
		}
		if err := r.Client.Delete(ctx, b); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, fmt.Errorf("deleting backup %s/%s: %w", b.Namespace, b.Name, err)
		}
	}
	return ctrl.Result{}, nil
}

func (r *Scheduler) report(ctx context.Context, h *history, _ error) error {
	good := h.last(func(c *metav1.Condition) bool { return c.Status == metav1.ConditionTrue })
	r.Metrics.Take(h.hcp.Namespace, good)
	c := h.condition(good)
	if c == nil {
		return nil
	}
	next := condition.Merge(h.hcp.Status.Conditions, h.hcp.Generation, *c)
	if equality.Semantic.DeepEqual(h.hcp.Status.Conditions, next) {
		return nil
	}
	before := h.hcp.DeepCopy()
	h.hcp.Status.Conditions = next
	// Several controllers write this list of conditions.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, h.hcp, patch); err != nil {
		return fmt.Errorf("writing the status of HostedControlPlane %s/%s: %w", h.hcp.Namespace, h.hcp.Name, err)
	}
	return nil
}

func (h *history) last(is func(*metav1.Condition) bool) *hyperv1.HCPEtcdBackup {
	for i := range h.all {
		c := meta.FindStatusCondition(h.all[i].Status.Conditions, hyperv1.HCPEtcdBackupCompleted)
		if over(&h.all[i]) && is(c) {
			return &h.all[i]
		}
	}
	return nil
}

// condition reports the last finished backup; nil if there is none. It contains no values that change all the time: the
// age of the last successful backup is the age at the time of the failure.
func (h *history) condition(good *hyperv1.HCPEtcdBackup) *metav1.Condition {
	var c metav1.Condition
	t := string(hyperv1.EtcdBackupSucceeded)
	last := h.last(func(*metav1.Condition) bool { return true })
	switch {
	case h.wrong != "":
		c = condition.False(t, hyperv1.BackupFailedReason, h.wrong)
	case last == nil:
		return nil
	case last == good:
		c = condition.True(t, hyperv1.BackupSucceededReason, fmt.Sprintf("Backup %s was made at %s", last.Name, completed(last).UTC().Format(time.RFC3339)))
	default:
		why := meta.FindStatusCondition(last.Status.Conditions, hyperv1.HCPEtcdBackupCompleted).Message
		c = condition.False(t, hyperv1.BackupFailedReason, fmt.Sprintf("Backup %s failed, %s: %s", last.Name, since(good, last), why))
	}
	return &c
}

func since(good, failed *hyperv1.HCPEtcdBackup) string {
	if good == nil {
		return "and there is no good one"
	}
	passed := completed(failed).Sub(completed(good)).Round(time.Minute)
	return fmt.Sprintf("when the last good one, %s of %s, was %s old", good.Name, completed(good).UTC().Format(time.RFC3339), passed)
}

func completed(b *hyperv1.HCPEtcdBackup) time.Time {
	if b.Status.CompletionTime != nil {
		return b.Status.CompletionTime.Time
	}
	return b.CreationTimestamp.Time
}
