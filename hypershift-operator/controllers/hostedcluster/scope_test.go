// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster/clustertest"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/platform"
)

// desk is a Reconciler with an in-memory API server.
type desk struct {
	*Reconciler
	*clustertest.Server
}

func newDesk(objects ...client.Object) *desk {
	server := clustertest.NewServer(objects...)
	return &desk{Server: server, Reconciler: &Reconciler{
		Client: server.Refusing, LiveReader: server.Refusing, Clock: testingclock.NewFakeClock(now), Recorder: &events.FakeRecorder{},
		Releases: fixture.Payloads(), Platforms: fixture.Platforms(nil), Settings: Settings{OperatorImage: operatorImage},
	}}
}

// plugged is a fake platform.
type plugged = clustertest.Plugin

// on returns a scope with this platform.
func on(p platform.Platform, mutate ...func(*scope)) *scope {
	return withScope(append([]func(*scope){func(s *scope) { s.Platform, s.PlatformServed = p, true }}, mutate...)...)
}

// errNotNow is the error of a failed request to a fixture's server.
var errNotNow = clustertest.ErrNotNow

// ours returns the metadata of an object that was created for the fixture's cluster.
var ours = clustertest.Ours

func TestSecurityUserID(t *testing.T) {
	for uid, want := range map[string]*int64{
		"":           nil,
		"1001":       ptr.To[int64](1001),
		"0":          ptr.To[int64](0),
		"4294967296": ptr.To[int64](4294967296),
		"0x10":       nil,
		"nobody":     nil,
	} {
		t.Run("When the namespace has user ID "+uid+", pods should get it if it is a number", func(t *testing.T) {
			if diff := cmp.Diff(want, withScope(func(s *scope) { s.securityUID = uid }).securityUserID()); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestSeenByPlugins checks which parts of a cluster a platform's plugin gets.
func TestSeenByPlugins(t *testing.T) {
	s := withScope(reporting(), func(s *scope) {
		s.Pools, s.CredentialsHash = []hyperv1.NodePool{*fixture.NodePool("clusters")}, "hash"
	})
	want := platform.Cluster{HostedCluster: s.HC, ControlPlane: s.HCP, Namespace: "clusters-demo", OperatorImage: "operator:1", NodePools: s.Pools, CredentialsHash: "hash"}
	if diff := cmp.Diff(want, s.ForPlatform("operator:1")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestMarks(t *testing.T) {
	for name, before := range map[string]metav1.ObjectMeta{
		"When the object has no annotations, it should have only the new one":   {},
		"When the object has other labels and annotations, they should be kept": {Labels: map[string]string{"a": "1"}, Annotations: map[string]string{"a": "1"}},
		"When the object has another value, it should be replaced":              {Labels: map[string]string{"b": "1"}, Annotations: map[string]string{"b": "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			want := map[string]string{"b": "2"}
			if before.Labels["a"] != "" {
				want["a"] = "1"
			}
			obj := &corev1.Secret{ObjectMeta: *before.DeepCopy()}
			cluster.Label(obj, map[string]string{"b": "2"})
			cluster.Annotate(obj, "b", "2")
			NewWithT(t).Expect(obj.Labels).To(Equal(want))
			NewWithT(t).Expect(obj.Annotations).To(Equal(want))
		})
	}
}

// TestFindings checks the conditions that accept and reject set.
func TestFindings(t *testing.T) {
	s := withScope()
	s.Accept(hyperv1.ValidReleaseImage)
	s.Reject(hyperv1.PlatformCredentialsFound, "Why", "what")
	want := map[string]metav1.Condition{
		"ValidReleaseImage":        is("ValidReleaseImage", "True", "AsExpected", hyperv1.AllIsWellMessage),
		"PlatformCredentialsFound": is("PlatformCredentialsFound", "False", "Why", "what"),
	}
	if diff := cmp.Diff(want, s.Conditions); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
