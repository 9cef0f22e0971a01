// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
)

func privateCluster() platform.Cluster {
	cluster := testCluster()
	cluster.HostedCluster.Spec.Platform.AWS.EndpointAccess = hyperv1.Private
	cluster.ControlPlane = &hyperv1.HostedControlPlane{}
	return cluster
}

func endpointService(name string, conditions ...metav1.Condition) *hyperv1.AWSEndpointService {
	return &hyperv1.AWSEndpointService{
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: name, Finalizers: []string{payloadFinalizer}},
		Spec:       hyperv1.AWSEndpointServiceSpec{NetworkLoadBalancerName: "lb-" + name},
		Status:     hyperv1.AWSEndpointServiceStatus{Conditions: conditions},
	}
}

func told(conditionType hyperv1.ConditionType, status metav1.ConditionStatus, message string) metav1.Condition {
	return metav1.Condition{Type: string(conditionType), Status: status, Reason: "AWS", Message: message}
}

func poolsIn(subnets ...string) []hyperv1.NodePool {
	var pools []hyperv1.NodePool
	for _, subnet := range subnets {
		var pool hyperv1.NodePool
		pool.Spec.Platform.AWS = &hyperv1.AWSNodePoolPlatform{}
		if subnet != "" {
			pool.Spec.Platform.AWS.Subnet.ID = ptr.To(subnet)
		}
		pools = append(pools, pool)
	}
	return pools
}

func TestSubnetsOfEndpoints(t *testing.T) {
	var many []string
	for i := range mostSubnets + 1 {
		many = append(many, fmt.Sprintf("subnet-%d", i))
	}
	for _, tc := range []struct {
		name    string
		subnets []string
		want    []string
		err     string
	}{
		{"When pools share subnets, it should list each subnet once", []string{"subnet-2", "subnet-1", "subnet-2", ""}, []string{"subnet-1", "subnet-2"}, ""},
		{"When there are no pools, it should list no subnets", nil, nil, ""},
		{"When there are more subnets than AWS allows, it should return an error", many, nil, "use fewer subnets"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			service := endpointService("private-router")
			c := testClient(t, service)
			cluster := privateCluster()
			cluster.NodePools = poolsIn(tc.subnets...)
			_, err := (&Platform{}).Connect(t.Context(), c, cluster)
			if tc.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(service), service)).To(Succeed())
			if diff := cmp.Diff(tc.want, service.Spec.SubnetIDs); diff != "" {
				t.Errorf("subnets (-want +got):\n%s", diff)
			}
			g.Expect(service.Spec.NetworkLoadBalancerName).To(Equal("lb-private-router"), "that is another's")
		})
	}
}

func TestConnectionTells(t *testing.T) {
	const available = hyperv1.AWSEndpointAvailable
	for _, tc := range []struct {
		name     string
		services []client.Object
		status   metav1.ConditionStatus
		says     string
	}{
		{"When no endpoint was requested, it should report Unknown", nil, metav1.ConditionUnknown, "not asked"},
		{"When one endpoint has no condition, it should report Unknown", []client.Object{
			endpointService("kube-apiserver-private", told(available, metav1.ConditionTrue, "")), endpointService("private-router"),
		}, metav1.ConditionUnknown, "private-router"},
		{"When one endpoint fails, it should repeat its message", []client.Object{
			endpointService("kube-apiserver-private"), endpointService("private-router", told(available, metav1.ConditionFalse, "InvalidSubnet")),
		}, metav1.ConditionFalse, "private-router: InvalidSubnet"},
		{"When all endpoints are available, it should report True", []client.Object{endpointService("private-router", told(available, metav1.ConditionTrue, ""))}, metav1.ConditionTrue, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			connection, err := (&Platform{}).Connect(t.Context(), testClient(t, tc.services...), privateCluster())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(connection.Gone).To(BeEmpty())
			var found []metav1.Condition
			for _, c := range connection.Conditions {
				if c.Type == string(available) {
					found = append(found, c)
				}
			}
			g.Expect(found).To(HaveLen(1))
			g.Expect(found[0].Status).To(Equal(tc.status))
			g.Expect(found[0].Message).To(ContainSubstring(tc.says))
		})
	}
	t.Run("When the API is public, it should remove the endpoint conditions", func(t *testing.T) {
		g := NewWithT(t)
		connection, err := (&Platform{}).Connect(t.Context(), testClient(t), testCluster())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(connection.Conditions).To(BeEmpty())
		g.Expect(connection.Gone).To(ConsistOf(hyperv1.AWSEndpointServiceAvailable, hyperv1.AWSEndpointAvailable))
	})
}

func TestEndpointServiceIsAskedFor(t *testing.T) {
	g := NewWithT(t)
	service := endpointService("private-router")
	c := testClient(t, service)
	cluster := privateCluster()
	cluster.HostedCluster.Spec.Platform.AWS.RolesRef.ControlPlaneOperatorARN = "arn:aws:iam::123456789012:role/teams/blue/operator"
	look := func() metav1.Condition {
		t.Helper()
		connection, err := (&Platform{}).Connect(t.Context(), c, cluster)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(connection.Conditions[0].Type).To(Equal("AWSEndpointServiceAvailable"))
		return connection.Conditions[0]
	}
	told := look()
	g.Expect(told.Status).To(Equal(metav1.ConditionFalse))
	g.Expect(told.Message).To(And(ContainSubstring("load balancer lb-private-router"), ContainSubstring(arn("operator")), ContainSubstring("clusters-demo/private-router")))
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(service), service)).To(Succeed())
	service.Status.EndpointServiceName = "com.amazonaws.vpce.eu-west-1.vpce-svc-1"
	g.Expect(c.Status().Update(t.Context(), service)).To(Succeed())
	g.Expect(look().Status).To(Equal(metav1.ConditionTrue))
}

func TestDisconnect(t *testing.T) {
	refused := []metav1.Condition{{Type: string(hyperv1.ValidAWSIdentityProvider), Status: metav1.ConditionFalse}}
	for _, tc := range []struct {
		name       string
		conditions []metav1.Condition
		gone       bool
		left       bool
	}{
		{"When the control-plane-operator can remove the endpoint, it should wait for it", nil, false, true},
		{"When AWS rejects the cluster's identity, it should not wait for the endpoint", refused, false, false},
		{"When there is no control plane, it should not wait for the endpoint", nil, true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			cluster := privateCluster()
			cluster.HostedCluster.Status.Conditions = tc.conditions
			if tc.gone {
				cluster.ControlPlane = nil
			}
			service := endpointService("private-router", told(hyperv1.AWSEndpointAvailable, metav1.ConditionFalse, "AccessDenied"))
			service.Status.EndpointID = "vpce-1"
			c := testClient(t, service)
			waitsFor, err := (&Platform{}).Disconnect(t.Context(), c, cluster)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(waitsFor).To(And(ContainSubstring("private-router, endpoint vpce-1: AccessDenied")))
			_, err = (&Platform{}).Disconnect(t.Context(), c, cluster)
			g.Expect(err).NotTo(HaveOccurred())
			waitsFor, err = (&Platform{}).Disconnect(t.Context(), c, cluster)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(waitsFor != "").To(Equal(tc.left), waitsFor)
		})
	}
}
