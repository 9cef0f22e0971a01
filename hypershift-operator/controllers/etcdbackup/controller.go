// SPDX-License-Identifier: Apache-2.0

// Package etcdbackup answers HCPEtcdBackups. Nothing here takes snapshots of etcd, and whoever asks for one must not
// believe that it was taken.
package etcdbackup

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/upsert"
)

const (
	// reasonNotSupported is one of BackupCompleted.
	reasonNotSupported = "NotSupported"

	notSupported = "No snapshot is taken: the operator does not back etcd up; take a snapshot with etcdctl, as " +
		"docs/troubleshooting.md says under \"A backup of etcd is not made\", and delete this HCPEtcdBackup"
)

// Reconciler says of every HCPEtcdBackup that no snapshot is taken.
type Reconciler struct {
	// Client reads (cached) and writes the management cluster.
	Client client.Client
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return phase.Driver[*hyperv1.HCPEtcdBackup, *hyperv1.HCPEtcdBackup]{
		Client: r.Client, Report: r.answer,
		Observe: func(_ context.Context, backup *hyperv1.HCPEtcdBackup) (*hyperv1.HCPEtcdBackup, error) {
			// One that came with its snapshot, from another operator, stays the record of it.
			if condition.IsTrue(backup.Status.Conditions, hyperv1.HCPEtcdBackupCompleted) {
				return nil, phase.ErrStop
			}
			return backup, nil
		},
	}.Reconcile(ctx, req)
}

func (r *Reconciler) answer(ctx context.Context, backup *hyperv1.HCPEtcdBackup, _ error) error {
	return client.IgnoreNotFound(upsert.Status(ctx, r.Client, backup, func() {
		backup.Status.Conditions = condition.Merge(backup.Status.Conditions, backup.Generation,
			condition.False(hyperv1.HCPEtcdBackupCompleted, reasonNotSupported, notSupported))
	}))
}
