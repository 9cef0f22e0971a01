// SPDX-License-Identifier: Apache-2.0

package configoperator

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/component"
)

type anyImage struct{}

func (anyImage) ComponentImage(tag string) (string, bool) { return "registry.example/" + tag, true }

func podOf(t *testing.T, config Config, edit func(*hyperv1.HostedControlPlane)) corev1.PodSpec {
	t.Helper()
	hcp := fixture.ControlPlane()
	edit(hcp)
	obj, err := New(config).Render(t.Context(), &component.Scope{
		HCP: hcp, Version: "1.36.3", Images: anyImage{}, Client: fake.NewClientBuilder().WithScheme(fixture.Scheme()).Build(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*appsv1.Deployment).Spec.Template.Spec
}

// TestWhatIsPassedOn checks that the config operator gets this operator's settings for mirrors, proxies and releases.
func TestWhatIsPassedOn(t *testing.T) {
	proxy := []corev1.EnvVar{{Name: "HTTPS_PROXY", Value: "http://proxy"}, {Name: "NO_PROXY", Value: ".svc"}}
	pod := podOf(t, Config{Image: "op:1", RegistryOverrides: "a=b", ImageOverrides: "c=d", Inherited: proxy}, func(hcp *hyperv1.HostedControlPlane) {
		hcp.Name, hcp.Spec.ReleaseImage, hcp.Spec.Platform.Type = "prod", "release:7", hyperv1.KubevirtPlatform
	})
	g, env := NewWithT(t), map[string]string{}
	for _, e := range pod.Containers[0].Env {
		env[e.Name] = e.Value
	}
	for name, want := range map[string]string{
		"OPENSHIFT_RELEASE_VERSION": "1.36.3", "KUBERNETES_VERSION": "1.36.3", "OPERATE_ON_RELEASE_IMAGE": "release:7",
		"OPENSHIFT_IMG_OVERRIDES": "c=d", "HOSTED_CLUSTER_CONFIG_OPERATOR_IMAGE": "op:1", "HTTPS_PROXY": "http://proxy", "NO_PROXY": ".svc",
	} {
		g.Expect(env).To(HaveKeyWithValue(name, want))
	}
	g.Expect(pod.Containers[0].Args).To(ContainElements("--platform-type=KubeVirt", "--hosted-control-plane=prod", "--registry-overrides=a=b", "--namespace=$(POD_NAMESPACE)"))
	// Kubernetes only expands variables that are defined earlier in the list.
	g.Expect(slices.IndexFunc(pod.Containers[0].Env, func(e corev1.EnvVar) bool { return e.Name == "POD_NAMESPACE" && e.ValueFrom != nil })).To(BeNumerically(">=", 0))
}

func TestWhatIsNotSaid(t *testing.T) {
	pod := podOf(t, Config{}, func(*hyperv1.HostedControlPlane) {})
	g := NewWithT(t)
	for _, arg := range pod.Containers[0].Args {
		g.Expect(strings.HasPrefix(arg, "--registry-overrides")).To(BeFalse(), "an empty one is none that it could read")
	}
	g.Expect(*pod.AutomountServiceAccountToken).To(BeTrue(), "it reports into the management cluster")
}

func TestTrust(t *testing.T) {
	pod := podOf(t, Config{}, func(hcp *hyperv1.HostedControlPlane) {
		hcp.Spec.AdditionalTrustBundle = &corev1.LocalObjectReference{Name: "house"}
	})
	NewWithT(t).Expect(pod.Containers[0].Env).To(ContainElement(HaveField("Name", "SSL_CERT_DIR")), "it asks registries that the user's CA signed")
}
