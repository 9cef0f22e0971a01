// SPDX-License-Identifier: Apache-2.0

package etcdbackup

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
)

// noon is a Friday.
var noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

func TestSlot(t *testing.T) {
	for _, tc := range []struct {
		name, schedule string
		since, now     time.Time
		due, next      time.Time
	}{
		{"no time is due yet", "0 * * * *", noon.Add(-30 * time.Minute), noon.Add(-time.Second), time.Time{}, noon},
		{"a time is due now", "0 * * * *", noon.Add(-30 * time.Minute), noon, noon, noon.Add(time.Hour)},
		{"the backup for the due time already exists", "0 * * * *", noon, noon.Add(59 * time.Minute), time.Time{}, noon.Add(time.Hour)},
		{"two times were missed", "0 * * * *", noon.Add(-90 * time.Minute), noon.Add(time.Minute), noon, noon.Add(time.Hour)},
		{"hourly times of weeks have passed", "0 * * * *", noon.Add(-21 * day), noon.Add(time.Minute), noon, noon.Add(time.Hour)},
		{"daily times of weeks have passed", "0 3 * * *", noon.Add(-21 * day), noon, noon.Add(-9 * time.Hour), noon.Add(15 * time.Hour)},
		{"the weekly time was missed days ago", "0 12 * * 2", noon.Add(-5 * day), noon, noon.Add(-3 * day), noon.Add(4 * day)},
		{"weekly times have passed, of which the last is days ago", "0 12 * * 2", noon.Add(-24 * day), noon, noon.Add(-3 * day), noon.Add(4 * day)},
		{"monthly times have passed", "0 12 1 * *", noon.Add(-100 * day), noon, noon.Add(-19 * day), time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)},
		{"yearly times have passed", "0 12 1 3 *", noon.Add(-3 * 365 * day), noon, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)},
		{"the schedule never fires", "0 0 30 2 *", noon.Add(-90 * day), noon, time.Time{}, noon.Add(day)},
		{"the start is in another time zone", "0 * * * *", noon.Add(-30 * time.Minute).In(time.FixedZone("east", 19800)), noon, noon, noon.Add(time.Hour)},
	} {
		t.Run("When "+tc.name+" it should return the last due time and the next time", func(t *testing.T) {
			schedule, err := cron.ParseStandard(tc.schedule)
			if err != nil {
				t.Fatal(err)
			}
			g := NewWithT(t)
			due, next := slot(schedule, tc.since, tc.now)
			g.Expect(due.Equal(tc.due)).To(BeTrue(), "due at %s", due)
			g.Expect(next.Equal(tc.next)).To(BeTrue(), "next at %s", next)
		})
	}
}

// finished returns a backup that ended at that time with that result.
func finished(name string, at time.Time, status metav1.ConditionStatus, why string) *hyperv1.HCPEtcdBackup {
	b := backupOf(name)
	b.CreationTimestamp = metav1.NewTime(at)
	reason := hyperv1.BackupSucceededReason
	if status == metav1.ConditionFalse {
		reason = hyperv1.BackupFailedReason
	}
	if status == metav1.ConditionUnknown {
		reason = hyperv1.BackupInProgressReason
	} else {
		b.Status.CompletionTime = ptr.To(metav1.NewTime(at.Add(10 * time.Minute)))
	}
	b.Status.Conditions = []metav1.Condition{{Type: hyperv1.HCPEtcdBackupCompleted, Status: status, Reason: reason, Message: why, LastTransitionTime: metav1.NewTime(at)}}
	return b
}

// ofSchedule marks a backup as created by the schedule.
func ofSchedule(b *hyperv1.HCPEtcdBackup) *hyperv1.HCPEtcdBackup {
	b.Annotations = map[string]string{slotAnnotation: b.CreationTimestamp.UTC().Format(time.RFC3339)}
	return b
}

// plane is a hosted namespace in a fake API server, with a schedule.
type plane struct {
	t         *testing.T
	client    client.WithWatch
	clock     *clocktesting.FakePassiveClock
	hcp       *hyperv1.HostedControlPlane
	scheduler *Scheduler
}

func newPlane(t *testing.T, schedule string, retention int32, objects ...client.Object) *plane {
	t.Helper()
	hcp := fixture.ControlPlane()
	hcp.UID, hcp.CreationTimestamp = "plane", metav1.NewTime(noon.Add(-60*day))
	hcp.Spec.Etcd.Managed.AutomatedBackup = &hyperv1.AutomatedEtcdBackupConfig{
		Schedule: schedule, Retention: retention, EncryptionKey: hyperv1.SecretReference{Name: "key"},
		Storage: hyperv1.AutomatedEtcdBackupStorage{Type: "PVC", PVC: &hyperv1.HCPEtcdBackupPVC{ClaimName: "backups"}},
	}
	c := fake.NewClientBuilder().WithScheme(fixture.Scheme()).WithObjects(append(objects, hcp)...).
		WithStatusSubresource(&hyperv1.HostedControlPlane{}, &hyperv1.HCPEtcdBackup{}).Build()
	p := &plane{t: t, client: c, clock: clocktesting.NewFakePassiveClock(noon), hcp: hcp}
	p.scheduler = &Scheduler{Client: c, Clock: p.clock}
	return p
}

func (p *plane) pass() time.Duration {
	p.t.Helper()
	result, err := p.scheduler.Reconcile(p.t.Context(), requestOf(p.hcp))
	if err != nil {
		p.t.Fatal(err)
	}
	return result.RequeueAfter
}

func (p *plane) names() []string {
	p.t.Helper()
	list := &hyperv1.HCPEtcdBackupList{}
	if err := p.client.List(p.t.Context(), list); err != nil {
		p.t.Fatal(err)
	}
	names := []string{}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

func TestAsking(t *testing.T) {
	t.Run("When several weekly times were missed, it should create one backup for all of them", func(t *testing.T) {
		g, p := NewWithT(t), newPlane(t, "0 12 * * 2", 5)
		for range 4 {
			g.Expect(p.pass()).To(Equal(4 * day))
		}
		g.Expect(p.names()).To(Equal([]string{"demo-20261117-1200"}))
	})
	t.Run("When no schedule is set, it should create one backup per hour", func(t *testing.T) {
		g, p := NewWithT(t), newPlane(t, "", 5)
		for range 2 {
			g.Expect(p.pass()).To(Equal(time.Hour))
		}
		g.Expect(p.names()).To(Equal([]string{"demo-20261120-1200"}))
		p.clock.SetTime(noon.Add(59 * time.Minute))
		g.Expect(p.pass()).To(Equal(time.Minute))
		p.clock.SetTime(noon.Add(time.Hour))
		p.pass()
		g.Expect(p.names()).To(Equal([]string{"demo-20261120-1200", "demo-20261120-1300"}))
	})
	t.Run("When it creates a scheduled backup, the spec should come from the schedule, with policy Delete", func(t *testing.T) {
		g, p := NewWithT(t), newPlane(t, "", 5)
		storage := hyperv1.HCPEtcdBackupS3{Bucket: "b", Region: "r", Credentials: hyperv1.SecretReference{Name: "s3"}}
		p.hcp.Spec.Etcd.Managed.AutomatedBackup.Storage = hyperv1.AutomatedEtcdBackupStorage{Type: "S3", S3: &storage}
		g.Expect(p.client.Update(t.Context(), p.hcp)).To(Succeed())
		p.pass()
		got := &hyperv1.HCPEtcdBackup{}
		g.Expect(p.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "demo-20261120-1200"}, got)).To(Succeed())
		g.Expect(got.Spec).To(Equal(hyperv1.HCPEtcdBackupSpec{
			Storage:       hyperv1.HCPEtcdBackupStorage{StorageType: hyperv1.S3BackupStorage, S3: storage},
			EncryptionKey: hyperv1.SecretReference{Name: "key"}, DeletionPolicy: hyperv1.DeleteBackup,
		}))
		g.Expect(got.Annotations).To(HaveKeyWithValue(slotAnnotation, "2026-11-20T12:00:00Z"))
	})
	t.Run("When a manual backup is newer than the last scheduled one, it should still follow the schedule", func(t *testing.T) {
		p := newPlane(t, "", 5, ofSchedule(finished("of-eleven", noon.Add(-time.Hour), metav1.ConditionTrue, "")), finished("by-hand", noon.Add(-time.Minute), metav1.ConditionTrue, ""))
		p.pass()
		NewWithT(t).Expect(p.names()).To(ContainElement("demo-20261120-1200"))
	})
	t.Run("When the annotation of a backup is invalid, it should use the previous backup", func(t *testing.T) {
		odd := ofSchedule(finished("odd", noon.Add(-time.Minute), metav1.ConditionTrue, ""))
		odd.Annotations[slotAnnotation] = "noon"
		h := &history{hcp: fixture.ControlPlane(), all: []hyperv1.HCPEtcdBackup{*odd, *ofSchedule(finished("of-eleven", noon.Add(-time.Hour), metav1.ConditionTrue, ""))}}
		NewWithT(t).Expect(h.since()).To(Equal(noon.Add(-time.Hour)))
	})
	t.Run("When a control plane is deleted or has no schedule, it should create no backup", func(t *testing.T) {
		g, p := NewWithT(t), newPlane(t, "", 5)
		p.hcp.Spec.Etcd.Managed.AutomatedBackup = nil
		g.Expect(p.client.Update(t.Context(), p.hcp)).To(Succeed())
		g.Expect(p.pass()).To(BeZero())
		p = newPlane(t, "", 5)
		p.hcp.Finalizers = []string{"test/held"}
		g.Expect(p.client.Update(t.Context(), p.hcp)).To(Succeed())
		g.Expect(p.client.Delete(t.Context(), p.hcp)).To(Succeed())
		p.pass()
		g.Expect(p.names()).To(BeEmpty())
		p = newPlane(t, "", 5)
		p.hcp.Spec.Etcd = hyperv1.EtcdSpec{ManagementType: hyperv1.Unmanaged, Unmanaged: &hyperv1.UnmanagedEtcdSpec{}}
		g.Expect(p.client.Update(t.Context(), p.hcp)).To(Succeed())
		p.pass()
		g.Expect(p.names()).To(BeEmpty())
	})
}

func TestRetention(t *testing.T) {
	at := func(hours int) time.Time { return noon.Add(-time.Duration(hours) * time.Hour) }
	good := func(hours int) client.Object {
		return ofSchedule(finished(fmt.Sprintf("good-%02d", hours), at(hours), metav1.ConditionTrue, ""))
	}
	bad := func(hours int) client.Object {
		return ofSchedule(finished(fmt.Sprintf("bad-%02d", hours), at(hours), metav1.ConditionFalse, "full"))
	}
	running := func(hours int) client.Object {
		return ofSchedule(finished(fmt.Sprintf("running-%02d", hours), at(hours), metav1.ConditionUnknown, ""))
	}
	byHand := func(hours int) client.Object {
		return finished(fmt.Sprintf("hand-%02d", hours), at(hours), metav1.ConditionTrue, "")
	}
	leaving := good(3)
	leaving.SetFinalizers([]string{Finalizer})
	leaving.SetDeletionTimestamp(&metav1.Time{Time: noon})
	for _, tc := range []struct {
		name      string
		retention int32
		objects   []client.Object
		want      []string
	}{
		{"there are as many as may stay", 2, []client.Object{good(0), good(1)}, []string{"good-00", "good-01"}},
		{"there are more than may stay", 2, []client.Object{good(0), good(1), good(2), good(3)}, []string{"good-00", "good-01"}},
		{"no number is set", 0, []client.Object{good(0), good(1)}, []string{"good-00"}},
		{"some failed and do not count", 2, []client.Object{bad(0), good(1), bad(2), good(3)}, []string{"bad-00", "bad-02", "good-01", "good-03"}},
		{"many failed", 1, []client.Object{bad(0), bad(1), bad(2), bad(3), bad(4), good(9)}, []string{"bad-00", "bad-01", "bad-02", "good-09"}},
		{"one is in progress", 1, []client.Object{running(0), good(1)}, []string{"good-01", "running-00"}},
		{"users requested some", 1, []client.Object{good(0), byHand(1), byHand(2), good(3)}, []string{"good-00", "hand-01", "hand-02"}},
		{"one is being deleted and does not count", 1, []client.Object{leaving, good(5)}, []string{"good-03", "good-05"}},
	} {
		t.Run("When "+tc.name+" it should keep the newest backups", func(t *testing.T) {
			p := newPlane(t, "0 0 1 1 *", tc.retention, tc.objects...)
			p.hcp.CreationTimestamp = metav1.NewTime(noon)
			NewWithT(t).Expect(p.client.Update(t.Context(), p.hcp)).To(Succeed())
			p.pass()
			NewWithT(t).Expect(p.names()).To(Equal(tc.want))
		})
	}
}

func TestHowTheLastOneWent(t *testing.T) {
	for _, tc := range []struct {
		name    string
		objects []client.Object
		want    string
	}{
		{"there was none", nil, ""},
		{"the first is in progress", []client.Object{finished("a", noon.Add(-time.Hour), metav1.ConditionUnknown, "")}, ""},
		{"the last one succeeded", []client.Object{finished("a", noon.Add(-time.Hour), metav1.ConditionTrue, "")}, "True/BackupSucceeded: Backup a was made at 2026-11-20T11:10:00Z"},
		{"the last one failed and none succeeded", []client.Object{finished("a", noon.Add(-time.Hour), metav1.ConditionFalse, "bucket full")},
			"False/BackupFailed: Backup a failed, and there is no good one: bucket full"},
		{"the last one failed after a successful one", []client.Object{finished("a", noon.Add(-5*time.Hour), metav1.ConditionTrue, ""), finished("b", noon.Add(-time.Hour), metav1.ConditionFalse, "full")},
			"False/BackupFailed: Backup b failed, when the last good one, a of 2026-11-20T07:10:00Z, was 4h0m0s old: full"},
		{"one failed before the last successful one", []client.Object{finished("a", noon.Add(-5*time.Hour), metav1.ConditionFalse, "full"), finished("b", noon.Add(-time.Hour), metav1.ConditionTrue, "")},
			"True/BackupSucceeded: Backup b was made at 2026-11-20T11:10:00Z"},
		{"another one is in progress", []client.Object{finished("a", noon.Add(-5*time.Hour), metav1.ConditionTrue, ""), finished("b", noon.Add(-time.Hour), metav1.ConditionUnknown, "")},
			"True/BackupSucceeded: Backup a was made at 2026-11-20T07:10:00Z"},
		{"two have the same time and the second one by name succeeded", []client.Object{finished("a", noon, metav1.ConditionFalse, "full"), finished("b", noon, metav1.ConditionTrue, "")},
			"True/BackupSucceeded: Backup b was made at 2026-11-20T12:10:00Z"},
	} {
		t.Run("When "+tc.name+" the control plane should report it, once", func(t *testing.T) {
			g, p := NewWithT(t), newPlane(t, "0 0 1 1 *", 9, tc.objects...)
			p.hcp.CreationTimestamp = metav1.NewTime(noon)
			g.Expect(p.client.Update(t.Context(), p.hcp)).To(Succeed())
			said := func() (string, string) {
				p.pass()
				got := &hyperv1.HostedControlPlane{}
				g.Expect(p.client.Get(t.Context(), client.ObjectKeyFromObject(p.hcp), got)).To(Succeed())
				c := meta.FindStatusCondition(got.Status.Conditions, string(hyperv1.EtcdBackupSucceeded))
				if c == nil {
					return "", got.ResourceVersion
				}
				return fmt.Sprintf("%s/%s: %s", c.Status, c.Reason, c.Message), got.ResourceVersion
			}
			first, version := said()
			g.Expect(first).To(Equal(tc.want))
			_, again := said()
			g.Expect(again).To(Equal(version))
		})
	}
}
