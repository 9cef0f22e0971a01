// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// TestOpenShiftExample reconciles docs/examples/hostedcluster-openshift.yaml, in another namespace and under the
// cluster name that the tests of this package use.
func TestOpenShiftExample(t *testing.T) {
	c := fixture.Start(t)
	s := newWorld(t, c, "example-openshift")
	text, err := os.ReadFile("../../../docs/examples/hostedcluster-openshift.yaml")
	s.Expect(err).NotTo(HaveOccurred())
	fixture.Create(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}})
	for _, document := range strings.Split(string(text), "\n---\n") {
		obj := &unstructured.Unstructured{}
		s.Expect(yaml.Unmarshal([]byte(document), &obj.Object)).To(Succeed())
		obj.SetNamespace(s.namespace)
		switch obj.GetKind() {
		case "HostedCluster":
			obj.SetName(fixture.ClusterName)
		case "NodePool":
			s.Expect(unstructured.SetNestedField(obj.Object, fixture.ClusterName, "spec", "clusterName")).To(Succeed())
		}
		s.Expect(c.Create(t.Context(), obj, client.FieldValidation(metav1.FieldValidationStrict))).To(Succeed())
	}
	image := s.cluster().Spec.Release.Image
	version := strings.TrimSuffix(image[strings.LastIndex(image, ":")+1:], "-x86_64")
	components := map[string]string{}
	for _, tag := range []string{"hypershift", "cluster-capi-controllers", "haproxy-router"} {
		components[tag], _ = fixture.Payloads()[fixture.OCPImage].ComponentImage(tag)
	}
	s.Releases = lineReleases{labels: []string{restrictedPods}, Releases: fixture.Releases{image: releaseinfo.New(image, releaseinfo.Payload{
		Version: version, Distribution: releaseinfo.OpenShift, Architecture: "amd64", Components: components,
	})}}
	s.mustPass()
	s.serve()
	s.mustPass()
	for _, condition := range []hyperv1.ConditionType{hyperv1.ValidHostedClusterConfiguration, hyperv1.ValidReleaseImage, hyperv1.PlatformCredentialsFound} {
		t.Run("When the example is applied, "+string(condition)+" should be True", func(t *testing.T) {
			got := s.condition(condition)
			NewWithT(t).Expect(got.Status).To(Equal(metav1.ConditionTrue), got.Message)
		})
	}
	t.Run("When the example is applied, the release's operators should run with the settings of their minor version", func(t *testing.T) {
		g := NewWithT(t)
		hcp := &hyperv1.HostedControlPlane{}
		s.get(hcp, fixture.ClusterName)
		g.Expect(hcp.Spec.Platform.Type).To(Equal(hyperv1.NonePlatform))
		g.Expect(hcp.Spec.Services).To(HaveLen(len(s.cluster().Spec.Services)))
		for _, manager := range []string{controlPlaneOperatorName, capiManagerName, capiProviderName} {
			s.get(&appsv1.Deployment{}, manager)
		}
		// The expected output was rendered for a cluster with more inputs than the example.
		g.Expect(named(rendered(t, c, "4.20.2", []string{restrictedPods}))).To(ContainElements(named(s.given(version))))
	})
}

// named returns the lines of documents with the kinds and names of their objects.
func named(lines []string) []string {
	var found []string
	kind := ""
	for _, line := range lines {
		if strings.HasPrefix(line, "kind: ") {
			kind = line
		}
		if strings.HasPrefix(line, "  name: ") {
			found = append(found, kind+line)
		}
	}
	return found
}
