// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

func TestGracePeriod(t *testing.T) {
	c := fixture.Start(t)
	s := newWorld(t, c, "grace-ends")
	s.start(func(hc *hyperv1.HostedCluster) {
		hc.Annotations = map[string]string{hyperv1.HCDestroyGracePeriodAnnotation: "10m", hyperv1.SkipDeleteHostedControlPlaneNamespaceAnnotation: "true"}
	})
	s.mustPass()
	s.Expect(c.Delete(t.Context(), s.cluster())).To(Succeed())
	for range 2 {
		_, err := s.pass()
		s.Expect(err).NotTo(HaveOccurred())
	}
	s.Expect(s.condition(hyperv1.HostedClusterDestroyed).Reason).To(Equal("WaitingForGracePeriod"))
	namespace := &corev1.Namespace{}
	s.Expect(c.Get(t.Context(), client.ObjectKey{Name: s.hosted()}, namespace)).To(Succeed())
	s.Expect(namespace.DeletionTimestamp).To(BeNil(), "the annotation keeps the namespace")

	// The API server's clock says when the condition came; here that is when the test's says.
	hc := s.cluster()
	for i := range hc.Status.Conditions {
		hc.Status.Conditions[i].LastTransitionTime = metav1.NewTime(s.clock.Now())
	}
	s.Expect(c.Status().Update(t.Context(), hc)).To(Succeed())
	for range 2 {
		s.clock.Step(4 * time.Minute)
		_, err := s.pass()
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(s.condition(hyperv1.HostedClusterDestroyed).Status).To(Equal(metav1.ConditionTrue))
	}
	result, err := s.pass()
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(result.RequeueAfter).To(Equal(2 * time.Minute))
	s.clock.Step(2 * time.Minute)
	_, err = s.pass()
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(apierrors.IsNotFound(c.Get(t.Context(), s.request().NamespacedName, &hyperv1.HostedCluster{}))).To(BeTrue(), "it counts from when all was gone")
}

func TestCleanupIsAskedForLate(t *testing.T) {
	c := fixture.Start(t)
	s := newWorld(t, c, "late-cleanup")
	s.up()
	cluster := &clusterv1.Cluster{}
	s.get(cluster, s.cluster().Spec.InfraID)
	cluster.Finalizers = []string{"test/cluster-api"}
	s.Expect(c.Update(t.Context(), cluster)).To(Succeed())
	s.Expect(c.Delete(t.Context(), s.cluster())).To(Succeed())
	_, err := s.pass()
	s.Expect(err).NotTo(HaveOccurred())
	s.change(func(hc *hyperv1.HostedCluster) {
		hc.Annotations[hyperv1.CleanupCloudResourcesAnnotation] = "true"
	})
	_, err = s.pass()
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(s.controlPlane().Annotations).To(HaveKeyWithValue(hyperv1.CleanupCloudResourcesAnnotation, "true"),
		"what the guest has in a cloud is taken away though the deletion had begun")
}
