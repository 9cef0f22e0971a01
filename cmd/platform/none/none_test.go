// SPDX-License-Identifier: Apache-2.0

package none

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/cluster"
)

func TestCluster(t *testing.T) {
	away := func() (client.Client, error) { return nil, errors.New("no cluster") }
	empty := func() (client.Client, error) { return fake.NewClientBuilder().Build(), nil }
	tests := []struct {
		name    string
		args    []string
		connect func() (client.Client, error)
		want    hyperv1.PublishingStrategyType
		says    string
	}{
		{name: "When an address is set, it should not contact a cluster", args: []string{"--external-api-server-address", "a"}, connect: away, want: hyperv1.NodePort},
		{name: "When load balancers are requested, it should not contact a cluster", args: []string{"--expose-through-load-balancer"}, connect: away, want: hyperv1.LoadBalancer},
		{name: "When no flag is set, it should look up the address in the cluster", connect: away, says: "no cluster"},
		{name: "When the cluster has no nodes, it should name the flag", connect: empty, says: "--external-api-server-address"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			p := &Cluster{}
			flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
			p.AddFlags(flags)
			g.Expect(flags.Parse(tt.args)).To(Succeed())
			err := p.Complete(t.Context(), cluster.Environment{Client: tt.connect})
			if tt.says != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			hc := &hyperv1.HostedCluster{}
			p.Apply(hc)
			g.Expect(hc.Spec.Platform.Type).To(Equal(hyperv1.NonePlatform))
			g.Expect(hc.Spec.Services[0].Service).To(Equal(hyperv1.APIServer))
			g.Expect(hc.Spec.Services[0].ServicePublishingStrategy.Type).To(Equal(tt.want))
		})
	}
}

func TestNodePool(t *testing.T) {
	g := NewWithT(t)
	fromCluster, fromPool := &hyperv1.NodePool{}, &hyperv1.NodePool{}
	(&Cluster{}).ApplyNodePool(fromCluster)
	(&NodePool{}).Apply(fromPool)
	g.Expect(fromPool).To(Equal(fromCluster))
	g.Expect(fromPool.Spec.Platform.Type).To(Equal(hyperv1.NonePlatform))
	g.Expect((&NodePool{}).Complete()).To(Succeed())
	g.Expect((&Cluster{}).Objects("", "")).To(BeEmpty())
}
