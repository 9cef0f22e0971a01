// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
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

	// The API server's clock set the time of the condition; use the test's clock instead.
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

// TestDeletionNamesWhatIsLeft deletes a control plane that waits for volumes of its cluster, while Cluster API waits
// for the control plane.
func TestDeletionNamesWhatIsLeft(t *testing.T) {
	c := fixture.Start(t)
	s := newWorld(t, c, "left-volume")
	s.up()
	cluster, hcp := &clusterv1.Cluster{}, s.controlPlane()
	s.get(cluster, s.cluster().Spec.InfraID)
	for _, obj := range []client.Object{cluster, hcp} {
		obj.SetFinalizers(append(obj.GetFinalizers(), "test/program"))
		s.Expect(c.Update(t.Context(), obj)).To(Succeed())
	}
	s.Expect(c.Delete(t.Context(), s.cluster())).To(Succeed())
	_, err := s.pass()
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(s.condition(hyperv1.HostedClusterAvailable).Message).NotTo(ContainSubstring("The hosted control plane first"))

	hcp = s.controlPlane()
	s.Expect(c.Delete(t.Context(), hcp)).To(Succeed()) // As Cluster API does.
	hcp = s.controlPlane()
	for _, reported := range []metav1.Condition{
		is(hyperv1.CloudResourcesDestroyed, metav1.ConditionFalse, "RemainingCloudResources",
			"Remaining resources: persistent-volumes"),
		is(hyperv1.AWSDefaultSecurityGroupDeleted, metav1.ConditionTrue, "AsExpected", "All is well"),
	} {
		meta.SetStatusCondition(&hcp.Status.Conditions, reported)
	}
	s.Expect(c.Status().Update(t.Context(), hcp)).To(Succeed())
	_, err = s.pass()
	s.Expect(err).NotTo(HaveOccurred())
	message := s.condition(hyperv1.HostedClusterAvailable).Message
	s.Expect(message).To(ContainSubstring("Waiting for Cluster API to delete Cluster"))
	s.Expect(message).To(ContainSubstring("Remaining resources: persistent-volumes"))
	destroyed := s.condition(hyperv1.CloudResourcesDestroyed)
	s.Expect(destroyed.Status).To(Equal(metav1.ConditionFalse))
	s.Expect(destroyed.Reason).To(Equal("RemainingCloudResources"))
	ofAWS := meta.FindStatusCondition(s.cluster().Status.Conditions, string(hyperv1.AWSDefaultSecurityGroupDeleted))
	s.Expect(ofAWS).To(BeNil())
}
