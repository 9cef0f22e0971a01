// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/openshift/hypershift/support/kubeconfig"
	"github.com/openshift/hypershift/support/namespaceproxy"
	"github.com/openshift/hypershift/support/testenv"
)

// manager is a third-party provider in a hosted namespace: its service account, its Role, and the proxy beside it.
type manager struct {
	*providerSite
	token          string
	direct, beside *rest.Config
}

func newManager(t *testing.T, image string) *manager {
	t.Helper()
	s := newProviderSite(t, image)
	g, config := NewWithT(t), testenv.Shared(t, "infrastructure", "clusterapi")
	clients, err := kubernetes.NewForConfig(config)
	g.Expect(err).NotTo(HaveOccurred())
	rights := &rbacv1.Role{}
	data, err := manifests.ReadFile("manifests/role.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(yaml.Unmarshal(data, rights)).To(Succeed())
	New(Options{}).adaptRole(rights, s.cluster, "demo-abcde")
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: s.cluster.Namespace, Name: rights.Name}
	named := metav1.ObjectMeta{Name: rights.Name}
	_, err = clients.CoreV1().ServiceAccounts(s.cluster.Namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: named}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = clients.RbacV1().Roles(s.cluster.Namespace).Create(t.Context(), rights, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = clients.RbacV1().RoleBindings(s.cluster.Namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: named,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: rights.Name}, Subjects: []rbacv1.Subject{account}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	// The operator grants all providers the right to read CRDs.
	crdReader := metav1.ObjectMeta{Name: "crds-" + s.cluster.Namespace}
	_, err = clients.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: crdReader, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"get", "list", "watch"}}}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = clients.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: crdReader,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: crdReader.Name}, Subjects: []rbacv1.Subject{account}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	token, err := clients.CoreV1().ServiceAccounts(s.cluster.Namespace).CreateToken(t.Context(), rights.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	m := &manager{providerSite: s, token: token.Status.Token, direct: rest.AnonymousClientConfig(config)}
	m.direct.BearerToken = m.token
	m.beside = m.startProxy(t)
	return m
}

// startProxy runs the sidecar, and returns the configuration that it writes for the provider.
func (m *manager) startProxy(t *testing.T) *rest.Config {
	t.Helper()
	g, folder := NewWithT(t), t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- namespaceproxy.Run(ctx, m.direct, namespaceproxy.Options{
			Namespace: m.cluster.Namespace, Address: testenv.FreeAddress(t), Folder: folder})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	g.Eventually(func() error { return namespaceproxy.Ready(folder) }).Should(Succeed())
	data, err := os.ReadFile(filepath.Join(folder, namespaceproxy.KubeconfigFile))
	g.Expect(err).NotTo(HaveOccurred())
	// The file of the service account's token exists only in a pod.
	data = []byte(strings.Replace(string(data), "tokenFile: "+namespaceproxy.TokenFile, "token: "+m.token, 1))
	config, err := kubeconfig.Load(data, kubeconfig.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	return config
}

// send sends one request, and returns the status code and the body. It reads only the beginning of a watch.
func (m *manager) send(t *testing.T, config *rest.Config, method, path, body string) (int, string) {
	t.Helper()
	g := NewWithT(t)
	client, err := rest.HTTPClientFor(config)
	g.Expect(err).NotTo(HaveOccurred())
	request, err := http.NewRequestWithContext(t.Context(), method, strings.TrimSuffix(config.Host, "/")+path, strings.NewReader(body))
	g.Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Content-Type", map[string]string{http.MethodPatch: "application/merge-patch+json"}[method])
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/json")
	}
	answer, err := client.Do(request)
	g.Expect(err).NotTo(HaveOccurred())
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	g.Expect(err).NotTo(HaveOccurred())
	return answer.StatusCode, string(text)
}

// replay sends the recorded conversation of a version.
func (m *manager) replay(t *testing.T, version string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata/conversations", version))
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(strings.NewReader(strings.ReplaceAll(string(data), "NAMESPACE", m.cluster.Namespace)))
	for lines.Scan() {
		fields := strings.SplitN(lines.Text(), " ", 4)
		if fields[0] == "#" {
			continue
		}
		method, path, body := fields[0], fields[1], ""
		want, err := strconv.Atoi(fields[2])
		if err != nil {
			t.Fatal(err)
		}
		if len(fields) == 4 {
			body = fields[3]
		}
		paths := []string{path}
		if method == "LIST" {
			method, paths = http.MethodGet, []string{path + "?limit=500", path + "?watch=true&timeoutSeconds=1"}
		}
		for _, path := range paths {
			if code, text := m.send(t, m.beside, method, path, body); code != want {
				t.Errorf("%s %s: %d instead of %d: %s", method, path, code, want, text)
			}
		}
	}
}

// TestConversations replays what each version asks of the management cluster, with the Role of a hosted namespace.
func TestConversations(t *testing.T) {
	for version, image := range map[string]string{
		"v0.9": "capmaas:v0.9.0", "v0.8": "capmaas:v0.8.0", "v0.6.1-spectro-4.7.0": documentsImage,
	} {
		t.Run(version, func(t *testing.T) {
			g, m := NewWithT(t), newManager(t, image)
			g.Expect(thirdPartyOf(image).name).To(Equal(version))
			m.replay(t, version)
			m.complete(t)
			g.Expect(m.complete(t)).To(BeZero(), "a settled namespace gets no writes")
		})
	}
}

// TestNamespaceProxy checks what the proxy narrows and refuses.
func TestNamespaceProxy(t *testing.T) {
	m, other := newManager(t, "capmaas:v0.9.0"), newProviderSite(t, "capmaas:v0.9.0")
	const clusters = "/apis/infrastructure.cluster.x-k8s.io/v1beta1/maasclusters"
	t.Run("lists only the objects of its namespace", func(t *testing.T) {
		g := NewWithT(t)
		code, _ := m.send(t, m.direct, http.MethodGet, clusters, "")
		g.Expect(code).To(Equal(http.StatusForbidden), "the Role alone does not suffice")
		code, text := m.send(t, m.beside, http.MethodGet, clusters, "")
		g.Expect(code).To(Equal(http.StatusOK))
		g.Expect(text).To(And(ContainSubstring(m.cluster.Namespace), Not(ContainSubstring(other.cluster.Namespace))))
	})
	t.Run("uses only the credentials of the client", func(t *testing.T) {
		anonymous := rest.AnonymousClientConfig(m.beside)
		code, _ := m.send(t, anonymous, http.MethodGet, clusters, "")
		NewWithT(t).Expect(code).To(BeElementOf(http.StatusUnauthorized, http.StatusForbidden))
	})
	for name, tc := range map[string]struct{ method, path, why string }{
		"a list of a resource without namespaces": {http.MethodGet, "/api/v1/nodes", "nodes are not namespaced"},
		"the deletion of all objects":             {http.MethodDelete, "/api/v1/secrets", "only list and watch"},
		"a watch of the old form":                 {http.MethodGet, "/api/v1/watch/secrets", "only list and watch"},
		"another namespace":                       {http.MethodGet, "/api/v1/namespaces/kube-system/secrets", "another namespace"},
		"a path outside of the API":               {http.MethodGet, "/metrics", "only discovery"},
		"a connection into a pod":                 {http.MethodPost, "/api/v1/namespaces/" + m.cluster.Namespace + "/pods/a/exec", "connections into pods"},
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			g := NewWithT(t)
			code, text := m.send(t, m.beside, tc.method, tc.path, "")
			g.Expect(code).To(Equal(http.StatusForbidden))
			g.Expect(text).To(And(ContainSubstring(`"kind":"Status"`), ContainSubstring(tc.why)))
		})
	}
	t.Run("listens on loopback addresses only", func(t *testing.T) {
		err := namespaceproxy.Run(t.Context(), m.direct, namespaceproxy.Options{Namespace: "a", Address: "0.0.0.0:6444", Folder: t.TempDir()})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("not a loopback address")))
	})
	t.Run("refuses a server whose CA is unknown", func(t *testing.T) {
		_, err := namespaceproxy.New(&rest.Config{Host: "https://127.0.0.1:1"}, nil, "a")
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("CA of the API server is not known")))
	})
}
