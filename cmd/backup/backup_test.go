// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/cmd/progress"
)

var now = time.Date(2026, 11, 23, 3, 4, 5, 0, time.UTC)

func parsed(t *testing.T, args ...string) *options {
	t.Helper()
	o := &options{}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.addFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestValidate(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"When no cluster is set":             {nil, "--name is required"},
		"When no encryption key is set":      {[]string{"--name", "demo", "--pvc", "b"}, "--encryption-key is required"},
		"When no destination is set":         {[]string{"--name", "demo", "--encryption-key", "k"}, "either --pvc or --s3-bucket"},
		"When two destinations are set":      {[]string{"--name", "demo", "--encryption-key", "k", "--pvc", "b", "--s3-bucket", "b"}, "either --pvc or --s3-bucket"},
		"When the bucket has no credentials": {[]string{"--name", "demo", "--encryption-key", "k", "--s3-bucket", "b"}, "--s3-credentials is required"},
	} {
		t.Run(name+" it should say so", func(t *testing.T) {
			NewWithT(t).Expect(parsed(t, test.args...).validate()).To(MatchError(ContainSubstring(test.want)))
		})
	}
}

func TestRequest(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want *hyperv1.HCPEtcdBackup
	}{
		"When the destination is a volume": {
			[]string{"--name", "demo", "--encryption-key", "key", "--pvc", "backups"},
			&hyperv1.HCPEtcdBackup{
				ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo-20261123-030405"},
				Spec: hyperv1.HCPEtcdBackupSpec{
					EncryptionKey: hyperv1.SecretReference{Name: "key"}, DeletionPolicy: hyperv1.RetainBackup,
					Storage: hyperv1.HCPEtcdBackupStorage{StorageType: hyperv1.PVCBackupStorage, PVC: hyperv1.HCPEtcdBackupPVC{ClaimName: "backups"}},
				},
			},
		},
		"When the destination is a bucket and the backup is deleted with its object": {
			[]string{"--name", "demo", "--namespace", "team", "--backup-name", "b", "--encryption-key", "key", "--delete-with-object", "--s3-bucket", "bucket",
				"--s3-endpoint", "https://minio:9000", "--s3-credentials", "s3"},
			&hyperv1.HCPEtcdBackup{
				ObjectMeta: metav1.ObjectMeta{Namespace: "team-demo", Name: "b"},
				Spec: hyperv1.HCPEtcdBackupSpec{
					EncryptionKey: hyperv1.SecretReference{Name: "key"}, DeletionPolicy: hyperv1.DeleteBackup,
					Storage: hyperv1.HCPEtcdBackupStorage{StorageType: hyperv1.S3BackupStorage, S3: hyperv1.HCPEtcdBackupS3{
						Bucket: "bucket", Region: "us-east-1", KeyPrefix: "hypershift", Endpoint: "https://minio:9000", Credentials: hyperv1.SecretReference{Name: "s3"},
					}},
				},
			},
		},
	} {
		t.Run(name+" it should ask for that", func(t *testing.T) {
			o := parsed(t, test.args...)
			if err := o.validate(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, o.request(now)); diff != "" {
				t.Errorf("HCPEtcdBackup (-want +got):\n%s", diff)
			}
		})
	}
}

// ended returns a client in which each backup ends immediately, with this condition.
func ended(condition metav1.Condition, objects ...client.Object) client.Client {
	condition.Type = hyperv1.HCPEtcdBackupCompleted
	return fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(objects...).WithStatusSubresource(&hyperv1.HCPEtcdBackup{}).
		WithInterceptorFuncs(interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if err := c.Create(ctx, obj, opts...); err != nil {
				return err
			}
			backup := obj.DeepCopyObject().(*hyperv1.HCPEtcdBackup)
			meta.SetStatusCondition(&backup.Status.Conditions, condition)
			backup.Status.SnapshotURL, backup.Status.Size, backup.Status.Revision = "pvc://backups/demo", 4711, 42
			return c.Status().Update(ctx, backup)
		}}).Build()
}

func TestRun(t *testing.T) {
	cluster := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo"}}
	args := []string{"--name", "demo", "--backup-name", "b", "--encryption-key", "key", "--pvc", "backups", "--wait"}
	run := func(t *testing.T, c client.Client) (string, error) {
		var said bytes.Buffer
		err := parsed(t, args...).run(t.Context(), c, progress.New(&said, clock.RealClock{}), now)
		return said.String(), err
	}
	t.Run("When the backup is stored, it should report the location and the size", func(t *testing.T) {
		g := NewWithT(t)
		said, err := run(t, ended(metav1.Condition{Status: metav1.ConditionTrue, Reason: hyperv1.BackupSucceededReason}, cluster.DeepCopy()))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(said).To(ContainSubstring("pvc://backups/demo has 4711 bytes, of revision 42"))
	})
	t.Run("When the backup fails, it should return the reason", func(t *testing.T) {
		_, err := run(t, ended(metav1.Condition{Status: metav1.ConditionFalse, Reason: hyperv1.BackupFailedReason, Message: "the volume is full"}, cluster.DeepCopy()))
		NewWithT(t).Expect(err).To(MatchError("HCPEtcdBackup clusters-demo/b failed: the volume is full"))
	})
	t.Run("When the HostedCluster does not exist, it should create no backup", func(t *testing.T) {
		g := NewWithT(t)
		c := ended(metav1.Condition{})
		_, err := run(t, c)
		g.Expect(err).To(MatchError(ContainSubstring("read HostedCluster clusters/demo")))
		list := &hyperv1.HCPEtcdBackupList{}
		g.Expect(c.List(t.Context(), list)).To(Succeed())
		g.Expect(list.Items).To(BeEmpty())
	})
	t.Run("When a backup of that name exists, the error should ask for another name", func(t *testing.T) {
		there := &hyperv1.HCPEtcdBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "b"}}
		_, err := run(t, ended(metav1.Condition{}, cluster.DeepCopy(), there))
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("choose another --backup-name")))
	})
}
