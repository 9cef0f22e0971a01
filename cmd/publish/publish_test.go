// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// TestStrategy checks that an address is rejected if the strategy has no node ports.
func TestStrategy(t *testing.T) {
	away := errors.New("no such host")
	for _, tt := range []struct {
		name, args string
		want       hyperv1.PublishingStrategyType
		says       string
	}{
		{"nothing is said", "", hyperv1.LoadBalancer, ""},
		{"node ports are requested", "--service-publishing-strategy=NodePort --external-api-server-address=a.example", hyperv1.NodePort, ""},
		{"node ports are requested and the host does not resolve", "--service-publishing-strategy=NodePort", "", "no such host"},
		{"an address is set without NodePort", "--external-api-server-address=a.example", "", "--external-api-server-address goes with --service-publishing-strategy NodePort only"},
		{"the strategy is unknown", "--service-publishing-strategy=nodeport", "", `--service-publishing-strategy "nodeport": use Ingress or NodePort`},
	} {
		t.Run("When "+tt.name+" it should be judged so", func(t *testing.T) {
			g, s, flags := NewWithT(t), &Strategy{}, pflag.NewFlagSet("test", pflag.ContinueOnError)
			s.AddFlags(flags)
			g.Expect(flags.Parse(strings.Fields(tt.args))).To(Succeed())
			err := s.Complete(t.Context(), func() (client.Client, error) { return nil, away }, nil)
			if tt.says != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(s.Services()[0].Service).To(Equal(hyperv1.APIServer))
			g.Expect(s.Services()[0].ServicePublishingStrategy.Type).To(Equal(tt.want))
			for _, service := range s.Services()[1:] {
				if tt.want == hyperv1.LoadBalancer {
					g.Expect(service.ServicePublishingStrategy.Type).To(Equal(hyperv1.Route), string(service.Service))
					continue
				}
				g.Expect(service.ServicePublishingStrategy.NodePort.Address).To(Equal("a.example"), string(service.Service))
			}
		})
	}
}
