// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"io/fs"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/hypershift-operator/platform/none"
)

// plugin is a platform with these kinds.
type plugin struct {
	none.Platform
	crds    []string
	watched []client.Object
	failure error
}

func (p plugin) CRDs() []string                    { return p.crds }
func (p plugin) Watched() []client.Object          { return p.watched }
func (p plugin) AddToScheme(*runtime.Scheme) error { return p.failure }
func (p plugin) New(platform.Environment) (platform.Platform, error) {
	return p, p.failure
}
func (plugin) AddFlags(*pflag.FlagSet) {}

// served returns a CRD that is established.
func served(name string) client.Object {
	return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: apiextensionsv1.CustomResourceDefinitionStatus{
		Conditions: []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}}}
}

func two() Registry {
	return Of(map[hyperv1.PlatformType]platform.Platform{
		hyperv1.MAASPlatform:  plugin{crds: []string{"a.example"}, watched: []client.Object{&corev1.Pod{}}},
		hyperv1.AgentPlatform: plugin{crds: []string{"b.example", "c.example"}, watched: []client.Object{&corev1.Secret{}, &corev1.Service{}}},
	})
}

func cluster(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

// TestServed checks that a platform is served only if all of its kinds are. Only the kinds of served platforms are
// watched and required.
func TestServed(t *testing.T) {
	for _, tc := range []struct {
		name    string
		there   []client.Object
		want    []hyperv1.PlatformType
		watched []client.Object
		crds    []string
		why     string
	}{
		{"When all CRDs exist, it should serve all platforms", []client.Object{served("a.example"), served("b.example"), served("c.example")},
			[]hyperv1.PlatformType{hyperv1.AgentPlatform, hyperv1.MAASPlatform}, []client.Object{&corev1.Secret{}, &corev1.Service{}, &corev1.Pod{}}, []string{"b.example", "c.example", "a.example"}, ""},
		{"When one of several CRDs is missing, it should disable the platform and name the CRD", []client.Object{served("a.example"), served("b.example")},
			[]hyperv1.PlatformType{hyperv1.MAASPlatform}, []client.Object{&corev1.Pod{}}, []string{"a.example"}, "does not serve c.example: run `hypershift install` again, with agent in --limit-crd-install"},
		{"When the only CRD of a platform is missing, it should serve the other platform", []client.Object{served("b.example"), served("c.example")},
			[]hyperv1.PlatformType{hyperv1.AgentPlatform}, []client.Object{&corev1.Secret{}, &corev1.Service{}}, []string{"b.example", "c.example"}, ""},
		{"When no CRD exists, it should serve no platform", nil, []hyperv1.PlatformType{}, nil, nil, "does not serve b.example, c.example:"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, r, c := NewWithT(t), two(), cluster(t, tc.there...)
			for range 2 {
				g.Expect(r.SwitchOff(t.Context(), c)).To(Succeed(), "another look finds the same")
				g.Expect(r.Supported()).To(Equal(tc.want))
				g.Expect(r.Watched()).To(Equal(tc.watched))
				g.Expect(r.CRDs()).To(Equal(tc.crds))
			}
			g.Expect(r.Why(hyperv1.AgentPlatform)).To(ContainSubstring(tc.why))
			plugin, _ := r.For(hyperv1.AgentPlatform)
			g.Expect(plugin).NotTo(BeNil(), "it still cleans up")
		})
	}
}

// TestLimitedToOthers checks that a platform that the installer excluded stays disabled even if its kinds exist, and
// that the message says how to enable it.
func TestLimitedToOthers(t *testing.T) {
	g, c := NewWithT(t), cluster(t, served("a.example"), served("b.example"), served("c.example"))
	r := two().Limit(" Agent ,none")
	g.Expect(r.SwitchOff(t.Context(), c)).To(Succeed())
	g.Expect(r.Supported()).To(Equal([]hyperv1.PlatformType{hyperv1.AgentPlatform}), "one kind is a kind")
	g.Expect(r.Why(hyperv1.MAASPlatform)).To(ContainSubstring("run `hypershift install` with maas in --limit-crd-install"))
	arrived, err := r.Arrived(t.Context(), c)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(arrived).To(BeEmpty(), "the operator would start anew for ever")
}

// TestArrivedUnread checks that no platform counts as arrived if the CRDs cannot be read.
func TestArrivedUnread(t *testing.T) {
	g, r := NewWithT(t), two()
	c := cluster(t)
	g.Expect(r.SwitchOff(t.Context(), c)).To(Succeed())
	arrived, err := r.Arrived(t.Context(), interceptor.NewClient(c, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("timed out")
		}}))
	g.Expect(err).To(MatchError("reading CRD b.example: timed out"))
	g.Expect(arrived).To(BeEmpty())
}

// TestBrokenPlugins checks that the operator does not start if a plugin cannot be created, and that the error names
// the plugin.
func TestBrokenPlugins(t *testing.T) {
	g := NewWithT(t)
	_, err := Options{"Mainframe": plugin{}}.New(platform.Environment{})
	g.Expect(err).To(MatchError("platform Mainframe has no row in the table of traits"))
	_, err = Options{hyperv1.MAASPlatform: plugin{failure: errors.New("flag m")}, hyperv1.AgentPlatform: plugin{failure: errors.New("flag a")}}.New(platform.Environment{})
	g.Expect(err).To(MatchError("flag a\nflag m"), "all that is wrong is told at once")
	r := Of(map[hyperv1.PlatformType]platform.Platform{hyperv1.MAASPlatform: plugin{failure: errors.New("taken")}, hyperv1.AgentPlatform: plugin{}})
	g.Expect(r.AddToScheme(runtime.NewScheme())).To(MatchError("registering the kinds of platform MAAS: taken"))
}

// TestFlags checks that the flags of all platforms do not conflict, and that each has an effect on its own platform.
func TestFlags(t *testing.T) {
	g, options := NewWithT(t), All()
	flags := pflag.NewFlagSet("operator", pflag.ContinueOnError)
	g.Expect(func() { options.AddFlags(flags) }).NotTo(Panic(), "no two platforms have a flag of one name")
	g.Expect(flags.Parse([]string{"--maas-allow-cidrs=10.0.0.0/8", "--kubevirt-allow-cidrs=nonsense"})).To(Succeed())
	_, err := options.New(platform.Environment{})
	g.Expect(err).To(MatchError(And(ContainSubstring("--kubevirt-allow-cidrs"), Not(ContainSubstring("--maas-allow-cidrs")))))
}

// TestProviders checks that every provider has the common name, has access to the management cluster, and is a
// singleton. The manifests that it adapts must exist.
func TestProviders(t *testing.T) {
	r := all(t)
	for _, platformType := range r.Supported() {
		t.Run("When the platform is "+string(platformType)+", its provider should have the common name and settings", func(t *testing.T) {
			g := NewWithT(t)
			served, _ := r.For(platformType)
			provider := served.Provider(platform.Cluster{HostedCluster: &hyperv1.HostedCluster{}, CredentialsHash: "x", OperatorImage: "operator:1"})
			if platformType == hyperv1.NonePlatform {
				g.Expect(provider).To(BeNil())
				return
			}
			g.Expect(provider.Name).To(Equal(platform.ProviderName))
			g.Expect(provider.Options).To(And(HaveField("ManagementAccess", true), HaveField("Singleton", true), HaveField("UserCAs", true), HaveField("Held", true)))
			names, err := fs.Glob(provider.Manifests, "*.yaml")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(names).To(ContainElements("deployment.yaml", "role.yaml"))
			for name := range provider.Adapters {
				g.Expect(names).To(ContainElement(name), "nobody would miss an adapter of a manifest that is not there")
			}
		})
	}
}
