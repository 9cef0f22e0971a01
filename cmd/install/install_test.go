// SPDX-License-Identifier: Apache-2.0

package install

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/operatorwebhook"
)

func TestPodProblem(t *testing.T) {
	pod := func(edit func(*corev1.Pod)) []corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "operator-x"}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
		edit(&p)
		return []corev1.Pod{p}
	}
	waiting := func(reason, message string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: "operator", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
	}
	tests := []struct {
		name string
		pods []corev1.Pod
		want string
	}{
		{"When there is no Pod, it should say so", nil, "it has no pod yet"},
		{
			"When the image cannot be pulled, it should report the reason",
			pod(func(p *corev1.Pod) {
				p.Status.ContainerStatuses = []corev1.ContainerStatus{waiting("ImagePullBackOff", "no such host")}
			}),
			"container operator of pod operator-x: ImagePullBackOff: no such host",
		},
		{
			"When the container crashes, it should report its termination message",
			pod(func(p *corev1.Pod) {
				status := waiting("CrashLoopBackOff", "back-off 10s")
				status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Message: "Error: no rights\n"}
				p.Status.ContainerStatuses = []corev1.ContainerStatus{status}
			}),
			"container operator of pod operator-x: CrashLoopBackOff; it ended with exit code 1: Error: no rights",
		},
		{
			"When the Pod cannot be scheduled, it should report the reason",
			pod(func(p *corev1.Pod) {
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "Insufficient cpu"}}
			}),
			"pod operator-x cannot be scheduled: Insufficient cpu",
		},
		{
			"When the Pod is still starting, it should report its phase",
			pod(func(p *corev1.Pod) {
				p.Status.ContainerStatuses = []corev1.ContainerStatus{waiting("PodInitializing", "")}
			}),
			"pod operator-x is Pending",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			NewWithT(t).Expect(podProblem(tt.pods)).To(Equal(tt.want))
		})
	}
}

func TestAvailable(t *testing.T) {
	deployment := func(generation, observed int64, updated, available int32) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Generation: generation},
			Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](2)},
			Status:     appsv1.DeploymentStatus{ObservedGeneration: observed, UpdatedReplicas: updated, AvailableReplicas: available},
		}
	}
	tests := []struct {
		name       string
		deployment *appsv1.Deployment
		want       bool
	}{
		{"When all Pods are updated and available, the Deployment should be available", deployment(2, 2, 2, 2), true},
		{"When the latest generation is not observed yet, the Deployment should not be available", deployment(2, 1, 2, 2), false},
		{"When an old Pod still runs, the Deployment should not be available", deployment(2, 2, 1, 2), false},
		{"When a Pod is not available, the Deployment should not be available", deployment(2, 2, 2, 1), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			NewWithT(t).Expect(available(tt.deployment)).To(Equal(tt.want))
		})
	}
}

func TestDefinitions(t *testing.T) {
	names := func(o Options) []string {
		all, err := o.definitions()
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, crd := range all {
			list = append(list, crd.Name)
		}
		return list
	}
	g := NewWithT(t)
	const maas = "maasmachines.infrastructure.cluster.x-k8s.io"
	g.Expect(names(Options{})).To(ContainElements(maas, etcdBackupCRD, "machines.cluster.x-k8s.io", "hostedclusters.hypershift.openshift.io"))
	g.Expect(names(Options{platforms: []string{"maas"}})).To(ContainElement(maas))
	g.Expect(names(Options{platforms: []string{"none"}})).NotTo(ContainElement(maas))
	g.Expect(names(Options{excludeEtcd: true})).NotTo(ContainElement(etcdBackupCRD))
	g.Expect(names(Options{})).NotTo(ContainElement(ContainSubstring("config.openshift.io")), "those are for guests")
}

func TestConversion(t *testing.T) {
	served := func(o Options) map[string]int {
		all, err := o.definitions()
		if err != nil {
			t.Fatal(err)
		}
		versions := map[string]int{}
		for _, crd := range all {
			if !ofClusterAPI(crd) {
				continue
			}
			if operatorwebhook.Converts(crd, "other") == o.development {
				t.Errorf("the operator converts %s: %v, want it where it has a pod", crd.Name, !o.development)
			}
			for _, version := range crd.Spec.Versions {
				if version.Served {
					versions[crd.Name]++
				}
			}
		}
		return versions
	}
	g := NewWithT(t)
	g.Expect(served(Options{namespace: "other"})).To(HaveKeyWithValue("machinesets.cluster.x-k8s.io", 2))
	g.Expect(served(Options{namespace: "other", development: true})).To(HaveKeyWithValue("machinesets.cluster.x-k8s.io", 1),
		"without a converter the other version would only lose fields")
}

func TestContractLabels(t *testing.T) {
	all, err := (&Options{}).definitions()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range all {
		if crd.Spec.Group != "infrastructure.cluster.x-k8s.io" {
			continue
		}
		if crd.Labels["cluster.x-k8s.io/v1beta2"] == "" && crd.Labels["cluster.x-k8s.io/v1beta1"] == "" {
			t.Errorf("%s has no label that tells Cluster API its contract", crd.Name)
		}
	}
}

func TestDisruptionBudget(t *testing.T) {
	for name, tc := range map[string]struct {
		options Options
		want    int
	}{
		"When there are several operator Pods, one may be unavailable at a time":                   {Options{replicas: 2}, 1},
		"When there is one operator Pod, there is no PodDisruptionBudget that would block a drain": {Options{replicas: 1}, 0},
		"When the operator runs outside the cluster, there is no PodDisruptionBudget":              {Options{replicas: 2, development: true}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			budgets := 0
			for _, obj := range tc.options.resources() {
				budget, ok := obj.(*policyv1.PodDisruptionBudget)
				if !ok {
					continue
				}
				budgets++
				selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(selector.Matches(labels.Set(tc.options.deployment().Spec.Template.Labels))).To(BeTrue())
				g.Expect(budget.Spec.MaxUnavailable.IntValue()).To(Equal(1))
			}
			g.Expect(budgets).To(Equal(tc.want))
		})
	}
}

func TestResourcesAreSelfContained(t *testing.T) {
	g := NewWithT(t)
	o := Options{namespace: "other", image: "image", replicas: 1, trustBundle: []byte("x"), pullSecret: []byte("{}")}
	seen := map[string]int{}
	for i, obj := range o.resources() {
		seen[client.ObjectKeyFromObject(obj).String()] = i
		if obj.GetNamespace() != "" && obj.GetNamespace() != "kube-system" {
			g.Expect(obj.GetNamespace()).To(Equal("other"))
		}
		if binding, ok := obj.(*rbacv1.ClusterRoleBinding); ok {
			g.Expect(binding.Subjects[0].Namespace).To(Equal("other"))
		}
	}
	g.Expect(seen["/other"]).To(BeNumerically("<", seen["other/operator"]), "the namespace comes before what is in it")
	g.Expect(o.operatorContainer().VolumeMounts).To(HaveLen(1))
	g.Expect(o.serviceAccount().ImagePullSecrets).To(HaveLen(1))
	o.development = true
	g.Expect(*o.deployment().Spec.Replicas).To(BeZero())
}
