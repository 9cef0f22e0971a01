// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
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
			"When the object is a Secret, it should keep only keys and sizes",
			`{kind: Secret, metadata: {name: a}, data: {MAAS_API_KEY: c2VzYW1l}, type: Opaque}`,
			`{kind: Secret, metadata: {name: a}, data: {MAAS_API_KEY: "redacted, 8 characters"}, type: Opaque}`,
		},
		{
			"When a Secret was applied with kubectl, it should drop the last-applied annotation",
			`{kind: Secret, metadata: {name: a, annotations: {kubectl.kubernetes.io/last-applied-configuration: sesame, mine: kept}}}`,
			`{kind: Secret, metadata: {name: a, annotations: {mine: kept}}}`,
		},
		{
			"When a Secret's data is malformed, it should drop the data",
			`{kind: Secret, metadata: {name: a}, data: sesame}`,
			`{kind: Secret, metadata: {name: a}}`,
		},
		{
			"removes users and passwords of URLs, however deep and escaped",
			`{kind: ConfigMap, metadata: {name: "http://u:p@a"}, list: [{env: "HTTP_PROXY=http://u:p%40q@proxy:3128/x,http://v@b"}],
				data: {unit: "Environment=HTTPS_PROXY=https://u:p,;!@proxy", mail: "a@b.c", path: "https://host/a@b",
				ignition: "data:,http%3A%2F%2Fu%3Ap%2540%40proxy%3A3128%0A"}}`,
			`{kind: ConfigMap, metadata: {name: "http://redacted@a"},
				list: [{env: "HTTP_PROXY=http://redacted@proxy:3128/x,http://redacted@b"}],
				data: {unit: "Environment=HTTPS_PROXY=https://redacted@proxy", mail: "a@b.c", path: "https://host/a@b",
				ignition: "data:,http%3A%2F%2Fredacted%40proxy%3A3128%0A"}}`,
		},
		{
			"When the object is not a Secret, it should keep the content and drop the managed fields",
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
	f := inFolder(t, filepath.Join(dir, "in"))
	g.Expect(f.write([]byte("text"), "a", "b.yaml")).To(Succeed())
	archive := filepath.Join(dir, "out.tar.gz")
	g.Expect(pack(f.root.FS(), archive)).To(Succeed())
	info, err := os.Stat(archive)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(BeEquivalentTo(0o600))
	packed, err := os.Open(archive)
	g.Expect(err).NotTo(HaveOccurred())
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
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
	g.Expect(pack(os.DirFS(filepath.Join(dir, "missing")), archive)).NotTo(Succeed())
}

func TestFinish(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	c := &collector{folder: inFolder(t, dir)}
	c.note("nothing", nil)
	g.Expect(c.finish()).To(Succeed())
	g.Expect(filepath.Join(dir, "not-collected.txt")).NotTo(BeAnExistingFile())
	c.note("list pods", errors.New("no rights\x1b[2J\nat http://user:sesame@proxy"))
	g.Expect(c.finish()).To(Succeed())
	text, err := os.ReadFile(filepath.Join(dir, "not-collected.txt"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(text)).To(Equal(`list pods: no rights\x1b[2J\nat http://redacted@proxy` + "\n"))
	for range 2 * maxFailures {
		c.note("list pods", errors.New("no rights"))
	}
	g.Expect(c.failures).To(HaveLen(maxFailures + 1))
}

func inFolder(t *testing.T, name string) folder {
	t.Helper()
	root, err := openFolder(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return folder{root: root, left: 1000}
}

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	f := inFolder(t, filepath.Join(dir, "in"))
	for _, name := range []string{
		"..", ".", "", "a/b", "../a", "a..b", "A", "a\x00", "a\nb", ".a", "-a", strings.Repeat("a", 254), `a\b`, "\u202ea",
	} {
		t.Run(fmt.Sprintf("refuses the name %.20q", name), func(t *testing.T) {
			err := f.write(nil, "namespaces", name, "a.yaml")
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring("it is not a DNS name")))
		})
	}
	t.Run("does not follow a symlink out of the directory", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(os.Symlink(dir, filepath.Join(dir, "in", "link"))).To(Succeed())
		g.Expect(f.write([]byte("x"), "link", "outside")).NotTo(Succeed())
		g.Expect(filepath.Join(dir, "outside")).NotTo(BeAnExistingFile())
	})
	t.Run("rejects data that exceeds the size limit", func(t *testing.T) {
		NewWithT(t).Expect(f.write(make([]byte, 1001), "large")).To(MatchError(errFull))
	})
}

func TestHosts(t *testing.T) {
	g := NewWithT(t)
	host := func(version, kind, namespace string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"namespace": namespace, "name": "one"}}}
	}
	dir := t.TempDir()
	c := &collector{folder: inFolder(t, dir), resources: []metav1.APIResource{
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
	folder := filepath.Join(dir, "namespaces", "rack")
	g.Expect(filepath.Join(folder, "agent-install.openshift.io", "agents.yaml")).To(BeAnExistingFile())
	g.Expect(filepath.Join(folder, "metal3.io", "baremetalhosts.yaml")).To(BeAnExistingFile())
	g.Expect(filepath.Join(folder, "core")).NotTo(BeAnExistingFile(), "what is others' stays out of it")
	g.Expect(filepath.Join(dir, "namespaces", "other")).NotTo(BeAnExistingFile())
}

func TestAgents(t *testing.T) {
	agent := &hyperv1.HostedCluster{}
	agent.Spec.Platform.Agent = &hyperv1.AgentPlatformSpec{AgentNamespace: "rack"}
	for name, tt := range map[string]struct {
		flag string
		hc   *hyperv1.HostedCluster
		want string
	}{
		"When the cluster sets an agent namespace, it should use that":            {"", agent, "rack"},
		"When the flag sets another namespace, it should use the flag":            {"lab", agent, "lab"},
		"When the cluster is gone, it should use the flag":                        {"lab", &hyperv1.HostedCluster{}, "lab"},
		"When the cluster has no agent namespace, it should return an empty name": {"", &hyperv1.HostedCluster{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect((&dump{agentNamespace: tt.flag}).agents(tt.hc)).To(Equal(tt.want))
		})
	}
}
