// SPDX-License-Identifier: Apache-2.0

package journey

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// podName is the key of the name of the pod whose token a request carries.
const podName = "authentication.kubernetes.io/pod-name"

// Write is a write of a pod to an object of the management cluster.
type Write struct {
	// Account is the service account, as namespace:name. Pod is the name of the pod, Manager the field manager.
	Account, Pod, Manager string
	// Object is the object as resource.group namespace/name, and its subresource.
	Object string
	// At is when the API server received the request.
	At time.Time
}

// Writes reads the successful writes of pods from the audit log, in order. It includes only writes after since by
// service accounts of the namespaces. It omits Leases and Events, which several pods may write at the same time.
func (w *Walker) Writes(since time.Time, namespaces ...string) ([]Write, error) {
	var all []Write
	err := w.eachEvent(func(e event) {
		account, ok := strings.CutPrefix(e.User.Username, "system:serviceaccount:")
		namespace, _, _ := strings.Cut(account, ":")
		if !ok || !slices.Contains(namespaces, namespace) || e.RequestReceivedTimestamp.Before(since) || !e.written() {
			return
		}
		all = append(all, Write{
			Account: account, Pod: strings.Join(e.User.Extra[podName], ","), Manager: e.manager(), Object: e.object(),
			At: e.RequestReceivedTimestamp,
		})
	})
	slices.SortStableFunc(all, func(a, b Write) int { return a.At.Compare(b.At) })
	return all, err
}

// written reports whether the event is a successful write of an object.
func (e event) written() bool {
	if e.ObjectRef == nil || e.ObjectRef.Name == "" || e.ResponseStatus.Code >= http.StatusBadRequest {
		return false
	}
	return slices.Contains([]string{"create", "update", "patch", "delete"}, e.Verb) &&
		!slices.Contains([]string{"leases", "events"}, e.ObjectRef.Resource)
}

// manager returns the field manager: the one that the request names, or else the name of the program.
func (e event) manager() string {
	request, err := url.Parse(e.RequestURI)
	if err == nil && request.Query().Get("fieldManager") != "" {
		return request.Query().Get("fieldManager")
	}
	program, _, _ := strings.Cut(e.UserAgent, "/")
	return program
}

func (e event) object() string {
	resource := strings.TrimSuffix(e.ObjectRef.Resource+"."+e.ObjectRef.APIGroup, ".")
	name := strings.TrimPrefix(e.ObjectRef.Namespace+"/"+e.ObjectRef.Name, "/")
	return strings.TrimSpace(resource + " " + name + " " + e.ObjectRef.Subresource)
}

// ByManager counts writes by service account and field manager.
func ByManager(writes []Write) map[string]int {
	count := map[string]int{}
	for _, w := range writes {
		count[w.Account+" as "+w.Manager]++
	}
	return count
}

// Contested describes the objects that a pod writes after another pod of its service account has taken over. Pods of
// two versions do so if both of them work at the same time.
func Contested(writes []Write) []string {
	type key struct{ account, object string }
	last, former := map[key]Write{}, map[key]map[string]bool{}
	found := map[string]bool{}
	for _, w := range writes {
		k := key{w.Account, w.Object}
		before, seen := last[k]
		if seen && before.Pod != w.Pod {
			if former[k] == nil {
				former[k] = map[string]bool{}
			}
			former[k][before.Pod] = true
			if former[k][w.Pod] {
				found[fmt.Sprintf("%s: pod %s of %s writes after pod %s", w.Object, w.Pod, w.Account, before.Pod)] = true
			}
		}
		last[k] = w
	}
	return slices.SortedFunc(maps.Keys(found), cmp.Compare)
}
