// SPDX-License-Identifier: Apache-2.0

package ignitionserver

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	routev1 "github.com/openshift/api/route/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/component"
)

type anyImage struct{}

func (anyImage) ComponentImage(tag string) (string, bool) { return "registry.example/" + tag, true }

// scopeOf returns a control plane whose ignition-server is published by a strategy; nil leaves it out.
func scopeOf(strategy *hyperv1.ServicePublishingStrategy) *component.Scope {
	hcp := fixture.ControlPlane()
	hcp.UID, hcp.Spec.Services = "plane", nil
	if strategy != nil {
		hcp.Spec.Services = []hyperv1.ServicePublishingStrategyMapping{{Service: hyperv1.Ignition, ServicePublishingStrategy: *strategy}}
	}
	return &component.Scope{
		HCP: hcp, Version: "1.36.3", Images: anyImage{}, Infra: &component.Infra{Ignition: component.Endpoint{Host: "ignition.example.com"}},
		Client: fake.NewClientBuilder().WithScheme(fixture.Scheme()).WithObjects(hcp).WithStatusSubresource(&hyperv1.ControlPlaneComponent{}).Build(),
	}
}

func nodePort(port int32) *hyperv1.ServicePublishingStrategy {
	return &hyperv1.ServicePublishingStrategy{Type: hyperv1.NodePort, NodePort: &hyperv1.NodePortPublishingStrategy{Address: "192.0.2.10", Port: port}}
}

func route() *hyperv1.ServicePublishingStrategy {
	return &hyperv1.ServicePublishingStrategy{Type: hyperv1.Route}
}

func TestPublishing(t *testing.T) {
	for _, tc := range []struct {
		name     string
		strategy *hyperv1.ServicePublishingStrategy
		service  corev1.ServiceType
		port     int32
		route    string
	}{
		{"a node port that the user sets", nodePort(31000), corev1.ServiceTypeNodePort, 31000, ""},
		{"a node port that Kubernetes allocates", nodePort(0), corev1.ServiceTypeNodePort, 0, ""},
		{"a route", route(), corev1.ServiceTypeClusterIP, 0, "ignition.example.com"},
	} {
		t.Run("When it is published by "+tc.name+" it should have that port or Route only", func(t *testing.T) {
			g, scope := NewWithT(t), scopeOf(tc.strategy)
			g.Expect(New(Config{}).Reconcile(t.Context(), scope)).To(Succeed())
			service, published := &corev1.Service{}, &routev1.Route{}
			key := client.ObjectKey{Namespace: scope.HCP.Namespace, Name: Name}
			g.Expect(scope.Client.Get(t.Context(), key, service)).To(Succeed())
			g.Expect(service.Spec.Type).To(Equal(tc.service))
			g.Expect(service.Spec.Ports[0].NodePort).To(Equal(tc.port))
			err := scope.Client.Get(t.Context(), key, published)
			if tc.route == "" {
				g.Expect(apierrors.IsNotFound(err)).To(BeTrue())
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(published.Spec.Host).To(Equal(tc.route))
			g.Expect(published.Spec.To.Name).To(Equal(Name))
			g.Expect(published.Spec.TLS.Termination).To(Equal(routev1.TLSTerminationPassthrough), "machines trust the server's own certificate")
		})
	}
	t.Run("When publishing changes from a Route to a node port, it should delete the Route", func(t *testing.T) {
		g, scope := NewWithT(t), scopeOf(route())
		g.Expect(New(Config{}).Reconcile(t.Context(), scope)).To(Succeed())
		scope.HCP.Spec.Services[0].ServicePublishingStrategy = *nodePort(31000)
		g.Expect(New(Config{}).Reconcile(t.Context(), scope)).To(Succeed())
		err := scope.Client.Get(t.Context(), client.ObjectKey{Namespace: scope.HCP.Namespace, Name: Name}, &routev1.Route{})
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue())
	})
}

func TestEnabled(t *testing.T) {
	for _, tc := range []struct {
		name        string
		strategy    *hyperv1.ServicePublishingStrategy
		annotations map[string]string
		want        bool
	}{
		{"it is published", nodePort(0), nil, true},
		{"it cannot be reached", nil, nil, false},
		{"an annotation with any value disables it", nodePort(0), map[string]string{hyperv1.DisableIgnitionServerAnnotation: ""}, false},
	} {
		t.Run("When "+tc.name+" it should decide whether the component runs", func(t *testing.T) {
			scope := scopeOf(tc.strategy)
			scope.HCP.Annotations = tc.annotations
			got, err := enabled(t.Context(), scope)
			g := NewWithT(t)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
		})
	}
}

// TestRights checks the permissions of the server. Machines without an identity call it, so it may only read the
// objects that it serves, each by name.
func TestRights(t *testing.T) {
	secrets := func(key string) []string {
		scope := scopeOf(nodePort(0))
		scope.HCP.Spec.SSHKey.Name = key
		if err := New(Config{}).Reconcile(t.Context(), scope); err != nil {
			t.Fatal(err)
		}
		role, names := &rbacv1.Role{}, []string{}
		if err := scope.Client.Get(t.Context(), client.ObjectKey{Namespace: scope.HCP.Namespace, Name: Name}, role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			if !slices.Contains(rule.Resources, "secrets") {
				continue
			}
			if len(rule.ResourceNames) == 0 || !slices.Equal(rule.Verbs, []string{"get"}) {
				t.Errorf("it may do with Secrets what it need not: %v", rule)
			}
			names = append(names, rule.ResourceNames...)
		}
		return names
	}
	g := NewWithT(t)
	g.Expect(secrets("")).To(ConsistOf("pull-secret", "bootstrap-kubeconfig"))
	g.Expect(secrets("ssh-key")).To(ConsistOf("pull-secret", "bootstrap-kubeconfig", "ssh-key"))
}

func TestWhatIsPassedOn(t *testing.T) {
	rendered := func(config Config) corev1.Container {
		scope := scopeOf(nodePort(0))
		scope.HCP.Spec.Platform.Type = hyperv1.AgentPlatform
		obj, err := New(config).Render(t.Context(), scope)
		if err != nil {
			t.Fatal(err)
		}
		return obj.(*appsv1.Deployment).Spec.Template.Spec.Containers[0]
	}
	g := NewWithT(t)
	all := rendered(Config{RegistryOverrides: "a=b", ImageOverrides: "c=d", Inherited: []corev1.EnvVar{{Name: "HTTPS_PROXY", Value: "http://proxy"}}})
	g.Expect(all.Args).To(ContainElements("--registry-overrides=a=b", "--platform=Agent"))
	g.Expect(all.Env).To(ContainElements(corev1.EnvVar{Name: "OPENSHIFT_IMG_OVERRIDES", Value: "c=d"}, corev1.EnvVar{Name: "HTTPS_PROXY", Value: "http://proxy"}))
	g.Expect(rendered(Config{}).Args).NotTo(ContainElement(HavePrefix("--registry-overrides")), "an empty one is none that it could read")
}
