// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/api/util/ipnet"
	"github.com/openshift/hypershift/cmd/cluster"
)

func TestCluster(t *testing.T) {
	away := func() (client.Client, error) { return nil, errors.New("no cluster") }
	for _, tt := range []struct {
		name string
		args []string
		says string
	}{
		{"When no flag is set, it should require the agent namespace", nil, "--agent-namespace is required"},
		{"When the namespace is invalid, it should name the flag", []string{"--agent-namespace", "A_B"}, `--agent-namespace "A_B"`},
		{"When the label selector is invalid, it should name the flag", []string{"--agent-namespace", "agents", "--agentLabelSelector", "a in"}, "--agentLabelSelector"},
		{"When no API server address is set, it should look it up in the cluster", []string{"--agent-namespace", "agents"}, "no cluster"},
		{"When all flags are set, it should not contact a cluster", []string{"--agent-namespace", "agents", "--api-server-address", "10.0.0.1", "--agentLabelSelector", "size=medium"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			p := &Cluster{}
			flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
			p.AddFlags(flags)
			g.Expect(flags.Parse(tt.args)).To(Succeed())
			err := p.Complete(t.Context(), cluster.Environment{Client: away})
			if tt.says != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			hc, pool := &hyperv1.HostedCluster{}, &hyperv1.NodePool{}
			p.Apply(hc)
			p.ApplyNodePool(pool)
			g.Expect(hc.Spec.Platform.Agent.AgentNamespace).To(Equal("agents"))
			for _, service := range hc.Spec.Services {
				g.Expect(service.ServicePublishingStrategy.NodePort).To(HaveValue(HaveField("Address", "10.0.0.1")), "%s", service.Service)
			}
			g.Expect(metav1.FormatLabelSelector(pool.Spec.Platform.Agent.AgentLabelSelector)).To(Equal("size=medium"))
		})
	}
}

func TestDefaultDual(t *testing.T) {
	for _, tt := range []struct {
		name           string
		args           []string
		pods, services []string
	}{
		{"When dual-stack is enabled, the networks should have IPv4 and IPv6 CIDRs", []string{"--default-dual"}, []string{"10.132.0.0/14", "fd01::/48"}, []string{"172.31.0.0/16", "fd02::/112"}},
		{"When dual-stack is disabled, the networks should not change", nil, []string{"10.9.0.0/16"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, p, hc := NewWithT(t), &Cluster{}, &hyperv1.HostedCluster{}
			flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
			p.AddFlags(flags)
			g.Expect(flags.Parse(tt.args)).To(Succeed())
			hc.Spec.Networking.ClusterNetwork = []hyperv1.ClusterNetworkEntry{{CIDR: *ipnet.MustParseCIDR("10.9.0.0/16")}}
			p.Apply(hc)
			var pods, services []string
			for _, network := range hc.Spec.Networking.ClusterNetwork {
				pods = append(pods, network.CIDR.String())
			}
			for _, network := range hc.Spec.Networking.ServiceNetwork {
				services = append(services, network.CIDR.String())
			}
			g.Expect(pods).To(Equal(tt.pods))
			g.Expect(services).To(Equal(tt.services))
		})
	}
}

func TestNodePool(t *testing.T) {
	g := NewWithT(t)
	p, pool := &NodePool{}, &hyperv1.NodePool{}
	g.Expect(p.Complete()).To(Succeed())
	p.Apply(pool)
	g.Expect(pool.Spec.Platform.Type).To(Equal(hyperv1.AgentPlatform))
	g.Expect(pool.Spec.Platform.Agent.AgentLabelSelector).To(BeNil(), "any agent")
}
