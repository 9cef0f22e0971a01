// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// answer sends an object to a handler and applies the patch of the answer, as the API server does.
func answer(t *testing.T, h admission.Handler, object string) (string, admission.Response) {
	t.Helper()
	g := NewWithT(t)
	response := h.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Namespace: "clusters", Object: runtime.RawExtension{Raw: []byte(object)},
	}})
	g.Expect(response.Allowed).To(BeTrue(), "it never refuses")
	g.Expect(response.Complete(admission.Request{})).To(Succeed())
	if response.Patch == nil {
		return object, response
	}
	patch, err := jsonpatch.DecodePatch(response.Patch)
	g.Expect(err).NotTo(HaveOccurred())
	patched, err := patch.Apply([]byte(object))
	g.Expect(err).NotTo(HaveOccurred())
	return string(patched), response
}

func cluster(platform hyperv1.PlatformType) *hyperv1.HostedCluster {
	hc := fixture.HostedCluster("clusters")
	hc.Spec.Platform.Type = platform
	return hc
}

func node(name, address string, ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}},
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}},
	}}
}

func reader(objects ...client.Object) client.Client {
	return fake.NewClientBuilder().WithScheme(fixture.Scheme()).WithObjects(objects...).Build()
}

func TestNodePoolDefaults(t *testing.T) {
	maas, none := reader(cluster(hyperv1.MAASPlatform)), reader(cluster(hyperv1.NonePlatform))
	const release = `"release":{"image":"` + fixture.ReleaseImage + `"}`
	tests := []struct {
		name         string
		cluster      client.Reader
		object, want string
	}{
		{
			"When all fields are absent, it should use the values of the cluster and its platform", maas,
			`{"spec":{"clusterName":"demo"}}`,
			`{"spec":{"clusterName":"demo",` + release + `,"platform":{"type":"MAAS"},"management":{"upgradeType":"Replace"}}}`,
		},
		{
			"When the platform is not MAAS, it should use the upgrade type of that platform", none,
			`{"spec":{"clusterName":"demo"}}`,
			`{"spec":{"clusterName":"demo",` + release + `,"platform":{"type":"None"},"management":{"upgradeType":"InPlace"}}}`,
		},
		{
			"When a Go client sends empty values, it should set them and keep the other fields", maas,
			`{"spec":{"clusterName":"demo","release":{"image":""},"platform":{"type":"","maas":{"minCpu":4}},"management":{"upgradeType":"","autoRepair":true}}}`,
			`{"spec":{"clusterName":"demo",` + release + `,"platform":{"type":"MAAS","maas":{"minCpu":4}},"management":{"upgradeType":"Replace","autoRepair":true}}}`,
		},
		{
			"When all fields are set, it should change nothing", maas,
			`{"spec":{"clusterName":"demo","release":{"image":"mine"},"platform":{"type":"None"},"management":{"upgradeType":"InPlace"}}}`,
			`{"spec":{"clusterName":"demo","release":{"image":"mine"},"platform":{"type":"None"},"management":{"upgradeType":"InPlace"}}}`,
		},
		{
			"When the cluster is missing, it should still set the upgrade type of the platform", reader(),
			`{"spec":{"clusterName":"demo","platform":{"type":"Agent"}}}`,
			`{"spec":{"clusterName":"demo","platform":{"type":"Agent"},"management":{"upgradeType":"InPlace"}}}`,
		},
		{
			"When the cluster is in another namespace, it should change nothing", reader(fixture.HostedCluster("elsewhere")),
			`{"spec":{"clusterName":"demo"}}`, `{"spec":{"clusterName":"demo"}}`,
		},
		{
			"When values have the wrong type, it should leave them for validation", maas,
			`{"spec":{"clusterName":"demo","release":"x","platform":{"type":7},"management":[]}}`,
			`{"spec":{"clusterName":"demo","release":"x","platform":{"type":7},"management":[]}}`,
		},
		{
			"When the platform is unknown, it should not set an upgrade type", maas,
			`{"spec":{"clusterName":"demo","release":{"image":"mine"},"platform":{"type":"Other"}}}`,
			`{"spec":{"clusterName":"demo","release":{"image":"mine"},"platform":{"type":"Other"}}}`,
		},
		{
			"When a number is large, it should keep its exact value", maas,
			`{"spec":{"clusterName":"none","generation":9007199254740993}}`, `{"spec":{"clusterName":"none","generation":9007199254740993}}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			got, response := answer(t, handler{tt.cluster, nodePoolDefaults}, tt.object)
			g.Expect(got).To(MatchJSON(tt.want))
			g.Expect(response.Warnings).To(BeEmpty())
			g.Expect(response.PatchType != nil).To(Equal(tt.object != tt.want), "no patch without a change")
		})
	}
}

func TestHostedClusterDefaults(t *testing.T) {
	nodes := reader(node("a", "10.0.0.1", corev1.ConditionFalse), node("b", "10.0.0.2", corev1.ConditionTrue))
	services := func(strategies ...string) string {
		list := make([]map[string]any, 0, len(strategies))
		for _, text := range strategies {
			list = append(list, map[string]any{"service": "APIServer", "servicePublishingStrategy": json.RawMessage(text)})
		}
		raw, err := json.Marshal(map[string]any{"spec": map[string]any{"services": list}})
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	tests := []struct {
		name         string
		object, want string
	}{
		{
			"When node ports have no address, it should use the address of the first Ready node",
			services(`{"type":"NodePort"}`, `{"type":"NodePort","nodePort":{"port":30001}}`, `{"type":"NodePort","nodePort":{"address":""}}`),
			services(`{"type":"NodePort","nodePort":{"address":"10.0.0.2"}}`, `{"type":"NodePort","nodePort":{"port":30001,"address":"10.0.0.2"}}`, `{"type":"NodePort","nodePort":{"address":"10.0.0.2"}}`),
		},
		{
			"When a service has an address or another type, it should not change the service",
			services(`{"type":"NodePort","nodePort":{"address":"api.example"}}`, `{"type":"LoadBalancer"}`, `{"type":"Route"}`),
			services(`{"type":"NodePort","nodePort":{"address":"api.example"}}`, `{"type":"LoadBalancer"}`, `{"type":"Route"}`),
		},
		{
			"When values have the wrong type, it should leave them for validation",
			services(`{"type":"NodePort","nodePort":7}`, `"NodePort"`), services(`{"type":"NodePort","nodePort":7}`, `"NodePort"`),
		},
		{"When services is not a list, it should leave it for validation", `{"spec":{"services":{"a":1}}}`, `{"spec":{"services":{"a":1}}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			got, response := answer(t, handler{nodes, hostedClusterDefaults("")}, tt.object)
			g.Expect(got).To(MatchJSON(tt.want))
			g.Expect(response.Warnings).NotTo(ContainElement(ContainSubstring("were not set")))
		})
	}
	t.Run("When every node port has an address, it should not need a node", func(t *testing.T) {
		object := services(`{"type":"NodePort","nodePort":{"address":"api.example"}}`)
		got, response := answer(t, handler{reader(), hostedClusterDefaults("")}, object)
		g := NewWithT(t)
		g.Expect(got).To(MatchJSON(object))
		g.Expect(response.Warnings).NotTo(ContainElement(ContainSubstring("were not set")))
	})
	t.Run("When no node is Ready, it should return a warning and leave the object for validation", func(t *testing.T) {
		g := NewWithT(t)
		object := services(`{"type":"NodePort"}`)
		got, response := answer(t, handler{reader(node("a", "10.0.0.1", corev1.ConditionUnknown)), hostedClusterDefaults("")}, object)
		g.Expect(got).To(MatchJSON(object))
		g.Expect(response.Warnings).To(ContainElement(ContainSubstring("no Ready node")))
	})
}

// TestClusterNameDefault checks that a pool joins the only cluster of its namespace, and that the user learns of it.
func TestClusterNameDefault(t *testing.T) {
	second := fixture.HostedCluster("clusters")
	second.Name = "second"
	for _, tt := range []struct {
		name        string
		cluster     client.Reader
		want, notes string
	}{
		{
			"When the namespace has one cluster, the pool should belong to it", reader(cluster(hyperv1.MAASPlatform), fixture.HostedCluster("elsewhere")),
			`{"spec":{"clusterName":"demo","replicas":1,"release":{"image":"` + fixture.ReleaseImage + `"},"platform":{"type":"MAAS"},"management":{"upgradeType":"Replace"}}}`,
			"spec.clusterName is demo, the only HostedCluster of namespace clusters",
		},
		{
			"When the namespace has two clusters, the user should name one", reader(cluster(hyperv1.MAASPlatform), second),
			`{"spec":{"replicas":1}}`, "namespace clusters has 2 HostedClusters: set spec.clusterName",
		},
		{
			"When the namespace has no cluster, the user should name one", reader(fixture.HostedCluster("elsewhere")),
			`{"spec":{"replicas":1}}`, "namespace clusters has 0 HostedClusters: set spec.clusterName",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			got, response := answer(t, handler{tt.cluster, nodePoolDefaults}, `{"spec":{"replicas":1}}`)
			g.Expect(got).To(MatchJSON(tt.want))
			g.Expect(response.Warnings).To(ConsistOf(tt.notes))
		})
	}
}

// TestIncompleteHostedCluster checks that a HostedCluster without a release gets the default one, and that the user is
// told about everything else that is missing in one sentence.
func TestIncompleteHostedCluster(t *testing.T) {
	const partial = `{"spec":{"services":[{"service":"APIServer"}],"etcd":{}}}`
	g := NewWithT(t)
	got, response := answer(t, handler{reader(), hostedClusterDefaults("registry.example/release:1")}, partial)
	g.Expect(got).To(MatchJSON(`{"spec":{"services":[{"service":"APIServer"}],"etcd":{},"release":{"image":"registry.example/release:1"}}}`))
	g.Expect(response.Warnings).To(ConsistOf(
		"spec.release.image is registry.example/release:1, the default release of this installation",
		HavePrefix("the HostedCluster is incomplete, add spec.pullSecret, the name of a Secret that may hold {\"auths\":{}}, service OAuthServer in spec.services, "+
			"service Konnectivity in spec.services, service Ignition in spec.services: ")))

	got, response = answer(t, handler{reader(), hostedClusterDefaults("")}, partial)
	g.Expect(got).To(MatchJSON(partial))
	g.Expect(response.Warnings).To(ContainElement(And(ContainSubstring("set spec.release.image"), ContainSubstring("--default-release-image"))))

	const given = `{"spec":{"release":{"image":"mine"}}}`
	got, _ = answer(t, handler{reader(), hostedClusterDefaults("registry.example/release:1")}, given)
	g.Expect(got).To(MatchJSON(given))
}

func TestHandlerNeverRefuses(t *testing.T) {
	broken := interceptor.NewClient(reader().(client.WithWatch), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("connection refused")
		},
	})
	t.Run("When the cluster cannot be read, it should return a warning and set the other defaults", func(t *testing.T) {
		g := NewWithT(t)
		got, response := answer(t, handler{broken, nodePoolDefaults}, `{"spec":{"clusterName":"demo","platform":{"type":"MAAS"}}}`)
		g.Expect(got).To(MatchJSON(`{"spec":{"clusterName":"demo","platform":{"type":"MAAS"},"management":{"upgradeType":"Replace"}}}`))
		g.Expect(response.Warnings).To(ConsistOf(And(ContainSubstring("HostedCluster clusters/demo"), ContainSubstring("connection refused"))))
	})
	t.Run("When the object is not JSON, it should return a warning", func(t *testing.T) {
		_, response := answer(t, handler{broken, nodePoolDefaults}, `{`)
		g := NewWithT(t)
		g.Expect(response.Warnings).To(ConsistOf(ContainSubstring("decoding the object")))
		g.Expect(response.Result.Code).To(BeEquivalentTo(http.StatusOK))
	})
}
