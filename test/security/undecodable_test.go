// SPDX-License-Identifier: Apache-2.0

package security

import (
	"encoding/json"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/platforms"
	"github.com/openshift/hypershift/support/program"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/support/undecodable"
)

const nodePools = "nodepools.hypershift.openshift.io"

// TestUndecodablePool stores a NodePool that the CRD of 0.1.0 accepted and that Go cannot decode. One such object
// stopped the operator for all tenants: no list and no watch of NodePools succeeded any more.
func TestUndecodablePool(t *testing.T) {
	config := testenv.Start(t, append([]string{crds.HyperShift, crds.ClusterAPI}, platforms.CRDFolders()...)...)
	testenv.NeedsServer(t, config)
	g, c := NewWithT(t), testenv.Client(t, config, fixture.Scheme())
	bad, other := fixture.NodePool("attacker"), fixture.NodePool("victim")
	fixture.Create(t, c, append(fixture.Inputs("attacker"), fixture.HostedCluster("attacker"), fixture.HostedCluster("victim"))...)
	undecodablePool := func() *unstructured.Unstructured {
		raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(bad)
		g.Expect(err).NotTo(HaveOccurred())
		obj := &unstructured.Unstructured{Object: raw}
		obj.SetGroupVersionKind(hyperv1.GroupVersion.WithKind("NodePool"))
		g.Expect(unstructured.SetNestedField(obj.Object, "99999999999h", "spec", "nodeDrainTimeout")).To(Succeed())
		return obj
	}
	g.Expect(c.Create(t.Context(), undecodablePool())).To(MatchError(apierrors.IsInvalid, "IsInvalid"))
	withoutRules(t, c, func() {
		g.Eventually(func() error { return c.Create(t.Context(), undecodablePool()) }, patience, time.Second).Should(Succeed())
	})
	g.Expect(c.List(t.Context(), &hyperv1.NodePoolList{})).To(MatchError(ContainSubstring("invalid duration")), "it can be decoded")

	asked := manage(t, config)
	fixture.Create(t, c, other)
	asked.Await(t, &hyperv1.NodePool{}, client.ObjectKeyFromObject(other))
	g.Eventually(func(g Gomega) {
		list := &eventsv1.EventList{}
		g.Expect(c.List(t.Context(), list, client.InNamespace("attacker"))).To(Succeed())
		g.Expect(list.Items).To(ContainElement(And(HaveField("Reason", undecodable.Reason), HaveField("Regarding.Name", bad.Name))))
	}, patience, time.Second).Should(Succeed())
	g.Expect(reported(t)).To(ConsistOf(bad.Name))

	// The owner corrects the value.
	correct := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"nodeDrainTimeout":"1h"}}`))
	g.Expect(c.Patch(t.Context(), bad, correct)).To(Succeed())
	asked.Await(t, &hyperv1.NodePool{}, client.ObjectKeyFromObject(bad))
	g.Expect(reported(t)).To(BeEmpty())
}

// manage runs the operator's controller of NodePools in all namespaces, as the operator does.
func manage(t *testing.T, config *rest.Config) *testenv.Requests {
	t.Helper()
	mgr, err := program.NewManager(program.Management, config, ctrl.Options{
		Scheme: fixture.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	asked := testenv.NewRequests(mgr.GetClient())
	pools := &nodepool.Reconciler{
		Client: asked, Clock: testingclock.NewFakeClock(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)),
		Recorder: mgr.GetEventRecorder("nodepool"),
		Releases: fixture.Payloads(), Platforms: fixture.Platforms(nil),
	}
	if err := pools.SetupWithManager(testenv.Watched(mgr, asked)); err != nil {
		t.Fatal(err)
	}
	testenv.Run(t, mgr)
	return asked
}

// withoutRules stores objects while the API server accepts any NodePool.
func withoutRules(t *testing.T, c client.Client, store func()) {
	t.Helper()
	g, crd := NewWithT(t), &apiextensionsv1.CustomResourceDefinition{}
	g.Expect(c.Get(t.Context(), client.ObjectKey{Name: nodePools}, crd)).To(Succeed())
	rules := crd.Spec.DeepCopy()
	all := true
	for i := range crd.Spec.Versions {
		crd.Spec.Versions[i].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &all}
	}
	g.Expect(c.Update(t.Context(), crd)).To(Succeed())
	store()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"versions": rules.Versions}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Patch(t.Context(), crd, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
	g.Eventually(func() error {
		invalid := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"nodeDrainTimeout": "99999999999h"}}}
		invalid.SetGroupVersionKind(hyperv1.GroupVersion.WithKind("NodePool"))
		invalid.SetNamespace("victim")
		invalid.SetName("probe")
		return c.Create(t.Context(), invalid, client.DryRunAll)
	}, patience, time.Second).Should(MatchError(apierrors.IsInvalid, "IsInvalid"))
}

// reported are the names of the objects that the metric has.
func reported(t *testing.T) []string {
	t.Helper()
	families, err := ctrlmetrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, family := range families {
		if family.GetName() != "hypershift_undecodable_objects" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "name" {
					names = append(names, label.GetValue())
				}
			}
		}
	}
	return names
}
