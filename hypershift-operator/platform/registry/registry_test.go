// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/hypershift-operator/platform/maas"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/platforms"
)

func all(t *testing.T) Registry {
	t.Helper()
	r, err := All().New(platform.Environment{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRegistry(t *testing.T) {
	r := all(t)
	t.Run("When no platform is excluded, it should support all documented platforms", func(t *testing.T) {
		NewWithT(t).Expect(r.Supported()).To(ConsistOf(hyperv1.NonePlatform, hyperv1.MAASPlatform, hyperv1.AgentPlatform, hyperv1.KubevirtPlatform, hyperv1.AWSPlatform))
	})
	for _, platformType := range r.Supported() {
		plugin, _ := r.For(platformType)
		traits, known := platforms.Of(platformType)
		t.Run("When a platform has a plugin, its traits should match the plugin: "+string(platformType), func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(known).To(BeTrue())
			provider := slices.DeleteFunc(slices.Clone(plugin.CRDs()), func(name string) bool { return slices.Contains(crds.Names(crds.HyperShift), name) })
			g.Expect(provider).To(ConsistOf(crds.Names(traits.CRDs)), "what install installs besides ours and what the plugin asks for")
			g.Expect(plugin.MachineTemplates() != nil).To(Equal(plugin.Machines() != nil), "who makes machines has templates for them")
		})
		t.Run("When a plugin watches a kind, its scheme and CRD list should include the kind: "+string(platformType), func(t *testing.T) {
			g := NewWithT(t)
			scheme := runtime.NewScheme()
			g.Expect(hyperv1.AddToScheme(scheme)).To(Succeed(), "the operator has it whatever the platforms")
			g.Expect(plugin.AddToScheme(scheme)).To(Succeed())
			for _, kind := range plugin.Watched() {
				gvk, err := apiutil.GVKForObject(kind, scheme)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(plugin.CRDs()).To(ContainElement(strings.ToLower(gvk.Kind) + "s." + gvk.Group))
			}
		})
	}
	t.Run("When a platform has no plugin, it should report the supported platforms", func(t *testing.T) {
		_, served := r.For("Mainframe")
		NewWithT(t).Expect(served).To(BeFalse())
		NewWithT(t).Expect(r.Why("Mainframe")).To(ContainSubstring("MAAS"))
	})
	t.Run("When a flag is invalid, it should return an error that names the flag", func(t *testing.T) {
		options := All()
		options[hyperv1.MAASPlatform] = &maas.Options{AllowCIDRs: "nonsense"}
		_, err := options.New(platform.Environment{})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("--maas-allow-cidrs")))
	})
	t.Run("When the installer sets a provider image, the plugin should use it", func(t *testing.T) {
		t.Setenv("IMAGE_MAAS_CAPI_PROVIDER", "registry.example/mine:1")
		plugin, _ := all(t).For(hyperv1.MAASPlatform)
		provider := plugin.Provider(platform.Cluster{HostedCluster: &hyperv1.HostedCluster{}, CredentialsHash: "x"})
		NewWithT(t).Expect(provider.Images).To(ContainElement("registry.example/mine:1"))
	})
}

func TestLimit(t *testing.T) {
	for _, tc := range []struct {
		installed string
		maas      bool
	}{{"", true}, {"maas", true}, {"AWS, MAAS", true}, {"none", false}, {"agent,kubevirt", false}} {
		t.Run("When the CRDs of \""+tc.installed+"\" are installed, it should serve those platforms and all platforms without CRDs", func(t *testing.T) {
			g := NewWithT(t)
			r := all(t).Limit(tc.installed)
			plugin, served := r.For(hyperv1.MAASPlatform)
			g.Expect(served).To(Equal(tc.maas))
			g.Expect(plugin).NotTo(BeNil(), "it still cleans up")
			g.Expect(r.Why(hyperv1.MAASPlatform) == "").To(Equal(tc.maas))
			g.Expect(r.Supported()).To(ContainElement(hyperv1.NonePlatform))
		})
	}
}

func TestSwitchOff(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())
	c := fake.NewClientBuilder().WithScheme(scheme).Build()
	r := all(t)
	g.Expect(r.SwitchOff(t.Context(), c)).To(Succeed())
	g.Expect(r.Supported()).To(Equal([]hyperv1.PlatformType{hyperv1.NonePlatform}))
	g.Expect(r.Watched()).To(BeEmpty(), "what is not served cannot be watched")
	g.Expect(r.Why(hyperv1.MAASPlatform)).To(ContainSubstring("maasmachines.infrastructure.cluster.x-k8s.io"))

	for i, name := range crds.Names(crds.Infrastructure) {
		arrived, err := r.Arrived(t.Context(), c)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(arrived).To(BeEmpty(), "%d kinds are served", i)
		g.Expect(c.Create(t.Context(), &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name},
			Status: apiextensionsv1.CustomResourceDefinitionStatus{Conditions: []apiextensionsv1.CustomResourceDefinitionCondition{
				{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}}})).To(Succeed())
	}
	arrived, err := r.Arrived(t.Context(), c)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(arrived).To(Equal(hyperv1.MAASPlatform))
}

// TestMissing checks that a CRD counts as missing until its kind can be watched.
func TestMissing(t *testing.T) {
	is := func(conditionType apiextensionsv1.CustomResourceDefinitionConditionType, status apiextensionsv1.ConditionStatus) apiextensionsv1.CustomResourceDefinitionCondition {
		return apiextensionsv1.CustomResourceDefinitionCondition{Type: conditionType, Status: status}
	}
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())
	for _, tc := range []struct {
		name       string
		conditions []apiextensionsv1.CustomResourceDefinitionCondition
		missing    bool
	}{
		{"When the CRD is established, it should not be missing", []apiextensionsv1.CustomResourceDefinitionCondition{is(apiextensionsv1.NamesAccepted, "True"), is(apiextensionsv1.Established, "True")}, false},
		{"When the CRD has no conditions yet, it should be missing", nil, true},
		{"When the names of the CRD conflict, it should be missing", []apiextensionsv1.CustomResourceDefinitionCondition{is(apiextensionsv1.NamesAccepted, "False"), is(apiextensionsv1.Established, "False")}, true},
		{"When only the names of the CRD are accepted, it should be missing", []apiextensionsv1.CustomResourceDefinitionCondition{is(apiextensionsv1.NamesAccepted, "True")}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&apiextensionsv1.CustomResourceDefinition{
				ObjectMeta: metav1.ObjectMeta{Name: "demos.example"}, Status: apiextensionsv1.CustomResourceDefinitionStatus{Conditions: tc.conditions}}).Build()
			missing, err := Missing(t.Context(), c, []string{"absent.example", "demos.example"})
			g.Expect(err).NotTo(HaveOccurred())
			want := []string{"absent.example"}
			if tc.missing {
				want = append(want, "demos.example")
			}
			g.Expect(missing).To(Equal(want))
		})
	}
	t.Run("When the management cluster cannot be read, it should neither enable nor disable platforms", func(t *testing.T) {
		g, down := NewWithT(t), false
		c := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if down {
					return errors.New("timed out")
				}
				return c.Get(ctx, key, obj, opts...)
			}}).Build()
		r, off := all(t), all(t)
		g.Expect(off.SwitchOff(t.Context(), c)).To(Succeed())
		down = true
		g.Expect(r.SwitchOff(t.Context(), c)).To(MatchError(And(ContainSubstring("reading CRD "), ContainSubstring("timed out"))))
		g.Expect(r.Supported()).To(HaveLen(5))
		_, err := off.Arrived(t.Context(), c)
		g.Expect(err).To(MatchError(ContainSubstring("timed out")))
	})
}

// TestNoPlatformOutsideThePlugins checks that the controllers do not depend on a single platform. A new platform must
// need only a folder and a row.
func TestNoPlatformOutsideThePlugins(t *testing.T) {
	for _, folder := range []string{"controllers", "metrics", "naming", "pace", "release", "tenancy", "webhook"} {
		err := filepath.WalkDir(filepath.Join("..", "..", folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				selector, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if pkg, ok := selector.X.(*ast.Ident); ok && pkg.Name == "hyperv1" && strings.HasSuffix(selector.Sel.Name, "Platform") && !strings.HasSuffix(selector.Sel.Name, "ArchPlatform") {
					t.Errorf("%s names hyperv1.%s: ask the plugin or the traits instead", path, selector.Sel.Name)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
