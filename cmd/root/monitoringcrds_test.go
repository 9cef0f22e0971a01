// SPDX-License-Identifier: Apache-2.0

package root_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/management"
	"github.com/openshift/hypershift/support/monitoringcrds"
	"github.com/openshift/hypershift/support/testenv"
)

// monitoringKind returns the CRD of ServiceMonitor; nil if it does not exist.
func (u *user) monitoringKind() *apiextensionsv1.CustomResourceDefinition {
	u.t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err := u.client.Get(u.t.Context(), client.ObjectKey{Name: "servicemonitors." + management.Monitoring}, crd)
	if apierrors.IsNotFound(err) {
		return nil
	}
	u.Expect(err).NotTo(HaveOccurred())
	return crd
}

// TestMonitoringCRDs installs on clusters with and without the kinds of a Prometheus operator.
func TestMonitoringCRDs(t *testing.T) {
	u := newUser(t)
	t.Setenv("HYPERSHIFT_IMAGE", "registry.example/hypershift:1")
	config, err := clientcmd.BuildConfigFromFlags("", u.kubeconfig)
	u.Expect(err).NotTo(HaveOccurred())
	crds := func(flags ...string) string {
		return u.succeeds("", append([]string{"install", "--install-scope", "crds", "--limit-crd-install", "none"}, flags...)...).stderr
	}
	t.Run("When the flag is false, it should install no monitoring CRDs", func(t *testing.T) {
		crds("--install-monitoring-crds=false")
		NewWithT(t).Expect(u.monitoringKind()).To(BeNil())
	})
	t.Run("When the cluster is plain Kubernetes, it should install all three CRDs, also when it runs again", func(t *testing.T) {
		g := NewWithT(t)
		for range 2 {
			crds()
			for _, name := range monitoringcrds.Names() {
				crd := &apiextensionsv1.CustomResourceDefinition{}
				g.Expect(u.client.Get(t.Context(), client.ObjectKey{Name: name}, crd)).To(Succeed())
				g.Expect(monitoringcrds.Minimal(crd)).To(BeTrue(), name)
			}
		}
	})
	t.Run("When only the minimal CRDs exist, it should create no monitors", func(t *testing.T) {
		u.succeeds("", "install", "--install-scope", "resources")
		NewWithT(t).Expect(u.installed().monitors).To(BeFalse())
	})
	t.Run("When a Prometheus operator replaced a CRD, it should keep the CRD and remove the label", func(t *testing.T) {
		g, crd := NewWithT(t), u.monitoringKind()
		spec := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object",
			Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec}}
		g.Expect(u.client.Update(t.Context(), crd)).To(Succeed())
		said := crds("--install-monitoring-crds")
		g.Expect(said).To(ContainSubstring("CRD servicemonitors.monitoring.coreos.com belongs to another product and is left as it is"))
		crd = u.monitoringKind()
		g.Expect(monitoringcrds.Labeled(crd)).To(BeFalse())
		g.Expect(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties).To(HaveKey("spec"))
	})
	t.Run("When CRDs are deleted by the label, the CRDs of others should stay", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(u.client.DeleteAllOf(t.Context(), &apiextensionsv1.CustomResourceDefinition{},
			client.MatchingLabels{"hypershift.openshift.io/minimal-crd": "true"})).To(Succeed())
		g.Expect(u.monitoringKind()).NotTo(BeNil())
		g.Expect(u.client.Delete(t.Context(), u.monitoringKind())).To(Succeed())
		testenv.Uninstall(t, config, monitoringcrds.Definitions()...)
	})
	t.Run("When the cluster is OpenShift, it should install no monitoring CRDs", func(t *testing.T) {
		testenv.Serve(t, config, management.Security)
		crds()
		NewWithT(t).Expect(u.monitoringKind()).To(BeNil())
	})
	t.Run("When the CRDs belong to another product, it should not change them", func(t *testing.T) {
		testenv.Serve(t, config, management.Monitoring)
		before := u.monitoringKind()
		crds()
		crds("--install-monitoring-crds")
		NewWithT(t).Expect(u.monitoringKind().ResourceVersion).To(Equal(before.ResourceVersion))
	})
	t.Run("When it renders, it should print the CRDs as the flags say", func(t *testing.T) {
		for flags, printed := range map[string]bool{
			"": true, "--install-monitoring-crds=false": false, "--management-apis=security.openshift.io": false,
			"--management-apis=monitoring.coreos.com": false, "--management-apis=monitoring.coreos.com --install-monitoring-crds": true,
		} {
			o := hypershift(t.Context(), "", append([]string{"install", "render", "--outputs", "crds"}, strings.Fields(flags)...)...)
			NewWithT(t).Expect(o.code).To(BeZero(), o.stderr)
			NewWithT(t).Expect(strings.Contains(o.stdout, "name: servicemonitors.monitoring.coreos.com")).To(Equal(printed), flags)
		}
	})
}
