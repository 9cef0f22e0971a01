// SPDX-License-Identifier: Apache-2.0

package etcdbackup

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/support/testenv"
)

func TestUnhealthy(t *testing.T) {
	of := func(conditions ...metav1.Condition) *hyperv1.HostedControlPlane {
		return &hyperv1.HostedControlPlane{Status: hyperv1.HostedControlPlaneStatus{Conditions: conditions}}
	}
	is := func(t hyperv1.ConditionType, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: string(t), Status: status, Reason: reason, Message: "says " + string(t)}
	}
	up := is(hyperv1.EtcdAvailable, metav1.ConditionTrue, "")
	for name, tc := range map[string]struct {
		hcp  *hyperv1.HostedControlPlane
		want string
	}{
		"etcd was not checked":                 {of(), "it has not started yet"},
		"only its members were checked":        {of(is(hyperv1.EtcdMembersHealthy, metav1.ConditionTrue, "")), "it has not started yet"},
		"it serves":                            {of(up), ""},
		"it is not available":                  {of(is(hyperv1.EtcdAvailable, metav1.ConditionFalse, "")), "says EtcdAvailable"},
		"its state is unknown":                 {of(is(hyperv1.EtcdAvailable, metav1.ConditionUnknown, "")), "says EtcdAvailable"},
		"one of its members is down":           {of(up, is(hyperv1.EtcdMembersHealthy, metav1.ConditionFalse, "MembersUnhealthy")), ""},
		"it has lost its quorum":               {of(up, is(hyperv1.EtcdMembersHealthy, metav1.ConditionFalse, hyperv1.EtcdQuorumLostReason)), "says EtcdMembersHealthy"},
		"it waits for a quorum":                {of(up, is(hyperv1.EtcdMembersHealthy, metav1.ConditionFalse, hyperv1.EtcdWaitingForQuorumReason)), "says EtcdMembersHealthy"},
		"it lost its quorum and has recovered": {of(up, is(hyperv1.EtcdMembersHealthy, metav1.ConditionTrue, hyperv1.EtcdQuorumLostReason)), ""},
	} {
		t.Run("When "+name+" it should return what keeps a snapshot from being taken", func(t *testing.T) {
			NewWithT(t).Expect(unhealthy(tc.hcp)).To(Equal(tc.want))
		})
	}
	for status, want := range map[metav1.ConditionStatus]string{metav1.ConditionFalse: "says EtcdDataEncryptionUpToDate", metav1.ConditionTrue: "", metav1.ConditionUnknown: ""} {
		t.Run("When the condition that all data is encrypted with one key is "+string(status)+" it should return whether a key migration is running", func(t *testing.T) {
			NewWithT(t).Expect(moving(of(is(hyperv1.EtcdDataEncryptionUpToDate, status, "")))).To(Equal(want))
		})
	}
}

// TestWhatIsInTheWay checks what the controller does about each cause that can keep a backup from starting.
func TestWhatIsInTheWay(t *testing.T) {
	plane := func(edit func(*hyperv1.HostedControlPlane)) client.Object {
		hcp := serving()
		edit(hcp)
		return hcp
	}
	of := func(uid types.UID, name string, ended bool) client.Object {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "job-" + name, Labels: map[string]string{"app": appLabel}, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "hypershift.openshift.io/v1beta1", Kind: "HCPEtcdBackup", Name: name, UID: uid, Controller: ptr.To(true)}}}}
		if ended {
			job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
		}
		return job
	}
	orphan := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "orphan", Labels: map[string]string{"app": appLabel}}}
	going := plane(func(hcp *hyperv1.HostedControlPlane) {
		hcp.Finalizers, hcp.DeletionTimestamp = []string{"test/held"}, &metav1.Time{Time: noon}
	})
	for name, tc := range map[string]struct {
		edit    func(*hyperv1.HCPEtcdBackup)
		objects []client.Object
		want    string
	}{
		"there is no control plane":          {nil, nil, "False/EtcdUnhealthy: The namespace has no HostedControlPlane, or it is being deleted"},
		"the control plane is being deleted": {nil, []client.Object{going}, "False/EtcdUnhealthy: The namespace has no HostedControlPlane, or it is being deleted"},
		"the user provides the etcd":         {nil, []client.Object{plane(func(hcp *hyperv1.HostedControlPlane) { hcp.Spec.Etcd.ManagementType = hyperv1.Unmanaged })}, "False/BackupFailed: The etcd of this cluster is unmanaged"},
		"the cluster is paused":              {nil, []client.Object{plane(func(hcp *hyperv1.HostedControlPlane) { hcp.Spec.PausedUntil = ptr.To("true") })}, "False/Paused: "},
		"the cluster was paused":             {nil, []client.Object{plane(func(hcp *hyperv1.HostedControlPlane) { hcp.Spec.PausedUntil = ptr.To("2020-01-01T00:00:00Z") })}, "Unknown/BackupInProgress: The backup is being taken"},
		"another backup is in progress":      {nil, []client.Object{serving(), of("another", "first", false)}, "False/BackupAlreadyInProgress: Waiting for backup first"},
		"another backup has ended":           {nil, []client.Object{serving(), of("another", "first", true)}, "Unknown/BackupInProgress: The backup is being taken"},
		"a Job of the same backup runs":      {nil, []client.Object{serving(), of("asked", "mine", false)}, "Unknown/BackupInProgress: The backup is being taken"},
		"a Job has no owner":                 {nil, []client.Object{serving(), orphan}, "Unknown/BackupInProgress: The backup is being taken"},
		"the credentials are missing": {func(b *hyperv1.HCPEtcdBackup) { b.Spec.Storage.S3.Credentials.Name = "lost" }, []client.Object{serving()},
			"Unknown/BackupInProgress: Waiting: spec.storage.s3.credentials: there is no Secret clusters-demo/lost: create it"},
		"the encryption keys are missing": {func(b *hyperv1.HCPEtcdBackup) { b.Spec.EncryptionKey.Name = "lost" }, []client.Object{serving()},
			"Unknown/BackupInProgress: Waiting: spec.encryptionKey: there is no Secret clusters-demo/lost: create it"},
	} {
		t.Run("When "+name+" it should report the cause or start the backup", func(t *testing.T) {
			asked := backupOf("mine")
			if tc.edit != nil {
				tc.edit(asked)
			}
			d := newDesk(t, asked, tc.objects...)
			d.g.Expect(d.pass()).To(HavePrefix(tc.want))
			d.g.Expect(d.job("etcd-backup-asked") != nil).To(Equal(strings.HasSuffix(tc.want, "being taken")))
		})
	}
	t.Run("When the deadline has not passed, it should wait; after the deadline, it should fail", func(t *testing.T) {
		d := newDesk(t, backupOf("mine"))
		d.clock.SetTime(noon.Add(time.Hour))
		d.g.Expect(d.pass()).To(HavePrefix("False/EtcdUnhealthy"))
		d.clock.SetTime(noon.Add(time.Hour + time.Nanosecond))
		d.g.Expect(d.pass()).To(HavePrefix("False/BackupFailed: It could not begin within 1h0m0s: The namespace has no HostedControlPlane"))
		d.g.Expect(d.client.Create(t.Context(), serving())).To(Succeed())
		d.g.Expect(d.pass()).To(HavePrefix("False/BackupFailed"), "who wants one asks again")
	})
}

func TestWhatIsMissingForTooLong(t *testing.T) {
	asked := backupOf("mine")
	asked.Spec.EncryptionKey.Name = "lost"
	d := newDesk(t, asked, serving())
	d.clock.SetTime(noon.Add(time.Hour))
	d.g.Expect(d.pass()).To(HavePrefix("Unknown/BackupInProgress: Waiting: spec.encryptionKey"))
	d.clock.SetTime(noon.Add(time.Hour + time.Nanosecond))
	d.g.Expect(d.pass()).To(HavePrefix("False/BackupFailed: It could not begin within 1h0m0s: spec.encryptionKey"))
}

// TestCutOff checks that the next reconcile recovers if any call fails while a backup starts, and that one Job takes
// the backup.
func TestCutOff(t *testing.T) {
	for _, after := range []bool{false, true} {
		reached := true
		for number := 0; reached; number++ {
			d := newDesk(t, backupOf("mine"), serving())
			calls := 0
			d.taker.Client = testenv.Intercept(d.client, func(r testenv.Request) error {
				if r.Writes() {
					calls++
				}
				if !r.Writes() || calls-1 != number {
					return r.Do()
				}
				if after {
					_ = r.Do()
				}
				return errAway
			})
			_, err := d.taker.Reconcile(t.Context(), requestOf(d.asked))
			if reached = calls > number; reached {
				d.g.Expect(err).To(MatchError(errAway), "call %d", number)
			}
			d.taker.Client = d.client
			d.g.Expect(d.pass()).To(Equal("Unknown/BackupInProgress: The backup is being taken"), "call %d", number)
			d.g.Expect(d.asked.Finalizers).To(ConsistOf(Finalizer))
			jobs := &batchv1.JobList{}
			d.g.Expect(d.client.List(t.Context(), jobs)).To(Succeed())
			d.g.Expect(jobs.Items).To(HaveLen(1))
			for _, obj := range []client.Object{&corev1.ServiceAccount{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}} {
				d.g.Expect(d.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: appLabel}, obj)).To(Succeed())
			}
			d.g.Expect(d.client.Get(t.Context(), client.ObjectKeyFromObject(&jobs.Items[0]), &corev1.Secret{})).To(Succeed())
		}
	}
}

func TestHeader(t *testing.T) {
	of := func(edit func(*hyperv1.HostedControlPlane)) *hyperv1.HostedControlPlane {
		hcp := serving()
		edit(hcp)
		return hcp
	}
	t.Run("When the control plane belongs to a HostedCluster, it should use the HostedCluster's name", func(t *testing.T) {
		g, h := NewWithT(t), header(of(func(hcp *hyperv1.HostedControlPlane) {
			hcp.Annotations = map[string]string{hyperv1.HostedClusterAnnotation: "clusters/prod"}
			hcp.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "fd00::1", Port: 6443}
			hcp.Status.VersionStatus = &hyperv1.ClusterVersionStatus{}
		}))
		g.Expect([]string{h.Namespace, h.Name, h.HostedNamespace, h.APIServer}).To(Equal([]string{"clusters", "prod", namespace, "[fd00::1]:6443"}))
		g.Expect(h.KubernetesVersion).To(BeEmpty())
	})
	t.Run("When there are several versions, it should use the newest", func(t *testing.T) {
		history := []configv1.UpdateHistory{{Version: "1.37.0"}, {Version: "1.36.3"}}
		for n, want := range map[int]string{1: "1.36.3", 2: "1.37.0"} {
			h := header(of(func(hcp *hyperv1.HostedControlPlane) {
				hcp.Status.VersionStatus = &hyperv1.ClusterVersionStatus{History: history[2-n:]}
			}))
			NewWithT(t).Expect(h.KubernetesVersion).To(Equal(want))
		}
	})
	t.Run("When the HostedCluster is unknown, it should use the name of the control plane and no endpoint", func(t *testing.T) {
		g, h := NewWithT(t), header(of(func(hcp *hyperv1.HostedControlPlane) {
			hcp.Annotations = map[string]string{hyperv1.HostedClusterAnnotation: "prod"}
		}))
		g.Expect([]string{h.Namespace, h.Name, h.HostedNamespace, h.APIServer}).To(Equal([]string{"", "demo", namespace, ""}))
	})
}

// TestMachines checks that a backup contains the machines of the cluster, so that a restore finds them.
func TestMachines(t *testing.T) {
	machine := func(apiVersion, kind, namespace string) client.Object {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion(apiVersion)
		u.SetKind(kind)
		u.SetNamespace(namespace)
		u.SetName("one")
		return u
	}
	d := newDesk(t, backupOf("mine"), serving(),
		machine("cluster.x-k8s.io/v1beta2", "Machine", namespace), machine("infrastructure.cluster.x-k8s.io/v1beta1", "MaasMachine", namespace),
		machine("infrastructure.cluster.x-k8s.io/v1beta1", "MaasCluster", namespace), machine("cluster.x-k8s.io/v1beta2", "Machine", "clusters-other"))
	hcp := serving()
	hcp.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "somebody"}}
	contents, err := d.taker.contents(t.Context(), hcp)
	d.g.Expect(err).NotTo(HaveOccurred())
	kinds := []string{}
	for _, object := range contents.Objects {
		kinds = append(kinds, object.GetKind()+" of "+object.GetNamespace())
		d.g.Expect(object.GetManagedFields()).To(BeEmpty(), object.GetKind())
	}
	d.g.Expect(kinds).To(Equal([]string{"HostedControlPlane of clusters-demo", "Machine of clusters-demo", "MaasMachine of clusters-demo", "MaasCluster of clusters-demo"}))

	d.taker.Live = testenv.Intercept(d.client, func(testenv.Request) error { return errAway })
	d.g.Expect(d.pass()).To(Equal("Unknown/BackupInProgress: Waiting: listing Machines of namespace clusters-demo: the API server is away"),
		"a backup without them would be taken for a whole one")
	d.g.Expect(d.job("etcd-backup-asked")).To(BeNil())
}

func TestKept(t *testing.T) {
	plain, encrypted := serving(), serving()
	encrypted.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC, AESCBC: &hyperv1.AESCBCSpec{
		ActiveKey: corev1.LocalObjectReference{Name: "new-key"}, BackupKey: &corev1.LocalObjectReference{Name: "old-key"},
	}}
	for _, tc := range []struct {
		secret           string
		plain, encrypted bool
	}{
		{"new-key", false, true}, {"old-key", false, true},
		{"kas-server-crt", false, false}, {"admin-kubeconfig", false, false}, {"pull-secret", false, false}, {"s3", false, false}, {"key", false, false},
	} {
		t.Run("When a Secret is "+tc.secret+" it should be in a backup only if the snapshot is useless without it", func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(kept(plain, secret(tc.secret, "", ""))).To(Equal(tc.plain))
			g.Expect(kept(encrypted, secret(tc.secret, "", ""))).To(Equal(tc.encrypted))
		})
	}
}

// TestEachSignerIsKept checks that a backup contains all signers except the ones for break-glass certificates. Without
// a signer, everything that it signed would have to be issued again. Break-glass certificates have to be requested
// again anyway.
func TestEachSignerIsKept(t *testing.T) {
	for _, name := range pki.Signers() {
		breakGlass := name == pki.CustomerBreakGlassSigner || name == pki.SREBreakGlassSigner
		NewWithT(t).Expect(kept(serving(), secret(name, "", ""))).To(Equal(!breakGlass), name)
	}
}

func TestComplaint(t *testing.T) {
	for log, want := range map[string]string{
		"":                                   "",
		" \n ":                               "",
		"Error: bucket full\n":               "bucket full",
		"{\"msg\":\"x\"}\nError: a\nb\n":     "a\nb",
		"Error: first\nlog\nError: second":   "second",
		"killed":                             "killed",
		"  Error: after a gap":               "after a gap",
		"it said Error: in a line\nand went": "it said Error: in a line\nand went",
	} {
		t.Run("When a log ends with "+log+" it should return the error of the program", func(t *testing.T) {
			NewWithT(t).Expect(complaint(log)).To(Equal(want))
		})
	}
}

func TestVerdict(t *testing.T) {
	for name, tc := range map[string]struct {
		conditions []batchv1.JobCondition
		how        batchv1.JobConditionType
		why        string
	}{
		"has just begun":                 {nil, "", ""},
		"is about to fail":               {[]batchv1.JobCondition{{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue}}, "", ""},
		"is suspended":                   {[]batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue}}, "", ""},
		"has a false Complete condition": {[]batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionFalse}}, "", ""},
		"is done":                        {[]batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}, batchv1.JobComplete, ""},
		"failed with a message":          {[]batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "R", Message: "m"}}, batchv1.JobFailed, "m"},
		"failed with only a reason":      {[]batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "R"}}, batchv1.JobFailed, "R"},
	} {
		t.Run("When a Job "+name+" it should return how the Job ended", func(t *testing.T) {
			g := NewWithT(t)
			how, why := jobOutcome(&batchv1.Job{Status: batchv1.JobStatus{Conditions: tc.conditions}})
			g.Expect(how).To(Equal(tc.how))
			g.Expect(why).To(Equal(tc.why))
		})
	}
}
