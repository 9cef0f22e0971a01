// SPDX-License-Identifier: Apache-2.0

package etcdbackup

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

func TestReconcile(t *testing.T) {
	c := fixture.NewFaulty(fixture.Start(t))
	r := &Reconciler{Client: c, Clock: clocktesting.NewFakePassiveClock(time.Now().Add(time.Hour))}
	refused := []metav1.Condition{{
		Type: hyperv1.HCPEtcdBackupCompleted, Status: metav1.ConditionFalse, Reason: "NotSupported", Message: notSupported, ObservedGeneration: 1,
	}}
	taken := []metav1.Condition{{
		Type: hyperv1.HCPEtcdBackupCompleted, Status: metav1.ConditionTrue, Reason: "Taken", Message: "By another operator.",
		LastTransitionTime: metav1.Now(),
	}}
	begun := []metav1.Condition{{
		Type: hyperv1.HCPEtcdBackupCompleted, Status: metav1.ConditionUnknown, Reason: "BackupInProgress", LastTransitionTime: metav1.Now(),
	}}
	for name, tc := range map[string]struct {
		object string
		had    []metav1.Condition
		want   []metav1.Condition
		writes int64
	}{
		"When no operator starts the backup, a condition should report that no backup is created": {"new", nil, refused, 1},
		"When the control-plane-operator has started the backup, it should not change the backup": {"begun", begun, begun, 0},
		"When another operator took the snapshot, it should keep the conditions":                  {"taken", taken, taken, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			backup := s3Backup(tc.object)
			fixture.Create(t, c, backup)
			if tc.had != nil {
				backup.Status.Conditions = tc.had
				g.Expect(c.Status().Update(t.Context(), backup)).To(Succeed())
			}
			key := client.ObjectKeyFromObject(backup)
			before := c.Writes()
			for range 3 {
				_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
				g.Expect(err).NotTo(HaveOccurred())
			}
			g.Expect(c.Get(t.Context(), key, backup)).To(Succeed())
			ignored := cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")
			g.Expect(cmp.Diff(tc.want, backup.Status.Conditions, ignored)).To(BeEmpty())
			g.Expect(c.Writes()-before).To(Equal(tc.writes), "what is said already is not written again: %v", c.Log)
		})
	}
	t.Run("When the backup is new, it should leave it to the control-plane-operator until the grace period ends", func(t *testing.T) {
		g, backup := NewWithT(t), s3Backup("young")
		fixture.Create(t, c, backup)
		early := &Reconciler{Client: c, Clock: clocktesting.NewFakePassiveClock(backup.CreationTimestamp.Time)}
		result, err := early.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(backup)})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.RequeueAfter).To(Equal(grace))
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(backup), backup)).To(Succeed())
		g.Expect(backup.Status.Conditions).To(BeEmpty())
	})
	t.Run("When a backup is deleted and its control plane is gone, it should remove the finalizer", func(t *testing.T) {
		g, backup := NewWithT(t), s3Backup("held")
		backup.Finalizers = []string{hyperv1.EtcdBackupFinalizer}
		fixture.Create(t, c, backup)
		g.Expect(c.Delete(t.Context(), backup)).To(Succeed())
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(backup)})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(backup), backup)).To(MatchError(ContainSubstring("not found")))
	})
	t.Run("When the backup does not exist, it should return no error", func(t *testing.T) {
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "clusters-demo", Name: "gone"}})
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	})
}

func s3Backup(name string) *hyperv1.HCPEtcdBackup {
	return &hyperv1.HCPEtcdBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: name},
		Spec: hyperv1.HCPEtcdBackupSpec{Storage: hyperv1.HCPEtcdBackupStorage{
			StorageType: hyperv1.S3BackupStorage,
			S3: hyperv1.HCPEtcdBackupS3{
				Bucket: "backups", Region: "eu-central-1", KeyPrefix: "demo", Credentials: hyperv1.SecretReference{Name: "s3"},
			},
		}},
	}
}

func TestWatches(t *testing.T) {
	t.Run("When an HCPEtcdBackup is created, it should be reconciled", func(t *testing.T) {
		backup := s3Backup("watched")
		backup.Namespace = metav1.NamespaceDefault
		requests := fixture.Manage(t, metav1.NamespaceDefault, func(mgr ctrl.Manager) error {
			return (&Reconciler{Client: mgr.GetClient(), Clock: clock.RealClock{}}).SetupWithManager(mgr)
		})
		requests.ExpectCreated(t, backup, backup)
	})
}
