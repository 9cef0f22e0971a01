// SPDX-License-Identifier: Apache-2.0

package etcdbackup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/backup"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/control-plane-operator/metrics"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
)

const namespace = fixture.Namespace

// world is a hosted namespace in a real API server, whose Jobs the test runs.
type world struct {
	t         *testing.T
	client    client.WithWatch
	clock     *clocktesting.FakePassiveClock
	writes    *testenv.Writes
	hcp       *hyperv1.HostedControlPlane
	events    chan string
	taker     *Reconciler
	scheduler *Scheduler
}

func newWorld(t *testing.T, api client.WithWatch) *world {
	t.Helper()
	recorder := events.NewFakeRecorder(100)
	w := &world{t: t, client: api, clock: clocktesting.NewFakePassiveClock(time.Now()), writes: &testenv.Writes{}, hcp: fixture.ControlPlane(), events: recorder.Events}
	counted := w.writes.Client(api)
	w.taker = &Reconciler{Client: counted, Live: api, Clock: w.clock, Events: recorder, Image: "registry.example/hypershift"}
	w.scheduler = &Scheduler{Client: counted, Clock: w.clock, Metrics: metrics.NewEtcdBackup()}
	w.hcp.Annotations = map[string]string{hyperv1.HostedClusterAnnotation: "clusters/demo"}
	key, err := age.GenerateX25519Identity()
	w.must(err)
	for _, obj := range []client.Object{w.hcp, secret("key", "recipients", key.Recipient().String()), secret("s3", "credentials", "x"),
		secret("root-ca", "tls.key", "CA"), secret("sa-signing-key", "service-account.key", "SA"), secret("admin-kubeconfig", "kubeconfig", "K")} {
		w.must(api.Create(t.Context(), obj))
	}
	w.etcd(metav1.ConditionTrue, "AsExpected", "")
	t.Cleanup(w.tearDown)
	return w
}

func secret(name, key, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{key: []byte(value)}}
}

func (w *world) tearDown() {
	ctx := context.Background()
	list := &hyperv1.HCPEtcdBackupList{}
	w.must(w.client.List(ctx, list, client.InNamespace(namespace)))
	for i := range list.Items {
		list.Items[i].Finalizers = nil
		w.must(w.client.Update(ctx, &list.Items[i]))
	}
	for _, kind := range []client.Object{&hyperv1.HCPEtcdBackup{}, &batchv1.Job{}, &corev1.Pod{}, &hyperv1.HostedControlPlane{}, &corev1.Secret{}} {
		w.must(w.client.DeleteAllOf(ctx, kind, client.InNamespace(namespace), client.GracePeriodSeconds(0), client.PropagationPolicy(metav1.DeletePropagationBackground)))
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) etcd(status metav1.ConditionStatus, reason, message string) {
	w.t.Helper()
	meta.SetStatusCondition(&w.hcp.Status.Conditions, metav1.Condition{Type: string(hyperv1.EtcdAvailable), Status: status, Reason: reason, Message: message})
	w.must(w.client.Status().Update(w.t.Context(), w.hcp))
}

func (w *world) encryption(status metav1.ConditionStatus, message string) {
	w.t.Helper()
	meta.SetStatusCondition(&w.hcp.Status.Conditions, metav1.Condition{Type: string(hyperv1.EtcdDataEncryptionUpToDate), Status: status, Reason: "Test", Message: message})
	w.must(w.client.Status().Update(w.t.Context(), w.hcp))
}

// backupOf returns a backup as a user requests it.
func backupOf(name string) *hyperv1.HCPEtcdBackup {
	return &hyperv1.HCPEtcdBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: hyperv1.HCPEtcdBackupSpec{EncryptionKey: hyperv1.SecretReference{Name: "key"}, Storage: hyperv1.HCPEtcdBackupStorage{
			StorageType: hyperv1.S3BackupStorage, S3: hyperv1.HCPEtcdBackupS3{
				Bucket: "backups", Region: "eu", KeyPrefix: "demo", Endpoint: "https://s3.example.com", Credentials: hyperv1.SecretReference{Name: "s3"},
			}}},
	}
}

func (w *world) asks(name string, edit ...func(*hyperv1.HCPEtcdBackup)) *hyperv1.HCPEtcdBackup {
	w.t.Helper()
	asked := backupOf(name)
	for _, change := range edit {
		change(asked)
	}
	w.must(w.client.Create(w.t.Context(), asked))
	return asked
}

// passes runs the controllers, and returns the condition.
func (w *world) passes(asked *hyperv1.HCPEtcdBackup) string {
	w.t.Helper()
	for range 2 {
		_, err := w.taker.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(asked)})
		w.must(err)
		_, err = w.scheduler.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.hcp)})
		w.must(err)
	}
	if err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(asked), asked); err != nil {
		return err.Error()
	}
	w.must(w.client.Get(w.t.Context(), client.ObjectKeyFromObject(w.hcp), w.hcp))
	c := meta.FindStatusCondition(asked.Status.Conditions, hyperv1.HCPEtcdBackupCompleted)
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s/%s: %s", c.Status, c.Reason, c.Message)
}

func (w *world) job(name string) *batchv1.Job {
	w.t.Helper()
	job := &batchv1.Job{}
	w.must(w.client.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, job))
	return job
}

// ends ends a Job, with the message of its last pod.
func (w *world) ends(job *batchv1.Job, how batchv1.JobConditionType, said string) {
	w.t.Helper()
	now := metav1.Now()
	job.Status.StartTime = &now
	earlier := map[batchv1.JobConditionType]batchv1.JobConditionType{
		batchv1.JobComplete: batchv1.JobSuccessCriteriaMet, batchv1.JobFailed: batchv1.JobFailureTarget}[how]
	for _, t := range []batchv1.JobConditionType{earlier, how} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: t, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", LastTransitionTime: now})
	}
	if how == batchv1.JobComplete {
		job.Status.CompletionTime, job.Status.Succeeded = &now, 1
	}
	if said != "" {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pod", Labels: map[string]string{batchv1.JobNameLabel: job.Name}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
		w.must(w.client.Create(w.t.Context(), pod))
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: 1, Message: said, FinishedAt: now}}}}
		w.must(w.client.Status().Update(w.t.Context(), pod))
	}
	w.must(w.client.Status().Update(w.t.Context(), job))
}

// stores sets the status as the pod does when it has stored a backup.
func (w *world) stores(asked *hyperv1.HCPEtcdBackup) {
	w.t.Helper()
	w.must(w.client.Get(w.t.Context(), client.ObjectKeyFromObject(asked), asked))
	asked.Status.SHA256, asked.Status.Size, asked.Status.SnapshotURL = "abc", 42, "s3://backups/demo/x"
	asked.Status.Revision, asked.Status.EtcdVersion, asked.Status.CompletionTime = 7, "3.6.10", ptr.To(metav1.NewTime(w.clock.Now().Truncate(time.Second)))
	w.must(w.client.Status().Update(w.t.Context(), asked))
}

// backsUp runs a complete backup.
func (w *world) backsUp(asked *hyperv1.HCPEtcdBackup) {
	w.t.Helper()
	w.passes(asked)
	w.stores(asked)
	w.ends(w.job(jobName(asked)), batchv1.JobComplete, "")
	if got := w.passes(asked); !strings.HasPrefix(got, "True/BackupSucceeded") {
		w.t.Fatalf("the backup is %s", got)
	}
}

func (w *world) succeeded() string {
	c := meta.FindStatusCondition(w.hcp.Status.Conditions, string(hyperv1.EtcdBackupSucceeded))
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s/%s: %s", c.Status, c.Reason, c.Message)
}

func TestBackups(t *testing.T) {
	api := testenv.Client(t, testenv.Start(t, crds.HyperShift), fixture.Scheme())
	if err := api.Create(t.Context(), fixture.HostedNamespace()[0]); err != nil {
		t.Fatal(err)
	}
	t.Run("When a backup is requested, it should create a Job and delete the Job's Secret afterwards", func(t *testing.T) {
		g, w := NewWithT(t), newWorld(t, api)
		asked := w.asks("mine")
		g.Expect(w.passes(asked)).To(Equal("Unknown/BackupInProgress: The backup is being taken"))
		handed := &corev1.Secret{}
		w.must(api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: jobName(asked)}, handed))
		task, err := backup.ReadTask(handed.Data[backup.TaskFile])
		w.must(err)
		var names []string
		for i := range task.Contents.Secrets {
			names = append(names, task.Contents.Secrets[i].Name)
		}
		g.Expect(cmp.Diff([]string{"root-ca", "sa-signing-key"}, names)).To(BeEmpty(), "keys, and nothing that follows from them")
		g.Expect(task.Contents.Header.Namespace + "/" + task.Contents.Header.Name).To(Equal("clusters/demo"))
		g.Expect(task.Contents.Objects).To(HaveLen(1), "the HostedControlPlane")
		g.Expect(task.Object).To(And(HavePrefix(namespace+"/"), HaveSuffix("-mine.tar.gz.age")))
		g.Expect(task.Recipients).To(HaveLen(1))

		w.stores(asked)
		w.ends(w.job(jobName(asked)), batchv1.JobComplete, "")
		g.Expect(w.passes(asked)).To(HavePrefix("True/BackupSucceeded: Stored, read back and found complete: 42 bytes, revision 7 of etcd 3.6.10"))
		g.Expect(<-w.events).To(ContainSubstring("Stored at s3://backups/demo/x"))
		g.Expect(w.succeeded()).To(HavePrefix("True/BackupSucceeded: Backup mine was made at "))
		w.passes(asked)
		g.Expect(api.Get(t.Context(), client.ObjectKeyFromObject(handed), handed)).To(MatchError(ContainSubstring("not found")), "the keys must not stay")
		before := w.writes.Count
		w.passes(asked)
		g.Expect(w.writes.Count).To(Equal(before), "a settled system writes nothing")
		w.must(api.Delete(t.Context(), asked))
		g.Expect(w.passes(asked)).To(ContainSubstring("not found"), "what is stored stays, unless the policy says Delete")
	})
	t.Run("When a Job fails, the condition should have its last message and the age of the last good backup", func(t *testing.T) {
		g, w := NewWithT(t), newWorld(t, api)
		w.backsUp(w.asks("a-good"))
		w.clock.SetTime(w.clock.Now().Add(26 * time.Hour))
		asked := w.asks("b-bad")
		w.passes(asked)
		w.ends(w.job(jobName(asked)), batchv1.JobFailed, "{\"msg\":\"Cannot report progress\"}\nError: bucket backups is full (XMinioStorageFull)\n")
		g.Expect(w.passes(asked)).To(HavePrefix("False/BackupFailed: bucket backups is full"))
		g.Expect(w.succeeded()).To(And(HavePrefix("False/BackupFailed: Backup b-bad failed, when the last good one, a-good of "), ContainSubstring("was 26h0m0s old: bucket backups is full")))
	})
	t.Run("When a backup is blocked, it should report the cause and start when the cause is gone", func(t *testing.T) {
		for _, tc := range []struct {
			name           string
			wrong, mend    func(*world)
			want, deadline string
		}{
			{"etcd lost its quorum", func(w *world) { w.etcd(metav1.ConditionFalse, "QuorumLost", "1 of 3 members answers") },
				func(w *world) { w.etcd(metav1.ConditionTrue, "AsExpected", "") }, "False/EtcdUnhealthy: Waiting until etcd serves: 1 of 3", "1 of 3"},
			{"the cluster is paused", func(w *world) { w.hcp.Spec.PausedUntil = ptr.To("true"); w.must(w.client.Update(t.Context(), w.hcp)) },
				func(w *world) { w.hcp.Spec.PausedUntil = nil; w.must(w.client.Update(t.Context(), w.hcp)) }, "False/Paused: Waiting: the cluster is paused", "paused"},
			{"Secrets are moved to another key", func(w *world) { w.encryption(metav1.ConditionFalse, "Move 2") },
				func(w *world) { w.encryption(metav1.ConditionTrue, "") }, "False/EncryptionMoving: Waiting until all Secrets are encrypted with one key: Move 2", "Move 2"},
			{"the key is missing", func(w *world) { w.must(w.client.Delete(t.Context(), secret("key", "", ""))) },
				func(w *world) {
					w.must(w.client.Create(t.Context(), secret("key", "recipients", "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p")))
				}, "Unknown/BackupInProgress: Waiting: spec.encryptionKey: there is no Secret clusters-demo/key: create it", "no Secret"},
			{"the key is invalid", func(w *world) {
				w.must(w.client.Update(t.Context(), secret("key", "recipients", "AGE-SECRET-KEY-1")))
			}, func(w *world) {
				w.must(w.client.Update(t.Context(), secret("key", "recipients", "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p")))
			}, "Unknown/BackupInProgress: Waiting: spec.encryptionKey: key \"recipients\" of Secret key has no public keys of age", "no public keys"},
		} {
			t.Run(tc.name, func(t *testing.T) {
				g, w := NewWithT(t), newWorld(t, api)
				tc.wrong(w)
				asked := w.asks("waits")
				g.Expect(w.passes(asked)).To(HavePrefix(tc.want))
				tc.mend(w)
				g.Expect(w.passes(asked)).To(Equal("Unknown/BackupInProgress: The backup is being taken"))
			})
			t.Run(tc.name+" for too long", func(t *testing.T) {
				g, w := NewWithT(t), newWorld(t, api)
				tc.wrong(w)
				asked := w.asks("waits")
				w.clock.SetTime(time.Now().Add(backup.Deadline + time.Minute))
				g.Expect(w.passes(asked)).To(And(HavePrefix("False/BackupFailed: It could not begin within 1h0m0s: "), ContainSubstring(tc.deadline)))
				g.Expect(w.events).To(Receive(And(ContainSubstring("BackupFailed "), ContainSubstring(tc.deadline))), "an event says so too")
			})
		}
	})
	t.Run("When another backup is in progress, the second one should wait", func(t *testing.T) {
		g, w := NewWithT(t), newWorld(t, api)
		first, second := w.asks("first"), w.asks("second")
		w.passes(first)
		g.Expect(w.passes(second)).To(Equal("False/BackupAlreadyInProgress: Waiting for backup first"))
		w.backsUp(first)
		g.Expect(w.passes(second)).To(HavePrefix("Unknown/BackupInProgress"))
	})
	t.Run("When the requested backup is not supported, it should fail at once", func(t *testing.T) {
		g, w := NewWithT(t), newWorld(t, api)
		g.Expect(w.passes(w.asks("clear", func(b *hyperv1.HCPEtcdBackup) { b.Spec.EncryptionKey.Name = "" }))).To(HavePrefix("False/BackupFailed: spec.encryptionKey is missing"))
		g.Expect(w.events).To(Receive(ContainSubstring("spec.encryptionKey is missing")))
		g.Expect(w.events).NotTo(Receive(), "once")
		g.Expect(w.passes(w.asks("azure", func(b *hyperv1.HCPEtcdBackup) {
			b.Spec.Storage = hyperv1.HCPEtcdBackupStorage{StorageType: hyperv1.AzureBlobBackupStorage, AzureBlob: hyperv1.HCPEtcdBackupAzureBlob{
				Container: "backups", StorageAccount: "account", KeyPrefix: "k", Credentials: hyperv1.SecretReference{Name: "s3"}}}
		}))).To(Equal("False/BackupFailed: spec.storage.storageType AzureBlob is not supported: use S3 or PVC"))
	})
	t.Run("When a backup with policy Delete is deleted, it should first try to delete the stored file", func(t *testing.T) {
		g, w := NewWithT(t), newWorld(t, api)
		// The removal that fails comes last, so that its event is the only one left.
		for _, how := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
			asked := w.asks(strings.ToLower(string(how)), func(b *hyperv1.HCPEtcdBackup) { b.Spec.DeletionPolicy = hyperv1.DeleteBackup })
			w.backsUp(asked)
			w.passes(asked)
			<-w.events
			w.must(api.Delete(t.Context(), asked))
			g.Expect(w.passes(asked)).To(HavePrefix("True/"), "it must not go before what is stored")
			said := map[batchv1.JobConditionType]string{batchv1.JobFailed: "Error: bucket backups refuses the credentials"}[how]
			w.ends(w.job(removalName(asked)), how, said)
			g.Expect(w.passes(asked)).To(ContainSubstring("not found"))
		}
		g.Expect(<-w.events).To(And(ContainSubstring("BackupLeft "), ContainSubstring("s3://backups/demo/x was left where it is: bucket backups refuses")))
	})
	t.Run("When there is a schedule, it should create one backup per time and delete old ones", func(t *testing.T) {
		g, w := NewWithT(t), newWorld(t, api)
		w.hcp.Spec.Etcd.Managed.AutomatedBackup = &hyperv1.AutomatedEtcdBackupConfig{
			Schedule: "0 */6 * * *", Retention: 2, EncryptionKey: hyperv1.SecretReference{Name: "key"},
			Storage: hyperv1.AutomatedEtcdBackupStorage{Type: "PVC", PVC: &hyperv1.HCPEtcdBackupPVC{ClaimName: "backups"}},
		}
		w.must(api.Update(t.Context(), w.hcp))
		// The schedule counts from this time. If the control plane was created after a due time that the fake clock has not
		// reached yet, that time is skipped.
		w.clock.SetTime(w.hcp.CreationTimestamp.Time)
		var names []string
		for range 4 {
			w.clock.SetTime(w.clock.Now().Add(6 * time.Hour))
			w.schedules()
			list := w.list()
			for i := range list {
				if !over(&list[i]) {
					names = append(names, list[i].Name)
					w.backsUp(&list[i])
					w.passes(&list[i])
				}
			}
		}
		g.Expect(slices.Compact(slices.Clone(names))).To(HaveLen(4))
		left := w.list()
		var live []string
		for i := range left {
			if left[i].DeletionTimestamp.IsZero() {
				live = append(live, left[i].Name)
			}
		}
		g.Expect(live).To(ConsistOf(names[2], names[3]))
		g.Expect(left[0].Spec.Storage.PVC.ClaimName).To(Equal("backups"))
	})
	t.Run("When the schedule is invalid, it should say so", func(t *testing.T) {
		g, w := NewWithT(t), newWorld(t, api)
		w.hcp.Spec.Etcd.Managed.AutomatedBackup = &hyperv1.AutomatedEtcdBackupConfig{
			Schedule: "0 99 * * *", EncryptionKey: hyperv1.SecretReference{Name: "key"},
			Storage: hyperv1.AutomatedEtcdBackupStorage{Type: "PVC", PVC: &hyperv1.HCPEtcdBackupPVC{ClaimName: "backups"}},
		}
		w.must(api.Update(t.Context(), w.hcp))
		w.schedules()
		w.must(api.Get(t.Context(), client.ObjectKeyFromObject(w.hcp), w.hcp))
		g.Expect(w.succeeded()).To(HavePrefix(`False/BackupFailed: spec.etcd.managed.automatedBackup.schedule "0 99 * * *" is not a cron schedule`))
	})
}

func (w *world) schedules() {
	w.t.Helper()
	for range 2 {
		_, err := w.scheduler.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.hcp)})
		w.must(err)
	}
}

func (w *world) list() []hyperv1.HCPEtcdBackup {
	w.t.Helper()
	list := &hyperv1.HCPEtcdBackupList{}
	w.must(w.client.List(w.t.Context(), list, client.InNamespace(namespace)))
	return list.Items
}
