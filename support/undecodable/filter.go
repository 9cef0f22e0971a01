// SPDX-License-Identifier: Apache-2.0

// Package undecodable prevents one object that Go cannot decode from hiding all others of its kind.
//
// An API server can store objects that our types cannot decode, for instance an object that is older than a rule of its
// CRD. A client decodes a list as one document, so a single such object fails each list and each watch of the kind. The
// Filter works below the clients. It decodes the items of lists and the events of watches one by one, and removes those
// that fail. It reports them by an event, a metric and the log, and with Conditions by a condition.
//
// A cache keeps the last state of such an object that could be decoded. The object never appears as deleted, because
// the deletion of a parent could release machines. It appears again when it can be decoded.
package undecodable

import (
	"encoding/json"
	"mime"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"
)

// Lookup returns the last state that a cache holds of an object; nil if it holds none.
type Lookup func(gvk schema.GroupVersionKind, key types.NamespacedName) runtime.Object

// Filter removes objects that cannot be decoded from the responses of an API server.
type Filter struct {
	scheme  *runtime.Scheme
	groups  map[string]bool
	reports *Reports
	lookup  Lookup
}

// New returns a Filter for the custom resources of a scheme. Built-in kinds of Kubernetes need no filter: their API
// server decodes them with the same types. lookup may be nil.
func New(scheme *runtime.Scheme, reports *Reports, lookup Lookup) *Filter {
	if lookup == nil {
		lookup = func(schema.GroupVersionKind, types.NamespacedName) runtime.Object { return nil }
	}
	groups := map[string]bool{}
	for gvk := range scheme.AllKnownTypes() {
		if gvk.Version != runtime.APIVersionInternal && !clientgoscheme.Scheme.IsGroupRegistered(gvk.Group) {
			groups[gvk.Group] = true
		}
	}
	return &Filter{scheme: scheme, groups: groups, reports: reports, lookup: lookup}
}

// Wrap returns a transport that filters the responses of next. Pass it to rest.Config.Wrap.
func (f *Filter) Wrap(next http.RoundTripper) http.RoundTripper {
	return &transport{filter: f, next: next}
}

type transport struct {
	filter *Filter
	next   http.RoundTripper
}

// WrappedRoundTripper returns the wrapped transport. client-go uses it to cancel requests.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err != nil || response.StatusCode != http.StatusOK {
		return response, err
	}
	group, namespace, collection := target(request.URL.Path)
	if request.Method != http.MethodGet || !collection || !t.filter.groups[group] || !wholeObjects(request, response) {
		return response, nil
	}
	query := request.URL.Query()
	if watch := query.Get("watch"); watch == "true" || watch == "1" {
		response.Body = t.filter.stream(response.Body, query.Get("sendInitialEvents") == "true")
		return response, nil
	}
	complete := true
	for _, narrows := range []string{"labelSelector", "fieldSelector", "limit", "continue"} {
		complete = complete && query.Get(narrows) == ""
	}
	return t.filter.list(response, namespace, complete)
}

// target returns the group and namespace of a path, and reports whether the path is a collection of objects.
func target(path string) (group, namespace string, collection bool) {
	_, rest, ok := strings.Cut(path, "/apis/")
	if !ok {
		return "", "", false
	}
	parts := strings.Split(strings.Trim(rest, "/"), "/")
	switch {
	case len(parts) == 3:
		return parts[0], "", true
	case len(parts) == 5 && parts[2] == "namespaces":
		return parts[0], parts[3], true
	}
	return "", "", false
}

// wholeObjects reports whether a response contains complete objects in JSON, rather than their metadata or tables.
func wholeObjects(request *http.Request, response *http.Response) bool {
	media, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	return err == nil && media == "application/json" && !strings.Contains(request.Header.Get("Accept"), "as=")
}

// object holds the fields of an object that the Filter itself reads.
type object struct {
	metav1.TypeMeta `json:",inline"`

	Metadata struct {
		Namespace       string            `json:"namespace"`
		Name            string            `json:"name"`
		UID             types.UID         `json:"uid"`
		ResourceVersion string            `json:"resourceVersion"`
		Annotations     map[string]string `json:"annotations"`
	} `json:"metadata"`
}

func (o *object) key() types.NamespacedName {
	return types.NamespacedName{Namespace: o.Metadata.Namespace, Name: o.Metadata.Name}
}

// decode decodes an object as the clients do. It does not check objects whose kind has no Go type.
func (f *Filter) decode(raw []byte) (*object, error) {
	found := &object{}
	if err := json.Unmarshal(raw, found); err != nil {
		return nil, nil //nolint:nilerr // This is not an object. The client reports the error.
	}
	typed, err := f.scheme.New(found.GroupVersionKind())
	if err != nil {
		return nil, nil //nolint:nilerr // The client decodes into another type.
	}
	return found, kjson.UnmarshalCaseSensitivePreserveInts(raw, typed)
}

// lastGood returns the last state of an object that a cache holds, as JSON; nil if the cache does not hold this object.
func (f *Filter) lastGood(o *object) []byte {
	known := f.lookup(o.GroupVersionKind(), o.key())
	if known == nil {
		return nil
	}
	copied := known.DeepCopyObject()
	copied.GetObjectKind().SetGroupVersionKind(o.GroupVersionKind())
	if accessor, ok := copied.(metav1.Object); !ok || accessor.GetUID() != o.Metadata.UID {
		return nil
	}
	raw, err := json.Marshal(copied)
	if err != nil {
		return nil
	}
	return raw
}
