// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// documentsImage is the image that the founding documents name.
const documentsImage = "gcr.io/spectro-images-public/release/cluster-api-provider-maas:v0.6.1-spectro-4.7.0"

// providerSite is a hosted namespace of a real API server, in which a third-party provider runs.
type providerSite struct {
	client.WithWatch
	cluster platform.Cluster
	writes  *int
}

func newProviderSite(t *testing.T, image string) *providerSite {
	t.Helper()
	testenv.NeedsServer(t, nil)
	g, scheme := NewWithT(t), runtime.NewScheme()
	g.Expect(corev1.AddToScheme(scheme)).To(Succeed())
	g.Expect(infrav1.AddToScheme(scheme)).To(Succeed())
	c, err := client.NewWithWatch(testenv.Shared(t, "infrastructure", "clusterapi"), client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "clusters-demo-"}}
	g.Expect(c.Create(t.Context(), namespace)).To(Succeed())
	s := &providerSite{cluster: testCluster()}
	s.WithWatch, s.writes = testenv.Counted(c)
	s.cluster.Namespace = namespace.Name
	s.cluster.HostedCluster.Annotations = map[string]string{hyperv1.ClusterAPIProviderMAASImage: image}
	for _, obj := range []client.Object{
		&infrav1.MaasCluster{ObjectMeta: s.named("demo"), Spec: infrav1.MaasClusterSpec{DNSDomain: "maas"}},
		&infrav1.MaasMachine{ObjectMeta: s.named("demo-1"), Spec: infrav1.MaasMachineSpec{
			Image: "custom/ubuntu", MinCPU: ptr.To(1), MinMemory: ptr.To(1),
		}},
	} {
		g.Expect(c.Create(t.Context(), obj)).To(Succeed())
	}
	return s
}

func (s *providerSite) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.cluster.Namespace, Name: name}
}

// report writes a status as the provider's patch helper sends it.
func (s *providerSite) report(t *testing.T, kind, name, patch string) {
	t.Helper()
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(infrav1.GroupVersion.WithKind(kind))
	obj.SetNamespace(s.cluster.Namespace)
	obj.SetName(name)
	if err := s.Status().Patch(t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// complete runs CompleteStatus, and returns the number of its writes.
func (s *providerSite) complete(t *testing.T) int {
	t.Helper()
	before := *s.writes
	if err := New(Options{}).CompleteStatus(t.Context(), s, s.cluster); err != nil {
		t.Fatal(err)
	}
	return *s.writes - before
}

const (
	// conditionsV1beta1 are conditions without a reason, and one without a message and with a severity.
	conditionsV1beta1 = `{"status":{"ready":true,"conditions":[` +
		`{"type":"Ready","status":"True","lastTransitionTime":"2026-11-28T10:00:00Z"},` +
		`{"type":"MachineDeployed","status":"False","severity":"Warning","reason":"not a CamelCase reason","lastTransitionTime":"2026-11-28T10:00:00Z"}]}}`
	listedZones = `{"status":{"failureDomains":[{"name":"az1","controlPlane":true}]}}`
)

func TestCompleteStatus(t *testing.T) {
	const ready, notReady = `{"status":{"ready":true}}`, `{"status":{"ready":false}}`
	get := func(t *testing.T, s *providerSite) (*infrav1.MaasCluster, *infrav1.MaasMachine) {
		t.Helper()
		infra, machine := &infrav1.MaasCluster{ObjectMeta: s.named("demo")}, &infrav1.MaasMachine{ObjectMeta: s.named("demo-1")}
		for _, obj := range []client.Object{infra, machine} {
			if err := s.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
				t.Fatal(err)
			}
		}
		return infra, machine
	}
	t.Run("sets provisioned of both kinds once they are ready, and then writes nothing", func(t *testing.T) {
		g, s := NewWithT(t), newProviderSite(t, documentsImage)
		g.Expect(s.complete(t)).To(BeZero())
		s.report(t, "MaasCluster", "demo", ready)
		s.report(t, "MaasMachine", "demo-1", ready)
		g.Expect(s.complete(t)).To(Equal(2))
		infra, machine := get(t, s)
		g.Expect(infra.Status.Initialization.Provisioned).To(HaveValue(BeTrue()))
		g.Expect(machine.Status.Initialization.Provisioned).To(HaveValue(BeTrue()))
		g.Expect(s.complete(t)).To(BeZero())
	})
	t.Run("leaves provisioned when the object is no longer ready", func(t *testing.T) {
		g, s := NewWithT(t), newProviderSite(t, documentsImage)
		s.report(t, "MaasMachine", "demo-1", ready)
		g.Expect(s.complete(t)).To(Equal(1))
		s.report(t, "MaasMachine", "demo-1", notReady)
		g.Expect(s.complete(t)).To(BeZero())
		_, machine := get(t, s)
		g.Expect(machine.Status.Initialization.Provisioned).To(HaveValue(BeTrue()))
	})
	t.Run("removes a list of failure domains only for versions that cannot read it", func(t *testing.T) {
		for image, want := range map[string]int{documentsImage: 0, "capmaas:v0.8.0": 0, "capmaas:v0.9.0": 1} {
			g, s := NewWithT(t), newProviderSite(t, image)
			s.report(t, "MaasCluster", "demo", listedZones)
			g.Expect(s.complete(t)).To(Equal(1-want), image)
			infra, _ := get(t, s)
			g.Expect(infra.Status.FailureDomains).To(HaveLen(want), image)
			g.Expect(s.complete(t)).To(BeZero(), image)
		}
	})
	t.Run("does nothing for the product's own provider", func(t *testing.T) {
		g, s := NewWithT(t), newProviderSite(t, "")
		s.report(t, "MaasMachine", "demo-1", ready)
		g.Expect(s.complete(t)).To(BeZero())
	})
}

// TestRelaxedConditions checks that the CRDs accept the conditions of versions of the contract v1beta1, also when a
// client rewrites them with empty texts.
func TestRelaxedConditions(t *testing.T) {
	for kind, name := range map[string]string{"MaasCluster": "demo", "MaasMachine": "demo-1"} {
		t.Run(kind, func(t *testing.T) {
			g, s := NewWithT(t), newProviderSite(t, documentsImage)
			s.report(t, kind, name, conditionsV1beta1)
			obj := map[string]client.Object{"MaasCluster": &infrav1.MaasCluster{}, "MaasMachine": &infrav1.MaasMachine{}}[kind]
			g.Expect(s.Get(t.Context(), client.ObjectKey{Namespace: s.cluster.Namespace, Name: name}, obj)).To(Succeed())
			g.Expect(s.complete(t)).To(Equal(1))
			g.Expect(s.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)).To(Succeed())
			obj.SetLabels(map[string]string{"changed": "yes"})
			g.Expect(s.Update(t.Context(), obj)).To(Succeed())
			g.Expect(s.Status().Update(t.Context(), obj)).To(Succeed())
		})
	}
}

func TestThirdPartyOf(t *testing.T) {
	for image, want := range map[string]string{
		documentsImage: "v0.6.1-spectro-4.7.0", "registry.example:5000/capmaas:v4.7.0-spectro": "v0.6.1-spectro-4.7.0",
		"capmaas:v0.9.0": "v0.9", "capmaas:0.8.3": "v0.8", "capmaas:v0.9.0@sha256:abc": "v0.9",
		"capmaas:v0.9.0-rc.1": "unknown", "capmaas": "unknown", "registry.example:5000/capmaas": "unknown",
		"capmaas@sha256:abc": "unknown",
	} {
		NewWithT(t).Expect(thirdPartyOf(image).name).To(Equal(want), image)
	}
}
