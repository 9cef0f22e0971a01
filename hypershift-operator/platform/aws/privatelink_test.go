// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
)

const clusterID = "fb10a66c-4c4c-4e4d-a5a0-0b2f9a2f4b5c"

// linked is a private cluster whose operator may create endpoint services in a fake AWS.
type linked struct {
	*WithT
	t       *testing.T
	plugin  *Platform
	clock   *testingclock.FakePassiveClock
	client  client.Client
	cluster platform.Cluster
	service *hyperv1.AWSEndpointService
}

func link(t *testing.T, aws *fakeAWS) *linked {
	t.Helper()
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "credentials")
	g.Expect(os.WriteFile(file, []byte("[default]\naws_access_key_id = key\naws_secret_access_key = secret\n"), 0o600)).To(Succeed())
	o, flags := &Options{}, pflag.NewFlagSet("run", pflag.ContinueOnError)
	o.AddFlags(flags)
	g.Expect(flags.Parse([]string{"--private-platform=AWS", "--aws-private-region=eu-west-1", "--aws-private-creds=" + file, "--aws-private-endpoint=" + aws.start(t)})).To(Succeed())
	plugin, err := o.New(platform.Environment{})
	g.Expect(err).NotTo(HaveOccurred())
	clock := testingclock.NewFakePassiveClock(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))
	plugin.(*Platform).link.looks.clock, plugin.(*Platform).link.looks.timeout = clock, patient
	cluster := privateCluster()
	cluster.HostedCluster.Spec.ClusterID = clusterID
	cluster.HostedCluster.Spec.Platform.AWS.AdditionalAllowedPrincipals = []string{"arn:aws:iam::123456789012:role/admin"}
	service := endpointService("private-router")
	service.UID = "uid"
	service.Spec.ResourceTags = []hyperv1.AWSResourceTag{{Key: "team", Value: "blue"}}
	router := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "private-router"}}
	router.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: "lb-private-router-0123456789abcdef.elb.eu-west-1.amazonaws.com"}}
	return &linked{WithT: g, t: t, plugin: plugin.(*Platform), clock: clock, client: testClient(t, service, router), cluster: cluster, service: service}
}

// look reconciles once, and returns the condition of the endpoint service.
func (l *linked) look() metav1.Condition {
	l.t.Helper()
	connection, err := l.plugin.Connect(l.t.Context(), l.client, l.cluster)
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(connection.CheckAgain).To(BeNumerically(">", 0), "what people do in AWS is seen some time")
	l.Expect(l.client.Get(l.t.Context(), client.ObjectKeyFromObject(l.service), l.service)).To(Succeed())
	return *meta.FindStatusCondition(l.service.Status.Conditions, "AWSEndpointServiceAvailable")
}

func TestEndpointServiceIsMade(t *testing.T) {
	aws := &fakeAWS{balancers: map[string]string{"lb-private-router": "active"}, services: []*fakeService{{id: "vpce-svc-of-others", balancer: balancerARN("other")}}}
	l := link(t, aws)
	l.Expect(l.look().Status).To(Equal(metav1.ConditionTrue))
	l.Expect(l.service.Status.EndpointServiceName).To(Equal("com.amazonaws.vpce.eu-west-1.vpce-svc-2"))
	l.Expect(l.service.Finalizers).To(ContainElement("hypershift.openshift.io/hypershift-operator-finalizer"))
	made := aws.services[1]
	want := map[string]string{"team": "blue", "hypershift.openshift.io/aws-endpoint-service": clusterID + "/clusters-demo/private-router"}
	if diff := cmp.Diff(want, made.tags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	l.Expect(made.acceptance).To(Equal("false"))
	l.Expect(made.admitted).To(ConsistOf(arn("operator"), arn("admin")))

	asked := len(aws.asked)
	l.Expect(l.look().Status).To(Equal(metav1.ConditionTrue))
	l.Expect(aws.asked).To(HaveLen(asked), "AWS has just told it")
	l.cluster.HostedCluster.Spec.Platform.AWS.AdditionalAllowedPrincipals = nil
	l.look()
	l.Expect(made.admitted).To(ConsistOf(arn("operator")), "another principal does not wait")
	aws.services = aws.services[:1]
	l.clock.SetTime(l.clock.Now().Add(seenFor))
	l.look()
	l.Expect(aws.services).To(HaveLen(2), "somebody removed it by hand")
}

func TestEndpointServiceOfOthers(t *testing.T) {
	const tag = "hypershift.openshift.io/aws-endpoint-service"
	there := func(owner string) *fakeAWS {
		s := &fakeService{id: "vpce-svc-1", balancer: balancerARN("lb-private-router"), tags: map[string]string{}}
		if owner != "" {
			s.tags[tag] = owner
		}
		return &fakeAWS{balancers: map[string]string{"lb-private-router": "active"}, services: []*fakeService{s}}
	}
	t.Run("When an endpoint service was created by hand, it should adopt it", func(t *testing.T) {
		aws := there("")
		l := link(t, aws)
		l.Expect(l.look().Status).To(Equal(metav1.ConditionTrue))
		l.Expect(aws.services[0].tags).To(HaveKeyWithValue(tag, clusterID+"/clusters-demo/private-router"))
		l.Expect(aws.asked).NotTo(ContainElement("CreateVpcEndpointServiceConfiguration"))
	})
	t.Run("When an endpoint service belongs to another cluster, it should allow no principals", func(t *testing.T) {
		aws := there("another")
		l := link(t, aws)
		told := l.look()
		l.Expect(told.Status).To(Equal(metav1.ConditionFalse))
		l.Expect(told.Message).To(ContainSubstring("marked as another's"))
		l.Expect(aws.services[0].admitted).To(BeEmpty())
	})
	t.Run("When the load balancer belongs to no Service of the cluster, it should not call AWS", func(t *testing.T) {
		aws := there("")
		l := link(t, aws)
		l.service.Spec.NetworkLoadBalancerName = "lb"
		l.Expect(l.client.Update(t.Context(), l.service)).To(Succeed())
		told := l.look()
		l.Expect(told.Status).To(Equal(metav1.ConditionFalse))
		l.Expect(told.Message).To(Equal("no Service of namespace clusters-demo has the load balancer lb"))
		l.Expect(aws.asked).To(BeEmpty())
	})
}

func TestEndpointServiceWaits(t *testing.T) {
	for _, tc := range []struct {
		name string
		aws  *fakeAWS
		says string
	}{
		{"When the load balancer is being provisioned, it should wait", &fakeAWS{balancers: map[string]string{"lb-private-router": "provisioning"}}, "waiting for load balancer lb-private-router"},
		{"When the load balancer does not exist, it should repeat AWS's error", &fakeAWS{}, "AWS says LoadBalancerNotFound"},
		{"When a permission is missing, it should repeat AWS's error", &fakeAWS{
			balancers: map[string]string{"lb-private-router": "active"}, refuses: map[string]string{"CreateVpcEndpointServiceConfiguration": "UnauthorizedOperation"},
		}, "AWS says UnauthorizedOperation"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := link(t, tc.aws)
			told := l.look()
			l.Expect(told.Status).To(Equal(metav1.ConditionFalse))
			l.Expect(told.Reason).To(Equal("AWSError"))
			l.Expect(told.Message).To(ContainSubstring(tc.says))
			l.Expect(l.service.Status.EndpointServiceName).To(BeEmpty())
			tc.aws.mu.Lock()
			tc.aws.balancers, tc.aws.refuses = map[string]string{"lb-private-router": "active"}, nil
			asked := len(tc.aws.asked)
			tc.aws.mu.Unlock()
			l.look()
			l.Expect(tc.aws.asked).To(HaveLen(asked), "it does not ask again at once")
			l.clock.SetTime(l.clock.Now().Add(failedFor))
			l.Expect(l.look().Status).To(Equal(metav1.ConditionTrue))
		})
	}
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("When the response to the creation is lost, and the new service is listed late: %t, it should not create a second one", late), func(t *testing.T) {
			aws := &fakeAWS{balancers: map[string]string{"lb-private-router": "active"}, lost: true, late: late}
			l := link(t, aws)
			l.look()
			l.clock.SetTime(l.clock.Now().Add(failedFor))
			l.Expect(l.look().Status).To(Equal(metav1.ConditionTrue))
			l.Expect(aws.services).To(HaveLen(1))
		})
	}
}

func TestEndpointServiceGoes(t *testing.T) {
	aws := &fakeAWS{balancers: map[string]string{"lb-private-router": "active"}, services: []*fakeService{{id: "vpce-svc-of-others", balancer: balancerARN("other")}}}
	l := link(t, aws)
	l.look()
	aws.services[1].connected = []string{"vpce-1"}
	l.cluster.ControlPlane = nil
	disconnect := func() string {
		t.Helper()
		waitsFor, err := l.plugin.Disconnect(t.Context(), l.client, l.cluster)
		l.Expect(err).NotTo(HaveOccurred())
		return waitsFor
	}
	l.Expect(disconnect()).To(ContainSubstring("vpce-svc-2 has connections"), "the object is deleted, and those who are connected are cut off")
	l.Expect(aws.services[1].connected).To(BeEmpty())
	l.Expect(disconnect()).To(ContainSubstring("vpce-svc-2 has connections"), "it does not ask again at once")
	l.clock.SetTime(l.clock.Now().Add(failedFor))
	disconnect()
	l.Expect(aws.services).To(HaveLen(1), "what is others' stays")
	l.Expect(disconnect()).To(BeEmpty(), "nothing is left")

	t.Run("When the operator's private platform flags are gone, it should report what to do", func(t *testing.T) {
		aws := &fakeAWS{balancers: map[string]string{"lb-private-router": "active"}}
		l := link(t, aws)
		l.look()
		l.plugin.link = &privateLink{}
		waitsFor, err := l.plugin.Disconnect(t.Context(), l.client, l.cluster)
		l.Expect(err).NotTo(HaveOccurred())
		l.Expect(waitsFor).To(And(ContainSubstring("--private-platform AWS"), ContainSubstring(clusterID+"/clusters-demo/private-router")))
	})
	t.Run("When a cluster becomes public, it should delete the endpoint service of the deleted AWSEndpointService", func(t *testing.T) {
		aws := &fakeAWS{balancers: map[string]string{"lb-private-router": "active"}}
		l := link(t, aws)
		l.look()
		l.Expect(l.client.Delete(t.Context(), l.service)).To(Succeed())
		l.cluster.HostedCluster.Spec.Platform.AWS.EndpointAccess = hyperv1.Public
		_, err := l.plugin.Connect(t.Context(), l.client, l.cluster)
		l.Expect(err).NotTo(HaveOccurred())
		l.Expect(aws.services).To(BeEmpty())
		l.Expect(l.client.Get(t.Context(), client.ObjectKeyFromObject(l.service), l.service)).To(Succeed())
		l.Expect(l.service.Finalizers).To(ConsistOf(payloadFinalizer), "that is another's to take away")
	})
}

func TestPrivateLinkFlags(t *testing.T) {
	for _, tc := range []struct {
		name string
		link *privateLink
		says string
	}{
		{"When nothing is set, it should accept the flags", &privateLink{platform: "None"}, ""},
		{"When all flags are set, it should accept them", &privateLink{platform: "AWS", region: "r", credentials: "f"}, ""},
		{"When the region is missing, it should name the region's flag", &privateLink{platform: "AWS", credentials: "f"}, "--aws-private-region"},
		{"When the platform is unknown, it should name the valid ones", &privateLink{platform: "Azure"}, "use AWS or None"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.link.check()
			if tc.says == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return
			}
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.says)))
		})
	}
}
