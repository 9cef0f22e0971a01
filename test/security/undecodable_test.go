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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
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

// TestUndecodablePool stores a NodePool that the CRD of 0.1.0 accepted and that Go cannot decode. One such object
// stopped the operator for all tenants: every list and watch of NodePools failed.
func TestUndecodablePool(t *testing.T) {
	config := testenv.Start(t, append([]string{crds.HyperShift, crds.ClusterAPI}, platforms.CRDFolders()...)...)
	testenv.NeedsServer(t, config)
	g, c := NewWithT(t), testenv.Client(t, config, fixture.Scheme())
	bad, other := fixture.NodePool("attacker"), fixture.NodePool("victim")
	fixture.Create(t, c, append(fixture.Inputs("attacker"), fixture.HostedCluster("attacker"),
		fixture.HostedCluster("victim"))...)
	stored := withValue(t, bad, "99999999999h", "spec", "nodeDrainTimeout")
	g.Expect(c.Create(t.Context(), stored.DeepCopy())).To(MatchError(apierrors.IsInvalid, "IsInvalid"))
	storeWithoutRules(t, c, "nodepools", stored)
	g.Expect(c.List(t.Context(), &hyperv1.NodePoolList{})).To(MatchError(ContainSubstring("invalid duration")),
		"it can be decoded")

	asked := manage(t, config)
	fixture.Create(t, c, other)
	asked.Await(t, &hyperv1.NodePool{}, client.ObjectKeyFromObject(other))
	g.Eventually(func(g Gomega) {
		list := &eventsv1.EventList{}
		g.Expect(c.List(t.Context(), list, client.InNamespace("attacker"))).To(Succeed())
		g.Expect(list.Items).To(ContainElement(And(HaveField("Reason", undecodable.Reason),
			HaveField("Regarding.Name", bad.Name))))
	}, patience, time.Second).Should(Succeed())
	g.Expect(reported(t, bad.Namespace)).To(ConsistOf(bad.Name))
	g.Eventually(func() *metav1.Condition { return conditionOf(t, c, stored, hyperv1.ReconciliationSucceeded) }, patience,
		time.Second).
		Should(HaveField("Reason", undecodable.Reason))

	// The owner corrects the value.
	correct := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"nodeDrainTimeout":"1h"}}`))
	g.Expect(c.Patch(t.Context(), bad, correct)).To(Succeed())
	asked.Await(t, &hyperv1.NodePool{}, client.ObjectKeyFromObject(bad))
	g.Expect(reported(t, bad.Namespace)).To(BeEmpty())
	g.Eventually(func() *metav1.Condition { return conditionOf(t, c, stored, hyperv1.ReconciliationSucceeded) }, patience,
		time.Second).
		Should(Or(BeNil(), HaveField("Reason", Not(Equal(undecodable.Reason)))))
}

// manage runs the operator's NodePool controller in all namespaces, as the operator does.
func manage(t *testing.T, config *rest.Config) *testenv.Requests {
	t.Helper()
	mgr, err := program.NewManager(program.Management, config, ctrl.Options{
		Scheme: fixture.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
	}, program.OfTenants)
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

// withValue returns an object as stored in the API server, with a value that its Go type cannot hold.
func withValue(t *testing.T, obj client.Object, value string, path ...string) *unstructured.Unstructured {
	t.Helper()
	g := NewWithT(t)
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	g.Expect(err).NotTo(HaveOccurred())
	gvk, err := apiutil.GVKForObject(obj, fixture.Scheme())
	g.Expect(err).NotTo(HaveOccurred())
	written := &unstructured.Unstructured{Object: raw}
	written.SetGroupVersionKind(gvk)
	g.Expect(unstructured.SetNestedField(written.Object, value, path...)).To(Succeed())
	return written
}

// storeWithoutRules stores objects of a kind while the API server accepts any. Afterwards the API server rejects them
// again.
func storeWithoutRules(t *testing.T, c client.Client, resource string, objects ...*unstructured.Unstructured) {
	t.Helper()
	g, crd := NewWithT(t), &apiextensionsv1.CustomResourceDefinition{}
	g.Expect(c.Get(t.Context(), client.ObjectKey{Name: resource + ".hypershift.openshift.io"}, crd)).To(Succeed())
	rules := crd.Spec.DeepCopy()
	all := true
	for i := range crd.Spec.Versions {
		crd.Spec.Versions[i].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object",
			XPreserveUnknownFields: &all}
	}
	g.Expect(c.Update(t.Context(), crd)).To(Succeed())
	for _, obj := range objects {
		g.Eventually(func() error { return c.Create(t.Context(), obj.DeepCopy()) }, patience, time.Second).Should(Succeed())
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"versions": rules.Versions}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Patch(t.Context(), crd, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
	probe := objects[0].DeepCopy()
	probe.SetName("probe")
	g.Eventually(func() error { return c.Create(t.Context(), probe.DeepCopy(), client.DryRunAll) }, patience, time.Second).
		Should(MatchError(apierrors.IsInvalid, "IsInvalid"))
}

// conditionOf returns a condition of an object; nil if it has none of this type.
func conditionOf(t *testing.T, c client.Client, of *unstructured.Unstructured,
	conditionType hyperv1.ConditionType) *metav1.Condition {
	t.Helper()
	g, now := NewWithT(t), &unstructured.Unstructured{}
	now.SetGroupVersionKind(of.GroupVersionKind())
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(of), now)).To(Succeed())
	written, err := now.MarshalJSON()
	g.Expect(err).NotTo(HaveOccurred())
	var read struct {
		Status struct{ Conditions []metav1.Condition }
	}
	g.Expect(json.Unmarshal(written, &read)).To(Succeed())
	return meta.FindStatusCondition(read.Status.Conditions, string(conditionType))
}

// reported returns the names of a namespace's objects in the metric.
func reported(t *testing.T, namespace string) []string {
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
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if labels["namespace"] == namespace {
				names = append(names, labels["name"])
			}
		}
	}
	return names
}
