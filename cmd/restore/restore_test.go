// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/cmd/progress"
	"github.com/openshift/hypershift/support/bundle"
	"github.com/openshift/hypershift/support/objectstore"
	"github.com/openshift/hypershift/support/objectstore/storetest"
)

// world is a management cluster whose pods start at once, and end when they are fed.
type world struct {
	*WithT
	t        *testing.T
	client   client.WithWatch
	said     bytes.Buffer
	fed      map[string]string
	snapshot string
	options  options
	// phase is how pods end.
	phase corev1.PodPhase
	// forgets makes bundles that do not tell of the MaasCluster.
	forgets bool
}

func hostedCluster(change ...func(*hyperv1.HostedCluster)) *hyperv1.HostedCluster {
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo", Annotations: map[string]string{hyperv1.RestoringAnnotation: "true"}}}
	hc.Spec.Platform.Type = hyperv1.MAASPlatform
	hc.Spec.InfraID, hc.Spec.ControllerAvailabilityPolicy = "demo-x7k2p", hyperv1.HighlyAvailable
	hc.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "10.0.0.9", Port: 30443}
	meta.SetStatusCondition(&hc.Status.Conditions, metav1.Condition{Type: string(hyperv1.HostedClusterAvailable), Status: metav1.ConditionTrue, Reason: "AsExpected"})
	for _, do := range change {
		do(hc)
	}
	return hc
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{WithT: NewWithT(t), t: t, fed: map[string]string{}, snapshot: strings.Repeat("snapshot", 9000), phase: corev1.PodSucceeded}
	uid := int64(1000680000)
	operator := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "control-plane-operator"}}
	operator.Spec.Template.Spec = corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{RunAsUser: &uid, FSGroup: &uid},
		Containers: []corev1.Container{{Name: "control-plane-operator", Image: "registry/hypershift:1"}}}
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo", Annotations: map[string]string{hyperv1.RestoringAnnotation: "true"}}}
	w.client = interceptor.NewClient(fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(append(objects, operator, hcp)...).Build(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if pod, ok := obj.(*corev1.Pod); ok {
				pod.Status.Phase = corev1.PodRunning
			}
			return c.Create(ctx, obj, opts...)
		},
	})
	w.backup()
	return w
}

// backup writes a bundle and its key.
func (w *world) backup() {
	identity, err := age.GenerateX25519Identity()
	w.Expect(err).NotTo(HaveOccurred())
	folder := w.t.TempDir()
	w.options = options{from: filepath.Join(folder, "demo"+bundle.Extension), keyFile: filepath.Join(folder, "key.txt"), timeout: time.Minute}
	w.Expect(os.WriteFile(w.options.keyFile, []byte(identity.String()+"\n"), 0o600)).To(Succeed())
	maasCluster := unstructured.Unstructured{}
	maasCluster.SetGroupVersionKind(infrav1.GroupVersion.WithKind("MaasCluster"))
	maasCluster.SetUID("lost-uid")
	objects := []unstructured.Unstructured{maasCluster}
	if w.forgets {
		objects = nil
	}
	contents := bundle.Contents{
		Header: bundle.Header{Namespace: "clusters", Name: "demo", HostedNamespace: "clusters-demo", InfraID: "demo-x7k2p", APIServer: "10.0.0.1:30443",
			Created: time.Date(2026, 11, 1, 2, 3, 4, 0, time.UTC), Snapshot: bundle.Snapshot{EtcdVersion: "3.6.5", Keys: 42}},
		Secrets: []corev1.Secret{{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: "root-ca"}, Data: map[string][]byte{"ca.key": []byte("secret")}}},
		Objects: objects,
	}
	var file bytes.Buffer
	sum := sha256.Sum256([]byte(w.snapshot))
	contents.Header.Snapshot.Size, contents.Header.Snapshot.SHA256 = int64(len(w.snapshot)), hex.EncodeToString(sum[:])
	w.Expect(bundle.Write(w.t.Context(), &file, contents, strings.NewReader(w.snapshot), identity.Recipient())).To(Succeed())
	w.Expect(os.WriteFile(w.options.from, file.Bytes(), 0o600)).To(Succeed())
}

func (w *world) run() error {
	r := &restoring{options: w.options, client: w.client, report: progress.New(&w.said, clock.RealClock{}),
		feed: func(ctx context.Context, key client.ObjectKey, container string, input io.Reader) error {
			text, err := io.ReadAll(input)
			if err != nil {
				return err
			}
			w.fed[key.Name] = string(text)
			pod := &corev1.Pod{}
			if err := w.client.Get(ctx, key, pod); err != nil {
				return err
			}
			pod.Status.Phase = w.phase
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: container, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: "disk full\n"}}}}
			return w.client.Status().Update(ctx, pod)
		}}
	return r.run(w.t.Context())
}

func (w *world) get(namespace, name string, obj client.Object) {
	w.t.Helper()
	w.Expect(w.client.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, obj)).To(Succeed())
}

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
		w.Expect(w.said.String()).To(And(ContainSubstring("is a whole backup of cluster clusters/demo of 2026-11-01T02:03:04Z: 42 keys of etcd 3.6.5, 1 Secrets"),
			ContainSubstring("its nodes look for the API server at 10.0.0.1:30443\n"), ContainSubstring("the cluster is available"), ContainSubstring("WARNING: the API server is at 10.0.0.9:30443, and nodes look for it at 10.0.0.1:30443")))
		w.Expect(w.said.String()).NotTo(ContainSubstring("secret"))
	})
	t.Run("When an earlier run died, it should go on where that was", func(t *testing.T) {
		done := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "restore-etcd-0"}, Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}
		waits := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "restore-etcd-1"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
		key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "root-ca"}, Data: map[string][]byte{"ca.key": []byte("secret")}}
		w := newWorld(t, hostedCluster(), done, waits, key)
		w.Expect(w.run()).To(Succeed())
		w.Expect(w.fed).To(Equal(map[string]string{"restore-etcd-1": w.snapshot, "restore-etcd-2": w.snapshot}))
	})
	t.Run("When the pod that fills a volume fails, it should say why, and the control plane wait on", func(t *testing.T) {
		w := newWorld(t, hostedCluster())
		w.phase = corev1.PodFailed
		w.Expect(w.run()).To(MatchError("fill the volume of etcd-0: Pod clusters-demo/restore-etcd-0 failed: disk full"))
		hc := &hyperv1.HostedCluster{}
		w.get("clusters", "demo", hc)
		w.Expect(hc.Annotations).To(HaveKey(hyperv1.RestoringAnnotation))
		w.phase = corev1.PodSucceeded
		w.Expect(w.run()).To(Succeed())
	})
	t.Run("When the user gives up the data of a cluster that lives, it should go, with the API server, and the backup's come", func(t *testing.T) {
		living := hostedCluster(func(hc *hyperv1.HostedCluster) {
			hc.Annotations, hc.Spec.ControllerAvailabilityPolicy = nil, hyperv1.SingleReplica
		})
		at := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "clusters-demo", Name: name} }
		w := newWorld(t, living, &appsv1.StatefulSet{ObjectMeta: at("etcd")}, &appsv1.Deployment{ObjectMeta: at("kube-apiserver")}, &corev1.ConfigMap{ObjectMeta: at("etcd-members")},
			&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "data-etcd-0", Labels: map[string]string{"data": "old"}}})
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
	t.Run("When the user says which machines are the cluster's, those it should be", func(t *testing.T) {
		w := newWorld(t, hostedCluster())
		w.forgets = true
		w.backup()
		w.options.infrastructure = "said-uid"
		w.Expect(w.run()).To(Succeed())
		hc := &hyperv1.HostedCluster{}
		w.get("clusters", "demo", hc)
		w.Expect(hc.Annotations).To(HaveKeyWithValue(hyperv1.RestoredInfrastructureAnnotation, "said-uid"))
	})
	t.Run("When it runs as the operator's pods do, it should ask for nothing more", func(t *testing.T) {
		w := newWorld(t, hostedCluster())
		r := &restoring{client: w.client, cluster: hostedCluster()}
		pod, err := r.pod(t.Context(), "restore-etcd-1", "etcd-1")
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(*pod.Spec.SecurityContext.RunAsUser).To(BeEquivalentTo(1000680000))
		w.Expect(pod.Spec.Containers[0].Image).To(Equal("registry/hypershift:1"))
		w.Expect(pod.Spec.Containers[0].Command).To(Equal([]string{"control-plane-operator", "restore-etcd", "--namespace=clusters-demo", "--member=etcd-1",
			"--members=etcd-0,etcd-1,etcd-2", "--data-dir=/var/lib/data"}))
	})
}

// stored moves the backup into an object store, with the credentials of who restores in the environment.
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
	t.Run("When the backup is in an object store, it should be fetched, used, and not be left", func(t *testing.T) {
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
		"When there is no such object, it should say so": {func(w *world, _ *storetest.Store) { w.options.from += "x" }, "the store has no such object"},
		"When the key is another's, it should say so":    {func(_ *world, s *storetest.Store) { s.Key = "ANOTHER" }, "refuses these credentials"},
		"When there are no credentials, it should say how they are given": {func(w *world, _ *storetest.Store) {
			w.t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(w.t.TempDir(), "none"))
		}, "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SHARED_CREDENTIALS_FILE"},
		"When the CAs are missing, it should say so":               {func(w *world, _ *storetest.Store) { w.options.s3.CABundle = "/none" }, "reading the CAs of the endpoint"},
		"When the URL names no object, it should say what does":    {func(w *world, _ *storetest.Store) { w.options.from = "s3://backups" }, "s3://BUCKET/KEY"},
		"When the backup is on a volume, it should say what to do": {func(w *world, _ *storetest.Store) { w.options.from = "pvc://backups/x" }, "copy the file out"},
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
		{"When the cluster lives, it should touch nothing", []client.Object{hostedCluster(func(hc *hyperv1.HostedCluster) { hc.Annotations = nil })}, nil,
			"has a control plane with keys and data of its own"},
		{"When there is an etcd, it should touch nothing", []client.Object{hostedCluster(), set}, nil, "namespace clusters-demo has an etcd, which a restore would destroy"},
		{"When it is another cluster of that name, it should say so", []client.Object{hostedCluster(func(hc *hyperv1.HostedCluster) { hc.Spec.InfraID = "demo-other" })}, nil,
			`has spec.infraID "demo-other", and the backup is of one with "demo-x7k2p"`},
		{"When it has another name, it should say so", []client.Object{hostedCluster(func(hc *hyperv1.HostedCluster) { hc.Name = "copy" })}, func(w *world) { w.options.name = "copy" },
			"has its control plane in namespace clusters-copy, and the backup is of one in clusters-demo"},
		{"When a key of other content is there, it should not overwrite it", []client.Object{hostedCluster(), other}, nil,
			"write Secret clusters-demo/root-ca: there is one with other content"},
		{"When it is not known which machines are the cluster's, it should not get others", []client.Object{hostedCluster()}, func(w *world) {
			w.forgets = true
			w.backup()
		}, "say it with --infrastructure-uid; each of them has it in MAAS"},
		{"When the key does not open it, it should say so", []client.Object{hostedCluster()}, func(w *world) {
			identity, err := age.GenerateX25519Identity()
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(os.WriteFile(w.options.keyFile, []byte(identity.String()), 0o600)).To(Succeed())
		}, "key"},
		{"When the file was cut, it should say so before anything is written", []client.Object{hostedCluster()}, func(w *world) {
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
