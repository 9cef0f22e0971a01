// SPDX-License-Identifier: Apache-2.0

package api

import (
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
)

// warnings collects the server's warnings.
type warnings []string

// HandleWarningHeader records the text.
func (w *warnings) HandleWarningHeader(_ int, _ string, text string) { *w = append(*w, text) }

func TestInstall(t *testing.T) {
	g := NewWithT(t)
	g.Expect(apiextensionsv1.AddToScheme(scheme.Scheme)).To(Succeed())
	config := rest.CopyConfig(testenv.Start(t))
	var warned warnings
	config.WarningHandler = &warned
	c, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	g.Expect(err).NotTo(HaveOccurred())

	for _, folder := range crds.Folders {
		loaded, err := crds.Load(folder)
		g.Expect(err).NotTo(HaveOccurred())
		for _, crd := range loaded {
			t.Run("When "+crd.Name+" is applied, the server should accept it without a warning", func(t *testing.T) {
				g := NewWithT(t)
				warned = nil
				g.Expect(c.Create(t.Context(), crd, client.FieldValidation(metav1.FieldValidationStrict))).To(Succeed())
				g.Expect(warned).To(BeEmpty())
			})
		}
	}
}

func TestDefaults(t *testing.T) {
	c, err := client.New(testenv.Start(t, ours...), client.Options{Scheme: scheme.Scheme})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	cases := []struct {
		file, path string
		remove     []string
		want       any
	}{
		{"hostedcluster", "spec.networking.networkType", []string{"spec.networking"}, "OVNKubernetes"},
		{"hostedcluster", "spec.networking.clusterNetwork", []string{"spec.networking"}, []any{map[string]any{"cidr": "10.132.0.0/14"}}},
		{"hostedcluster", "spec.networking.serviceNetwork", []string{"spec.networking"}, []any{map[string]any{"cidr": "172.31.0.0/16"}}},
		{"hostedcluster", "spec.etcd.managed.storage.persistentVolume.size", []string{"spec.etcd"}, "8Gi"},
		{"hostedcluster", "spec.etcd.managementType", []string{"spec.etcd"}, "Managed"},
		{"hostedcluster", "spec.controllerAvailabilityPolicy", nil, "HighlyAvailable"},
		{"hostedcluster", "spec.infrastructureAvailabilityPolicy", nil, "SingleReplica"},
		{"hostedcluster", "spec.issuerURL", nil, "https://kubernetes.default.svc"},
		{"hostedcluster", "spec.olmCatalogPlacement", nil, "management"},
		{"hostedcluster", "spec.capabilities", nil, map[string]any{}},
		{"hostedcontrolplane", "spec.controllerAvailabilityPolicy", nil, "HighlyAvailable"},
		{"hostedcontrolplane", "spec.olmCatalogPlacement", nil, "management"},
		{"nodepool", "spec.arch", nil, "amd64"},
		{"nodepool", "spec.management.autoRepair", nil, false},
		{"nodepool", "spec.management.replace.strategy", nil, "RollingUpdate"},
		{"nodepool", "spec.management.replace.rollingUpdate", nil, map[string]any{"maxSurge": int64(1), "maxUnavailable": int64(0)}},
		{"nodepool", "spec.platform.maas", nil, map[string]any{"image": "custom/rhcos-4.20"}},
		{"maasmachine", "spec.deployInMemory", nil, false},
	}
	for _, test := range cases {
		t.Run("When "+test.path+" of "+test.file+" is not set, it should have its default", func(t *testing.T) {
			g := NewWithT(t)
			source := base{File: test.file}
			object := source.read(t)
			for _, path := range test.remove {
				object = source.edited(t, object, map[string]any{path: nil})
			}
			g.Expect(c.Create(t.Context(), object, client.DryRunAll)).To(Succeed())
			got, found, err := unstructured.NestedFieldNoCopy(object.Object, steps(test.path)...)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found).To(BeTrue())
			g.Expect(got).To(Equal(test.want))
		})
	}
}

// TestNoImageByDefault checks that NodePools have no default image, because the image that MAAS deploys depends on
// the release payload. A wrong default would go unnoticed.
func TestNoImageByDefault(t *testing.T) {
	t.Run("When a NodePool names no image, the schema should not set a default", func(t *testing.T) {
		g := NewWithT(t)
		loaded, err := crds.Load(crds.HyperShift)
		g.Expect(err).NotTo(HaveOccurred())
		for _, crd := range loaded {
			if crd.Spec.Names.Kind != "NodePool" {
				continue
			}
			schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
			for _, key := range []string{"spec", "platform", "maas", "image"} {
				property := schema.Properties[key]
				schema = &property
			}
			g.Expect(schema.Type).To(Equal("string"))
			g.Expect(schema.Default).To(BeNil())
			return
		}
		t.Fatal("there is no CRD of NodePool")
	})
}

func steps(path string) []string {
	var out []string
	for _, s := range step.FindAllStringSubmatch(path, -1) {
		out = append(out, s[1])
	}
	return out
}
