// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/podfailure"
	"github.com/openshift/hypershift/support/monitoringcrds"
)

// TestStockOperatorNeeds removes what the operators of an OpenShift release need, one thing at a time. It checks that
// the HostedCluster reports what is missing.
func TestStockOperatorNeeds(t *testing.T) {
	c := fixture.Start(t)
	fixture.Install(t, monitoringcrds.Definitions()...)
	stock := newStockOperator(t, c, "needs", nil)
	for range 2 { // A container that exited once may run after its restart.
		stock.end(errors.New("it starts"))
	}
	for resource, list := range map[string]client.ObjectList{
		"configmaps": &corev1.ConfigMapList{}, "secrets": &corev1.SecretList{}, "services": &corev1.ServiceList{},
		"deployments": &appsv1.DeploymentList{}, "statefulsets": &appsv1.StatefulSetList{},
		"jobs": &batchv1.JobList{}, "cronjobs": &batchv1.CronJobList{}, "leases": &coordinationv1.LeaseList{},
		"poddisruptionbudgets": &policyv1.PodDisruptionBudgetList{}, "networkpolicies": &networkingv1.NetworkPolicyList{},
		"roles": &rbacv1.RoleList{}, "rolebindings": &rbacv1.RoleBindingList{},
		"hostedcontrolplanes": &hyperv1.HostedControlPlaneList{},
	} {
		t.Run("When the right to list "+resource+" is missing, conditions should report it", func(t *testing.T) { stock.withoutRight(t, resource, list) })
	}
	deployments := &appsv1.DeploymentList{}
	NewWithT(t).Expect(c.List(t.Context(), deployments, client.InNamespace(stock.hosted()))).To(Succeed())
	mounted := 0
	for _, deployment := range deployments.Items {
		for _, volume := range deployment.Spec.Template.Spec.Volumes {
			missing := missingSource(volume)
			if missing == "" {
				continue
			}
			mounted++
			t.Run("When "+missing+" of "+deployment.Name+" is missing, conditions should report it", func(t *testing.T) { stock.withoutVolume(t, volume.Name, missing) })
		}
	}
	NewWithT(t).Expect(mounted).To(BeNumerically(">", 0), "the operators mount Secrets and ConfigMaps")
}

// withoutRight removes the rules that cover a resource from the operator's Role. The operator of this product restores
// them.
func (s *stockOperator) withoutRight(t *testing.T, resource string, list client.ObjectList) {
	g, role := NewWithT(t), &rbacv1.Role{}
	s.get(role, controlPlaneOperatorName)
	role.Rules = slices.DeleteFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
		return slices.Contains(rule.Resources, resource) ||
			slices.Contains(rule.Resources, "*") && slices.Contains(rule.APIGroups, hyperv1.GroupVersion.Group)
	})
	g.Expect(s.client.Update(t.Context(), role)).To(Succeed())
	account := fixture.As(t, "system:serviceaccount:"+s.hosted()+":"+controlPlaneOperatorName, "system:serviceaccounts",
		"system:authenticated")
	var denied error
	g.Eventually(func() bool {
		denied = account.List(t.Context(), list, client.InNamespace(s.hosted()))
		return apierrors.IsForbidden(denied)
	}).Should(BeTrue())
	s.end(denied)
	s.told(t, fmt.Sprintf("cannot list resource %q", resource))
	g.Eventually(func() error { return account.List(t.Context(), list, client.InNamespace(s.hosted())) }).Should(Succeed())
}

// withoutVolume reports, as a kubelet does, that a pod cannot mount a volume.
func (s *stockOperator) withoutVolume(t *testing.T, volume, missing string) {
	g := NewWithT(t)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.hosted(), GenerateName: "stock-"},
		Spec: corev1.PodSpec{
			SecurityContext: restrictedPod(), Containers: []corev1.Container{restrictedContainer("stock")},
		},
	}
	g.Expect(s.client.Create(t.Context(), pod)).To(Succeed())
	defer func() { g.Expect(s.client.Delete(t.Context(), pod)).To(Succeed()) }()
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "stock", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"},
	}}}
	g.Expect(s.client.Status().Update(t.Context(), pod)).To(Succeed())
	s.clock.SetTime(pod.CreationTimestamp.Add(2 * time.Minute))
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: s.hosted(), GenerateName: "stock-"},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: s.hosted(), Name: pod.Name, UID: pod.UID},
		Reason:         podfailure.FailedMount, Type: corev1.EventTypeWarning, LastTimestamp: metav1.NewTime(s.clock.Now()),
		Message: fmt.Sprintf("MountVolume.SetUp failed for volume %q : %s not found", volume, missing),
	}
	g.Expect(s.client.Create(t.Context(), event)).To(Succeed())
	s.told(t, missing+" not found")
}

// told checks that both conditions name what is missing.
func (s *stockOperator) told(t *testing.T, what string) {
	t.Helper()
	s.mustPass()
	for _, kind := range []hyperv1.ConditionType{hyperv1.HostedClusterAvailable, hyperv1.HostedClusterDegraded} {
		NewWithT(t).Expect(s.condition(kind).Message).To(ContainSubstring(what), string(kind))
	}
}

// missingSource returns the object that a volume needs, as a kubelet names it; empty if it needs none.
func missingSource(volume corev1.Volume) string {
	optional := func(p *bool) bool { return p != nil && *p }
	switch {
	case volume.Secret != nil && !optional(volume.Secret.Optional):
		return fmt.Sprintf("secret %q", volume.Secret.SecretName)
	case volume.ConfigMap != nil && !optional(volume.ConfigMap.Optional):
		return fmt.Sprintf("configmap %q", volume.ConfigMap.Name)
	}
	return ""
}
