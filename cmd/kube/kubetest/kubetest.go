// SPDX-License-Identifier: Apache-2.0

// Package kubetest serves objects to the commands in the test's own process, with the protocol of Kubernetes. It shows
// what a command sends and how it handles a response, without an API server. It has no defaulting, validation or
// admission: tests of those use an API server (support/testenv).
package kubetest

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cmd/kube"
)

// kinds returns the served kinds, and whether they are namespaced.
func kinds() map[schema.GroupVersion]map[string]bool {
	return map[schema.GroupVersion]map[string]bool{
		corev1.SchemeGroupVersion:      {"ConfigMap": true, "Secret": true, "Pod": true, "Event": true, "Namespace": false, "Node": false, "PersistentVolume": false},
		{Group: "apps", Version: "v1"}: {"Deployment": true, "DaemonSet": true},
		clusterv1.GroupVersion:         {"Machine": true},
		infrav1.GroupVersion:           {"MaasCluster": true, "MaasMachine": true},
		hyperv1.GroupVersion: {
			"HostedCluster": true, "HostedControlPlane": true, "NodePool": true, "HCPEtcdBackup": true,
		},
	}
}

// Server is a management cluster or a guest that runs until the test ends.
type Server struct {
	// Client reads and writes the objects of the server.
	Client client.WithWatch
	// Kubeconfig is the path of a kubeconfig for the server.
	Kubeconfig string
	// Logs maps namespace/pod/container to the log of a container. The suffix "/previous" is the log of its previous
	// instance.
	Logs map[string]string

	url    string
	ca     []byte
	side   sync.Mutex
	asked  []string
	refuse func(*http.Request) bool
}

// Start serves objects until the test ends.
func Start(t testing.TB, objects ...client.Object) *Server {
	t.Helper()
	s := &Server{Logs: map[string]string{}, refuse: func(*http.Request) bool { return false }}
	s.Client = fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(objects...).WithStatusSubresource(&hyperv1.HostedCluster{}, &hyperv1.HCPEtcdBackup{}).Build()
	server := httptest.NewTLSServer(s)
	t.Cleanup(server.Close)
	s.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	s.url, s.Kubeconfig = server.URL, filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*s.config(), s.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *Server) config() *clientcmdapi.Config {
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: s.url, CertificateAuthorityData: s.ca}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	return config
}

// SetLog sets the log of a container while the server runs. The name is as in Logs.
func (s *Server) SetLog(name, text string) {
	s.side.Lock()
	defer s.side.Unlock()
	s.Logs[name] = text
}

// KubeconfigText returns the kubeconfig of the server, for a Secret.
func (s *Server) KubeconfigText(t testing.TB) []byte {
	t.Helper()
	text, err := clientcmd.Write(*s.config())
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Refuse makes the server forbid the requests for which the function returns true.
func (s *Server) Refuse(what func(*http.Request) bool) {
	s.side.Lock()
	defer s.side.Unlock()
	s.refuse = what
}

// Writes returns all write requests so far, as "POST /api/v1/namespaces?dryRun=All".
func (s *Server) Writes() []string {
	s.side.Lock()
	defer s.side.Unlock()
	var writes []string
	for _, asked := range s.asked {
		if !strings.HasPrefix(asked, http.MethodGet) {
			writes = append(writes, asked)
		}
	}
	return writes
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.side.Lock()
	line := r.Method + " " + r.URL.Path
	if dry := r.URL.Query().Get("dryRun"); dry != "" {
		line += "?dryRun=" + dry
	}
	s.asked = append(s.asked, line)
	refused := s.refuse(r)
	s.side.Unlock()
	var answer any
	var err error
	switch {
	case refused:
		err = apierrors.NewForbidden(schema.GroupResource{Resource: r.URL.Path}, "", errors.New("no rights"))
	default:
		answer, err = s.answer(w, r)
	}
	if err != nil {
		status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()}
		if known, ok := errors.AsType[*apierrors.StatusError](err); ok {
			status = known.Status()
		}
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		reply(w, int(status.Code), status)
		return
	}
	if answer != nil {
		reply(w, http.StatusOK, answer)
	}
}

func reply(w http.ResponseWriter, code int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer) // An error means that the client has disconnected.
}

// target is the object or list that a path names: /api/v1/namespaces/NAMESPACE/RESOURCE/NAME, or
// /apis/GROUP/VERSION/...
type target struct {
	kind            schema.GroupVersionKind
	namespace, name string
	sub             string
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request) (any, error) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.URL.Path == "/api":
		return metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}, nil
	case r.URL.Path == "/apis":
		return groups(), nil
	case len(parts) == 2 && parts[0] == "api":
		return resources(schema.GroupVersion{Version: parts[1]})
	case len(parts) == 3 && parts[0] == "apis":
		return resources(schema.GroupVersion{Group: parts[1], Version: parts[2]})
	case len(parts) == 2 && parts[0] == "apis":
		for _, group := range groups().Groups {
			if group.Name == parts[1] {
				return group, nil
			}
		}
	}
	if about := parse(parts); about != nil {
		return s.serve(w, r, about)
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: r.URL.Path}, "")
}

func groups() metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}}
	for version := range kinds() {
		if version.Group == "" {
			continue
		}
		of := metav1.GroupVersionForDiscovery{GroupVersion: version.String(), Version: version.Version}
		list.Groups = append(list.Groups, metav1.APIGroup{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroup"}, Name: version.Group,
			Versions: []metav1.GroupVersionForDiscovery{of}, PreferredVersion: of})
	}
	return list
}

func resources(version schema.GroupVersion) (any, error) {
	served, ok := kinds()[version]
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: version.Group}, version.Version)
	}
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: version.String()}
	for kind, namespaced := range served {
		plural, singular := meta.UnsafeGuessKindToResource(version.WithKind(kind))
		list.APIResources = append(list.APIResources,
			metav1.APIResource{Name: plural.Resource, SingularName: singular.Resource, Kind: kind, Namespaced: namespaced, Verbs: metav1.Verbs{"get", "list", "create", "patch", "delete"}},
			metav1.APIResource{Name: plural.Resource + "/status", Kind: kind, Namespaced: namespaced, Verbs: metav1.Verbs{"get", "list"}})
	}
	return list, nil
}

func parse(parts []string) *target {
	about := &target{}
	switch {
	case parts[0] == "api" && len(parts) > 2:
		about.kind.Version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		about.kind.Group, about.kind.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return nil
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		about.namespace, parts = parts[1], parts[2:]
	}
	for kind := range kinds()[about.kind.GroupVersion()] {
		if plural, _ := meta.UnsafeGuessKindToResource(about.kind.GroupVersion().WithKind(kind)); plural.Resource == parts[0] {
			about.kind.Kind = kind
		}
	}
	if len(parts) > 1 {
		about.name = parts[1]
	}
	if len(parts) > 2 {
		about.sub = parts[2]
	}
	if about.kind.Kind == "" {
		return nil
	}
	return about
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, about *target) (any, error) {
	ctx := r.Context()
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(about.kind)
	obj.SetNamespace(about.namespace)
	obj.SetName(about.name)
	switch {
	case about.sub == "log":
		return nil, s.log(w, r, about)
	case r.Method == http.MethodGet && about.name == "":
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(about.kind.GroupVersion().WithKind(about.kind.Kind + "List"))
		err := s.Client.List(ctx, list, client.InNamespace(about.namespace))
		return list.UnstructuredContent(), err
	case r.Method == http.MethodGet:
		err := s.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		return obj.Object, err
	case r.Method == http.MethodDelete:
		return obj.Object, s.Client.Delete(ctx, obj)
	}
	return s.write(r, obj)
}

// write creates, patches or applies the object of the request.
func (s *Server) write(r *http.Request, obj *unstructured.Unstructured) (any, error) {
	ctx := r.Context()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if r.Header.Get("Content-Type") == string(types.MergePatchType) {
		return obj.Object, s.Client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, body))
	}
	if err := decode(r.Header.Get("Content-Type"), body, obj); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	query := r.URL.Query()
	if r.Method == http.MethodPost {
		options := []client.CreateOption{}
		if query.Get("dryRun") != "" {
			options = append(options, client.DryRunAll)
		}
		err := s.Client.Create(ctx, obj, options...)
		return obj.Object, err
	}
	if r.Header.Get("Content-Type") != "application/apply-patch+yaml" {
		return nil, apierrors.NewBadRequest("only server-side apply and merge patches are served")
	}
	if query.Get("dryRun") != "" {
		return obj.Object, nil
	}
	err = s.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner(query.Get("fieldManager")), client.ForceOwnership)
	return obj.Object, err
}

// decode decodes an object from YAML, JSON, or protobuf, in which clients send Kubernetes' own kinds.
func decode(contentType string, body []byte, obj *unstructured.Unstructured) error {
	if contentType != runtime.ContentTypeProtobuf {
		return yaml.Unmarshal(body, &obj.Object)
	}
	typed, kind, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return err
	}
	obj.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	obj.SetGroupVersionKind(*kind)
	return err
}

func (s *Server) log(w http.ResponseWriter, r *http.Request, about *target) error {
	name := about.namespace + "/" + about.name + "/" + r.URL.Query().Get("container")
	if r.URL.Query().Get("previous") == "true" {
		name += "/previous"
	}
	s.side.Lock()
	text, ok := s.Logs[name]
	s.side.Unlock()
	if !ok {
		return apierrors.NewBadRequest("there is no log " + name)
	}
	if tail, err := strconv.Atoi(r.URL.Query().Get("tailLines")); err == nil {
		lines := strings.SplitAfter(text, "\n")
		text = strings.Join(lines[max(0, len(lines)-1-tail):], "")
	}
	_, err := io.WriteString(w, text)
	return err
}
