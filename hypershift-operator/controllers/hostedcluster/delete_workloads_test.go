// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"testing"

	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// podOf is a running pod that a kind of controller made.
func podOf(namespace, owner string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "of-" + map[string]string{"ReplicaSet": "deployment", "StatefulSet": "etcd"}[owner],
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: owner, Name: "x", UID: "1", Controller: ptr.To(true)}}},
		Spec: corev1.PodSpec{NodeName: "dead", Containers: []corev1.Container{{Name: "x", Image: "x"}}},
	}
}

func TestStopWorkloads(t *testing.T) {
	c := fixture.Start(t)
	s := newWorld(t, c, "stopping")
	ctx := t.Context()
	scope := newScope(fixture.HostedCluster("stopping"))
	labels := map[string]string{"app": "x"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podOf("", "ReplicaSet").Spec}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	meta := metav1.ObjectMeta{Namespace: scope.namespace, Name: "x"}
	user, etcd := podOf(scope.namespace, "ReplicaSet"), podOf(scope.namespace, "StatefulSet")
	orphan := &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: template}}
	set := &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: selector, Template: template}}
	fixture.Create(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: scope.namespace}},
		&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: selector, Template: template}}, orphan, set, user, etcd)

	waitsFor, err := s.stopWorkloads(ctx, scope)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(waitsFor).To(Equal(`Waiting for 1 pod in namespace ` + scope.namespace + ` to stop: of-deployment on node "dead"`))
	s.Expect(c.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed(), "etcd stays while something uses it")
	s.Expect(set.DeletionTimestamp).To(BeNil())
	err = c.Get(ctx, client.ObjectKeyFromObject(orphan), orphan)
	s.Expect(apierrors.IsNotFound(err) || orphan.DeletionTimestamp != nil).To(BeTrue(), "a ReplicaSet of nobody would keep its pods for ever")

	s.Expect(c.Delete(ctx, user, client.GracePeriodSeconds(0))).To(Succeed())
	waitsFor, err = s.stopWorkloads(ctx, scope)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(waitsFor).NotTo(BeEmpty(), "etcd's pod still runs")
	s.Expect(client.IgnoreNotFound(c.Get(ctx, client.ObjectKeyFromObject(set), set))).To(Succeed())

	s.Expect(c.Delete(ctx, etcd, client.GracePeriodSeconds(0))).To(Succeed())
	s.Expect(s.stopWorkloads(ctx, scope)).To(BeEmpty())
}
