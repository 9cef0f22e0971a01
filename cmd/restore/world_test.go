// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	"github.com/openshift/hypershift/support/hosted"
)

// world is a management cluster whose pods start immediately, and end when they have read their input.
type world struct {
	*WithT
	t        *testing.T
	client   client.WithWatch
	said     bytes.Buffer
	fed      map[string]string
	snapshot string
	options  options
	// phase is the final phase of the pods.
	phase corev1.PodPhase
	// waiting records the pods that fill volumes, at each time that one was fed.
	waiting [][]corev1.Pod
	// late is the number of reads after which the control-plane-operator continues.
	late int
	// forgets creates bundles without the MaasCluster.
	forgets bool
	// authority is the Secret with which the management cluster signs bundles. signedBy is the data of the Secret that
	// signed this bundle, nil for none.
	authority *corev1.Secret
	signedBy  map[string][]byte
	// change modifies the bundle before it is written.
	change func(*bundle.Contents)
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

// filledPod returns a pod of an earlier run that began at second 1,790,000,000 and filled the volume of a member from a
// snapshot.
func filledPod(member, snapshot string) *corev1.Pod {
	sum := sha256.Sum256([]byte(snapshot))
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: podPrefix + member, Labels: map[string]string{restoreLabel: hex.EncodeToString(sum[:])[:16] + ".1790000000"}},
		Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}
}

// livingClaim returns a claim with data that a restore discards.
func livingClaim(member string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: dataClaim + member, Labels: map[string]string{"data": "old"}}}
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{WithT: NewWithT(t), t: t, fed: map[string]string{}, snapshot: strings.Repeat("snapshot", 9000), phase: corev1.PodSucceeded}
	w.signedBy = newAuthority(t)
	w.authority = &corev1.Secret{Data: w.signedBy}
	w.authority.Namespace, w.authority.Name = "hypershift", hosted.BackupAuthority
	uid := int64(1000680000)
	operator := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "control-plane-operator"}}
	operator.Spec.Template.Spec = corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{RunAsUser: &uid, FSGroup: &uid},
		Containers: []corev1.Container{{Name: "control-plane-operator", Image: "registry/hypershift:1"}}}
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo", Annotations: map[string]string{hyperv1.RestoringAnnotation: "true"}}}
	there := append(objects, operator, hcp, w.authority)
	w.client = interceptor.NewClient(fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(there...).Build(),
		interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
				if pod, ok := obj.(*corev1.Pod); ok {
					pod.Status.Phase = corev1.PodRunning
				}
				return c.Create(ctx, obj, opts...)
			},
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object,
				opts ...client.GetOption) error {
				err := c.Get(ctx, key, obj, opts...)
				if hcp, ok := obj.(*hyperv1.HostedControlPlane); ok && err == nil {
					err = w.report(ctx, hcp)
				}
				return err
			},
		})
	w.backup()
	return w
}

// report sets the status as the control-plane-operator does. It takes a few reads until it notices that it may
// continue.
func (w *world) report(ctx context.Context, hcp *hyperv1.HostedControlPlane) error {
	hc := &hyperv1.HostedCluster{}
	if err := w.client.Get(ctx, client.ObjectKey{Namespace: "clusters", Name: "demo"}, hc); err != nil {
		return client.IgnoreNotFound(err)
	}
	c := metav1.Condition{Type: string(hyperv1.HostedControlPlaneAvailable), Status: metav1.ConditionFalse, Reason: hyperv1.WaitingForBackupReason, Message: "waits"}
	if hc.Annotations[hyperv1.RestoringAnnotation] == "" {
		if w.late--; w.late < 0 {
			c.Status, c.Reason = metav1.ConditionTrue, hyperv1.AsExpectedReason
		}
	}
	meta.SetStatusCondition(&hcp.Status.Conditions, c)
	return nil
}

// backup writes a bundle and its key.
func (w *world) backup() {
	identity, err := age.GenerateX25519Identity()
	w.Expect(err).NotTo(HaveOccurred())
	folder := w.t.TempDir()
	w.options = options{from: filepath.Join(folder, "demo"+bundle.Extension), keyFile: filepath.Join(folder, "key.txt"), timeout: time.Minute}
	w.options.operatorNamespace = "hypershift"
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
			Created: time.Date(2026, 11, 1, 2, 3, 4, 0, time.UTC), Snapshot: bundle.Snapshot{EtcdVersion: "3.6.5", Keys: 42, Revision: 7}},
		Secrets: []corev1.Secret{{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: "root-ca"}, Data: map[string][]byte{"ca.key": []byte("secret")}}},
		Objects: objects,
	}
	var file bytes.Buffer
	sum := sha256.Sum256([]byte(w.snapshot))
	contents.Header.Snapshot.Size, contents.Header.Snapshot.SHA256 = int64(len(w.snapshot)), hex.EncodeToString(sum[:])
	if w.change != nil {
		w.change(&contents)
	}
	signer := w.signer("clusters/demo")
	err = bundle.Write(w.t.Context(), &file, contents, strings.NewReader(w.snapshot), signer, identity.Recipient())
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(os.WriteFile(w.options.from, file.Bytes(), 0o600)).To(Succeed())
}

func newAuthority(t *testing.T) map[string][]byte {
	t.Helper()
	data, err := bundle.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func (w *world) signer(cluster string) *bundle.Signer {
	if w.signedBy == nil {
		return nil
	}
	authority, err := bundle.ReadAuthority(w.signedBy)
	w.Expect(err).NotTo(HaveOccurred())
	issued, err := authority.Issue(cluster)
	w.Expect(err).NotTo(HaveOccurred())
	signer, err := bundle.ReadSigner(issued)
	w.Expect(err).NotTo(HaveOccurred())
	return signer
}

func (w *world) run() error {
	r := &restoring{options: w.options, client: w.client, report: progress.New(&w.said, clock.RealClock{}),
		feed: func(ctx context.Context, key client.ObjectKey, container string, input io.Reader) error {
			text, err := io.ReadAll(input)
			if err != nil {
				return err
			}
			w.fed[key.Name] = string(text)
			waiting := &corev1.PodList{}
			if err := w.client.List(ctx, waiting, client.HasLabels{restoreLabel}); err != nil {
				return err
			}
			w.waiting = append(w.waiting, waiting.Items)
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
