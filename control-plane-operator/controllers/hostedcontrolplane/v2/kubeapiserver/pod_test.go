// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"path"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/component"
)

// anyImage is a payload that has every image.
type anyImage struct{}

func (anyImage) ComponentImage(tag string) (string, bool) {
	return "registry.example/" + tag + ":1", true
}

func scopeOf(hcp *hyperv1.HostedControlPlane, objects ...client.Object) *component.Scope {
	return &component.Scope{Client: hostedClient(objects...), HCP: hcp, Version: "1.36.3", Images: anyImage{}}
}

// rendered returns the Deployment of the API server as it would be applied.
func rendered(t *testing.T, scope *component.Scope) *appsv1.Deployment {
	t.Helper()
	obj, err := New().Render(t.Context(), scope)
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*appsv1.Deployment)
}

// everyOption sets all options that add files to the API server.
func everyOption(hcp *hyperv1.HostedControlPlane) {
	encryptedWith("a-key")(hcp)
	hcp.Spec.AuditWebhook = &corev1.LocalObjectReference{Name: "audit"}
	hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{
		Authentication: &configv1.AuthenticationSpec{Type: configv1.AuthenticationTypeOIDC, OIDCProviders: []configv1.OIDCProvider{byClaims()}},
		APIServer: &configv1.APIServerSpec{
			ClientCA: configv1.ConfigMapNameReference{Name: "house-ca"},
			ServingCerts: configv1.APIServerServingCerts{NamedCertificates: []configv1.APIServerNamedServingCert{
				{ServingCertificate: configv1.SecretNameReference{Name: "first-cert"}}, {ServingCertificate: configv1.SecretNameReference{Name: "second-cert"}},
			}},
		},
	}
}

func auditSecret() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "audit"},
		Data:       map[string][]byte{hyperv1.AuditWebhookKubeconfigKey: []byte(kubeconfig(plainServer, "{}"))},
	}
}

// files matches paths in flags.
var files = regexp.MustCompile(`/(?:etc|var)/[^,:]+`)

// TestEachFileIsMounted checks that each file that a flag names is mounted: the API server does not start without it.
func TestEachFileIsMounted(t *testing.T) {
	for name, tc := range map[string]struct {
		edit    func(*hyperv1.HostedControlPlane)
		objects []client.Object
	}{
		"no options":                   {func(*hyperv1.HostedControlPlane) {}, nil},
		"every option that adds files": {everyOption, []client.Object{auditSecret()}},
	} {
		t.Run("When a cluster requests "+name+" each file in its flags should be mounted", func(t *testing.T) {
			g := NewWithT(t)
			pod := rendered(t, scopeOf(clusterWith(tc.edit), tc.objects...)).Spec.Template.Spec
			container := pod.Containers[0]
			volumes := map[string]bool{}
			for _, volume := range pod.Volumes {
				g.Expect(volumes[volume.Name]).To(BeFalse(), "volume %s is there twice", volume.Name)
				volumes[volume.Name] = true
			}
			mounts := map[string]bool{}
			for _, mount := range container.VolumeMounts {
				g.Expect(volumes).To(HaveKey(mount.Name))
				g.Expect(mounts[mount.MountPath]).To(BeFalse(), "something is mounted at %s twice", mount.MountPath)
				mounts[mount.MountPath] = true
			}
			found := 0
			for _, flag := range container.Args {
				for _, file := range files.FindAllString(flag, -1) {
					g.Expect(mounts).To(HaveKey(path.Dir(file)), flag)
					found++
				}
			}
			g.Expect(found).To(BeNumerically(">", 15), "it finds them in %v", container.Args)
		})
	}
}

// TestWhatIsMounted checks that each requested object is mounted by its own name, and nothing else.
func TestWhatIsMounted(t *testing.T) {
	sources := func(pod corev1.PodSpec) []string {
		var names []string
		for _, volume := range pod.Volumes {
			switch {
			case volume.Secret != nil:
				names = append(names, "secret "+volume.Secret.SecretName)
			case volume.ConfigMap != nil:
				names = append(names, "configmap "+volume.ConfigMap.Name)
			}
		}
		return names
	}
	optional := []string{
		"secret kas-secret-encryption-config", "configmap auth-config", "configmap kas-client-signers", "secret kas-webhooks", "secret first-cert", "secret second-cert",
	}
	g := NewWithT(t)
	all := rendered(t, scopeOf(clusterWith(everyOption), auditSecret())).Spec.Template.Spec
	g.Expect(sources(all)).To(ContainElements(optional))
	g.Expect(sources(all)).NotTo(ContainElement("secret audit"), "what the user writes reaches the API server only when it was found good")
	plain := sources(rendered(t, scopeOf(clusterWith())).Spec.Template.Spec)
	for _, name := range optional {
		g.Expect(plain).NotTo(ContainElement(name))
	}
	for _, mount := range all.Containers[0].VolumeMounts {
		for _, dir := range []string{encryptionDir, authenticationDir, clientSignersDir, webhooksDir, namedDir(0), namedDir(1)} {
			if mount.MountPath == dir {
				g.Expect(mount.ReadOnly).To(BeTrue(), dir)
			}
		}
	}
}

func TestGrace(t *testing.T) {
	for name, edit := range map[string]func(*hyperv1.HostedControlPlane){"single": func(*hyperv1.HostedControlPlane) {}, "highly available": highlyAvailable} {
		t.Run("When a "+name+" API server stops, it should finish requests before it is killed", func(t *testing.T) {
			g, hcp := NewWithT(t), clusterWith(edit)
			grace := rendered(t, scopeOf(hcp)).Spec.Template.Spec.TerminationGracePeriodSeconds
			// Kubernetes waits up to a minute for running requests.
			g.Expect(grace).To(HaveValue(BeNumerically(">", shutdownOf(hcp).delay)))
			if shutdownOf(hcp).delay > 0 {
				g.Expect(*grace - shutdownOf(hcp).delay).To(BeNumerically(">=", 60))
			}
		})
	}
}

func TestTuning(t *testing.T) {
	env := func(edit func(*hyperv1.HostedControlPlane)) string {
		var texts []string
		for _, e := range rendered(t, scopeOf(clusterWith(edit))).Spec.Template.Spec.Containers[0].Env {
			texts = append(texts, e.Name+"="+e.Value)
		}
		return strings.Join(texts, " ")
	}
	for _, tc := range []struct {
		name string
		edit func(*hyperv1.HostedControlPlane)
		want string
	}{
		{"an annotation sets GOGC", annotatedWith(hyperv1.KubeAPIServerGOGCAnnotation, "75"), "GOGC=75"},
		{"an annotation sets the memory limit", annotatedWith(hyperv1.KubeAPIServerGOMemoryLimitAnnotation, "2GiB"), "GOMEMLIMIT=2GiB GOGC=50"},
		{"an annotation is empty", annotatedWith(hyperv1.KubeAPIServerGOMemoryLimitAnnotation, ""), "GOGC=50"},
	} {
		t.Run("When "+tc.name+" the container should have these variables", func(t *testing.T) {
			NewWithT(t).Expect(env(tc.edit)).To(Equal(tc.want))
		})
	}
}
