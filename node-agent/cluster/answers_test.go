// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/node-agent/cluster"
)

const (
	leasePath = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/worker-1"
	nodePath  = "/api/v1/nodes/worker-1"
)

// TestStatus covers answers that a real server gives only when it has a problem.
func TestStatus(t *testing.T) {
	t.Parallel()
	const lease = `{"spec": {"renewTime": "2026-01-02T03:04:05.000006Z"}}`
	renewed := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	for name, tt := range map[string]struct {
		node, lease string
		want        cluster.Status
		says        string
	}{
		"the Node is Ready": {`{"status": {"nodeInfo": {"kubeletVersion": "v1.36.3"}, "conditions": [{"type": "DiskPressure", "status": "False", "message": "no"}, {"type": "Ready", "status": "True", "message": "ready"}, {"type": "Other", "status": "True", "message": "x"}]}}`,
			lease, cluster.Status{Ready: true, Reason: "ready", Version: "v1.36.3", Renewed: renewed}, ""},
		"the Node is not Ready":               {`{"status": {"conditions": [{"type": "Ready", "status": "False", "message": "no network"}]}}`, lease, cluster.Status{Reason: "no network", Renewed: renewed}, ""},
		"the readiness is unknown":            {`{"status": {"conditions": [{"type": "Ready", "status": "Unknown", "message": "stopped"}]}}`, lease, cluster.Status{Reason: "stopped", Renewed: renewed}, ""},
		"there is no Ready condition":         {`{"status": {"conditions": [{"type": "DiskPressure", "status": "True", "message": "x"}]}}`, lease, cluster.Status{Reason: "the kubelet reports no Ready condition", Renewed: renewed}, ""},
		"the Lease was never renewed":         {`{"status": {}}`, `{"spec": {}}`, cluster.Status{Reason: "the kubelet reports no Ready condition"}, ""},
		"the response is not an object":       {`<html>`, lease, cluster.Status{}, "reading the answer of the API server"},
		"the response is truncated":           {`{"status": {"conditions": [`, lease, cluster.Status{}, "reading the answer of the API server"},
		"the Lease has an invalid renew time": {`{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}`, `{"spec": {"renewTime": "now"}}`, cluster.Status{}, "reading the answer of the API server"},
		"there is no lease yet":               {`{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}`, "", cluster.Status{}, "404"},
		"there is no Node":                    {"", lease, cluster.Status{}, "404"},
	} {
		t.Run("When "+name+", it should return that status or an error", func(t *testing.T) {
			t.Parallel()
			m := newMember(t, func(w http.ResponseWriter, r *http.Request) {
				text := map[string]string{nodePath: tt.node, leasePath: tt.lease}[r.URL.Path]
				if text == "" || r.Method != http.MethodGet {
					http.NotFound(w, r)
					return
				}
				fmt.Fprint(w, text)
			})
			got, err := m.node.Status(t.Context())
			if tt.says != "" {
				m.Expect(err).To(MatchError(ContainSubstring(tt.says)))
				m.Expect(got).To(Equal(cluster.Status{}))
				return
			}
			m.Expect(err).NotTo(HaveOccurred())
			m.Expect(got.Renewed.Equal(tt.want.Renewed)).To(BeTrue())
			got.Renewed = tt.want.Renewed
			m.Expect(got).To(Equal(tt.want))
		})
	}
}

func TestAnnotate(t *testing.T) {
	t.Parallel()
	t.Run("When annotations change, it should patch only those and remove an empty one", func(t *testing.T) {
		var asked []string
		m := newMember(t, func(_ http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			asked = append(asked, r.Method+" "+r.URL.Path+" "+r.Header.Get("Content-Type"), string(body))
		})
		m.Expect(m.node.Annotate(t.Context(), cluster.Annotations{"a": "1", "b": ""})).To(Succeed())
		m.Expect(asked[0]).To(Equal("PATCH " + nodePath + " application/merge-patch+json"))
		m.Expect(asked[1]).To(MatchJSON(`{"metadata": {"annotations": {"a": "1", "b": null}}}`))
	})
	for status, want := range map[int]bool{200: true, 299: true, 300: false, 403: false, 409: false, 500: false, 503: false} {
		t.Run(fmt.Sprintf("When the server answers %d, it should be %t that they changed", status, want), func(t *testing.T) {
			t.Parallel()
			m := newMember(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				fmt.Fprint(w, strings.Repeat("x", 1000))
			})
			err := m.node.Annotate(t.Context(), cluster.Annotations{"a": "1"})
			if want {
				m.Expect(err).NotTo(HaveOccurred())
				return
			}
			m.Expect(err).To(MatchError(And(ContainSubstring(fmt.Sprint(status)), HaveSuffix(": "+strings.Repeat("x", 300)))), "a hint, and not all of it")
		})
	}
	t.Run("When a Node's name has special path characters, it should escape them", func(t *testing.T) {
		var asked string
		m := newMember(t, func(_ http.ResponseWriter, r *http.Request) { asked = r.URL.EscapedPath() })
		m.node.Name = "a/../b"
		m.Expect(m.node.Reach(t.Context())).To(Succeed())
		m.Expect(asked).To(Equal("/api/v1/nodes/a%2F..%2Fb"))
	})
}

// event returns an event of a watch.
func event(kind, annotation string) string {
	return fmt.Sprintf(`{"type": %q, "object": {"metadata": {"annotations": {"a": %q}}}}`, kind, annotation) + "\n"
}

func TestWatchEnds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		list, events string
		want         []string
		says         string
	}{
		"the server ends the watch":             {`{"metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"annotations": {"a": "0"}}}]}`, event("MODIFIED", "1") + event("ADDED", "2"), []string{"0", "1", "2"}, ""},
		"the Node is deleted":                   {`{"metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"annotations": {"a": "0"}}}]}`, event("DELETED", "gone") + event("ADDED", "2"), []string{"0"}, ""},
		"the resource version is too old":       {`{"metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"annotations": {"a": "0"}}}]}`, event("ERROR", "410") + event("ADDED", "2"), []string{"0"}, ""},
		"an event is truncated":                 {`{"metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"annotations": {"a": "0"}}}]}`, event("MODIFIED", "1") + `{"type": "MODI`, []string{"0", "1"}, ""},
		"the Node has no annotations":           {`{"metadata": {"resourceVersion": "7"}, "items": [{"metadata": {}}]}`, "", []string{""}, ""},
		"there is no Node":                      {`{"metadata": {"resourceVersion": "7"}, "items": []}`, "", nil, "there is no Node worker-1 yet"},
		"the server ignores the field selector": {`{"metadata": {"resourceVersion": "7"}, "items": [{}, {}]}`, "", nil, "there is no Node worker-1 yet"},
		"the server rejects the watch":          {`{"metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"annotations": {"a": "0"}}}]}`, "refused", []string{"0"}, "410"},
		"the list is not an object":             {`[]`, "", nil, "reading the answer of the API server"},
	} {
		t.Run("When "+name+", it should pass on all earlier events", func(t *testing.T) {
			t.Parallel()
			m := newMember(t, func(w http.ResponseWriter, r *http.Request) {
				query := r.URL.Query()
				switch {
				case query.Get("fieldSelector") != "metadata.name=worker-1":
					t.Error("others are asked for: " + r.URL.String())
				case query.Get("watch") == "":
					fmt.Fprint(w, tt.list)
				case query.Get("resourceVersion") != "7":
					t.Error("what happened since the list is lost: " + r.URL.String())
				case tt.events == "refused":
					http.Error(w, "too old", http.StatusGone)
				default:
					fmt.Fprint(w, tt.events)
				}
			})
			var seen []string
			err := m.node.Watch(t.Context(), func(a cluster.Annotations) { seen = append(seen, a["a"]) })
			m.Expect(seen).To(Equal(tt.want))
			if tt.says != "" {
				m.Expect(err).To(MatchError(ContainSubstring(tt.says)))
				return
			}
			m.Expect(err).NotTo(HaveOccurred(), "a watch that ends is nothing bad")
		})
	}
	t.Run("When the machine shuts down, the watch should end", func(t *testing.T) {
		m := newMember(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("watch") == "" {
				fmt.Fprint(w, `{"items": [{}]}`)
				return
			}
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
		ctx, cancel := context.WithCancel(t.Context())
		m.Expect(m.node.Watch(ctx, func(cluster.Annotations) { cancel() })).To(Or(Succeed(), MatchError(context.Canceled)))
	})
}

// TestSmallAnswers checks that requests do not return the status of a Node. It contains megabytes of image names,
// which must not be sent to a thousand machines with each change.
func TestSmallAnswers(t *testing.T) {
	t.Parallel()
	var accepted []string
	m := newMember(t, func(w http.ResponseWriter, r *http.Request) {
		accepted = append(accepted, r.Header.Get("Accept"))
		_ = json.NewEncoder(w).Encode(map[string]any{"items": []any{map[string]any{}}})
	})
	m.Expect(m.node.Reach(t.Context())).To(Succeed())
	m.Expect(m.node.Annotate(t.Context(), cluster.Annotations{"a": "1"})).To(Succeed())
	m.Expect(m.node.Watch(t.Context(), func(cluster.Annotations) {})).To(Succeed())
	m.Expect(accepted).To(HaveLen(4))
	m.Expect(accepted).To(HaveEach(ContainSubstring("as=PartialObjectMetadata")))
}
