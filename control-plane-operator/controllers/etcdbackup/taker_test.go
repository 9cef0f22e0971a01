// SPDX-License-Identifier: Apache-2.0

package etcdbackup

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/backup"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/addressguard"
	"github.com/openshift/hypershift/support/managementnetwork"
	"github.com/openshift/hypershift/support/objectstore"
	"github.com/openshift/hypershift/support/testenv"
)

var errAway = errors.New("the API server is away")

func requestOf(obj client.Object) ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKeyFromObject(obj)}
}

// desk is a hosted namespace in a fake API server, with one requested backup.
type desk struct {
	t      *testing.T
	g      Gomega
	client client.WithWatch
	clock  *clocktesting.FakePassiveClock
	events *events.FakeRecorder
	taker  *Reconciler
	asked  *hyperv1.HCPEtcdBackup
}

// serving returns a control plane whose etcd serves.
func serving() *hyperv1.HostedControlPlane {
	hcp := fixture.ControlPlane()
	hcp.UID = "plane"
	hcp.Status.Conditions = []metav1.Condition{{Type: string(hyperv1.EtcdAvailable), Status: metav1.ConditionTrue, Reason: "AsExpected"}}
	return hcp
}

func newDesk(t *testing.T, asked *hyperv1.HCPEtcdBackup, objects ...client.Object) *desk {
	t.Helper()
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	asked.UID, asked.CreationTimestamp = "asked", metav1.NewTime(noon)
	objects = append(objects, asked, secret("key", "recipients", key.Recipient().String()), secret("s3", "credentials", "x"), secret("root-ca", "tls.key", "CA"))
	c := fake.NewClientBuilder().WithScheme(fixture.Scheme()).WithObjects(objects...).
		WithStatusSubresource(&hyperv1.HostedControlPlane{}, &hyperv1.HCPEtcdBackup{}, &batchv1.Job{}).Build()
	d := &desk{t: t, g: NewWithT(t), client: c, clock: clocktesting.NewFakePassiveClock(noon), events: events.NewFakeRecorder(100), asked: asked}
	d.taker = &Reconciler{Client: c, Live: c, Clock: d.clock, Events: d.events, Image: "registry.example/hypershift"}
	return d
}

// pass runs the controller, and returns the condition.
func (d *desk) pass() string {
	d.t.Helper()
	_, err := d.taker.Reconcile(d.t.Context(), requestOf(d.asked))
	d.g.Expect(err).NotTo(HaveOccurred())
	return d.says()
}

func (d *desk) says() string {
	d.t.Helper()
	if err := d.client.Get(d.t.Context(), client.ObjectKeyFromObject(d.asked), d.asked); err != nil {
		return err.Error()
	}
	c := meta.FindStatusCondition(d.asked.Status.Conditions, hyperv1.HCPEtcdBackupCompleted)
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s/%s: %s", c.Status, c.Reason, c.Message)
}

// job returns the Job with the given name; nil if there is none.
func (d *desk) job(name string) *batchv1.Job {
	d.t.Helper()
	job := &batchv1.Job{}
	err := d.client.Get(d.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, job)
	d.g.Expect(client.IgnoreNotFound(err)).To(Succeed())
	if err != nil {
		return nil
	}
	return job
}

func (d *desk) ends(name string, how batchv1.JobConditionType, why string) {
	d.t.Helper()
	job := d.job(name)
	job.Status.Conditions = []batchv1.JobCondition{{Type: how, Status: corev1.ConditionTrue, Message: why}}
	d.g.Expect(d.client.Status().Update(d.t.Context(), job)).To(Succeed())
}

// toVolume returns a backup on a volume that is deleted with its object.
func toVolume() *hyperv1.HCPEtcdBackup {
	asked := backupOf("mine")
	asked.Spec.Storage = hyperv1.HCPEtcdBackupStorage{StorageType: hyperv1.PVCBackupStorage, PVC: hyperv1.HCPEtcdBackupPVC{ClaimName: "backups"}}
	asked.Spec.DeletionPolicy = hyperv1.DeleteBackup
	return asked
}

// volumes maps the mount paths of a pod to a short description of their content.
func volumes(pod corev1.PodSpec) map[string]string {
	sources := map[string]string{}
	for _, v := range pod.Volumes {
		switch {
		case v.Secret != nil:
			sources[v.Name] = "Secret " + v.Secret.SecretName
		case v.ConfigMap != nil:
			sources[v.Name] = "ConfigMap " + v.ConfigMap.Name
		case v.PersistentVolumeClaim != nil:
			sources[v.Name] = "claim " + v.PersistentVolumeClaim.ClaimName
		case v.EmptyDir != nil:
			sources[v.Name] = "scratch"
		}
	}
	mounts := map[string]string{}
	for _, m := range pod.Containers[0].VolumeMounts {
		mounts[m.MountPath] = sources[m.Name] + map[bool]string{true: "", false: ", written"}[m.ReadOnly]
	}
	return mounts
}

func TestPodsOfBackups(t *testing.T) {
	placed := serving()
	placed.Spec.NodeSelector = map[string]string{"pool": "control-planes"}
	placed.Spec.Tolerations = []corev1.Toleration{{Key: "reserved", Operator: corev1.TolerationOpExists}}
	t.Run("When a backup is taken, its Pod should have only what the backup needs", func(t *testing.T) {
		d := newDesk(t, backupOf("mine"), placed.DeepCopy())
		d.taker.PodUID, d.taker.Env = ptr.To[int64](1042), []corev1.EnvVar{{Name: "HTTPS_PROXY", Value: "http://proxy"}}
		d.pass()
		job := d.job("etcd-backup-asked")
		pod := job.Spec.Template.Spec
		d.g.Expect(metav1.IsControlledBy(job, d.asked)).To(BeTrue())
		d.g.Expect(volumes(pod)).To(Equal(map[string]string{
			"/etc/backup/task": "Secret etcd-backup-asked", "/etc/backup/credentials": "Secret s3", "/etc/backup/etcd": "Secret etcd-client-tls",
			"/etc/backup/etcd-ca": "ConfigMap etcd-ca", "/etc/backup/signer": "Secret backup-signer",
			"/var/tmp/backup": "scratch, written", managementnetwork.MountDir: "ConfigMap " + managementnetwork.ConfigMap,
		}))
		d.g.Expect(pod.NodeSelector).To(Equal(placed.Spec.NodeSelector))
		d.g.Expect(pod.Tolerations).To(Equal(placed.Spec.Tolerations))
		d.g.Expect(pod.Containers[0].Env).To(ConsistOf(HaveField("Name", "HTTPS_PROXY"),
			HaveField("Name", objectstore.EnvHostIP), HaveField("Name", addressguard.EnvFile)))
		d.g.Expect(*pod.SecurityContext.RunAsUser).To(Equal(int64(1042)))
		d.g.Expect(*pod.SecurityContext.FSGroup).To(Equal(int64(1042)), "or it could not read the Secrets")
		restricted := pod.Containers[0].SecurityContext
		d.g.Expect([]bool{*pod.SecurityContext.RunAsNonRoot, *restricted.ReadOnlyRootFilesystem, *restricted.AllowPrivilegeEscalation}).To(Equal([]bool{true, true, false}))
		d.g.Expect(restricted.Capabilities.Drop).To(ConsistOf(corev1.Capability("ALL")))
		d.g.Expect(pod.SecurityContext.SeccompProfile.Type).To(Equal(corev1.SeccompProfileTypeRuntimeDefault))
		d.g.Expect(pod.RestartPolicy).To(Equal(corev1.RestartPolicyNever), "a pod that fails keeps its last words")
		d.g.Expect(*job.Spec.BackoffLimit).To(Equal(int32(2)), "three attempts")
		d.g.Expect(time.Duration(*job.Spec.ActiveDeadlineSeconds) * time.Second).To(Equal(backup.Deadline))
		d.g.Expect(job.Spec.Template.Labels).To(HaveKeyWithValue(hyperv1.NeedManagementKASAccessLabel, "true"))
		d.g.Expect(job.Spec.Template.Labels).To(HaveKeyWithValue(hyperv1.ControlPlaneNamespaceLabel, namespace))
		d.g.Expect(job.Labels).To(HaveKeyWithValue(hyperv1.ManagedByLabel, "control-plane-operator"))
		d.g.Expect(pod.Containers[0].Name).NotTo(BeEmpty(), "an API server refuses it")
	})
	t.Run("When backup Pods run, they should only be allowed to get backups and patch their status", func(t *testing.T) {
		d := newDesk(t, backupOf("mine"), serving())
		d.pass()
		key := client.ObjectKey{Namespace: namespace, Name: "etcd-backup"}
		role, binding, account := &rbacv1.Role{}, &rbacv1.RoleBinding{}, &corev1.ServiceAccount{}
		for _, obj := range []client.Object{role, binding, account} {
			d.g.Expect(d.client.Get(t.Context(), key, obj)).To(Succeed())
		}
		var rights []string
		for _, rule := range role.Rules {
			rights = append(rights, fmt.Sprintf("%s %s %s", rule.APIGroups, rule.Resources, rule.Verbs))
		}
		d.g.Expect(rights).To(ConsistOf("[hypershift.openshift.io] [hcpetcdbackups] [get]", "[hypershift.openshift.io] [hcpetcdbackups/status] [patch]"))
		d.g.Expect(binding.RoleRef.Name).To(Equal(role.Name))
		d.g.Expect(binding.Subjects).To(Equal([]rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: account.Name}}))
		d.g.Expect(d.job("etcd-backup-asked").Spec.Template.Spec.ServiceAccountName).To(Equal(account.Name))
		d.g.Expect(account.ImagePullSecrets).To(ConsistOf(HaveField("Name", "pull-secret")))
	})
	t.Run("When a stored backup is removed, the Pod should have no access to etcd and a short deadline", func(t *testing.T) {
		asked := toVolume()
		asked.Finalizers = []string{Finalizer}
		d := newDesk(t, asked, placed.DeepCopy())
		d.g.Expect(d.client.Delete(t.Context(), d.asked)).To(Succeed())
		d.pass()
		job := d.job("etcd-backup-rm-asked")
		d.g.Expect(volumes(job.Spec.Template.Spec)).To(Equal(map[string]string{
			"/etc/backup/task": "Secret etcd-backup-rm-asked", "/var/lib/backup": "claim backups, written",
		}))
		d.g.Expect(job.Spec.Template.Spec.NodeSelector).To(Equal(placed.Spec.NodeSelector))
		d.g.Expect(time.Duration(*job.Spec.ActiveDeadlineSeconds) * time.Second).To(BeNumerically("<", backup.Deadline))
		handed := &corev1.Secret{}
		d.g.Expect(d.client.Get(t.Context(), client.ObjectKeyFromObject(job), handed)).To(Succeed())
		task, err := backup.ReadTask(handed.Data[backup.TaskFile])
		d.g.Expect(err).NotTo(HaveOccurred())
		d.g.Expect(task.Delete).To(BeTrue())
		d.g.Expect(task.Object).To(Equal("clusters-demo/20261120T120000Z-mine.tar.gz.age"), "where it was stored")
		d.g.Expect(task.Contents.Secrets).To(BeEmpty(), "no key is needed for it")
	})
	t.Run("When the operator does not know its image, it should create no Job", func(t *testing.T) {
		d := newDesk(t, backupOf("mine"), serving())
		d.taker.Image = ""
		_, err := d.taker.Reconcile(t.Context(), requestOf(d.asked))
		d.g.Expect(err).To(MatchError(ContainSubstring("does not know its own image")))
		d.g.Expect(d.job("etcd-backup-asked")).To(BeNil())
	})
}

func TestEndsOfBackups(t *testing.T) {
	begun := func(t *testing.T) *desk {
		t.Helper()
		d := newDesk(t, backupOf("mine"), serving())
		d.g.Expect(d.pass()).To(HavePrefix("Unknown/BackupInProgress"))
		return d
	}
	t.Run("When a Job already exists, it should adopt the Job's start time and create no Secret", func(t *testing.T) {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "etcd-backup-asked", CreationTimestamp: metav1.NewTime(noon.Add(time.Minute))}}
		d := newDesk(t, backupOf("mine"), serving(), job)
		d.g.Expect(d.pass()).To(HavePrefix("Unknown/BackupInProgress"))
		d.g.Expect(d.asked.Status.StartTime.Time.Equal(noon.Add(time.Minute))).To(BeTrue())
		d.g.Expect(d.client.Get(t.Context(), client.ObjectKeyFromObject(job), &corev1.Secret{})).NotTo(Succeed(), "it has its task")
	})
	t.Run("When the Job completes without a recorded result, the backup should fail", func(t *testing.T) {
		d := begun(t)
		d.ends("etcd-backup-asked", batchv1.JobComplete, "")
		d.g.Expect(d.pass()).To(Equal("False/BackupFailed: The Job ended without saying what it stored"))
	})
	t.Run("When the cache lags behind the status, it should wait instead of failing", func(t *testing.T) {
		d := begun(t)
		d.ends("etcd-backup-asked", batchv1.JobComplete, "")
		ahead := d.asked.DeepCopy()
		ahead.Status.SHA256 = "abc"
		d.taker.Live = testenv.Intercept(d.client, func(r testenv.Request) error {
			ahead.DeepCopyInto(r.Of.(*hyperv1.HCPEtcdBackup))
			return nil
		})
		d.g.Expect(d.pass()).To(HavePrefix("Unknown/BackupInProgress"))
		d.g.Expect(d.job("etcd-backup-asked")).NotTo(BeNil())
		d.g.Expect(d.client.Get(t.Context(), client.ObjectKeyFromObject(d.asked), d.asked)).To(Succeed())
		d.asked.Status.SHA256, d.asked.Status.Size = "abc", 7
		d.g.Expect(d.client.Status().Update(t.Context(), d.asked)).To(Succeed())
		d.g.Expect(d.pass()).To(HavePrefix("True/BackupSucceeded: Stored, read back and found complete: 7 bytes"))
	})
	t.Run("When a Job fails without a message from its Pods, it should report the Job's message", func(t *testing.T) {
		d := begun(t)
		d.ends("etcd-backup-asked", batchv1.JobFailed, "Job was active longer than specified deadline")
		d.g.Expect(d.pass()).To(Equal("False/BackupFailed: Job was active longer than specified deadline"))
		d.g.Expect(d.asked.Status.CompletionTime.Time.Equal(noon)).To(BeTrue())
		d.clock.SetTime(noon.Add(time.Hour))
		for range 2 {
			d.pass()
		}
		d.g.Expect(d.asked.Status.CompletionTime.Time.Equal(noon)).To(BeTrue(), "it is over once")
		d.g.Expect(d.job("etcd-backup-asked")).To(BeNil())
		d.g.Expect(d.events.Events).To(HaveLen(1))
	})
	t.Run("When the Pods of a failed Job cannot be read, it should retry before it reports the failure", func(t *testing.T) {
		d := begun(t)
		d.ends("etcd-backup-asked", batchv1.JobFailed, "BackoffLimitExceeded")
		d.taker.Live = testenv.Intercept(d.client, func(testenv.Request) error { return errAway })
		_, err := d.taker.Reconcile(t.Context(), requestOf(d.asked))
		d.g.Expect(err).To(MatchError(errAway))
		d.g.Expect(d.says()).To(HavePrefix("Unknown/BackupInProgress"))
		d.taker.Live = d.client
		d.g.Expect(d.pass()).To(Equal("False/BackupFailed: BackoffLimitExceeded"))
	})
	t.Run("When several Pods of a Job have messages, it should report the last one", func(t *testing.T) {
		d := begun(t)
		said := func(name, job, message string, at time.Time) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{batchv1.JobNameLabel: job}}}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: message, FinishedAt: metav1.NewTime(at)}}}}
			d.g.Expect(d.client.Create(t.Context(), pod)).To(Succeed())
		}
		said("a", "etcd-backup-asked", "Error: second", noon.Add(2*time.Minute))
		said("b", "etcd-backup-asked", "Error: first", noon.Add(time.Minute))
		said("c", "etcd-backup-asked", "", noon.Add(3*time.Minute))
		said("d", "another", "Error: another's", noon.Add(4*time.Minute))
		d.ends("etcd-backup-asked", batchv1.JobFailed, "BackoffLimitExceeded")
		d.g.Expect(d.pass()).To(Equal("False/BackupFailed: second"))
	})
	t.Run("When a KMS key encrypts the bucket, the status should name the key once the backup is stored", func(t *testing.T) {
		asked := backupOf("mine")
		asked.Spec.Storage.S3.KMSKeyARN = "arn:aws:kms:eu:1:key/2"
		failed := newDesk(t, asked.DeepCopy(), serving())
		failed.pass()
		failed.ends("etcd-backup-asked", batchv1.JobFailed, "full")
		failed.g.Expect(failed.pass()).To(HavePrefix("False/BackupFailed"))
		failed.g.Expect(failed.asked.Status.EncryptionMetadata.AWS.KMSKeyARN).To(BeEmpty(), "nothing is stored")
		d := newDesk(t, asked, serving())
		d.pass()
		d.g.Expect(d.asked.Status.EncryptionMetadata.AWS.KMSKeyARN).To(BeEmpty())
		d.asked.Status.SHA256 = "abc"
		d.g.Expect(d.client.Status().Update(t.Context(), d.asked)).To(Succeed())
		d.ends("etcd-backup-asked", batchv1.JobComplete, "")
		d.pass()
		d.g.Expect(d.asked.Status.EncryptionMetadata.AWS.KMSKeyARN).To(Equal("arn:aws:kms:eu:1:key/2"))
	})
	t.Run("When a message is very long, it should truncate the message", func(t *testing.T) {
		d := begun(t)
		d.ends("etcd-backup-asked", batchv1.JobFailed, strings.Repeat("x", 40000))
		d.g.Expect(len(d.pass())).To(BeNumerically("<", 1100))
	})
}

func TestDeletionOfBackups(t *testing.T) {
	leaving := func(t *testing.T, edit func(*hyperv1.HCPEtcdBackup), objects ...client.Object) *desk {
		t.Helper()
		asked := toVolume()
		asked.Finalizers = []string{Finalizer}
		edit(asked)
		d := newDesk(t, asked, objects...)
		d.g.Expect(d.client.Delete(t.Context(), d.asked)).To(Succeed())
		return d
	}
	job := func(name string, finalizers ...string) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Finalizers: finalizers}}
	}
	t.Run("When a backup in progress is deleted, it should stop its Job before it removes the stored file", func(t *testing.T) {
		d := leaving(t, func(*hyperv1.HCPEtcdBackup) {}, serving(), job("etcd-backup-asked", "foregroundDeletion"))
		for range 2 {
			d.pass()
		}
		making := d.job("etcd-backup-asked")
		d.g.Expect(making.DeletionTimestamp).NotTo(BeNil())
		d.g.Expect(d.job("etcd-backup-rm-asked")).To(BeNil(), "its pod may still store something")
		making.Finalizers = nil
		d.g.Expect(d.client.Update(t.Context(), making)).To(Succeed())
		d.pass()
		d.g.Expect(d.job("etcd-backup-rm-asked")).NotTo(BeNil())
		for range 2 {
			d.pass()
		}
		d.ends("etcd-backup-rm-asked", batchv1.JobComplete, "")
		d.g.Expect(d.pass()).To(ContainSubstring("not found"))
		d.g.Expect(d.events.Events).To(BeEmpty(), "nothing was left")
		d.g.Expect(d.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "etcd-backup-rm-asked"}, &corev1.Secret{})).NotTo(Succeed())
	})
	for name, tc := range map[string]struct {
		edit  func(*hyperv1.HCPEtcdBackup)
		plane []client.Object
	}{
		"has no policy Delete":                             {func(b *hyperv1.HCPEtcdBackup) { b.Spec.DeletionPolicy = "" }, []client.Object{serving()}},
		"has policy Delete, and the control plane is gone": {func(*hyperv1.HCPEtcdBackup) {}, nil},
	} {
		t.Run("When the stored backup "+name+", it should delete the object at once", func(t *testing.T) {
			d := leaving(t, tc.edit, tc.plane...)
			d.g.Expect(d.pass()).To(ContainSubstring("not found"))
			d.g.Expect(d.job("etcd-backup-rm-asked")).To(BeNil())
		})
	}
	for name, tc := range map[string]struct {
		verb    string
		objects []client.Object
	}{
		"its Job cannot be deleted":                 {"delete", []client.Object{serving(), job("etcd-backup-asked")}},
		"the Job that removes it cannot be created": {"create", []client.Object{serving()}},
	} {
		t.Run("When "+name+", it should keep the object for the next attempt and remove nothing", func(t *testing.T) {
			d := leaving(t, func(*hyperv1.HCPEtcdBackup) {}, tc.objects...)
			d.taker.Client = testenv.Intercept(d.client, func(r testenv.Request) error {
				if r.Verb == tc.verb {
					return errAway
				}
				return r.Do()
			})
			_, err := d.taker.Reconcile(t.Context(), requestOf(d.asked))
			d.g.Expect(err).To(MatchError(errAway))
			d.says()
			d.g.Expect(d.asked.Finalizers).To(ConsistOf(Finalizer))
			d.g.Expect(d.job("etcd-backup-rm-asked")).To(BeNil())
		})
	}
	t.Run("When the stored file cannot be removed, it should delete the object and emit an event", func(t *testing.T) {
		d := leaving(t, func(b *hyperv1.HCPEtcdBackup) { b.Status.SnapshotURL = "pvc://backups/x" }, serving())
		d.pass()
		d.ends("etcd-backup-rm-asked", batchv1.JobFailed, "DeadlineExceeded")
		d.g.Expect(d.pass()).To(ContainSubstring("not found"))
		d.g.Expect(<-d.events.Events).To(ContainSubstring("pvc://backups/x was left where it is: DeadlineExceeded"))
	})
}
