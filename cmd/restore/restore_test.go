// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/progress"
	"github.com/openshift/hypershift/support/bundle"
	"github.com/openshift/hypershift/support/objectstore"
	"github.com/openshift/hypershift/support/objectstore/storetest"
)

func TestRestore(t *testing.T) {
	t.Run("When a cluster waits for its backup, it should get keys, machines and data, and start", func(t *testing.T) {
		w := newWorld(t, hostedCluster())
		w.options.wait = true
		w.Expect(w.run()).To(Succeed())
		secret, hc, claims := &corev1.Secret{}, &hyperv1.HostedCluster{}, &corev1.PersistentVolumeClaimList{}
		w.get("clusters-demo", "root-ca", secret)
		w.Expect(secret.Data).To(HaveKeyWithValue("ca.key", []byte("secret")))
		w.get("clusters", "demo", hc)
		w.Expect(hc.Annotations).To(Equal(map[string]string{hyperv1.HostedClusterRestoredFromBackupAnnotation: "2026-11-01T02:03:04Z", hyperv1.RestoredInfrastructureAnnotation: "lost-uid"}))
		w.Expect(w.client.List(t.Context(), claims)).To(Succeed())
		w.Expect(claims.Items).To(HaveLen(3))
		w.Expect(claims.Items[2].Name).To(Equal("data-etcd-2"))
		w.Expect(w.fed).To(Equal(map[string]string{"restore-etcd-0": w.snapshot, "restore-etcd-1": w.snapshot, "restore-etcd-2": w.snapshot}))
		pods := &corev1.PodList{}
		w.Expect(w.client.List(t.Context(), pods)).To(Succeed())
		w.Expect(pods.Items).To(BeEmpty(), "they would keep the volumes")
		w.Expect(w.said.String()).To(And(ContainSubstring("is a complete backup of cluster clusters/demo of 2026-11-01T02:03:04Z: 42 keys of etcd 3.6.5, 1 Secrets"),
			ContainSubstring("its nodes look for the API server at 10.0.0.1:30443\n"), ContainSubstring("the cluster is available"), ContainSubstring("WARNING: the API server is at 10.0.0.9:30443, but nodes expect it at 10.0.0.1:30443")))
		w.Expect(w.said.String()).NotTo(ContainSubstring("secret"))
	})
	t.Run("When an earlier run was interrupted, it should continue from there", func(t *testing.T) {
		done := filledPod("etcd-0", strings.Repeat("snapshot", 9000))
		waits := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "restore-etcd-1"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
		key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "root-ca"}, Data: map[string][]byte{"ca.key": []byte("secret")}}
		w := newWorld(t, hostedCluster(), done, waits, key)
		w.Expect(w.run()).To(Succeed())
		w.Expect(w.fed).To(Equal(map[string]string{"restore-etcd-1": w.snapshot, "restore-etcd-2": w.snapshot}))
		for _, pod := range w.waiting[0] {
			if pod.Name != done.Name {
				w.Expect(pod.Spec.Containers[0].Command).To(ContainElement("--revision-bump=17899999999993"), "all members begin at the revision of the first one")
			}
		}
	})
	t.Run("When volumes are unbound, the Pods should spread like etcd's, and all be scheduled before one is filled", func(t *testing.T) {
		bound := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "data-etcd-0"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv"}}
		w := newWorld(t, hostedCluster(), bound)
		w.Expect(w.run()).To(Succeed())
		w.Expect(w.waiting[0]).To(HaveLen(3), "the scheduler forgets a pod that has ended")
		w.Expect(w.waiting[0][0].Spec.TopologySpreadConstraints).To(BeEmpty(), "it can go nowhere else")
		for _, pod := range w.waiting[0][1:] {
			w.Expect(pod.Spec.TopologySpreadConstraints).To(HaveLen(1))
			w.Expect(pod.Spec.TopologySpreadConstraints[0].WhenUnsatisfiable).To(Equal(corev1.DoNotSchedule))
			w.Expect(pod.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels).To(Equal(pod.Labels))
		}
	})
	t.Run("When an earlier run filled some volumes of a running cluster, it should fill all of them again", func(t *testing.T) {
		w := newWorld(t, hostedCluster(), filledPod("etcd-0", strings.Repeat("snapshot", 9000)), livingClaim("etcd-0"))
		w.options.discardData = true
		w.Expect(w.run()).To(Succeed())
		w.Expect(w.fed).To(HaveLen(3), "their places follow from one another")
	})
	t.Run("When an earlier run filled volumes from another backup, it should fill all of them again", func(t *testing.T) {
		w := newWorld(t, hostedCluster(), filledPod("etcd-0", "other"), filledPod("etcd-1", "other"), filledPod("etcd-2", "other"), livingClaim("etcd-0"))
		w.options.discardData = true
		w.Expect(w.run()).To(Succeed())
		w.Expect(w.fed).To(HaveLen(3))
		claim := &corev1.PersistentVolumeClaim{}
		w.get("clusters-demo", "data-etcd-0", claim)
		w.Expect(claim.Labels).NotTo(HaveKey("data"))
	})
	t.Run("When Pods of a completed restore are left, the next restore should fill the volumes again", func(t *testing.T) {
		snapshot := strings.Repeat("snapshot", 9000)
		w := newWorld(t, hostedCluster(func(hc *hyperv1.HostedCluster) { hc.Annotations = nil }), filledPod("etcd-0", snapshot), filledPod("etcd-1", snapshot), filledPod("etcd-2", snapshot))
		w.options.discardData = true
		w.Expect(w.run()).To(Succeed())
		w.Expect(w.fed).To(HaveLen(3))
	})
	t.Run("When the cluster was available before, waiting should ignore the earlier condition", func(t *testing.T) {
		w := newWorld(t, hostedCluster(func(hc *hyperv1.HostedCluster) { hc.Annotations = nil }))
		w.options.discardData, w.options.wait, w.late = true, true, 1
		w.Expect(w.run()).To(Succeed())
		w.Expect(w.said.String()).To(ContainSubstring("Available is False (WaitingForBackup): waits"))
	})
	t.Run("When the Pod that fills a volume fails, it should report the cause and keep the control plane waiting", func(t *testing.T) {
		w := newWorld(t, hostedCluster())
		w.phase = corev1.PodFailed
		w.Expect(w.run()).To(MatchError("fill the volume of etcd-0: Pod clusters-demo/restore-etcd-0 failed: disk full"))
		hc := &hyperv1.HostedCluster{}
		w.get("clusters", "demo", hc)
		w.Expect(hc.Annotations).To(HaveKey(hyperv1.RestoringAnnotation))
		w.phase = corev1.PodSucceeded
		w.Expect(w.run()).To(Succeed())
	})
	t.Run("When the data of a running cluster is discarded, it should replace etcd's data with the backup's", func(t *testing.T) {
		living := hostedCluster(func(hc *hyperv1.HostedCluster) {
			hc.Annotations, hc.Spec.ControllerAvailabilityPolicy = nil, hyperv1.SingleReplica
		})
		at := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "clusters-demo", Name: name} }
		w := newWorld(t, living, &appsv1.StatefulSet{ObjectMeta: at("etcd")}, &appsv1.Deployment{ObjectMeta: at("kube-apiserver")}, &corev1.ConfigMap{ObjectMeta: at("etcd-members")},
			livingClaim("etcd-0"))
		w.options.discardData = true
		w.Expect(w.run()).To(Succeed())
		w.Expect(w.fed).To(Equal(map[string]string{"restore-etcd-0": w.snapshot}))
		claim, deployments, sets := &corev1.PersistentVolumeClaim{}, &appsv1.DeploymentList{}, &appsv1.StatefulSetList{}
		w.get("clusters-demo", "data-etcd-0", claim)
		w.Expect(claim.Labels).NotTo(HaveKey("data"))
		w.Expect(w.client.List(t.Context(), deployments)).To(Succeed())
		w.Expect(deployments.Items).To(HaveLen(1))
		w.Expect(w.client.List(t.Context(), sets)).To(Succeed())
		w.Expect(sets.Items).To(BeEmpty())
	})
	t.Run("When the user sets the infrastructure UID, it should set it on the HostedCluster", func(t *testing.T) {
		w := newWorld(t, hostedCluster())
		w.forgets = true
		w.backup()
		w.options.infrastructure = "said-uid"
		w.Expect(w.run()).To(Succeed())
		hc := &hyperv1.HostedCluster{}
		w.get("clusters", "demo", hc)
		w.Expect(hc.Annotations).To(HaveKeyWithValue(hyperv1.RestoredInfrastructureAnnotation, "said-uid"))
	})
	t.Run("When it creates a Pod, the Pod should use the user and image of the operator's Pods", func(t *testing.T) {
		w := newWorld(t, hostedCluster())
		r := &restoring{client: w.client, cluster: hostedCluster(), began: time.Unix(1_790_000_000, 0)}
		r.contents.Header.Snapshot.Revision = 7
		pod, err := r.pod(t.Context(), "restore-etcd-1", "etcd-1")
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(*pod.Spec.SecurityContext.RunAsUser).To(BeEquivalentTo(1000680000))
		w.Expect(pod.Spec.Containers[0].Image).To(Equal("registry/hypershift:1"))
		w.Expect(pod.Spec.Containers[0].Command).To(Equal([]string{"control-plane-operator", "restore-etcd", "--namespace=clusters-demo", "--member=etcd-1",
			"--members=etcd-0,etcd-1,etcd-2", "--data-dir=/var/lib/data", "--revision-bump=17899999999993"}))
	})
}

// TestBump checks that revisions only increase over several restores, so that no client takes one state of the cluster
// for another.
func TestBump(t *testing.T) {
	const backup, writes = 5_000, 1_000 // The backup's revision, and what each life writes in a second.
	day := func(n int) time.Time { return time.Date(2026, 11, n, 0, 0, 0, 0, time.UTC) }
	life := func(revision int64, began time.Time) int64 {
		r := &restoring{began: began}
		r.contents.Header.Snapshot.Revision = revision
		return revision + r.bump()
	}
	first := life(backup, day(1))
	for name, tc := range map[string]struct {
		revision int64
		began    time.Time
		above    int64
	}{
		"When the same backup is restored a minute later, the revision should exceed all writes in between": {
			revision: backup, began: day(1).Add(time.Minute), above: first + 60*writes},
		"When a backup of the restored cluster is restored, the revision should exceed all later writes": {
			revision: first + 3600*writes, began: day(2), above: first + 24*3600*writes},
		"When the first backup is restored after that, the revision should exceed all earlier ones": {
			revision: backup, began: day(2).Add(time.Hour), above: life(first+3600*writes, day(2)) + 3600*writes},
		"When the clock is far behind, the revision should still exceed the backup's": {
			revision: first, began: time.Unix(0, 0), above: first},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(life(tc.revision, tc.began)).To(BeNumerically(">", tc.above))
		})
	}
}

// stored moves the backup into an object store, and sets its credentials in the environment.
func (w *world) stored() *storetest.Store {
	s := storetest.New(w.t)
	content, err := os.ReadFile(w.options.from)
	w.Expect(err).NotTo(HaveOccurred())
	s.Objects["hypershift/demo"+bundle.Extension] = content
	dir := s.Dir(w.t)
	w.t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(dir, objectstore.CredentialsKey))
	w.t.Setenv("AWS_ACCESS_KEY_ID", "")
	w.t.Setenv("AWS_ACCESS_KEY", "")
	w.t.Setenv("TMPDIR", w.t.TempDir())
	w.options.from = "s3://" + storetest.Bucket + "/hypershift/demo" + bundle.Extension
	w.options.s3 = objectstore.Config{Endpoint: s.URL, Region: "us-east-1", CABundle: filepath.Join(dir, objectstore.CABundleKey)}
	return s
}

func TestAwaitControlPlane(t *testing.T) {
	w := newWorld(t, hostedCluster())
	w.Expect(w.client.Delete(t.Context(), &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo"}})).To(Succeed())
	r := &restoring{options: w.options, client: w.client, report: progress.New(&w.said, clock.RealClock{}), cluster: hostedCluster()}
	hc := &hyperv1.HostedCluster{}
	w.get("clusters", "demo", hc)
	meta.SetStatusCondition(&hc.Status.Conditions, metav1.Condition{Type: string(hyperv1.ValidHostedClusterConfiguration), Status: metav1.ConditionFalse,
		Reason: "InvalidConfiguration", Message: "there is no Secret clusters/pull-secret"})
	w.Expect(w.client.Update(t.Context(), hc)).To(Succeed())
	r.timeout = time.Millisecond
	w.Expect(r.awaitControlPlane(t.Context())).To(MatchError(ContainSubstring("there is no Secret clusters/pull-secret")), "what came in the way after the command began")
	w.Expect(w.said.String()).To(ContainSubstring("there is no Secret clusters/pull-secret"))
}

func TestFetch(t *testing.T) {
	t.Run("When the backup is in an object store, it should be downloaded, used and removed", func(t *testing.T) {
		w := newWorld(t, hostedCluster())
		w.stored()
		w.Expect(w.run()).To(Succeed())
		w.Expect(w.fed).To(HaveLen(3))
		w.Expect(os.ReadDir(os.TempDir())).To(BeEmpty())
	})
	for name, tc := range map[string]struct {
		wrong func(*world, *storetest.Store)
		want  string
	}{
		"When the object does not exist, it should say so": {func(w *world, _ *storetest.Store) { w.options.from += "x" }, "the store has no such object"},
		"When the access key is wrong, it should say so":   {func(_ *world, s *storetest.Store) { s.Key = "ANOTHER" }, "refuses these credentials"},
		"When there are no credentials, it should say how to set them": {func(w *world, _ *storetest.Store) {
			w.t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(w.t.TempDir(), "none"))
		}, "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SHARED_CREDENTIALS_FILE"},
		"When the CA bundle is missing, it should say so":                   {func(w *world, _ *storetest.Store) { w.options.s3.CABundle = "/none" }, "reading the CAs of the endpoint"},
		"When the URL names no object, it should print the expected format": {func(w *world, _ *storetest.Store) { w.options.from = "s3://backups" }, "s3://BUCKET/KEY"},
		"When the backup is on a volume, it should say how to get the file": {func(w *world, _ *storetest.Store) { w.options.from = "pvc://backups/x" }, "copy the file out"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, hostedCluster())
			tc.wrong(w, w.stored())
			err := w.run()
			w.Expect(err).To(MatchError(ContainSubstring(tc.want)))
			w.Expect(err).NotTo(MatchError(ContainSubstring("hunter2")))
			w.Expect(w.fed).To(BeEmpty())
			w.Expect(os.ReadDir(os.TempDir())).To(BeEmpty())
		})
	}
}

func TestRefusals(t *testing.T) {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "etcd"}}
	other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "root-ca"}, Data: map[string][]byte{"ca.key": []byte("another")}}
	for _, tc := range []struct {
		name    string
		objects []client.Object
		spoil   func(*world)
		want    string
	}{
		{"When there is no HostedCluster, it should say what to apply", nil, nil,
			`there is no HostedCluster clusters/demo here: apply the one that was lost, with the Secrets that it names and the annotation hypershift.openshift.io/restoring: "true"`},
		{"When the cluster is running, it should change nothing", []client.Object{hostedCluster(func(hc *hyperv1.HostedCluster) { hc.Annotations = nil })}, nil,
			"has a control plane with keys and data of its own"},
		{"When an etcd StatefulSet exists, it should change nothing", []client.Object{hostedCluster(), set}, nil, "namespace clusters-demo has an etcd, which a restore would destroy"},
		{"When the infraID differs, it should say so", []client.Object{hostedCluster(func(hc *hyperv1.HostedCluster) { hc.Spec.InfraID = "demo-other" })}, nil,
			`has spec.infraID "demo-other", and the backup is of one with "demo-x7k2p"`},
		{"When the hosted namespace differs, it should say so", []client.Object{hostedCluster(func(hc *hyperv1.HostedCluster) { hc.Name = "copy" })}, func(w *world) { w.options.name = "copy" },
			"has its control plane in namespace clusters-copy, and the backup is of one in clusters-demo"},
		{"When a Secret with other data exists, it should not overwrite the Secret", []client.Object{hostedCluster(), other}, nil,
			"write Secret clusters-demo/root-ca: there is one with other content"},
		{"When the infrastructure UID is unknown, it should require it", []client.Object{hostedCluster()}, func(w *world) {
			w.forgets = true
			w.backup()
		}, "say it with --infrastructure-uid; each of them has it in MAAS"},
		{"When the key does not decrypt the backup, it should say so", []client.Object{hostedCluster()}, func(w *world) {
			identity, err := age.GenerateX25519Identity()
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(os.WriteFile(w.options.keyFile, []byte(identity.String()), 0o600)).To(Succeed())
		}, "key"},
		{"When the file is truncated, it should say so before anything is written", []client.Object{hostedCluster()}, func(w *world) {
			info, err := os.Stat(w.options.from)
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(os.Truncate(w.options.from, info.Size()-20)).To(Succeed())
		}, "--from "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, tc.objects...)
			if tc.spoil != nil {
				tc.spoil(w)
			}
			w.Expect(w.run()).To(MatchError(ContainSubstring(tc.want)))
			claims := &corev1.PersistentVolumeClaimList{}
			w.Expect(w.client.List(t.Context(), claims)).To(Succeed())
			w.Expect(claims.Items).To(BeEmpty())
			w.Expect(fmt.Sprint(w.fed)).To(Equal("map[]"))
		})
	}
}
