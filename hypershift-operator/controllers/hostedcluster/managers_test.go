package hostedcluster

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares an object with its file in testdata.
func golden(t *testing.T, name string, obj any) {
	t.Helper()
	got, err := yaml.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name+".yaml")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run the test with -update to write it", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs from what is wanted (-want +got); run the test with -update if that is meant:\n%s", path, diff)
	}
}

// managed is a scope in which all earlier phases have run.
func managed(image string) *scope {
	s := withScope()
	s.images = images{release: image}
	s.release = fixture.Payloads()[image]
	s.hc.Spec.Release.Image = image
	s.trustBundle = []byte("PEM")
	s.securityUID = "1001"
	s.credentialsHash = "hash"
	s.platform, _ = fixture.Platforms(nil).For(hyperv1.MAASPlatform)
	return s
}

func decorated(s *scope, name string, spec appsv1.DeploymentSpec) *appsv1.Deployment {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}, Spec: spec}
	s.decorate(deployment)
	return deployment
}

func TestManagersGolden(t *testing.T) {
	r := &Reconciler{Settings: Settings{
		OperatorImage: operatorImage, RegistryOverrides: map[string]string{"quay.io": "mirror.example/quay"},
		PassedEnv: map[string]string{"CERT_ROTATION_SCALE": "24h", "METRICS_SET": "Telemetry"},
	}}
	for distribution, image := range map[string]string{"kubernetes": fixture.ReleaseImage, "openshift": fixture.OCPImage} {
		t.Run("When the release is of "+distribution+" it should run these managers", func(t *testing.T) {
			g, s := NewWithT(t), managed(image)
			operator, err := r.controlPlaneOperatorImage(s)
			g.Expect(err).NotTo(HaveOccurred())
			golden(t, distribution+"-control-plane-operator", decorated(s, controlPlaneOperatorName, r.controlPlaneOperatorSpec(s, operator)))
			capi, err := s.capiManagerImage()
			g.Expect(err).NotTo(HaveOccurred())
			golden(t, distribution+"-cluster-api", decorated(s, capiManagerName, s.capiManagerSpec(capi)))
			golden(t, distribution+"-capi-provider", decorated(s, capiProviderName, *s.platform.ProviderDeployment(s.cluster(operatorImage))))
		})
	}
}

func TestControlPlaneOperatorImage(t *testing.T) {
	for _, tc := range []struct{ name, release, annotation, setting, want string }{
		{"When the release carries an operator it should run that", fixture.OCPImage, "", "", "registry.example/ocp-hypershift:1"},
		{"When the release is Kubernetes it should run the product's", fixture.ReleaseImage, "", "", operatorImage},
		{"When the operator was started with another it should run that", fixture.OCPImage, "", "setting:1", "setting:1"},
		{"When the cluster names one it should win", fixture.OCPImage, "annotation:1", "setting:1", "annotation:1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, s := NewWithT(t), managed(tc.release)
			if tc.annotation != "" {
				s.hc.Annotations = map[string]string{hyperv1.ControlPlaneOperatorImageAnnotation: tc.annotation}
			}
			r := &Reconciler{Settings: Settings{OperatorImage: operatorImage, ControlPlaneOperatorImage: tc.setting}}
			image, err := r.controlPlaneOperatorImage(s)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(image).To(Equal(tc.want))
		})
	}
}

func TestDecorate(t *testing.T) {
	t.Run("When the cluster has labels, tolerations and a priority it should hand them on", func(t *testing.T) {
		g, s := NewWithT(t), managed(fixture.ReleaseImage)
		s.hc.Spec.Labels = map[string]string{"team": "a", "app": "evil"}
		s.hc.Spec.Tolerations = []corev1.Toleration{{Key: "mine"}}
		s.hc.Spec.NodeSelector = map[string]string{"disk": "fast"}
		s.hc.Annotations = map[string]string{hyperv1.ControlPlanePriorityClass: "high"}
		pod := decorated(s, "x", appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{}}}}}).Spec.Template
		g.Expect(pod.Labels).To(HaveKeyWithValue("team", "a"))
		g.Expect(pod.Spec.Tolerations).To(ContainElement(corev1.Toleration{Key: "mine"}))
		g.Expect(pod.Spec.NodeSelector).To(HaveKeyWithValue("disk", "fast"))
		g.Expect(pod.Spec.PriorityClassName).To(Equal("high"))
	})
	t.Run("When the trust bundle changes it should roll the pods", func(t *testing.T) {
		g, s := NewWithT(t), managed(fixture.ReleaseImage)
		template := func() corev1.PodTemplateSpec {
			return decorated(s, "x", appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{}}}}}).Spec.Template
		}
		before := template()
		s.trustBundle = []byte("other PEM")
		g.Expect(template().Annotations).NotTo(Equal(before.Annotations))
	})
	t.Run("When a container lists certificate folders already it should add one more", func(t *testing.T) {
		container := &corev1.Container{Env: []corev1.EnvVar{{Name: "SSL_CERT_DIR", Value: "/a"}}}
		addCertDir(container)
		NewWithT(t).Expect(container.Env).To(Equal([]corev1.EnvVar{{Name: "SSL_CERT_DIR", Value: "/a:" + trustDir}}))
	})
}

func TestNoSecretsInPods(t *testing.T) {
	t.Run("When a manager runs it should carry no credentials in its spec", func(t *testing.T) {
		s := managed(fixture.ReleaseImage)
		raw, err := yaml.Marshal(s.platform.ProviderDeployment(s.cluster(operatorImage)))
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		for _, secret := range strings.Split(fixture.APIKey, ":") {
			g.Expect(string(raw)).NotTo(ContainSubstring(": " + secret + "\n"))
		}
	})
}

func TestPolicies(t *testing.T) {
	names := func(hc *hyperv1.HostedCluster) []string {
		var all []string
		for _, p := range policies(hc) {
			all = append(all, p.name)
		}
		return all
	}
	t.Run("When services are published by NodePort it should let the world reach them", func(t *testing.T) {
		NewWithT(t).Expect(names(fixture.HostedCluster("clusters"))).To(Equal([]string{
			"openshift-ingress", "same-namespace", "kas", "openshift-monitoring", "nodeport-oauth",
			"nodeport-konnectivity", "nodeport-konnectivity-kas", "nodeport-ignition", "nodeport-ignition-proxy",
		}))
	})
	t.Run("When services are published by Route it should open nothing for them", func(t *testing.T) {
		hc := fixture.HostedCluster("clusters")
		for i := range hc.Spec.Services {
			hc.Spec.Services[i].ServicePublishingStrategy = hyperv1.ServicePublishingStrategy{Type: hyperv1.Route}
		}
		NewWithT(t).Expect(names(hc)).To(Equal([]string{"openshift-ingress", "same-namespace", "kas", "openshift-monitoring"}))
	})
	t.Run("When the API server has another port it should open both", func(t *testing.T) {
		port := int32(7443)
		hc := fixture.HostedCluster("clusters")
		hc.Spec.Networking.APIServer = &hyperv1.APIServerNetworking{Port: &port}
		NewWithT(t).Expect(apiPorts(hc)).To(Equal([]int32{6443, 7443}))
	})
}
