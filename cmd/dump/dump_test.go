// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	"sigs.k8s.io/yaml"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

func TestRedact(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{
			"When it is a Secret it should keep keys and sizes only",
			`{kind: Secret, metadata: {name: a}, data: {MAAS_API_KEY: c2VzYW1l}, type: Opaque}`,
			`{kind: Secret, metadata: {name: a}, data: {MAAS_API_KEY: "redacted, 8 characters"}, type: Opaque}`,
		},
		{
			"When a Secret was applied by kubectl it should drop the copy in the annotation",
			`{kind: Secret, metadata: {name: a, annotations: {kubectl.kubernetes.io/last-applied-configuration: sesame, mine: kept}}}`,
			`{kind: Secret, metadata: {name: a, annotations: {mine: kept}}}`,
		},
		{
			"When a Secret's data is malformed it should drop it",
			`{kind: Secret, metadata: {name: a}, data: sesame}`,
			`{kind: Secret, metadata: {name: a}}`,
		},
		{
			"When it is another object it should keep its content and drop what fills space",
			`{kind: ConfigMap, metadata: {name: a, managedFields: [{manager: x}]}, data: {a: b}}`,
			`{kind: ConfigMap, metadata: {name: a}, data: {a: b}}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			obj := &unstructured.Unstructured{}
			g.Expect(yaml.Unmarshal([]byte(tt.in), &obj.Object)).To(Succeed())
			redact(obj)
			got, err := yaml.Marshal(obj.Object)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(got)).To(MatchYAML(tt.want))
		})
	}
}

func TestPack(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	g.Expect(writeFile(filepath.Join(dir, "in", "a", "b.yaml"), []byte("text"))).To(Succeed())
	archive := filepath.Join(dir, "out.tar.gz")
	g.Expect(pack(filepath.Join(dir, "in"), archive)).To(Succeed())
	info, err := os.Stat(archive)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(BeEquivalentTo(0o600))
	f, err := os.Open(archive)
	g.Expect(err).NotTo(HaveOccurred())
	defer f.Close()
	unpacked, err := gzip.NewReader(f)
	g.Expect(err).NotTo(HaveOccurred())
	files := map[string]string{}
	for r := tar.NewReader(unpacked); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		g.Expect(err).NotTo(HaveOccurred())
		text, err := io.ReadAll(r)
		g.Expect(err).NotTo(HaveOccurred())
		files[header.Name] = string(text)
	}
	g.Expect(files).To(HaveKeyWithValue("a/b.yaml", "text"))
	g.Expect(pack(filepath.Join(dir, "missing"), archive)).NotTo(Succeed())
}

func TestFinish(t *testing.T) {
	g := NewWithT(t)
	c := &collector{root: t.TempDir()}
	c.note("nothing", nil)
	g.Expect(c.finish()).To(Succeed())
	g.Expect(filepath.Join(c.root, "not-collected.txt")).NotTo(BeAnExistingFile())
	c.note("list pods", errors.New("no rights"))
	g.Expect(c.finish()).To(Succeed())
	text, err := os.ReadFile(filepath.Join(c.root, "not-collected.txt"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(text)).To(Equal("list pods: no rights\n"))
}

func TestHosts(t *testing.T) {
	g := NewWithT(t)
	host := func(version, kind, namespace string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"namespace": namespace, "name": "one"}}}
	}
	c := &collector{root: t.TempDir(), resources: []metav1.APIResource{
		{Group: "agent-install.openshift.io", Version: "v1beta1", Name: "agents", Namespaced: true},
		{Group: "metal3.io", Version: "v1alpha1", Name: "baremetalhosts", Namespaced: true},
		{Group: "metal3.io", Version: "v1alpha1", Name: "provisionings"},
		{Version: "v1", Name: "secrets", Namespaced: true},
	}}
	c.dynamic = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		{Group: "agent-install.openshift.io", Version: "v1beta1", Resource: "agents"}: "AgentList",
		{Group: "metal3.io", Version: "v1alpha1", Resource: "baremetalhosts"}:         "BareMetalHostList",
		{Version: "v1", Resource: "secrets"}:                                          "SecretList",
	}, host("agent-install.openshift.io/v1beta1", "Agent", "rack"), host("agent-install.openshift.io/v1beta1", "Agent", "other"),
		host("metal3.io/v1alpha1", "BareMetalHost", "rack"), host("v1", "Secret", "rack"))
	c.hosts(t.Context(), "rack")
	g.Expect(c.failures).To(BeEmpty())
	folder := filepath.Join(c.root, "namespaces", "rack")
	g.Expect(filepath.Join(folder, "agent-install.openshift.io", "agents.yaml")).To(BeAnExistingFile())
	g.Expect(filepath.Join(folder, "metal3.io", "baremetalhosts.yaml")).To(BeAnExistingFile())
	g.Expect(filepath.Join(folder, "core")).NotTo(BeAnExistingFile(), "what is others' stays out of it")
	g.Expect(filepath.Join(c.root, "namespaces", "other")).NotTo(BeAnExistingFile())
}

func TestAgents(t *testing.T) {
	agent := &hyperv1.HostedCluster{}
	agent.Spec.Platform.Agent = &hyperv1.AgentPlatformSpec{AgentNamespace: "rack"}
	for name, tt := range map[string]struct {
		flag string
		hc   *hyperv1.HostedCluster
		want string
	}{
		"When the cluster names a namespace, it should be that":               {"", agent, "rack"},
		"When the flag names another, it should be that":                      {"lab", agent, "lab"},
		"When the cluster is gone, the flag should still say where":           {"lab", &hyperv1.HostedCluster{}, "lab"},
		"When the cluster has no hosts of this kind, there should be nothing": {"", &hyperv1.HostedCluster{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect((&dump{agentNamespace: tt.flag}).agents(tt.hc)).To(Equal(tt.want))
		})
	}
}
