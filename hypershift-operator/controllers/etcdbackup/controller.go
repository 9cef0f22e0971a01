// SPDX-License-Identifier: Apache-2.0

// Package etcdbackup answers HCPEtcdBackups that no control plane operator handles. The control-plane-operator of
// Kubernetes payloads creates the backups. For an OpenShift payload no component takes etcd snapshots, so the status
// must say that no snapshot was taken.
package etcdbackup

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/finalizer"
	"github.com/openshift/hypershift/support/upsert"
)

const (
	// grace is how long the control plane's operator may take to set a condition on a backup.
	grace = 10 * time.Second

	notSupported = "No snapshot is taken: no operator of this namespace's control plane backs etcd up, as is the case with an OpenShift " +
		"release; take a snapshot with etcdctl, as docs/troubleshooting.md says under \"A backup of etcd is not made\", and delete this HCPEtcdBackup"
)

// Reconciler reports in a condition that no snapshot is taken for an HCPEtcdBackup that no operator handles. It also
// removes the finalizer of backups whose control plane is gone.
type Reconciler struct {
	// Client accesses the management cluster. Its reads are cached.
	Client client.Client
	// Clock provides the current time.
	Clock clock.PassiveClock
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	backup := &hyperv1.HCPEtcdBackup{}
	if err := r.Client.Get(ctx, req.NamespacedName, backup); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !backup.DeletionTimestamp.IsZero() {
		return r.release(ctx, backup)
	}
	if len(backup.Status.Conditions) > 0 {
		return ctrl.Result{}, nil // An operator handles this backup, or has handled it.
	}
	if left := grace - r.Clock.Since(backup.CreationTimestamp.Time); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	return ctrl.Result{}, r.answer(ctx, backup)
}

// release removes the finalizer of a deleted backup if its control plane is gone or being deleted, because no other
// operator would. The stored backup remains.
func (r *Reconciler) release(ctx context.Context, backup *hyperv1.HCPEtcdBackup) (ctrl.Result, error) {
	planes := &hyperv1.HostedControlPlaneList{}
	if err := r.Client.List(ctx, planes, client.InNamespace(backup.Namespace)); err != nil {
		return ctrl.Result{}, fmt.Errorf("looking for the HostedControlPlane of namespace %s: %w", backup.Namespace, err)
	}
	for i := range planes.Items {
		if planes.Items[i].DeletionTimestamp.IsZero() {
			return ctrl.Result{RequeueAfter: grace}, nil
		}
	}
	return ctrl.Result{}, client.IgnoreNotFound(finalizer.Remove(ctx, r.Client, backup, hyperv1.EtcdBackupFinalizer))
}

func (r *Reconciler) answer(ctx context.Context, backup *hyperv1.HCPEtcdBackup) error {
	return client.IgnoreNotFound(upsert.Status(ctx, r.Client, backup, func() {
		backup.Status.Conditions = condition.Merge(backup.Status.Conditions, backup.Generation,
			condition.False(hyperv1.HCPEtcdBackupCompleted, hyperv1.BackupNotSupportedReason, notSupported))
	}))
}
