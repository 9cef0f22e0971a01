// SPDX-License-Identifier: Apache-2.0

// Package namespaceproxy is a proxy of the Kubernetes API for a program that watches all namespaces, but has rights in
// one only. It runs beside the program, on a loopback address.
//
// The proxy adds no rights. It forwards the program's own credentials, and the API server authorizes each request.
package namespaceproxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
)

// resolver parses the paths of requests as the API server does.
var resolver = request.RequestInfoFactory{
	APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
}

// clusterScoped is the only resource that may be read cluster-wide. All service accounts of providers may read it.
var clusterScoped = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}

// discovery are the paths outside of resources that may be read.
var discovery = []string{"/api", "/apis", "/openapi", "/version", "/healthz", "/livez", "/readyz"}

type proxy struct {
	namespace string
	mapper    meta.RESTMapper
	forward   *httputil.ReverseProxy
}

// New returns the proxy of an API server for one namespace. It uses only the address and the CA of config, and refuses
// a config without a CA. The mapper tells which resources are namespaced.
func New(config *rest.Config, mapper meta.RESTMapper, namespace string) (http.Handler, error) {
	if namespace == "" {
		return nil, errors.New("making the namespace proxy: the namespace is empty; set --namespace")
	}
	if config.Insecure || config.CAFile == "" && len(config.CAData) == 0 {
		return nil, errors.New("making the namespace proxy: the CA of the API server is not known; " +
			"run it with a service account")
	}
	target, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("making the namespace proxy: parsing the address of the API server: %w", err)
	}
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(config))
	if err != nil {
		return nil, fmt.Errorf("making the namespace proxy: %w", err)
	}
	root := &url.URL{Scheme: target.Scheme, Host: target.Host}
	return &proxy{namespace: namespace, mapper: mapper, forward: &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1, // A watch sends each event at once.
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(root) },
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			write(w, apierrors.NewServiceUnavailable(fmt.Sprintf("forwarding %s %s: %v", r.Method, r.URL.Path, err)))
		},
	}}, nil
}

// ServeHTTP forwards a request, or answers with a Status.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, refused := p.route(r)
	if refused != nil {
		write(w, refused)
		return
	}
	if path != "" {
		r = r.Clone(r.Context())
		r.URL.Path, r.URL.RawPath = path, ""
	}
	p.forward.ServeHTTP(w, r)
}

// route returns the path to use instead of the request's own; empty to keep it.
func (p *proxy) route(r *http.Request) (string, *apierrors.StatusError) {
	if r.Header.Get("Upgrade") != "" {
		return "", p.refuse(r, "connections are not upgraded")
	}
	info, err := resolver.NewRequestInfo(r)
	if err != nil {
		return "", apierrors.NewBadRequest(fmt.Sprintf("parsing %s %s: %v", r.Method, r.URL.Path, err))
	}
	switch {
	case !info.IsResourceRequest:
		if r.Method == http.MethodGet && slices.ContainsFunc(discovery, func(root string) bool {
			return r.URL.Path == root || strings.HasPrefix(r.URL.Path, root+"/")
		}) {
			return "", nil
		}
		return "", p.refuse(r, "only discovery is allowed outside of resources")
	case slices.Contains([]string{"exec", "attach", "portforward", "proxy"}, info.Subresource):
		return "", p.refuse(r, "connections into pods are not allowed")
	case info.Namespace == p.namespace:
		return "", nil
	case info.Namespace != "":
		return "", p.refuse(r, "it concerns another namespace")
	}
	return p.narrow(r, info)
}

// narrow turns a cluster-wide list or watch of a namespaced resource into one of the proxy's namespace.
func (p *proxy) narrow(r *http.Request, info *request.RequestInfo) (string, *apierrors.StatusError) {
	reads := slices.Contains([]string{"get", "list", "watch"}, info.Verb)
	resource := schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource}
	if reads && info.Subresource == "" && resource.GroupResource() == clusterScoped {
		return "", nil
	}
	root := "/" + info.APIPrefix + "/" + info.APIVersion
	if info.APIGroup != "" {
		root = "/" + info.APIPrefix + "/" + info.APIGroup + "/" + info.APIVersion
	}
	// The path differs for objects, and for the watches of API servers before 1.16.
	if !reads || r.URL.Path != root+"/"+info.Resource {
		return "", p.refuse(r, "cluster-wide, only list and watch are allowed")
	}
	namespaced, err := p.namespaced(resource)
	switch {
	case meta.IsNoMatchError(err):
		return "", apierrors.NewNotFound(resource.GroupResource(), "")
	case err != nil:
		return "", apierrors.NewServiceUnavailable(fmt.Sprintf("finding the scope of %s: %v", resource.GroupResource(), err))
	case !namespaced:
		return "", p.refuse(r, info.Resource+" are not namespaced")
	}
	return root + "/namespaces/" + p.namespace + "/" + info.Resource, nil
}

func (p *proxy) namespaced(resource schema.GroupVersionResource) (bool, error) {
	kind, err := p.mapper.KindFor(resource)
	if err != nil {
		return false, err
	}
	mapping, err := p.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return false, err
	}
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

func (p *proxy) refuse(r *http.Request, why string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Message: fmt.Sprintf("the namespace proxy refuses %s %s: %s; the program is limited to namespace %s",
			r.Method, r.URL.Path, why, p.namespace),
	}}
}

func write(w http.ResponseWriter, refused *apierrors.StatusError) {
	status := refused.ErrStatus
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status) // The client is gone if this fails.
}
