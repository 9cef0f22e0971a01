// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/cmd/progress"
)

var errDied = errors.New("the command died")

// cut fails the write with number at, before or after it is done, and all later reads. This simulates a command that
// dies.
func (w *world) cut(at int, done bool) *int {
	writes, dead := 0, false
	write := func(do func() error) error {
		if dead {
			return errDied
		}
		writes++
		if dead = writes == at; dead {
			if done {
				return errors.Join(do(), errDied)
			}
			return errDied
		}
		return do()
	}
	w.client = interceptor.NewClient(w.client, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return write(func() error { return c.Create(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return write(func() error { return c.Patch(ctx, obj, patch, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return write(func() error { return c.Delete(ctx, obj, opts...) })
		},
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteAllOfOption) error {
			return write(func() error { return c.DeleteAllOf(ctx, obj, opts...) })
		},
	})
	return &writes
}

// TestRestoreCut lets the command die at each of its writes, before and after the write is done. A repeated run ends as
// an uninterrupted one: with the keys and the data of one backup, at one revision, and nothing else.
func TestRestoreCut(t *testing.T) {
	whole := newWorld(t, hostedCluster())
	whole.options.wait = true
	writes := whole.cut(0, false)
	whole.Expect(whole.run()).To(Succeed())
	whole.Expect(*writes).To(BeNumerically(">", 8))
	for at := 1; at <= *writes; at++ {
		for _, done := range []bool{false, true} {
			t.Run(fmt.Sprintf("When it dies at write %d, which is done: %v, it should end when it is given again", at, done), func(t *testing.T) {
				w := newWorld(t, hostedCluster())
				lives := w.client
				w.cut(at, done)
				w.Expect(w.run()).To(MatchError(errDied))
				w.client = lives
				hc := &hyperv1.HostedCluster{}
				w.get("clusters", "demo", hc)
				if hc.Annotations[hyperv1.RestoringAnnotation] == "" {
					w.ended()
					return // It died when only the removal of its pods was left. The next restore removes them.
				}
				w.options.wait = true
				w.Expect(w.run()).To(Succeed(), w.said.String())
				w.ended()
				pods := &corev1.PodList{}
				w.Expect(w.client.List(t.Context(), pods)).To(Succeed())
				w.Expect(pods.Items).To(BeEmpty())
				bumps := map[string]bool{}
				for _, waiting := range w.waiting {
					for _, pod := range waiting {
						bumps[pod.Labels[restoreLabel]] = true
					}
				}
				w.Expect(bumps).To(HaveLen(1), "members that begin at different revisions do not agree on their data")
			})
		}
	}
}

// ended checks the state after a restore.
func (w *world) ended() {
	w.t.Helper()
	w.Expect(w.fed).To(Equal(map[string]string{"restore-etcd-0": w.snapshot, "restore-etcd-1": w.snapshot, "restore-etcd-2": w.snapshot}))
	secrets, claims := &corev1.SecretList{}, &corev1.PersistentVolumeClaimList{}
	w.Expect(w.client.List(w.t.Context(), secrets, client.InNamespace("clusters-demo"))).To(Succeed())
	w.Expect(w.client.List(w.t.Context(), claims)).To(Succeed())
	w.Expect(secrets.Items).To(HaveLen(1))
	w.Expect(claims.Items).To(HaveLen(3))
}

func TestUsage(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		code int
		says string
	}{
		"nothing is named":         {nil, exit.Usage, "--from and --key-file are required"},
		"the key file is not set":  {[]string{"--from", "a"}, exit.Usage, "--from and --key-file are required"},
		"the backup is not set":    {[]string{"--key-file", "a"}, exit.Usage, "--from and --key-file are required"},
		"there is no such cluster": {[]string{"--from", "a", "--key-file", "b", "--kubeconfig", filepath.Join(t.TempDir(), "none")}, exit.Failure, "find the management cluster"},
	} {
		t.Run("When "+name+" it should say so, and whose mistake it was", func(t *testing.T) {
			g, cmd := NewWithT(t), NewCommand()
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			cmd.SetOut(io.Discard)
			cmd.SetErr(io.Discard)
			cmd.SetArgs(append([]string{}, tt.args...)) // Cobra replaces nil with the arguments of the test binary.
			err := cmd.ExecuteContext(t.Context())
			g.Expect(err).To(MatchError(And(ContainSubstring(tt.says), Not(ContainSubstring("\n")))))
			g.Expect(exit.Code(err)).To(Equal(tt.code))
		})
	}
}

// TestUnreadable checks that the command fails before it calls the management cluster.
func TestUnreadable(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(w *world)
		says  string
	}{
		"the key is missing":                {func(w *world) { w.options.keyFile += "x" }, "--key-file: "},
		"the key is invalid":                {func(w *world) { w.Expect(os.WriteFile(w.options.keyFile, []byte("sesame"), 0o600)).To(Succeed()) }, "--key-file "},
		"the key is empty":                  {func(w *world) { w.Expect(os.WriteFile(w.options.keyFile, nil, 0o600)).To(Succeed()) }, "--key-file "},
		"the backup is missing":             {func(w *world) { w.options.from += "x" }, "--from: "},
		"the backup is empty":               {func(w *world) { w.Expect(os.WriteFile(w.options.from, nil, 0o600)).To(Succeed()) }, "--from "},
		"the file is not a backup":          {func(w *world) { w.Expect(os.WriteFile(w.options.from, []byte("no backup"), 0o600)).To(Succeed()) }, "--from "},
		"the URL has an unsupported scheme": {func(w *world) { w.options.from = "https://bucket/key" }, "name a file, or an object as s3://BUCKET/KEY"},
		"the URL has no bucket":             {func(w *world) { w.options.from = "s3:///key" }, "s3://BUCKET/KEY"},
		"the URL has no key":                {func(w *world) { w.options.from = "s3://bucket/" }, "s3://BUCKET/KEY"},
		"a byte of the backup is changed": {func(w *world) {
			text, err := os.ReadFile(w.options.from)
			w.Expect(err).NotTo(HaveOccurred())
			text[len(text)/2] ^= 1
			w.Expect(os.WriteFile(w.options.from, text, 0o600)).To(Succeed())
		}, "--from "},
	} {
		t.Run("When "+name+" it should return an error and send no request", func(t *testing.T) {
			w := newWorld(t, hostedCluster())
			tt.spoil(w)
			asked := false
			w.client = interceptor.NewClient(w.client, interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				asked = true
				return errDied
			}})
			w.Expect(w.run()).To(MatchError(And(ContainSubstring(tt.says), Not(ContainSubstring("sesame")))))
			w.Expect(asked).To(BeFalse())
		})
	}
}

// part returns a run that has only a cluster and a client.
func part(t *testing.T, hc *hyperv1.HostedCluster, objects ...client.Object) *restoring {
	t.Helper()
	r := &restoring{cluster: hc, report: progress.New(&bytes.Buffer{}, clock.RealClock{}), options: options{timeout: time.Minute}}
	r.client = fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(objects...).Build()
	r.contents.Header.Snapshot.SHA256 = "0123456789abcdef0123456789abcdef"
	return r
}

// TestBegin checks that a run takes the start time only from an earlier run of the same restore.
func TestBegin(t *testing.T) {
	pod := func(name, label string, finalizers ...string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: name, Labels: map[string]string{restoreLabel: label}, Finalizers: finalizers}}
	}
	const same = "0123456789abcdef"
	for name, tt := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"When the Pod is from the same backup, it should continue from its start time": {pod("a", same+".1790000000"), true},
		"When the Pod is from another backup, it should start again":                   {pod("a", "fedcba9876543210.1790000000"), false},
		"When the Pod's label has no start time, it should start again":                {pod("a", same), false},
		"When the Pod's label has an invalid start time, it should start again":        {pod("a", same+".soon"), false},
		"When the Pod is in another namespace, it should start again":                  {func() *corev1.Pod { p := pod("a", same+".1790000000"); p.Namespace = "other"; return p }(), false},
		"When the Pod is being deleted, it should start again":                         {pod("a", same+".1790000000", "example.com/keeps-it"), false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := part(t, hostedCluster(), tt.pod)
			if len(tt.pod.Finalizers) > 0 {
				g.Expect(r.client.Delete(t.Context(), tt.pod)).To(Succeed())
			}
			before := time.Now().Add(-time.Second)
			g.Expect(r.begin(t.Context())).To(Succeed())
			g.Expect(r.began.Equal(time.Unix(1_790_000_000, 0))).To(Equal(tt.want))
			if !tt.want {
				g.Expect(r.began).To(BeTemporally(">", before))
			}
		})
	}
}

// TestClaim checks that volumes are created as the control plane would create them, and that existing ones stay.
func TestClaim(t *testing.T) {
	sized := func(size, class *string) *hyperv1.HostedCluster {
		return hostedCluster(func(hc *hyperv1.HostedCluster) {
			volume := &hyperv1.PersistentVolumeEtcdStorageSpec{StorageClassName: class}
			if size != nil {
				volume.Size = ptr.To(resource.MustParse(*size))
			}
			hc.Spec.Etcd.Managed = &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{PersistentVolume: volume}}
		})
	}
	for name, tt := range map[string]struct {
		hc    *hyperv1.HostedCluster
		size  string
		class *string
	}{
		"When the cluster sets no storage, the claim should have the default size and class": {hostedCluster(), "8Gi", nil},
		"When the cluster sets size and class, the claim should have them":                   {sized(ptr.To("20Gi"), ptr.To("fast")), "20Gi", ptr.To("fast")},
		"When the cluster sets only the class, the claim should have the default size":       {sized(nil, ptr.To("fast")), "8Gi", ptr.To("fast")},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := part(t, tt.hc)
			bound, err := r.putClaim(t.Context(), "etcd-0")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(bound).To(BeFalse(), "nobody has given it a place yet")
			claim := &corev1.PersistentVolumeClaim{}
			g.Expect(r.client.Get(t.Context(), client.ObjectKey{Namespace: "clusters-demo", Name: "data-etcd-0"}, claim)).To(Succeed())
			g.Expect(claim.Spec.Resources.Requests.Storage().String()).To(Equal(tt.size))
			g.Expect(claim.Spec.StorageClassName).To(Equal(tt.class))
			g.Expect(claim.Labels).To(HaveKeyWithValue("app", "etcd"))
			g.Expect(claim.Spec.AccessModes).To(ConsistOf(corev1.ReadWriteOnce))
			claim.Spec.VolumeName = "pv"
			g.Expect(r.client.Update(t.Context(), claim)).To(Succeed())
			bound, err = r.putClaim(t.Context(), "etcd-0")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(bound).To(BeTrue())
		})
	}
}

func TestFilled(t *testing.T) {
	began := time.Unix(1_790_000_000, 0)
	pod := func(phase corev1.PodPhase, label string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "restore-etcd-0", Labels: map[string]string{restoreLabel: label}}, Status: corev1.PodStatus{Phase: phase}}
	}
	const ours = "0123456789abcdef.1790000000"
	for name, tt := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"When the Pod succeeded, the volume should count as filled":                      {pod(corev1.PodSucceeded, ours), true},
		"When the Pod is running, the volume should not count as filled":                 {pod(corev1.PodRunning, ours), false},
		"When the Pod failed, the volume should not count as filled":                     {pod(corev1.PodFailed, ours), false},
		"When the Pod is from an earlier restore, the volume should not count as filled": {pod(corev1.PodSucceeded, "0123456789abcdef.1780000000"), false},
		"When the Pod is from another backup, the volume should not count as filled":     {pod(corev1.PodSucceeded, "fedcba9876543210.1790000000"), false},
	} {
		t.Run(name, func(t *testing.T) {
			r := part(t, hostedCluster(), tt.pod)
			r.began = began
			NewWithT(t).Expect(r.filled(t.Context(), "etcd-0")).To(Equal(tt.want))
		})
	}
	t.Run("When there is no Pod, the volume should not count as filled", func(t *testing.T) {
		NewWithT(t).Expect(part(t, hostedCluster()).filled(t.Context(), "etcd-0")).To(BeFalse())
	})
}

func TestSaid(t *testing.T) {
	for name, tt := range map[string]struct {
		status corev1.PodStatus
		want   string
	}{
		"When the container has a termination message, it should return that message": {corev1.PodStatus{Message: "Pod failed", ContainerStatuses: []corev1.ContainerStatus{
			{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: " disk full\n"}}}}}, "disk full"},
		"When the Pod was evicted, it should return the message of the Pod status": {corev1.PodStatus{Message: "The node was low on resource: memory."}, "The node was low on resource: memory."},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(said(&corev1.Pod{Status: tt.status})).To(Equal(tt.want))
		})
	}
	t.Run("When a failed Pod has no message, it should say so", func(t *testing.T) {
		r := part(t, hostedCluster(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}, Status: corev1.PodStatus{Phase: corev1.PodFailed}})
		NewWithT(t).Expect(r.awaitPod(t.Context(), client.ObjectKey{Namespace: "a", Name: "b"}, corev1.PodRunning)).To(MatchError("Pod a/b failed: it ended without a message"))
	})
	t.Run("When a Pod succeeds before it is seen running, it should stop waiting", func(t *testing.T) {
		r := part(t, hostedCluster(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}, Status: corev1.PodStatus{Phase: corev1.PodSucceeded}})
		NewWithT(t).Expect(r.awaitPod(t.Context(), client.ObjectKey{Namespace: "a", Name: "b"}, corev1.PodRunning)).To(Succeed())
	})
}

// TestLostInfrastructure checks that the UID under which MAAS knows the machines is found after any number of restores.
func TestLostInfrastructure(t *testing.T) {
	object := func(kind, uid, from string) unstructured.Unstructured {
		u := unstructured.Unstructured{}
		u.SetGroupVersionKind(infrav1.GroupVersion.WithKind(kind))
		u.SetUID("")
		if u.Object == nil {
			u.Object = map[string]any{}
		}
		_ = unstructured.SetNestedField(u.Object, uid, "metadata", "uid")
		if from != "" {
			u.SetAnnotations(map[string]string{infrav1.RestoredFromAnnotation: from})
		}
		return u
	}
	for name, tt := range map[string]struct {
		said    string
		objects []unstructured.Unstructured
		want    string
	}{
		"When the backup has a MaasCluster, it should return its UID":                        {"", []unstructured.Unstructured{object("MaasMachine", "m", ""), object("MaasCluster", "c", "")}, "c"},
		"When the MaasCluster was restored before, it should return the UID of the original": {"", []unstructured.Unstructured{object("MaasCluster", "c", "first")}, "first"},
		"When the user sets the UID, it should return that UID":                              {"said", []unstructured.Unstructured{object("MaasCluster", "c", "first")}, "said"},
		"When the backup has no MaasCluster, it should return an empty UID":                  {"", []unstructured.Unstructured{object("MaasMachine", "m", "")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := &restoring{options: options{infrastructure: tt.said}}
			r.contents.Objects = tt.objects
			NewWithT(t).Expect(r.lostInfrastructure()).To(Equal(tt.want))
		})
	}
	for platform, refused := range map[hyperv1.PlatformType]bool{hyperv1.MAASPlatform: true, hyperv1.NonePlatform: false} {
		t.Run("When the infrastructure UID is unknown on platform "+string(platform)+" it should matter where they are ours", func(t *testing.T) {
			g := NewWithT(t)
			r := part(t, hostedCluster(func(hc *hyperv1.HostedCluster) { hc.Spec.Platform.Type = platform }))
			g.Expect(r.knowsMachines() != nil).To(Equal(refused))
			r.discardData = true
			g.Expect(r.knowsMachines()).To(Succeed(), "a cluster that lives knows them itself")
		})
	}
}

// TestMembers checks the number of etcd members: a restore with another number would lose some of them.
func TestMembers(t *testing.T) {
	for policy, want := range map[hyperv1.AvailabilityPolicy][]string{
		hyperv1.HighlyAvailable: {"etcd-0", "etcd-1", "etcd-2"}, hyperv1.SingleReplica: {"etcd-0"}, "": {"etcd-0"},
	} {
		r := &restoring{cluster: hostedCluster(func(hc *hyperv1.HostedCluster) { hc.Spec.ControllerAvailabilityPolicy = policy })}
		NewWithT(t).Expect(r.members()).To(Equal(want), string(policy))
	}
}
