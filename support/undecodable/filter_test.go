// SPDX-License-Identifier: Apache-2.0

package undecodable_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/metrics/metricstest"
	"github.com/openshift/hypershift/support/undecodable"
)

const (
	pools  = "/apis/hypershift.openshift.io/v1beta1/nodepools"
	sample = `hypershift_undecodable_objects{kind="NodePool",name="bad",namespace="a"}`
)

// pool returns a NodePool in namespace a; a timeout of 99999999999h cannot be decoded.
func pool(name, version, timeout string) string {
	return fmt.Sprintf(`{"apiVersion":"hypershift.openshift.io/v1beta1","kind":"NodePool",`+
		`"metadata":{"namespace":"a","name":%q,"uid":"uid-%s","resourceVersion":%q},"spec":{"clusterName":"demo","nodeDrainTimeout":%q}}`, name, name, version, timeout)
}

func list(items ...string) string {
	return `{"apiVersion":"hypershift.openshift.io/v1beta1","kind":"NodePoolList","metadata":{"resourceVersion":"9"},` +
		`"items":[` + strings.Join(items, ",") + `]}`
}

const tooLong = "99999999999h"

// lab is a Filter between a client and an API server with a fixed response.
type lab struct {
	g        *GomegaWithT
	t        *testing.T
	filter   *undecodable.Filter
	metric   *prometheus.GaugeVec
	recorder *events.FakeRecorder
	// cached is the cache's state of the bad pool.
	cached runtime.Object
}

func newLab(t *testing.T) *lab {
	t.Helper()
	scheme := runtime.NewScheme()
	l := &lab{g: NewWithT(t), t: t, metric: undecodable.NewMetric(), recorder: events.NewFakeRecorder(10)}
	l.g.Expect(hyperv1.AddToScheme(scheme)).To(Succeed())
	reports := undecodable.NewReports(l.metric)
	reports.Record(l.recorder)
	l.filter = undecodable.New(scheme, reports, func(_ schema.GroupVersionKind, key types.NamespacedName) runtime.Object {
		if key.Name != "bad" || l.cached == nil {
			return nil
		}
		return l.cached
	})
	return l
}

type answer func(*http.Request) (*http.Response, error)

func (a answer) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

// get returns what the client reads from a response.
func (l *lab) get(path, body string, headers ...string) string {
	l.t.Helper()
	request, err := http.NewRequestWithContext(l.t.Context(), http.MethodGet, "https://kubernetes.example"+path,
		http.NoBody)
	l.g.Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Accept", strings.Join(append(headers, "application/json"), ","))
	response, err := l.filter.Wrap(answer(func(*http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
		}, nil
	})).RoundTrip(request)
	l.g.Expect(err).NotTo(HaveOccurred())
	read, err := io.ReadAll(response.Body)
	l.g.Expect(err).NotTo(HaveOccurred())
	l.g.Expect(response.Body.Close()).To(Succeed())
	if response.ContentLength >= 0 && !strings.Contains(path, "watch=") {
		l.g.Expect(response.ContentLength).To(Equal(int64(len(read))))
	}
	return string(read)
}

func (l *lab) expectReported(want bool) {
	l.t.Helper()
	if want {
		l.g.Expect(metricstest.Of(l.t, l.metric)).To(HaveKeyWithValue(sample, 1.0))
		return
	}
	l.g.Expect(metricstest.Of(l.t, l.metric)).NotTo(HaveKey(sample))
}

func (l *lab) cache(uid types.UID) {
	l.cached = &hyperv1.NodePool{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "bad", UID: uid, ResourceVersion: "3"},
		Spec:       hyperv1.NodePoolSpec{ClusterName: "cached"},
	}
}

func TestList(t *testing.T) {
	good, bad := pool("good", "1", "1h"), pool("bad", "2", tooLong)
	t.Run("drops an object that cannot be decoded and reports it once", func(t *testing.T) {
		l := newLab(t)
		for range 2 {
			l.g.Expect(l.get(pools, list(bad, good))).To(MatchJSON(list(good)))
		}
		l.expectReported(true)
		l.g.Expect(l.recorder.Events).To(HaveLen(1))
		l.g.Expect(<-l.recorder.Events).To(And(HavePrefix("Warning Undecodable "), ContainSubstring("invalid duration")))
	})
	t.Run("replaces an undecodable object with its last cached state", func(t *testing.T) {
		l := newLab(t)
		l.cache("uid-bad")
		read := l.get(pools, list(bad, good))
		l.g.Expect(read).To(And(ContainSubstring("cached"), Not(ContainSubstring(tooLong)), ContainSubstring(good)))
		l.expectReported(true)
	})
	t.Run("does not replace an object with the cached state of a deleted object of the same name", func(t *testing.T) {
		l := newLab(t)
		l.cache("another")
		l.g.Expect(l.get(pools, list(bad, good))).To(MatchJSON(list(good)))
	})
	for name, tc := range map[string]struct {
		path, body string
		forgets    bool
	}{
		"a list returns the object with a valid value": {pools, list(pool("bad", "4", "1h"), good), true},
		"a list does not contain the object":           {pools, list(good), true},
		"a list of the object's namespace is empty": {"/apis/hypershift.openshift.io/v1beta1/namespaces/a/nodepools", list(),
			true},
		"a list of another namespace is empty": {"/apis/hypershift.openshift.io/v1beta1/namespaces/b/nodepools", list(),
			false},
		"a list with a label selector is empty": {pools + "?labelSelector=a%3Db", list(), false},
		"a page of a list is empty":             {pools + "?limit=1", list(), false},
		"a watch reports a valid value": {pools + "?watch=true", `{"type":"MODIFIED","object":` +
			pool("bad", "4", "1h") + `}`, true},
		"a watch reports the deletion": {pools + "?watch=true", `{"type":"DELETED","object":` + bad + `}`, true},
	} {
		t.Run("stops or continues to report the object when "+name, func(t *testing.T) {
			l := newLab(t)
			l.get(pools, list(bad))
			l.expectReported(true)
			l.get(tc.path, tc.body)
			l.expectReported(!tc.forgets)
		})
	}
	for name, tc := range map[string]struct{ path, accept string }{
		"is about one object":     {pools + "/bad", ""},
		"is about metadata":       {pools, "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"},
		"is of another API group": {"/apis/example.com/v1/nodepools", ""},
		"is of the core group":    {"/api/v1/namespaces/a/pods", ""},
	} {
		t.Run("does not change a response that "+name, func(t *testing.T) {
			l := newLab(t)
			l.g.Expect(l.get(tc.path, list(bad), tc.accept)).To(Equal(list(bad)))
			l.expectReported(false)
		})
	}
}

func TestWatch(t *testing.T) {
	event := func(kind, object string) string { return fmt.Sprintf(`{"type":%q,"object":%s}`, kind, object) }
	good, bad := pool("good", "1", "1h"), pool("bad", "2", tooLong)
	end := event("BOOKMARK", `{"apiVersion":"hypershift.openshift.io/v1beta1","kind":"NodePool",`+
		`"metadata":{"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}}}`)
	t.Run("drops the events of an object that cannot be decoded", func(t *testing.T) {
		l := newLab(t)
		l.cache("uid-bad")
		read := l.get(pools+"?watch=true", event("ADDED", bad)+"\n"+event("MODIFIED", bad)+"\n"+event("ADDED", good)+"\n"+end)
		l.g.Expect(read).To(Equal(event("ADDED", good) + "\n" + end + "\n"))
		l.expectReported(true)
	})
	t.Run("sends the last cached state when a watch asks for initial events, and drops later events", func(t *testing.T) {
		l := newLab(t)
		l.cache("uid-bad")
		read := l.get(pools+"?watch=true&sendInitialEvents=true", event("ADDED", bad)+end+event("MODIFIED", bad))
		l.g.Expect(strings.Split(read, "\n")).To(HaveExactElements(
			And(HavePrefix(`{"type":"ADDED"`), ContainSubstring("cached")), Equal(end), BeEmpty()))
	})
	t.Run("forwards the deletion of an object that cannot be decoded", func(t *testing.T) {
		l := newLab(t)
		read := l.get(pools+"?watch=true", event("DELETED", bad))
		l.g.Expect(read).To(And(HavePrefix(`{"type":"DELETED"`), ContainSubstring(`"uid-bad"`),
			Not(ContainSubstring(tooLong))))
		l.cache("uid-bad")
		read = l.get(pools+"?watch=true", event("DELETED", bad))
		l.g.Expect(read).To(And(HavePrefix(`{"type":"DELETED"`), ContainSubstring(`"resourceVersion":"2"`),
			ContainSubstring("cached")))
	})
}
