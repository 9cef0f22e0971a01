// SPDX-License-Identifier: Apache-2.0

package security

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/platforms"
	"github.com/openshift/hypershift/support/program"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/support/undecodable"
)

// TestUndecodableCondition stores objects that Go cannot decode. Each gets a condition with the cause. The condition is
// written once, and again if it is removed.
func TestUndecodableCondition(t *testing.T) {
	for resource, tc := range map[string]struct {
		obj   client.Object
		value string
		path  []string
		cause string
	}{
		"nodepools": {fixture.NodePool("red"), "99999999999h", []string{"spec", "nodeDrainTimeout"}, "invalid duration"},
		"hostedclusters": {
			fixture.HostedCluster("red"), "a lot", []string{"spec", "etcd", "managed", "storage", "persistentVolume", "size"},
			"quantities must match",
		},
	} {
		t.Run(resource, func(t *testing.T) {
			config := testenv.Start(t, crds.HyperShift)
			testenv.NeedsServer(t, config)
			g, c := NewWithT(t), testenv.Client(t, config, fixture.Scheme())
			fixture.Create(t, c, fixture.Inputs("red")...)
			first := withValue(t, tc.obj, tc.value, tc.path...)
			second := first.DeepCopy()
			second.SetName("second")
			storeWithoutRules(t, c, resource, first, second)

			other := client.RawPatch(types.MergePatchType, []byte(
				`{"status":{"conditions":[{"type":"Progressing","status":"True","reason":"A","message":"B","lastTransitionTime":"2026-11-20T12:00:00Z"}]}}`))
			g.Expect(c.Status().Patch(t.Context(), first.DeepCopy(), other)).To(Succeed())

			patches := followUndecodable(t, config, tc.obj)
			told := func(obj *unstructured.Unstructured) {
				t.Helper()
				g.Eventually(func() *metav1.Condition { return conditionOf(t, c, obj, hyperv1.ReconciliationSucceeded) }, patience,
					time.Second).Should(And(
					HaveField("Status", metav1.ConditionFalse), HaveField("Reason", undecodable.Reason),
					HaveField("Message", And(ContainSubstring(tc.cause), HaveSuffix("correct the value with kubectl edit"))),
				))
			}
			told(first)
			told(second)
			g.Expect(conditionOf(t, c, first, hyperv1.HostedClusterProgressing)).To(HaveField("Message", "B"),
				"other conditions stay")
			g.Expect(patches.Load()).To(BeEquivalentTo(2))

			// The manager processes the first object, whose condition stays, before the second.
			labeled := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"tier":"one"}}}`))
			g.Expect(c.Patch(t.Context(), first.DeepCopy(), labeled)).To(Succeed())
			lost := client.RawPatch(types.MergePatchType, []byte(`{"status":{"conditions":[]}}`))
			g.Expect(c.Status().Patch(t.Context(), second.DeepCopy(), lost)).To(Succeed())
			told(second)
			told(first)
			g.Expect(patches.Load()).To(BeEquivalentTo(3))
		})
	}
}

// TestUndecodableCluster checks that a HostedCluster loses the condition when its owner corrects the value.
func TestUndecodableCluster(t *testing.T) {
	config := testenv.Start(t, append([]string{crds.HyperShift, crds.ClusterAPI}, platforms.CRDFolders()...)...)
	testenv.NeedsServer(t, config)
	g, c := NewWithT(t), testenv.Client(t, config, fixture.Scheme())
	operator := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fixture.OperatorNamespace}}
	g.Expect(client.IgnoreAlreadyExists(c.Create(t.Context(), operator))).To(Succeed())
	fixture.Create(t, c, fixture.Inputs("blue")...)
	cluster := fixture.HostedCluster("blue")
	stored := withValue(t, cluster, "a lot", "spec", "etcd", "managed", "storage", "persistentVolume", "size")
	storeWithoutRules(t, c, "hostedclusters", stored)
	followUndecodable(t, config, cluster)
	reason := func() string {
		return ptr.Deref(conditionOf(t, c, stored, hyperv1.ReconciliationSucceeded), metav1.Condition{}).Reason
	}
	g.Eventually(reason, patience, time.Second).Should(Equal(undecodable.Reason))

	correct := client.RawPatch(types.MergePatchType,
		[]byte(`{"spec":{"etcd":{"managed":{"storage":{"persistentVolume":{"size":"8Gi"}}}}}}`))
	g.Expect(c.Patch(t.Context(), cluster, correct)).To(Succeed(), "the owner can correct the value")
	clusters := &hostedcluster.Reconciler{
		Client: c, LiveReader: c, Clock: clock.RealClock{}, Recorder: &events.FakeRecorder{}, Releases: fixture.Payloads(),
		Platforms: fixture.Platforms(nil),
		Settings: hostedcluster.Settings{
			OperatorNamespace: fixture.OperatorNamespace, OperatorImage: "registry.example/hypershift:1",
		},
	}
	_, err := clusters.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(cluster)})
	want := hyperv1.ReconciliationSucceededReason
	if err != nil {
		want = hyperv1.ReconciliationErrorReason // Of a first reconcile, which may wait for what it created.
	}
	g.Expect(reason()).To(Equal(want), "%v", err)
}

// followUndecodable runs a manager with a cache of a kind, and counts its status patches.
func followUndecodable(t *testing.T, config *rest.Config, kind client.Object) *atomic.Int64 {
	t.Helper()
	patches := &atomic.Int64{}
	counted := rest.CopyConfig(config)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/status") {
				patches.Add(1)
			}
			return next.RoundTrip(r)
		})
	})
	mgr, err := program.NewManager(program.Management, counted, ctrl.Options{
		Scheme: fixture.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
	}, program.OfTenants)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mgr.GetCache().GetInformer(t.Context(), kind, cache.BlockUntilSynced(false)); err != nil {
		t.Fatal(err)
	}
	testenv.Run(t, mgr)
	return patches
}

type roundTrip func(*http.Request) (*http.Response, error)

func (r roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
