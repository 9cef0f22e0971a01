// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

func working() map[string]string { return map[string]string{"lb-private-router": "active"} }

// TestStepsThatAWSRefuses checks that no service name is reported if any step of an offer fails, and that a later
// attempt continues there.
func TestStepsThatAWSRefuses(t *testing.T) {
	for _, tc := range []struct {
		name, action string
		byHand       bool
		says         string
	}{
		{"When it may not describe load balancers", "DescribeLoadBalancers", false, "looking for load balancer lb-private-router: AWS says UnauthorizedOperation"},
		{"When it may not list endpoint services", "DescribeVpcEndpointServiceConfigurations", false, "listing endpoint services: AWS says UnauthorizedOperation"},
		{"When it may not create the endpoint service", "CreateVpcEndpointServiceConfiguration", false, "making an endpoint service for load balancer lb-private-router: AWS says UnauthorizedOperation"},
		{"When it may not tag an endpoint service that was created by hand", "CreateTags", true, "marking endpoint service vpce-svc-1 as the cluster's: AWS says UnauthorizedOperation"},
		{"When it may not read the allowed principals", "DescribeVpcEndpointServicePermissions", false, "reading the allowed principals of endpoint service vpce-svc-1: AWS says UnauthorizedOperation"},
		{"When it may not set the allowed principals", "ModifyVpcEndpointServicePermissions", false, "setting the allowed principals of endpoint service vpce-svc-1: AWS says UnauthorizedOperation"},
	} {
		t.Run(tc.name+", it should report it and create one endpoint service later", func(t *testing.T) {
			aws := &fakeAWS{balancers: working(), refuses: map[string]string{tc.action: "UnauthorizedOperation"}}
			if tc.byHand {
				aws.services = []*fakeService{{id: "vpce-svc-1", balancer: balancerARN("lb-private-router"), tags: map[string]string{}}}
			}
			l := link(t, aws)
			told := l.look()
			l.Expect(told.Status).To(Equal(metav1.ConditionFalse))
			l.Expect(told.Message).To(Equal(tc.says))
			l.Expect(l.service.Status.EndpointServiceName).To(BeEmpty())
			aws.mu.Lock()
			aws.refuses = nil
			aws.mu.Unlock()
			l.clock.SetTime(l.clock.Now().Add(failedFor))
			l.Expect(l.look().Status).To(Equal(metav1.ConditionTrue))
			l.Expect(aws.services).To(HaveLen(1))
			l.Expect(aws.services[0].admitted).To(ConsistOf(arn("operator"), arn("admin")))
		})
	}
}

// TestRotatedCredentials checks that the credentials file is read for each request to AWS, and that none of its
// content is reported.
func TestRotatedCredentials(t *testing.T) {
	const good = "[default]\naws_access_key_id = key\naws_secret_access_key = secret\n"
	for _, tc := range []struct{ name, content, says string }{
		{"When AWS rejects the key, it should repeat AWS's error", "[default]\naws_access_key_id = former\naws_secret_access_key = hunter2\n", "AWS says"},
		{"When the file has only another profile, it should name the flag", "[other]\naws_access_key_id = key\naws_secret_access_key = hunter2\n", "--aws-private-creds"},
		{"When the file is invalid, it should name the flag", "hunter2", "--aws-private-creds"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			// No setting of the machine that runs the test may replace the file.
			for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_CONFIG_FILE"} {
				t.Setenv(name, "")
			}
			t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
			aws := &fakeAWS{balancers: working()}
			l := link(t, aws)
			l.Expect(os.WriteFile(l.plugin.link.credentials, []byte(tc.content), 0o600)).To(Succeed())
			told := l.look()
			l.Expect(told.Status).To(Equal(metav1.ConditionFalse))
			l.Expect(told.Message).To(And(ContainSubstring(tc.says), Not(ContainSubstring("hunter2")), Not(ContainSubstring("former"))))
			l.Expect(aws.services).To(BeEmpty())
			l.Expect(os.WriteFile(l.plugin.link.credentials, []byte(good), 0o600)).To(Succeed())
			l.clock.SetTime(l.clock.Now().Add(failedFor))
			l.Expect(l.look().Status).To(Equal(metav1.ConditionTrue))
		})
	}
}

// TestRemovalsThatAWSRefuses checks that the object stays, with the reason, until its endpoint service is deleted.
func TestRemovalsThatAWSRefuses(t *testing.T) {
	for _, tc := range []struct {
		name, action, unsuccessful string
		connected                  []string
		says                       string
	}{
		{"When it may not list endpoint services", "DescribeVpcEndpointServiceConfigurations", "", nil, ": listing endpoint services: AWS says UnauthorizedOperation"},
		{"When it may not delete the endpoint service", "DeleteVpcEndpointServiceConfigurations", "", nil, ": deleting endpoint service vpce-svc-1: AWS says UnauthorizedOperation"},
		{"When EC2 reports the deletion as unsuccessful", "", "InternalError", nil, ": deleting endpoint service vpce-svc-1: AWS says InternalError"},
		{"When it may not list the connections", "DescribeVpcEndpointConnections", "", []string{"vpce-1"}, ": listing connections of endpoint service vpce-svc-1: AWS says UnauthorizedOperation"},
		{"When it may not reject the connections", "RejectVpcEndpointConnections", "", []string{"vpce-1"}, ": cutting off connections of endpoint service vpce-svc-1: AWS says UnauthorizedOperation"},
	} {
		t.Run(tc.name+", it should wait and report why", func(t *testing.T) {
			aws := &fakeAWS{balancers: working()}
			l := link(t, aws)
			l.look()
			aws.mu.Lock()
			aws.unsuccessful, aws.services[0].connected = tc.unsuccessful, tc.connected
			if tc.action != "" {
				aws.refuses = map[string]string{tc.action: "UnauthorizedOperation"}
			}
			aws.mu.Unlock()
			release := func() string {
				why, err := l.plugin.release(t.Context(), l.client, l.cluster, l.service)
				l.Expect(err).NotTo(HaveOccurred())
				return why
			}
			l.Expect(release()).To(Equal(tc.says))
			l.Expect(l.client.Get(t.Context(), client.ObjectKeyFromObject(l.service), l.service)).To(Succeed())
			l.Expect(l.service.Finalizers).To(ContainElement(operatorFinalizer))
			l.Expect(aws.services).To(HaveLen(1))

			aws.mu.Lock()
			aws.unsuccessful, aws.services[0].connected, aws.refuses = "", nil, nil
			aws.mu.Unlock()
			l.clock.SetTime(l.clock.Now().Add(failedFor))
			l.Expect(release()).To(BeEmpty())
			l.Expect(aws.services).To(BeEmpty())
			l.Expect(l.service.Finalizers).To(ConsistOf(payloadFinalizer))
		})
	}
	t.Run("When the endpoint service is deleted concurrently, it should not wait for it", func(t *testing.T) {
		aws := &fakeAWS{balancers: working()}
		l := link(t, aws)
		l.look()
		aws.unsuccessful = alreadyGone
		why, err := l.plugin.release(t.Context(), l.client, l.cluster, l.service)
		l.Expect(err).NotTo(HaveOccurred())
		l.Expect(why).To(BeEmpty())
		l.Expect(l.service.Finalizers).To(ConsistOf(payloadFinalizer))
	})
}

// TestConnectionsThatHold checks that only existing or pending connections are rejected, because EC2 refuses to reject
// others.
func TestConnectionsThatHold(t *testing.T) {
	for state, holds := range map[string]bool{"available": true, "Available": true, "pending": true, "pendingAcceptance": true, "rejected": false, "deleting": false, "failed": false} {
		t.Run("When a connection is "+state+", it should be rejected only if it blocks the deletion", func(t *testing.T) {
			aws := &fakeAWS{balancers: working()}
			l := link(t, aws)
			l.look()
			aws.services[0].connected, aws.services[0].state = []string{"vpce-1"}, state
			why, err := l.plugin.release(t.Context(), l.client, l.cluster, l.service)
			l.Expect(err).NotTo(HaveOccurred())
			l.Expect(why).To(ContainSubstring("has connections"))
			l.Expect(len(aws.services[0].connected) == 0).To(Equal(holds))
		})
	}
}

// TestMadeAnew checks that the cached state of an endpoint service is removed with it. The next endpoint service is
// then created and deleted at once.
func TestMadeAnew(t *testing.T) {
	aws := &fakeAWS{balancers: working()}
	l := link(t, aws)
	for range 2 {
		l.Expect(l.look().Status).To(Equal(metav1.ConditionTrue))
		l.Expect(aws.services).To(HaveLen(1))
		why, err := l.plugin.release(t.Context(), l.client, l.cluster, l.service)
		l.Expect(err).NotTo(HaveOccurred())
		l.Expect(why).To(BeEmpty())
		l.Expect(aws.services).To(BeEmpty())
	}
}

// TestSameLoadBalancerPrefix checks that a load balancer belongs to a Service only if the complete names match, not
// only a prefix.
func TestSameLoadBalancerPrefix(t *testing.T) {
	for _, tc := range []struct {
		name, balancer string
		ours           bool
	}{
		{"When the load balancer belongs to the Service, it should create an endpoint service", "lb-private-router", true},
		{"When the load balancer's name is a prefix of the Service's, it should reject it", "lb-private", false},
		{"When the Service's load balancer name is a prefix of the name, it should reject it", "lb-private-router-2", false},
		{"When the load balancer has no name, it should reject it", "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			aws := &fakeAWS{balancers: map[string]string{tc.balancer: "active"}}
			l := link(t, aws)
			l.service.Spec.NetworkLoadBalancerName = tc.balancer
			l.Expect(l.client.Update(t.Context(), l.service)).To(Succeed())
			told := l.look()
			l.Expect(told.Status == metav1.ConditionTrue).To(Equal(tc.ours), told.Message)
			l.Expect(len(aws.asked) > 0).To(Equal(tc.ours))
			if !tc.ours {
				l.Expect(l.service.Finalizers).NotTo(ContainElement(operatorFinalizer), "there is nothing to remove")
			}
		})
	}
}

// TestAskedAgain checks that the next check is due when the first of the services may be checked again.
func TestAskedAgain(t *testing.T) {
	aws := &fakeAWS{balancers: working()}
	l := link(t, aws)
	second := endpointService("second")
	l.Expect(l.client.Create(t.Context(), second)).To(Succeed())
	connection, err := l.plugin.Connect(t.Context(), l.client, l.cluster)
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(connection.CheckAgain).To(Equal(min(failedFor, seenFor)), "the second has no load balancer")
	l.Expect(connection.Conditions).To(ContainElement(And(HaveField("Type", string(hyperv1.AWSEndpointServiceAvailable)),
		HaveField("Status", metav1.ConditionFalse), HaveField("Message", "AWSEndpointService second: no Service of namespace clusters-demo has the load balancer lb-second"))))
}
