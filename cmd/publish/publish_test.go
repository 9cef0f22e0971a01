// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"testing"

	. "github.com/onsi/gomega"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

func TestServices(t *testing.T) {
	g := NewWithT(t)
	g.Expect(NodePort("10.0.0.1")).To(HaveLen(5))
	g.Expect(NodePort("10.0.0.1")).To(HaveEach(HaveField("ServicePublishingStrategy.NodePort.Address", "10.0.0.1")))
	g.Expect(LoadBalancer()).To(HaveLen(4))
}

func TestLoadBalancedAPI(t *testing.T) {
	g := NewWithT(t)
	types := map[hyperv1.ServiceType]hyperv1.PublishingStrategyType{}
	for _, service := range LoadBalancedAPI("10.0.0.1") {
		types[service.Service] = service.ServicePublishingStrategy.Type
	}
	g.Expect(types).To(Equal(map[hyperv1.ServiceType]hyperv1.PublishingStrategyType{
		hyperv1.APIServer: hyperv1.LoadBalancer, hyperv1.OAuthServer: hyperv1.NodePort, hyperv1.OIDC: hyperv1.NodePort,
		hyperv1.Konnectivity: hyperv1.NodePort, hyperv1.Ignition: hyperv1.NodePort,
	}))
}
