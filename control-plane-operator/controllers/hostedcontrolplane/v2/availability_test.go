// SPDX-License-Identifier: Apache-2.0

package v2

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAvailability checks all workloads of a highly available control plane. Workloads with several replicas must
// survive the failure of a host and a drain.
func TestAvailability(t *testing.T) {
	scope := newScope(controlPlane(everything, highlyAvailable), everythingNeeds(t)...)
	scope.Images.(payload)["cluster-autoscaler"] = "registry.example/payload/cluster-autoscaler@sha256:0001"
	for _, c := range Kubernetes(Config{ConfigOperatorImage: "registry.example/hypershift:latest"}) {
		ready(t, scope, c.Dependencies...)
		if err := c.Reconcile(t.Context(), scope); err != nil {
			t.Fatalf("component %s: %v", c.Name, err)
		}
		ready(t, scope, c.Name)
	}
	budgets, deployments, sets := &policyv1.PodDisruptionBudgetList{}, &appsv1.DeploymentList{}, &appsv1.StatefulSetList{}
	g := NewWithT(t)
	g.Expect(scope.Client.List(t.Context(), budgets)).To(Succeed())
	g.Expect(scope.Client.List(t.Context(), deployments)).To(Succeed())
	g.Expect(scope.Client.List(t.Context(), sets)).To(Succeed())
	several := 0
	for _, d := range deployments.Items {
		several += check(t, d.Name, ptr.Deref(d.Spec.Replicas, 1), d.Spec.Template, budgets.Items)
	}
	for _, s := range sets.Items {
		several += check(t, s.Name, ptr.Deref(s.Spec.Replicas, 1), s.Spec.Template, budgets.Items)
	}
	g.Expect(several).To(BeNumerically(">=", 5), "etcd, the API server, its two controllers and the ignition-server")
}

// check checks one workload. It returns 1 if the workload has several replicas, and 0 otherwise.
func check(t *testing.T, name string, replicas int32, pod corev1.PodTemplateSpec, budgets []policyv1.PodDisruptionBudget) int {
	t.Helper()
	if pod.Spec.PriorityClassName == "" {
		t.Errorf("%s has no priority class: tenants' pods of the management cluster would push it out", name)
	}
	for _, container := range pod.Spec.Containers {
		if container.Resources.Requests.Cpu().IsZero() || container.Resources.Requests.Memory().IsZero() {
			t.Errorf("container %s of %s requests no CPU or memory: the scheduler would take it for nothing", container.Name, name)
		}
	}
	if replicas < 2 {
		return 0
	}
	var of []string
	for _, budget := range budgets {
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil {
			t.Fatal(err)
		}
		if selector.Matches(labels.Set(pod.Labels)) {
			of = append(of, budget.Name)
			if most := budget.Spec.MaxUnavailable; most == nil || most.IntValue() != 1 {
				t.Errorf("the budget %s lets %v pods go at a time", budget.Name, most)
			}
		}
	}
	if len(of) != 1 {
		t.Errorf("%s has %d replicas and the budgets %v; evictions need exactly one", name, replicas, of)
	}
	if len(pod.Spec.TopologySpreadConstraints) == 0 {
		t.Errorf("the %d replicas of %s may all be on one host", replicas, name)
	}
	if affinity := pod.Spec.Affinity.PodAntiAffinity; affinity == nil || len(affinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
		t.Errorf("the %d replicas of %s prefer no zones, or cannot do with fewer hosts than replicas", replicas, name)
	}
	return 1
}
