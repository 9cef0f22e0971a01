// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/releaseinfo"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares an object with its file in testdata.
func golden(t *testing.T, name string, obj any) {
	t.Helper()
	got, err := yaml.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	goldenText(t, name, string(got))
}

// goldenText compares a text with its file in testdata.
func goldenText(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".yaml")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run the test with -update to write it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs from what is wanted (-want +got); run the test with -update if that is meant:\n%s", path, diff)
	}
}

// managed returns a scope as the phases before the managers leave it.
func managed(t *testing.T, image string, edit ...func(*hyperv1.HostedCluster)) *scope {
	t.Helper()
	s := withScope()
	s.images = images{release: image}
	s.Release = fixture.Payloads()[image]
	s.HC.Spec.Release.Image = image
	s.securityUID = "1001"
	s.CredentialsHash = "hash"
	for _, f := range edit {
		f(s.HC)
	}
	s.Platform, _ = fixture.Platforms(nil).For(s.HC.Spec.Platform.Type)
	s.HCP = &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.HC.Name}}
	mirrorLabels(s.HC, s.HCP)
	mirrorAnnotations(s.HC, s.HCP)
	if err := s.shapeControlPlane(s.HCP); err != nil {
		t.Fatal(err)
	}
	return s
}

// testReconciler returns a Reconciler with settings, and a hosted namespace with the objects that the managers mount.
func testReconciler(mounted ...client.Object) *Reconciler {
	return &Reconciler{
		Client: fake.NewClientBuilder().WithScheme(fixture.Scheme()).WithObjects(mounted...).Build(),
		Settings: Settings{
			OperatorImage:     operatorImage,
			RegistryOverrides: map[string]string{"quay.io": "mirror.example/quay", "docker.io": "mirror.example/docker", "ghcr.io": "mirror.example/ghcr"},
			PassedEnv:         map[string]string{"CERT_ROTATION_SCALE": "24h", "METRICS_SET": "Telemetry", "HTTP_PROXY": "http://proxy"},
		},
	}
}

// managers returns the Deployments of the three managers, or of two on a platform without a provider.
func (r *Reconciler) managers(t *testing.T, s *scope) []*appsv1.Deployment {
	t.Helper()
	components := []*component.Component{r.controlPlaneOperator(s), s.capiManager()}
	if provider := s.Platform.Provider(s.ForPlatform(operatorImage)); provider != nil {
		components = append(components, provider)
	}
	var all []*appsv1.Deployment
	for _, c := range components {
		obj, err := c.Render(t.Context(), r.components(s))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, obj.(*appsv1.Deployment))
	}
	return all
}

func TestManagersGolden(t *testing.T) {
	for distribution, image := range map[string]string{"kubernetes": fixture.ReleaseImage, "openshift": fixture.OCPImage} {
		t.Run("When the release is of "+distribution+", it should run the managers of the golden files", func(t *testing.T) {
			for _, deployment := range testReconciler().managers(t, managed(t, image)) {
				golden(t, distribution+"-"+deployment.Name, deployment)
			}
		})
	}
}

// TestForeignProvider runs CAPMAAS's own image instead of the product's provider.
func TestForeignProvider(t *testing.T) {
	c := fixture.Start(t)
	s := newWorld(t, c, "foreign")
	hc := fixture.HostedCluster(s.namespace)
	hc.Annotations = map[string]string{hyperv1.ClusterAPIProviderMAASImage: "registry.example/capmaas:v0.9.0"}
	fixture.Create(t, c, append(fixture.Inputs(s.namespace), hc)...)
	s.mustPass()
	s.serve()
	s.mustPass()
	t.Run("When the CAPMAAS image is used, it should start with the arguments that it needs", func(t *testing.T) {
		var documents []string
		for _, list := range []client.ObjectList{&appsv1.DeploymentList{}, &rbacv1.RoleList{}} {
			for _, document := range s.documents(list) {
				if strings.Contains(document, "\n  name: capi-provider\n") {
					documents = append(documents, document)
				}
			}
		}
		text := strings.ReplaceAll(strings.Join(documents, "---\n"), s.namespace, "clusters")
		uid := regexp.MustCompile(`(fsGroup|runAsUser): \d+`).ReplaceAllString(text, "$1: 1001")
		goldenText(t, "foreign-capi-provider", variable.ReplaceAllString(uid, "$1: VARIES"))
	})
	t.Run("When the CAPMAAS image is used, its credentials should be in the keys that it reads", func(t *testing.T) {
		mirror := &corev1.Secret{}
		s.get(mirror, hosted.CopyName(hosted.UsePlatform, fixture.Credentials))
		NewWithT(t).Expect(mirror.Data).To(And(HaveKeyWithValue("MAAS_ENDPOINT", []byte(fixture.Endpoint)), HaveKeyWithValue("MAAS_API_KEY", []byte(fixture.APIKey))))
		tls := &corev1.Secret{}
		s.get(tls, naming.CAPIWebhookCert)
		NewWithT(t).Expect(tls.Data).To(And(HaveKey("tls.crt"), HaveKey("tls.key")))
	})
	t.Run("When the CAPMAAS image is used, a condition should report what it does not honor until it is removed", func(t *testing.T) {
		g := NewWithT(t)
		said := s.condition(hyperv1.PlatformProviderSupported)
		g.Expect(said.Status).To(Equal(metav1.ConditionFalse))
		g.Expect(said.Message).To(And(ContainSubstring("made by registry.example/capmaas:v0.9.0"), ContainSubstring("the certificate of MAAS"), ContainSubstring("remove the annotation")))
		changed := s.cluster()
		delete(changed.Annotations, hyperv1.ClusterAPIProviderMAASImage)
		g.Expect(c.Update(t.Context(), changed)).To(Succeed())
		s.mustPass()
		g.Expect(meta.FindStatusCondition(s.cluster().Status.Conditions, string(hyperv1.PlatformProviderSupported))).To(BeNil())
	})
}

func TestControlPlaneOperatorImage(t *testing.T) {
	for _, tc := range []struct{ name, release, annotation, setting, want string }{
		{"When the release has an operator image, it should run that image", fixture.OCPImage, "", "", "registry.example/ocp-hypershift:1"},
		{"When the release is Kubernetes, it should run the product's image", fixture.ReleaseImage, "", "", operatorImage},
		{"When the operator is started with another image, it should run that image", fixture.OCPImage, "", "setting:1", "setting:1"},
		{"When the cluster names an image, it should take precedence", fixture.OCPImage, "annotation:1", "setting:1", "annotation:1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, s := NewWithT(t), managed(t, tc.release)
			if tc.annotation != "" {
				s.HC.Annotations = map[string]string{hyperv1.ControlPlaneOperatorImageAnnotation: tc.annotation}
			}
			r := &Reconciler{Settings: Settings{OperatorImage: operatorImage, ControlPlaneOperatorImage: tc.setting}}
			g.Expect(r.controlPlaneOperatorImage(s)).To(Equal(tc.want))
		})
	}
}

func TestCAPIManagerImage(t *testing.T) {
	t.Run("When the release has no Cluster API image, it should return an error unless an annotation names one", func(t *testing.T) {
		g, r, s := NewWithT(t), testReconciler(), managed(t, fixture.ReleaseImage)
		s.Release = releaseinfo.New(fixture.ReleaseImage, releaseinfo.Payload{Version: "1.36.3", Distribution: releaseinfo.Kubernetes})
		_, err := s.capiManager().Render(t.Context(), r.components(s))
		g.Expect(err).To(MatchError(ContainSubstring("the release payload has no image for cluster-capi-controllers")))
		s.HC.Annotations = map[string]string{hyperv1.ClusterAPIManagerImage: "capi:1"}
		obj, err := s.capiManager().Render(t.Context(), r.components(s))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(obj.(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Image).To(Equal("capi:1"))
	})
}

func TestRolled(t *testing.T) {
	named := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: fixture.Hosted("clusters"), Name: name}
	}
	for name, tc := range map[string]struct {
		object client.Object
		rolls  []string
	}{
		"the trust bundle": {&corev1.ConfigMap{ObjectMeta: named(naming.TrustBundle), Data: map[string]string{"ca-bundle.crt": "PEM"}},
			[]string{controlPlaneOperatorName, capiManagerName, capiProviderName}},
	} {
		t.Run("When the content of "+name+" changes, it should restart the managers that mount it", func(t *testing.T) {
			s := managed(t, fixture.ReleaseImage)
			before, after := testReconciler().managers(t, s), testReconciler(tc.object).managers(t, s)
			var rolled []string
			for i := range before {
				if !equality.Semantic.DeepEqual(before[i].Spec.Template, after[i].Spec.Template) {
					rolled = append(rolled, before[i].Name)
				}
			}
			NewWithT(t).Expect(rolled).To(Equal(tc.rolls))
		})
	}
}

func TestNoSecretsInPods(t *testing.T) {
	t.Run("When a manager runs, its Pod spec should contain no credentials", func(t *testing.T) {
		raw, err := yaml.Marshal(testReconciler().managers(t, managed(t, fixture.ReleaseImage)))
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		for _, secret := range strings.Split(fixture.APIKey, ":") {
			g.Expect(string(raw)).NotTo(ContainSubstring(": " + secret + "\n"))
		}
	})
}
