// SPDX-License-Identifier: Apache-2.0

package api

import (
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
)

// TestOlderMaasCluster checks that the current CRD can read a MaasCluster of a provider release before v0.9, which
// stored status.failureDomains as a map.
func TestOlderMaasCluster(t *testing.T) {
	g := NewWithT(t)
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme, infrav1.AddToScheme} {
		g.Expect(add(types)).To(Succeed())
	}
	c, err := client.New(testenv.Start(t, crds.Infrastructure), client.Options{Scheme: types})
	g.Expect(err).NotTo(HaveOccurred())

	crd := &apiextensionsv1.CustomResourceDefinition{}
	g.Expect(c.Get(t.Context(), client.ObjectKey{Name: "maasclusters.infrastructure.cluster.x-k8s.io"}, crd)).To(Succeed())
	today := crd.DeepCopy()
	anything := true
	crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"] = apiextensionsv1.JSONSchemaProps{
		Type: "object", XPreserveUnknownFields: &anything,
	}
	setVersions(t, c, crd)

	old := base{File: "maascluster"}.read(t)
	g.Expect(c.Create(t.Context(), old)).To(Succeed())
	g.Eventually(func() error {
		status := map[string]any{"ready": true, "failureDomains": map[string]any{"rack-1": map[string]any{"controlPlane": true}}}
		old.Object["status"] = status
		return c.Status().Update(t.Context(), old)
	}).WithTimeout(patience).Should(Succeed())

	setVersions(t, c, today)
	probe := base{File: "maascluster"}.read(t)
	probe.SetName("probe")
	g.Expect(c.Create(t.Context(), probe)).To(Succeed())
	g.Eventually(func() error { // Wait until the current schema is served again.
		probe.Object["status"] = old.Object["status"]
		return c.Status().Update(t.Context(), probe, client.DryRunAll)
	}).WithTimeout(patience).ShouldNot(Succeed())
	g.Expect(c.Delete(t.Context(), probe)).To(Succeed())

	key := client.ObjectKey{Namespace: namespace, Name: old.GetName()}
	t.Run("When the object is listed with the current types, it should be decoded without its failure domains", func(t *testing.T) {
		g := NewWithT(t)
		var list infrav1.MaasClusterList
		g.Expect(c.List(t.Context(), &list, client.InNamespace(namespace))).To(Succeed())
		g.Expect(list.Items).To(HaveLen(1))
		g.Expect(list.Items[0].Status.Ready).To(BeTrue())
		g.Expect(list.Items[0].Status.FailureDomains).To(BeEmpty())
	})
	t.Run("When the status is written with the current types, the failure domains should be stored as a list", func(t *testing.T) {
		g := NewWithT(t)
		cluster := &infrav1.MaasCluster{}
		g.Expect(c.Get(t.Context(), key, cluster)).To(Succeed())
		cluster.Status.FailureDomains = infrav1.FailureDomains{{Name: "rack-1"}}
		g.Expect(c.Status().Update(t.Context(), cluster)).To(Succeed())
		stored := &unstructured.Unstructured{}
		stored.SetGroupVersionKind(infrav1.GroupVersion.WithKind("MaasCluster"))
		g.Expect(c.Get(t.Context(), key, stored)).To(Succeed())
		zones, found, err := unstructured.NestedSlice(stored.Object, "status", "failureDomains")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found).To(BeTrue())
		g.Expect(zones).To(ConsistOf(map[string]any{"name": "rack-1"}))
	})
}
