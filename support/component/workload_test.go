// SPDX-License-Identifier: Apache-2.0

package component

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

func TestHealth(t *testing.T) {
	d := func(edit ...func(*appsv1.Deployment)) *appsv1.Deployment {
		d := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 2}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](2)},
			Status: appsv1.DeploymentStatus{
				ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2,
				Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}},
			},
		}
		for _, f := range edit {
			f(d)
		}
		return d
	}
	job := func(t batchv1.JobConditionType) *batchv1.Job {
		return &batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: t, Status: corev1.ConditionTrue}}}}
	}
	cases := []struct {
		name                string
		obj                 client.Object
		available, complete bool
	}{
		{"a finished Deployment", d(), true, true},
		{"a Deployment whose change is not observed yet", d(func(d *appsv1.Deployment) { d.Generation = 3 }), true, false},
		{"a Deployment with an old pod", d(func(d *appsv1.Deployment) { d.Status.Replicas = 3 }), true, false},
		{"a Deployment with half its pods updated", d(func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 1 }), true, false},
		{"a Deployment with a pod on a failed host", d(func(d *appsv1.Deployment) {
			d.Status.UnavailableReplicas, d.Status.ReadyReplicas, d.Status.AvailableReplicas = 1, 1, 1
		}), true, true},
		{"a Deployment without available pods", d(func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 0 }), true, false},
		{"a Deployment with one unavailable pod", d(func(d *appsv1.Deployment) {
			d.Spec.Replicas, d.Status = ptr.To[int32](1), appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: 1}
		}), false, false},
		{"a Deployment without pods", d(func(d *appsv1.Deployment) { d.Status = appsv1.DeploymentStatus{} }), false, false},
		{"a finished StatefulSet", &appsv1.StatefulSet{
			Spec:   appsv1.StatefulSetSpec{Replicas: ptr.To[int32](1)},
			Status: appsv1.StatefulSetStatus{Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1},
		}, true, true},
		{"a StatefulSet with one of three pods", &appsv1.StatefulSet{
			Spec:   appsv1.StatefulSetSpec{Replicas: ptr.To[int32](3)},
			Status: appsv1.StatefulSetStatus{Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 1, AvailableReplicas: 1},
		}, true, false},
		{"a StatefulSet with a pod on a failed host", &appsv1.StatefulSet{
			Spec:   appsv1.StatefulSetSpec{Replicas: ptr.To[int32](3)},
			Status: appsv1.StatefulSetStatus{Replicas: 3, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2, CurrentRevision: "a", UpdateRevision: "b"},
		}, true, true},
		{"a StatefulSet with a pod of the previous revision", &appsv1.StatefulSet{
			Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](3)},
			Status: appsv1.StatefulSetStatus{
				Replicas: 3, UpdatedReplicas: 2, CurrentReplicas: 1, ReadyReplicas: 3, AvailableReplicas: 3, CurrentRevision: "a", UpdateRevision: "b",
			},
		}, true, false},
		{"an OnDelete StatefulSet with pods of neither of its two revisions", &appsv1.StatefulSet{
			Spec:   appsv1.StatefulSetSpec{Replicas: ptr.To[int32](3)},
			Status: appsv1.StatefulSetStatus{Replicas: 3, UpdatedReplicas: 1, ReadyReplicas: 3, AvailableReplicas: 3, CurrentRevision: "a", UpdateRevision: "c"},
		}, true, false},
		{"an OnDelete StatefulSet that has rolled out", &appsv1.StatefulSet{
			Spec:   appsv1.StatefulSetSpec{Replicas: ptr.To[int32](3)},
			Status: appsv1.StatefulSetStatus{Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 3, CurrentRevision: "a", UpdateRevision: "c"},
		}, true, true},
		{"a new StatefulSet", &appsv1.StatefulSet{}, false, false},
		{"a running Job", &batchv1.Job{}, false, false},
		{"a completed Job", job(batchv1.JobComplete), true, true},
		{"a failed Job", job(batchv1.JobFailed), false, false},
		{"a CronJob", &batchv1.CronJob{}, true, true},
	}
	for _, tc := range cases {
		t.Run("When it is "+tc.name+", it should set Available and RolloutComplete accordingly", func(t *testing.T) {
			g := NewWithT(t)
			h := healthOf(tc.obj)
			g.Expect(h.available.Status == metav1.ConditionTrue).To(Equal(tc.available))
			g.Expect(h.rolledOut.Status == metav1.ConditionTrue).To(Equal(tc.complete))
			g.Expect(h.available.Reason).NotTo(BeEmpty())
		})
	}
}

func TestDisruptionBudget(t *testing.T) {
	for _, policy := range []hyperv1.AvailabilityPolicy{hyperv1.SingleReplica, hyperv1.HighlyAvailable} {
		t.Run("When the policy is "+string(policy)+", it should allow the matching number of disruptions", func(t *testing.T) {
			g := NewWithT(t)
			s := newScope()
			s.HCP.Spec.ControllerAvailabilityPolicy = policy
			c := web(func(c *Component) {
				c.Manifests = manifests(map[string]string{"deployment.yaml": deploymentYAML, "pdb.yaml": pdbYAML})
				c.Adapters = map[string]Adapter{"pdb.yaml": DisruptionBudget()}
			})
			g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
			pdb := get(t, s, "web", &policyv1.PodDisruptionBudget{})
			if policy == hyperv1.SingleReplica {
				g.Expect(pdb.Spec.MinAvailable.IntValue()).To(Equal(1))
				g.Expect(pdb.Spec.MaxUnavailable).To(BeNil())
			} else {
				g.Expect(pdb.Spec.MaxUnavailable.IntValue()).To(Equal(1))
				g.Expect(pdb.Spec.MinAvailable).To(BeNil())
			}
		})
	}
}
