// SPDX-License-Identifier: Apache-2.0

// Package backup holds the command that requests a backup of a hosted control plane.
package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/cmd/progress"
	"github.com/openshift/hypershift/support/terminal"
)

const pollInterval = 2 * time.Second

// options are the flags of the command.
type options struct {
	name, namespace, backupName string
	encryptionKey               string
	deleteStored                bool
	claim                       string
	s3                          hyperv1.HCPEtcdBackupS3
	wait                        bool
	timeout                     time.Duration
}

// NewCreateCommand returns the command `create etcd-backup`.
func NewCreateCommand() *cobra.Command {
	var connection kube.Connection
	var o options
	cmd := &cobra.Command{
		Use:   "etcd-backup",
		Short: "Back up the control plane of a hosted cluster with a Kubernetes release",
		Long: "Asks for a backup of etcd and of the keys that belong to it, encrypted, in a bucket or on the volume of a PersistentVolumeClaim. " +
			"The claim and the Secrets are in the namespace of the control plane, such as clusters-demo.",
		Example: "  # Into a bucket\n" +
			"  hypershift create etcd-backup --name demo --encryption-key backup-key --s3-bucket backups \\\n" +
			"    --s3-credentials backup-bucket --wait\n" +
			"  # On a volume\n" +
			"  hypershift create etcd-backup --name demo --encryption-key backup-key --pvc backups --wait",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return exit.UsageError(err)
			}
			c, err := connection.Client()
			if err != nil {
				return err
			}
			return o.run(cmd.Context(), c, progress.New(cmd.ErrOrStderr(), clock.RealClock{}), time.Now())
		},
	}
	o.addFlags(cmd.Flags())
	connection.AddFlags(cmd.Flags())
	return cmd
}

func (o *options) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.name, "name", "", "name of the cluster (required)")
	flags.StringVar(&o.namespace, "namespace", "clusters", "namespace of the cluster")
	flags.StringVar(&o.backupName, "backup-name", "", "name of the HCPEtcdBackup (default: that of the cluster and the time)")
	flags.StringVar(&o.encryptionKey, "encryption-key", "", "Secret with the key \"recipients\", public keys of age (required)")
	flags.BoolVar(&o.deleteStored, "delete-with-object", false, "remove what is stored when the HCPEtcdBackup is deleted")
	flags.StringVar(&o.claim, "pvc", "", "PersistentVolumeClaim to store it on")
	flags.StringVar(&o.s3.Bucket, "s3-bucket", "", "bucket to store it in")
	flags.StringVar(&o.s3.Region, "s3-region", "us-east-1", "region of the bucket")
	flags.StringVar(&o.s3.KeyPrefix, "s3-prefix", "hypershift", "folder in the bucket")
	flags.StringVar(&o.s3.Endpoint, "s3-endpoint", "", "URL of an object store that speaks the protocol of S3 (default: AWS)")
	flags.StringVar(&o.s3.Credentials.Name, "s3-credentials", "", "Secret with the key \"credentials\", an AWS credentials file")
	flags.BoolVar(&o.wait, "wait", false, "wait until the backup is stored and was read back")
	flags.DurationVar(&o.timeout, "timeout", time.Hour, "longest wait")
}

func (o *options) validate() error {
	switch {
	case o.name == "":
		return errors.New("--name is required")
	case o.encryptionKey == "":
		return errors.New("--encryption-key is required: a backup has all keys of the cluster in it, and is never stored in clear")
	case (o.claim == "") == (o.s3.Bucket == ""):
		return errors.New("name where the backup goes: either --pvc or --s3-bucket")
	case o.s3.Bucket != "" && o.s3.Credentials.Name == "":
		return errors.New("--s3-credentials is required with --s3-bucket")
	}
	return nil
}

// request returns the HCPEtcdBackup to create.
func (o *options) request(now time.Time) *hyperv1.HCPEtcdBackup {
	backup := &hyperv1.HCPEtcdBackup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: kube.HostedNamespace(o.namespace, o.name),
			Name:      cmp.Or(o.backupName, fmt.Sprintf("%s-%s", o.name, now.UTC().Format("20060102-150405"))),
		},
		Spec: hyperv1.HCPEtcdBackupSpec{
			EncryptionKey:  hyperv1.SecretReference{Name: o.encryptionKey},
			DeletionPolicy: hyperv1.RetainBackup,
			Storage:        hyperv1.HCPEtcdBackupStorage{StorageType: hyperv1.S3BackupStorage, S3: o.s3},
		},
	}
	if o.claim != "" {
		backup.Spec.Storage = hyperv1.HCPEtcdBackupStorage{StorageType: hyperv1.PVCBackupStorage, PVC: hyperv1.HCPEtcdBackupPVC{ClaimName: o.claim}}
	}
	if o.deleteStored {
		backup.Spec.DeletionPolicy = hyperv1.DeleteBackup
	}
	return backup
}

func (o *options) run(ctx context.Context, c client.Client, report *progress.Reporter, now time.Time) error {
	hc := &hyperv1.HostedCluster{}
	key := client.ObjectKey{Namespace: o.namespace, Name: o.name}
	if err := c.Get(ctx, key, hc); err != nil {
		return fmt.Errorf("read HostedCluster %s: %w", key, err)
	}
	backup := o.request(now)
	err := c.Create(ctx, backup)
	switch {
	case apierrors.IsAlreadyExists(err):
		return fmt.Errorf("there is an HCPEtcdBackup %s/%s: choose another --backup-name", backup.Namespace, backup.Name)
	case err != nil:
		return fmt.Errorf("create HCPEtcdBackup %s/%s: %w", backup.Namespace, backup.Name, err)
	}
	report.Printf("created HCPEtcdBackup %s/%s", backup.Namespace, backup.Name)
	if !o.wait {
		report.Printf("Follow with: kubectl get hcpetcdbackup -n %s %s -w", backup.Namespace, backup.Name)
		return nil
	}
	return o.follow(ctx, c, report, client.ObjectKeyFromObject(backup))
}

// follow waits until a backup has ended. If the backup failed, it returns the reason.
func (o *options) follow(ctx context.Context, c client.Client, report *progress.Reporter, key client.ObjectKey) error {
	backup := &hyperv1.HCPEtcdBackup{}
	var completed *metav1.Condition
	err := report.Wait(ctx, "HCPEtcdBackup "+key.String(), o.timeout, pollInterval, func(ctx context.Context) (progress.State, error) {
		if err := c.Get(ctx, key, backup); err != nil {
			return progress.State{}, err
		}
		completed = meta.FindStatusCondition(backup.Status.Conditions, hyperv1.HCPEtcdBackupCompleted)
		if completed == nil {
			return progress.State{Message: "waiting for the control-plane-operator to start it"}, nil
		}
		over := completed.Status == metav1.ConditionTrue || completed.Reason == hyperv1.BackupFailedReason || completed.Reason == hyperv1.BackupNotSupportedReason
		return progress.State{Done: over, Message: cmp.Or(backup.Status.Progress, completed.Message, completed.Reason)}, nil
	})
	if err != nil {
		return err
	}
	if completed.Status != metav1.ConditionTrue {
		return fmt.Errorf("HCPEtcdBackup %s failed: %s", key, terminal.Line(completed.Message))
	}
	report.Printf("%s has %d bytes, of revision %d", backup.Status.SnapshotURL, backup.Status.Size, backup.Status.Revision)
	report.Printf("its SHA-256 is %s; keep it to restore on another management cluster, with --bundle-sha256",
		backup.Status.SHA256)
	return nil
}
