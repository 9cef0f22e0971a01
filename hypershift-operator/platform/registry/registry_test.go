package registry

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform/maas"
	"github.com/openshift/hypershift/support/platforms"
)

func TestRegistry(t *testing.T) {
	r := New(maas.Options{})
	t.Run("When a platform has a plugin it should have traits too", func(t *testing.T) {
		for _, platformType := range r.Supported() {
			_, known := platforms.Of(platformType)
			NewWithT(t).Expect(known).To(BeTrue(), "%s", platformType)
		}
	})
	t.Run("When a plugin makes machines it should have templates for them, and only then", func(t *testing.T) {
		for platformType, plugin := range r {
			NewWithT(t).Expect(plugin.MachineTemplates() != nil).To(Equal(plugin.Machines() != nil), "%s", platformType)
		}
	})
	t.Run("When there is no plugin it should say so", func(t *testing.T) {
		_, known := r.For(hyperv1.AWSPlatform)
		NewWithT(t).Expect(known).To(BeFalse())
	})
	t.Run("When kinds are watched MAAS's should be among them", func(t *testing.T) {
		NewWithT(t).Expect(r.Watched()).To(HaveLen(3))
	})
}

func TestLimit(t *testing.T) {
	for _, tc := range []struct {
		installed string
		want      []hyperv1.PlatformType
	}{
		{"", []hyperv1.PlatformType{hyperv1.MAASPlatform, hyperv1.NonePlatform}},
		{"maas", []hyperv1.PlatformType{hyperv1.MAASPlatform, hyperv1.NonePlatform}},
		{"AWS, MAAS", []hyperv1.PlatformType{hyperv1.MAASPlatform, hyperv1.NonePlatform}},
		{"none", []hyperv1.PlatformType{hyperv1.NonePlatform}},
		{"agent,kubevirt", []hyperv1.PlatformType{hyperv1.NonePlatform}},
	} {
		t.Run("When the kinds of \""+tc.installed+"\" are installed it should have their plugins", func(t *testing.T) {
			NewWithT(t).Expect(New(maas.Options{}).Limit(tc.installed).Supported()).To(Equal(tc.want))
		})
	}
}

// TestNoPlatformOutsideThePlugins keeps knowledge of single platforms out of the controllers: adding a platform must mean
// adding a folder and a row, and nothing else.
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
