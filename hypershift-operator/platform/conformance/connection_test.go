// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"testing"

	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/finalizer"
)

// TestConnection runs the lifecycle of a private AWS cluster with the operator's rights. The test acts as the payload's
// control-plane-operator.
func TestConnection(t *testing.T) {
	g := NewWithT(t)
	admin, operator := fixture.Start(t), fixture.AsOperator(t)
	plugin, _ := fixture.Platforms(nil).For(hyperv1.AWSPlatform)
	g.Expect(plugin.AddToScheme(admin.Scheme())).To(Succeed())
	g.Expect(plugin.AddToScheme(operator.Scheme())).To(Succeed())
	w := newWorld(t, admin, operator, Subject{
		Type: hyperv1.AWSPlatform, Plugin: plugin,
		Cluster: func(hc *hyperv1.HostedCluster) {
			hc.Spec.Release.Image, hc.Spec.Platform.AWS = fixture.OCPImage, awsCluster()
			hc.Spec.Platform.AWS.EndpointAccess = hyperv1.PublicAndPrivate
		},
		Pool: func(pool *hyperv1.NodePool) {
			pool.Spec.Platform.AWS = &hyperv1.AWSNodePoolPlatform{InstanceType: "m5.large", AMI: "ami-0123456789abcdef0", Subnet: hyperv1.AWSResourceReference{ID: ptr.To("subnet-0a1")}}
		},
	}, "connect")
	w.create()
	g.Expect(w.condition(hyperv1.AWSEndpointAvailable).Status).To(Equal(metav1.ConditionUnknown))
	operates := &appsv1.Deployment{}
	g.Expect(admin.Get(t.Context(), client.ObjectKey{Namespace: w.hosted(), Name: "control-plane-operator"}, operates)).To(Succeed())
	g.Expect(operates.Spec.Template.Spec.Containers).To(HaveLen(2), "a token is minted for it")
	g.Expect(operates.Spec.Template.Spec.Containers[1].Image).To(Equal(operates.Spec.Template.Spec.Containers[0].Image))

	const payload = "hypershift.openshift.io/control-plane-operator-finalizer"
	service := &hyperv1.AWSEndpointService{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.hosted(), Name: "private-router", Finalizers: []string{payload}},
		Spec:       hyperv1.AWSEndpointServiceSpec{NetworkLoadBalancerName: "a0123456789"},
	}
	read := func() { g.Expect(admin.Get(t.Context(), client.ObjectKeyFromObject(service), service)).To(Succeed()) }
	g.Expect(admin.Create(t.Context(), service)).To(Succeed())
	w.settle()
	read()
	g.Expect(service.Spec.SubnetIDs).To(Equal([]string{"subnet-0a1"}))
	g.Expect(w.condition(hyperv1.AWSEndpointServiceAvailable).Status).To(Equal(metav1.ConditionFalse), "nobody made it")
	service.Status.EndpointServiceName = "com.amazonaws.vpce.eu-west-1.vpce-svc-1"
	meta.SetStatusCondition(&service.Status.Conditions, metav1.Condition{Type: string(hyperv1.AWSEndpointAvailable), Status: metav1.ConditionTrue, Reason: hyperv1.AWSSuccessReason})
	g.Expect(admin.Status().Update(t.Context(), service)).To(Succeed())
	w.settle()
	g.Expect(w.condition(hyperv1.AWSEndpointAvailable).Status).To(Equal(metav1.ConditionTrue))
	g.Expect(w.condition(hyperv1.AWSEndpointServiceAvailable).Status).To(Equal(metav1.ConditionTrue))
	settled(w)

	g.Expect(admin.Delete(t.Context(), w.pool())).To(Succeed())
	g.Expect(admin.Delete(t.Context(), w.cluster())).To(Succeed())
	for range settlingPasses {
		w.pass()
	}
	g.Expect(w.condition(hyperv1.HostedClusterAvailable).Message).To(ContainSubstring("Waiting for AWSEndpointService private-router"))
	hcp := &hyperv1.HostedControlPlane{}
	g.Expect(admin.Get(t.Context(), client.ObjectKey{Namespace: w.hosted(), Name: fixture.ClusterName}, hcp)).To(Succeed())
	g.Expect(hcp.DeletionTimestamp.IsZero()).To(BeTrue(), "its operator has yet to remove the endpoint")
	read()
	g.Expect(finalizer.Remove(t.Context(), admin, service, payload)).To(Succeed())
	_, err := w.clusters.Reconcile(t.Context(), ctrl.Request{NamespacedName: w.key(fixture.ClusterName)})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(admin.Get(t.Context(), client.ObjectKeyFromObject(hcp), hcp)).NotTo(Succeed(), "now the control plane goes")
}
