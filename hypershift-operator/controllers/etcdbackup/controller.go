// SPDX-License-Identifier: Apache-2.0

// Package etcdbackup answers HCPEtcdBackups that no operator of a control plane takes up. The control-plane-operator of Kubernetes
// payloads makes the backups; nothing takes snapshots of the etcd of an OpenShift payload, and whoever asks for one must not believe that
// it was taken.
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
	// grace is how long the control plane's operator may take to answer a backup.
	grace = 10 * time.Second

	notSupported = "No snapshot is taken: no operator of this namespace's control plane backs etcd up, as is the case with an OpenShift " +
		"release; take a snapshot with etcdctl, as docs/troubleshooting.md says under \"A backup of etcd is not made\", and delete this HCPEtcdBackup"
)

// Reconciler says of HCPEtcdBackups that nobody takes up that no snapshot is taken, and lets go those whose control plane is gone.
type Reconciler struct {
	// Client reads (cached) and writes the management cluster.
	Client client.Client
	// Clock tells the time.
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
		return ctrl.Result{}, nil // Somebody is at it, or was.
	}
	if left := grace - r.Clock.Since(backup.CreationTimestamp.Time); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	return ctrl.Result{}, r.answer(ctx, backup)
}

// release lets a backup go whose control plane is gone, or on its way: what is stored stays, and nobody is there for its finalizer.
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
