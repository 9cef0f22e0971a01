// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

// running is a running provisioner for one test.
type running struct {
	client *fake.Clientset
	dir    string

	mutex    sync.Mutex
	problems []error
}

func run(t *testing.T, objects ...runtime.Object) *running {
	t.Helper()
	r := &running{client: fake.NewClientset(objects...), dir: t.TempDir()}
	r.start(t)
	return r
}

func (r *running) start(t *testing.T) {
	provisioner := &Provisioner{
		Client: r.client, Name: "test/local", Class: "local", Node: "here", Dir: r.dir,
		Report: func(err error) { r.mutex.Lock(); defer r.mutex.Unlock(); r.problems = append(r.problems, err) },
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- provisioner.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		NewWithT(t).Eventually(ended, 2*time.Minute).Should(Receive(BeNil()))
	})
}

func (r *running) volumes(ctx context.Context) func(Gomega) []corev1.PersistentVolume {
	return func(g Gomega) []corev1.PersistentVolume {
		found, err := r.client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		return found.Items
	}
}

func claim(name, class string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "uid-of-claim", Annotations: map[string]string{selectedNode: "here"}},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: ptr.To(class),
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		},
	}
}

func TestProvision(t *testing.T) {
	t.Run("When a claim names the class, it should get a volume of its size and a world-writable folder", func(t *testing.T) {
		g := NewWithT(t)
		r := run(t)
		// The fake API server sends no events for changes between the list and the watch.
		g.Eventually(r.client.Actions).Should(ContainElement(And(HaveField("GetVerb()", "watch"), HaveField("GetResource().Resource", "persistentvolumeclaims"))))
		_, err := r.client.CoreV1().PersistentVolumeClaims("default").Create(t.Context(), claim("data", "local"), metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Eventually(r.volumes(t.Context())).Should(HaveLen(1))
		volume := r.volumes(t.Context())(g)[0]
		g.Expect(volume.Name).To(Equal("pvc-uid-of-claim"))
		g.Expect(volume.Spec.ClaimRef).To(HaveField("Name", "data"))
		g.Expect(volume.Spec.Capacity.Storage().String()).To(Equal("1Gi"))
		g.Expect(volume.Spec.HostPath.Path).To(Equal(filepath.Join(r.dir, volume.Name)))
		g.Expect(volume.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values).To(Equal([]string{"here"}))
		info, err := os.Stat(volume.Spec.HostPath.Path)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o777)))
	})
	t.Run("When the claim is older than the provisioner, it should get its volume too", func(t *testing.T) {
		r := run(t, claim("data", "local"))
		NewWithT(t).Eventually(r.volumes(t.Context())).Should(HaveLen(1))
	})
	t.Run("When the first attempt fails, the provisioner should report the failure and retry", func(t *testing.T) {
		g := NewWithT(t)
		r := &running{client: fake.NewClientset(claim("data", "local")), dir: t.TempDir()}
		var once sync.Once
		r.client.PrependReactor("create", "persistentvolumes", func(clienttesting.Action) (handled bool, _ runtime.Object, err error) {
			once.Do(func() { handled, err = true, errors.New("try later") })
			return handled, nil, err
		})
		r.start(t)
		g.Eventually(r.volumes(t.Context()), 2*time.Minute).Should(HaveLen(1))
		r.mutex.Lock()
		defer r.mutex.Unlock()
		g.Expect(r.problems).To(ContainElement(MatchError(ContainSubstring("making a volume for claim default/data"))))
	})
}

func TestWaits(t *testing.T) {
	p := &Provisioner{Class: "local", Node: "here"}
	bound, leaving, classless := claim("a", "local"), claim("b", "local"), claim("c", "")
	bound.Spec.VolumeName = "some"
	leaving.DeletionTimestamp = ptr.To(metav1.Now())
	classless.Spec.StorageClassName = nil
	elsewhere, unplaced := claim("d", "local"), claim("e", "local")
	elsewhere.Annotations[selectedNode] = "there"
	delete(unplaced.Annotations, selectedNode)
	for name, test := range map[string]struct {
		claim *corev1.PersistentVolumeClaim
		want  bool
	}{
		"When a claim of the class has no volume, it should be provisioned":        {claim: claim("x", "local"), want: true},
		"When a claim has a volume, it should not be provisioned":                  {claim: bound},
		"When a claim is being deleted, it should not be provisioned":              {claim: leaving},
		"When a claim has another class, it should not be provisioned":             {claim: claim("x", "other")},
		"When a claim names no class, it should not be provisioned":                {claim: classless},
		"When the Pod of a claim is on another node, it should not be provisioned": {claim: elsewhere},
		"When no node is selected yet, it should not be provisioned":               {claim: unplaced},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(p.waits(test.claim)).To(Equal(test.want)) })
	}
}

func TestRemove(t *testing.T) {
	released := func(annotation string, phase corev1.PersistentVolumePhase) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pvc-1", Annotations: map[string]string{provisionedBy: annotation, selectedNode: "here"}},
			Spec:       corev1.PersistentVolumeSpec{PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete},
			Status:     corev1.PersistentVolumeStatus{Phase: phase},
		}
	}
	t.Run("When the claim of a volume is gone, it should delete the data and the volume", func(t *testing.T) {
		g := NewWithT(t)
		r := &running{client: fake.NewClientset(released("test/local", corev1.VolumeReleased)), dir: t.TempDir()}
		data := filepath.Join(r.dir, "pvc-1", "file")
		g.Expect(os.MkdirAll(data, 0o755)).To(Succeed())
		r.start(t)
		g.Eventually(r.volumes(t.Context())).Should(BeEmpty())
		g.Expect(filepath.Dir(data)).NotTo(BeADirectory())
	})
	t.Run("When a volume is in use, retained or from another provisioner, it should be left alone", func(t *testing.T) {
		g := NewWithT(t)
		p := &Provisioner{Name: "test/local", Node: "here"}
		kept := released("test/local", corev1.VolumeReleased)
		kept.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		g.Expect(p.released(released("test/local", corev1.VolumeBound))).To(BeFalse())
		g.Expect(p.released(released("other", corev1.VolumeReleased))).To(BeFalse())
		g.Expect(p.released(kept)).To(BeFalse())
		g.Expect(p.released(released("test/local", corev1.VolumeReleased))).To(BeTrue())
		p.Node = "there"
		g.Expect(p.released(released("test/local", corev1.VolumeReleased))).To(BeFalse(), "it is a folder of another node")
	})
}
