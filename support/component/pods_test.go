// SPDX-License-Identifier: Apache-2.0

package component

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// renderedOf returns the Deployment that the framework renders from a manifest.
func renderedOf(t *testing.T, text string, edit ...func(*Scope, *Component)) *appsv1.Deployment {
	t.Helper()
	s, c := newScope(), web(func(c *Component) { c.Name, c.Manifests = "web", manifests(map[string]string{"deployment.yaml": text}) })
	for _, change := range edit {
		change(s, c)
	}
	obj, err := c.Render(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*appsv1.Deployment)
}

const chosenYAML = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 5
  strategy: {type: Recreate}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {own: annotation}}
    spec:
      nodeSelector: {disk: fast}
      tolerations: [{key: own, operator: Exists}]
      securityContext: {runAsUser: 7, runAsNonRoot: false}
      initContainers: [{name: first, image: web}]
      containers:
      - {name: web, image: web, env: [{name: GOGC, value: "200"}], securityContext: {readOnlyRootFilesystem: false, allowPrivilegeEscalation: true, capabilities: {add: [SYS_ADMIN]}}}
      - {name: second, image: web, securityContext: {runAsUser: 9}}
      volumes:
      - {name: config, configMap: {name: web-config, defaultMode: 0555}}
      - {name: keys, secret: {secretName: web-keys, defaultMode: 0400}}
      - {name: scratch, emptyDir: {}}
`

// TestWhatAManifestChooses checks that the settings of a manifest are kept, except those that would violate the limits
// of pods.
func TestWhatAManifestChooses(t *testing.T) {
	highly := func(s *Scope, c *Component) {
		highlyAvailable(s)
		s.PodUID = ptr.To[int64](1042)
		s.HCP.Spec.NodeSelector = map[string]string{"disk": "slow", "pool": "control-planes"}
		c.HighlyAvailableReplicas = 3
	}
	d := renderedOf(t, chosenYAML, highly)
	pod := d.Spec.Template.Spec
	t.Run("When a manifest sets replicas and a rollout strategy, it should keep them", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(*d.Spec.Replicas).To(Equal(int32(5)))
		g.Expect(d.Spec.Strategy).To(Equal(appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}))
		g.Expect(d.Spec.RevisionHistoryLimit).To(HaveValue(BeNumerically(">", 0)), "or nobody could look at the revision of before")
	})
	t.Run("When a component is being debugged, it should have no replicas", func(t *testing.T) {
		debugged := renderedOf(t, chosenYAML, highly, func(s *Scope, _ *Component) { annotated(debugAnnotation, "web")(s) })
		NewWithT(t).Expect(*debugged.Spec.Replicas).To(BeZero())
	})
	t.Run("When a manifest sets placement, it should add the cluster's placement and keep the manifest's", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(pod.NodeSelector).To(Equal(map[string]string{"disk": "fast", "pool": "control-planes"}))
		g.Expect(pod.Tolerations).To(ContainElement(corev1.Toleration{Key: "own", Operator: corev1.TolerationOpExists}))
		g.Expect(d.Spec.Template.Annotations).To(HaveKeyWithValue("own", "annotation"))
	})
	t.Run("When a manifest sets the user of a Pod, it should keep that user, but never root", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(*pod.SecurityContext.RunAsUser).To(Equal(int64(7)))
		g.Expect(*pod.SecurityContext.RunAsNonRoot).To(BeTrue())
	})
	t.Run("When a manifest asks for a writable root filesystem, it should allow that and no other privileges", func(t *testing.T) {
		g := NewWithT(t)
		first, web, second := pod.InitContainers[0].SecurityContext, pod.Containers[0].SecurityContext, pod.Containers[1].SecurityContext
		g.Expect(*web.ReadOnlyRootFilesystem).To(BeFalse())
		g.Expect(*first.ReadOnlyRootFilesystem).To(BeTrue())
		g.Expect(*second.ReadOnlyRootFilesystem).To(BeTrue())
		g.Expect(*second.RunAsUser).To(Equal(int64(9)))
		for _, c := range []*corev1.SecurityContext{first, web, second} {
			g.Expect(*c.AllowPrivilegeEscalation).To(BeFalse())
			g.Expect(c.Capabilities).To(Equal(&corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}))
		}
	})
	t.Run("When a manifest sets file modes, it should keep them", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(*pod.Volumes[0].ConfigMap.DefaultMode).To(Equal(int32(0o555)))
		g.Expect(*pod.Volumes[1].Secret.DefaultMode).To(Equal(int32(0o400)))
	})
	t.Run("When a Pod has its own scratch volume, it should stay evictable, and each container should have a /tmp", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(d.Spec.Template.Annotations).To(HaveKeyWithValue("cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes", "scratch,tmp-dir"))
		for _, c := range append(pod.InitContainers, pod.Containers...) {
			g.Expect(c.VolumeMounts).To(ContainElement(HaveField("MountPath", "/tmp")), c.Name)
			g.Expect(c.TerminationMessagePolicy).To(Equal(corev1.TerminationMessageFallbackToLogsOnError), c.Name)
		}
	})
	t.Run("When it is rendered again, it should be identical", func(t *testing.T) {
		if diff := cmp.Diff(d, renderedOf(t, chosenYAML, highly)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("When there is a single replica, it should set GOGC except where the manifest sets it", func(t *testing.T) {
		thrifty := renderedOf(t, chosenYAML).Spec.Template.Spec
		g := NewWithT(t)
		g.Expect(thrifty.Containers[0].Env).To(ConsistOf(HaveField("Value", "200")))
		g.Expect(thrifty.Containers[1].Env).To(ConsistOf(corev1.EnvVar{Name: "GOGC", Value: "50"}))
	})
}

// TestPullSecret checks that nodes pull the payload with the user's credentials.
func TestPullSecret(t *testing.T) {
	NewWithT(t).Expect(rendered(t, nil, Options{}).Spec.Template.Spec.ImagePullSecrets).To(Equal([]corev1.LocalObjectReference{{Name: "pull-secret"}}))
}

func TestPriorities(t *testing.T) {
	for _, tc := range []struct {
		name     string
		edit     func(*Scope)
		priority PriorityClass
		want     string
	}{
		{"etcd's", nil, PriorityEtcd, "hypershift-etcd"},
		{"etcd's, which the user changed", annotated(hyperv1.EtcdPriorityClass, "gold"), PriorityEtcd, "gold"},
		{"etcd's, while the user changed the API server's", annotated(hyperv1.APICriticalPriorityClass, "gold"), PriorityEtcd, "hypershift-etcd"},
		{"the API server's, which the user changed", annotated(hyperv1.APICriticalPriorityClass, "gold"), PriorityAPICritical, "gold"},
		{"the default, while the user changed etcd's", annotated(hyperv1.EtcdPriorityClass, "gold"), "", "hypershift-control-plane"},
		{"the default, and the annotation for it is empty", annotated(hyperv1.ControlPlanePriorityClass, ""), "", "hypershift-control-plane"},
	} {
		t.Run("When a pod's priority is "+tc.name+", it should have the matching PriorityClass", func(t *testing.T) {
			NewWithT(t).Expect(rendered(t, tc.edit, Options{Priority: tc.priority}).Spec.Template.Spec.PriorityClassName).To(Equal(tc.want))
		})
	}
}

// TestProber checks that a prober gets no credentials.
func TestProber(t *testing.T) {
	g := NewWithT(t)
	prober := rendered(t, nil, Options{WaitsFor: APIServerReady}).Spec.Template.Spec.InitContainers[0]
	g.Expect(prober.Image).To(Equal("registry/op:latest"))
	g.Expect(prober.ImagePullPolicy).To(Equal(corev1.PullAlways))
	g.Expect(prober.Args).To(Equal([]string{"--target=https://kube-apiserver:6443/readyz"}))
	for _, mount := range prober.VolumeMounts {
		g.Expect(mount.MountPath).To(Equal("/tmp"))
	}
	g.Expect(*prober.SecurityContext.AllowPrivilegeEscalation).To(BeFalse(), "a restricted namespace refuses the pod for one container")
	g.Expect(prober.Resources.Requests.Memory().IsZero()).To(BeFalse())
	g.Expect(prober.Resources.Requests.Cpu().IsZero()).To(BeFalse())
}

func TestNothingToWaitFor(t *testing.T) {
	nothing := func(*hyperv1.HostedControlPlane) string { return "" }
	NewWithT(t).Expect(rendered(t, nil, Options{WaitsFor: nothing}).Spec.Template.Spec.InitContainers).To(BeEmpty())
}

func TestProberComesFirst(t *testing.T) {
	d := renderedOf(t, chosenYAML, func(_ *Scope, c *Component) { c.WaitsFor = APIServerReady })
	names := []string{}
	for _, c := range d.Spec.Template.Spec.InitContainers {
		names = append(names, c.Name)
	}
	NewWithT(t).Expect(names).To(Equal([]string{"availability-prober", "first"}), "what else a pod prepares may ask the API server")
}

func TestImages(t *testing.T) {
	pod := func(images ...string) *corev1.PodSpec {
		spec := &corev1.PodSpec{InitContainers: []corev1.Container{{Image: images[0]}}}
		for _, image := range images[1:] {
			spec.Containers = append(spec.Containers, corev1.Container{Image: image})
		}
		return spec
	}
	t.Run("When a manifest names an image with its registry, it should use that image and not the payload's", func(t *testing.T) {
		g, spec := NewWithT(t), pod("brought.example/web:3", "web", "brought.example/web:latest")
		g.Expect(web().setImages(newScope(), spec)).To(Succeed())
		g.Expect([]string{spec.InitContainers[0].Image, spec.Containers[0].Image}).To(Equal([]string{"brought.example/web:3", "registry/web:1"}))
		g.Expect(spec.InitContainers[0].ImagePullPolicy).To(Equal(corev1.PullIfNotPresent))
		g.Expect(spec.Containers[1].ImagePullPolicy).To(Equal(corev1.PullAlways), "what a moving tag means changes")
	})
	t.Run("When several images are missing, it should name each once in the error", func(t *testing.T) {
		g := NewWithT(t)
		err := web().setImages(newScope(), pod("zebra", "web", "ant", "zebra"))
		missing, ok := errors.AsType[*MissingImagesError](err)
		g.Expect(ok).To(BeTrue())
		g.Expect(missing.Tags).To(Equal([]string{"ant", "zebra"}))
		g.Expect(err).To(MatchError("component etcd-web: the release payload has no image for ant, zebra; use a payload that has it"))
	})
	t.Run("When an annotation is for another container, it should not change this one", func(t *testing.T) {
		s := newScope()
		annotated(requestOverridePrefix+"web.sidecar", "cpu=2")(s)
		obj, err := web(func(c *Component) { c.Name = "web" }).Render(t.Context(), s)
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(obj.(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Resources.Requests.Cpu().String()).To(
			Equal("10m"), "the least of all")
	})
	t.Run("When an annotation sets one request, it should keep the manifest's other requests", func(t *testing.T) {
		g := NewWithT(t)
		container := renderedOf(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web, resources: {requests: {cpu: 100m, memory: 1Gi}}}]}
`, func(s *Scope, _ *Component) { annotated(requestOverridePrefix+"web.web", "memory=3Gi")(s) }).Spec.Template.Spec.Containers[0]
		g.Expect(container.Resources.Requests.Cpu().String()).To(Equal("100m"))
		g.Expect(container.Resources.Requests.Memory().String()).To(Equal("3Gi"))
	})
}

func TestTrustedCAsAreMounted(t *testing.T) {
	s := newScope()
	s.HCP.Spec.AdditionalTrustBundle = &corev1.LocalObjectReference{Name: "house"}
	obj, err := web(func(c *Component) { c.UserCAs = true }).Render(t.Context(), s)
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	pod := obj.(*appsv1.Deployment).Spec.Template.Spec
	var found *corev1.ConfigMapVolumeSource
	for _, volume := range pod.Volumes {
		if volume.Name == "user-ca-bundle" {
			found = volume.ConfigMap
		}
	}
	g.Expect(found).NotTo(BeNil())
	g.Expect(found.Name).To(Equal("user-ca-bundle"), "the copy in the hosted namespace, whatever the user calls theirs")
	g.Expect(*found.Optional).To(BeTrue(), "a pod must not wait for ever for a bundle that nobody copies any more")
	g.Expect(pod.Containers[0].VolumeMounts).To(ContainElement(And(HaveField("Name", "user-ca-bundle"), HaveField("ReadOnly", true))))
}
