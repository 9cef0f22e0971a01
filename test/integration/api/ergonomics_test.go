// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/testenv"
)

// TestErgonomics checks what the server returns to kubectl: short names, categories and columns.
func TestErgonomics(t *testing.T) {
	config := testenv.Start(t, ours...)
	c, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, file := range []string{"hostedcluster", "hostedcontrolplane", "nodepool", "controlplanecomponent", "hcpetcdbackup",
		"maascluster", "maasmachine", "maasmachinetemplate"} {
		NewWithT(t).Expect(c.Create(t.Context(), base{File: file}.read(t))).To(Succeed())
	}
	kinds := []struct {
		resource   schema.GroupVersionResource
		shortNames []string
		categories []string
		columns    []string
	}{
		{hypershift("hostedclusters"), []string{"hc", "hcs"}, []string{"hypershift"}, []string{"Name", "Version", "CP Version",
			"KubeConfig", "Progress", "Available", "Progressing", "Message", "CP Progress", "DP Progress"}},
		{hypershift("hostedcontrolplanes"), []string{"hcp", "hcps"}, []string{"cluster-api"}, []string{"Name", "Age"}},
		{hypershift("nodepools"), []string{"np", "nps"}, []string{"hypershift"}, []string{"Name", "Cluster", "Desired Nodes",
			"Current Nodes", "Autoscaling", "Autorepair", "Version", "UpdatingVersion", "UpdatingConfig", "Message"}},
		{hypershift("controlplanecomponents"), []string{"cpc", "cpcs"}, nil, []string{"Name", "Version", "Available",
			"RolloutComplete", "Message", "RolloutCompleteMessage"}},
		{hypershift("hcpetcdbackups"), []string{"hcpetcdbk"}, nil, []string{"Name", "Completed", "Progress", "Size", "URL", "Age"}},
		{maas("maasclusters"), nil, []string{"cluster-api"}, []string{"Name", "Cluster", "Ready", "Endpoint", "Zones", "Message", "Age"}},
		{maas("maasmachines"), nil, []string{"cluster-api"}, []string{"Name", "Machine", "System ID", "Hostname", "State", "Zone",
			"LXD Host", "Mode", "IP", "Ready", "Reason", "Message", "Age"}},
		{maas("maasmachinetemplates"), nil, []string{"cluster-api"}, []string{"Name", "Image", "Min CPU", "Min Memory", "Zone",
			"Pool", "Age"}},
	}
	for _, kind := range kinds {
		t.Run("When "+kind.resource.Resource+" are discovered, they should have their short names and categories", func(t *testing.T) {
			g := NewWithT(t)
			found := discover(t, config, kind.resource)
			g.Expect(found.ShortNames).To(Equal(kind.shortNames))
			g.Expect(found.Categories).To(Equal(kind.categories))
		})
		t.Run("When "+kind.resource.Resource+" are listed, the table should have their columns", func(t *testing.T) {
			NewWithT(t).Expect(columns(t, config, kind.resource)).To(Equal(kind.columns))
		})
	}
}

// TestScale checks the scale subresource as kubectl scale and autoscalers use it.
func TestScale(t *testing.T) {
	g := NewWithT(t)
	c, err := client.New(testenv.Start(t, ours...), client.Options{Scheme: scheme.Scheme})
	g.Expect(err).NotTo(HaveOccurred())
	pool := base{File: "nodepool"}.read(t)
	g.Expect(c.Create(t.Context(), pool)).To(Succeed())
	pool.Object["status"] = map[string]any{"replicas": int64(2), "selector": "cluster.x-k8s.io/deployment-name=example"}
	g.Expect(c.Status().Update(t.Context(), pool)).To(Succeed())

	scale := &unstructured.Unstructured{}
	scale.SetGroupVersionKind(autoscalingv1.SchemeGroupVersion.WithKind("Scale"))
	g.Expect(c.SubResource("scale").Get(t.Context(), pool, scale)).To(Succeed())
	g.Expect(scale.Object["spec"]).To(HaveKeyWithValue("replicas", BeEquivalentTo(3)))
	g.Expect(scale.Object["status"]).To(HaveKeyWithValue("replicas", BeEquivalentTo(2)))
	g.Expect(scale.Object["status"]).To(HaveKeyWithValue("selector", "cluster.x-k8s.io/deployment-name=example"))

	g.Expect(set(scale.Object, "spec.replicas", int64(5))).To(Succeed())
	g.Expect(c.SubResource("scale").Update(t.Context(), pool, client.WithSubResourceBody(scale))).To(Succeed())
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(pool), pool)).To(Succeed())
	g.Expect(pool.Object["spec"]).To(HaveKeyWithValue("replicas", BeEquivalentTo(5)))
}

func hypershift(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "hypershift.openshift.io", Version: "v1beta1", Resource: resource}
}

func maas(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta1", Resource: resource}
}

func discover(t *testing.T, config *rest.Config, resource schema.GroupVersionResource) metav1.APIResource {
	t.Helper()
	finder, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	list, err := finder.ServerResourcesForGroupVersion(resource.GroupVersion().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range list.APIResources {
		if found.Name == resource.Resource {
			return found
		}
	}
	t.Fatalf("%s is not served", resource)
	return metav1.APIResource{}
}

// columns requests a table, which is what kubectl get prints, and returns its columns.
func columns(t *testing.T, config *rest.Config, resource schema.GroupVersionResource) []string {
	t.Helper()
	web, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	url := strings.TrimSuffix(config.Host, "/") + "/apis/" + resource.GroupVersion().String() + "/namespaces/" + namespace + "/" + resource.Resource
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	response, err := web.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var table metav1.Table
	if err := json.NewDecoder(response.Body).Decode(&table); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, column := range table.ColumnDefinitions {
		names = append(names, column.Name)
	}
	return names
}
