// SPDX-License-Identifier: Apache-2.0

package root_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// released is the folder of the first release.
const released = "../../hack/releases/0.1.0"

// installedKinds are the kinds of the objects of an installation.
var installedKinds = []schema.GroupVersionKind{
	{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicyBinding"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "apps", Version: "v1", Kind: "DaemonSet"},
	{Version: "v1", Kind: "Namespace"},
	{Version: "v1", Kind: "ServiceAccount"},
	{Version: "v1", Kind: "Service"},
	{Version: "v1", Kind: "ConfigMap"},
	{Version: "v1", Kind: "Secret"},
}

// site is a management cluster to install in.
type site struct {
	*user
	*gate
	// gated is a kubeconfig whose requests pass the gate.
	gated string
	// before are the objects that the API server created itself.
	before map[string]string
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{user: newUser(t)}
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	s.Expect(err).NotTo(HaveOccurred())
	s.gate = newGate(t, config)
	s.gated = filepath.Join(t.TempDir(), "gated")
	s.Expect(clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: s.address}},
		Contexts: map[string]*clientcmdapi.Context{"x": {Cluster: "c"}}, CurrentContext: "x",
	}, s.gated)).To(Succeed())
	s.before = s.state()
	return s
}

// in returns the site for a subtest.
func (s *site) in(t *testing.T) *site {
	of := *s.user
	of.t, of.GomegaWithT = t, NewWithT(t)
	return &site{user: &of, gate: s.gate, gated: s.gated, before: s.before}
}

// gate forwards requests to an API server. After a number of writes it ends all connections, so that a command that
// talks through it ends as if it were killed.
type gate struct {
	address string
	mutex   sync.Mutex
	// left is the number of writes until the gate closes; negative for no end. writes counts those that passed.
	left, writes int
}

var errClosed = errors.New("the gate is closed")

func newGate(t *testing.T, config *rest.Config) *gate {
	t.Helper()
	g := &gate{left: -1}
	target, err := url.Parse(config.Host)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	transport, err := rest.TransportFor(config)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport = transport
	// The server has stored the last write, but the command does not get the answer.
	proxy.ModifyResponse = func(r *http.Response) error { return g.pass(r.Request) }
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.closed() {
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	g.address = server.URL
	return g
}

// open lets a number of writes pass; all if it is negative.
func (g *gate) open(writes int) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.left, g.writes = writes, 0
}

func (g *gate) closed() bool {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return g.left == 0
}

// passed returns the number of writes since the gate was opened.
func (g *gate) passed() int {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return g.writes
}

func (g *gate) pass(r *http.Request) error {
	if r.Method == http.MethodGet || r.URL.Query().Has("dryRun") {
		return nil
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.writes++
	if g.left--; g.left == 0 {
		return errClosed
	}
	return nil
}

// state returns the objects of an installation by kind and name, without what the API server maintains.
func (s *site) state() map[string]string {
	s.t.Helper()
	all := map[string]string{}
	for _, gvk := range installedKinds {
		for _, obj := range s.list(gvk) {
			key := gvk.Kind + " " + strings.TrimPrefix(obj.GetNamespace()+"/"+obj.GetName(), "/")
			if _, own := s.before[key]; own || strings.HasPrefix(obj.GetNamespace(), "kube-") {
				continue
			}
			unstructured.RemoveNestedField(obj.Object, "status")
			for _, field := range []string{"managedFields", "resourceVersion", "generation", "creationTimestamp", "uid"} {
				unstructured.RemoveNestedField(obj.Object, "metadata", field)
			}
			for _, field := range []string{"clusterIP", "clusterIPs"} {
				unstructured.RemoveNestedField(obj.Object, "spec", field)
			}
			text, err := json.Marshal(obj.Object)
			s.Expect(err).NotTo(HaveOccurred())
			all[key] = string(text)
		}
	}
	return all
}

func (s *site) list(gvk schema.GroupVersionKind) []unstructured.Unstructured {
	s.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	s.Expect(s.client.List(s.t.Context(), list)).To(Succeed())
	return list.Items
}

// releasedObjects returns the objects that the first release installs, in its order.
func (s *site) releasedObjects() []*unstructured.Unstructured {
	s.t.Helper()
	var files []string
	for _, folder := range []string{
		"hypershift", "certificates", "clusterapi", "infrastructure", "agent", "kubevirt", "aws",
	} {
		found, err := filepath.Glob(filepath.Join(released, "crds", folder, "*.yaml"))
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(found).NotTo(BeEmpty())
		files = append(files, found...)
	}
	var objects []*unstructured.Unstructured
	for _, file := range append(files, filepath.Join(released, "install.yaml")) {
		text, err := os.ReadFile(file)
		s.Expect(err).NotTo(HaveOccurred())
		for document := range strings.SplitSeq(string(text), "---\n") {
			obj := &unstructured.Unstructured{}
			s.Expect(yaml.Unmarshal([]byte(document), &obj.Object)).To(Succeed())
			if obj.Object != nil {
				objects = append(objects, obj)
			}
		}
	}
	return objects
}

// applyReleased applies an object as the first release does.
func (s *site) applyReleased(obj *unstructured.Unstructured, options ...client.ApplyOption) error {
	obj = obj.DeepCopy()
	if obj.GetKind() == "PriorityClass" {
		return client.IgnoreAlreadyExists(s.client.Create(s.t.Context(), obj))
	}
	options = append(options, client.FieldOwner("hypershift"), client.ForceOwnership)
	return s.client.Apply(s.t.Context(), client.ApplyConfigurationFromUnstructured(obj), options...)
}

// installReleased makes the objects what the first release installs.
func (s *site) installReleased() {
	s.t.Helper()
	objects := s.releasedObjects()
	var names []string
	for _, obj := range objects {
		names = append(names, obj.GetKind()+" "+obj.GetName())
	}
	for _, gvk := range installedKinds {
		for _, obj := range s.list(gvk) {
			key := gvk.Kind + " " + strings.TrimPrefix(obj.GetNamespace()+"/"+obj.GetName(), "/")
			if _, own := s.before[key]; own || strings.HasPrefix(obj.GetNamespace(), "kube-") ||
				slices.Contains(names, gvk.Kind+" "+obj.GetName()) {
				continue
			}
			s.Expect(client.IgnoreNotFound(s.client.Delete(s.t.Context(), &obj))).To(Succeed())
			s.Eventually(func() error {
				return s.client.Get(s.t.Context(), client.ObjectKeyFromObject(&obj), obj.DeepCopy())
			}).Should(MatchError(ContainSubstring("not found")))
		}
	}
	for _, obj := range objects {
		// The API server takes a moment to forget the policy of the newer version.
		s.Eventually(func() error { return s.applyReleased(obj) }).Should(Succeed(), obj.GetName())
	}
	s.Expect(s.gets(&corev1.Namespace{}, "", "hypershift")).To(Succeed())
}
