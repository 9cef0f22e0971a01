// SPDX-License-Identifier: Apache-2.0

// Package agent implements platform Agent for the commands: hosts that the assisted service has discovered.
package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/api/util/ipnet"
	"github.com/openshift/hypershift/cmd/cluster"
	"github.com/openshift/hypershift/cmd/publish"
)

const apiServerAddress = "api-server-address"

// Cluster is platform Agent for `create cluster`.
type Cluster struct {
	pool      NodePool
	namespace string
	address   publish.Address
	dual      bool
}

// Dual-stack networks of pods and Services, with the same values as the compatible product.
var (
	dualPods     = []string{"10.132.0.0/14", "fd01::/48"}
	dualServices = []string{"172.31.0.0/16", "fd02::/112"}
)

// Type implements cluster.Platform.
func (*Cluster) Type() hyperv1.PlatformType { return hyperv1.AgentPlatform }

// Example implements cluster.Platform.
func (*Cluster) Example() string {
	return "--agent-namespace agents --release-image quay.io/openshift-release-dev/ocp-release:4.20.1-x86_64"
}

// AddFlags implements cluster.Platform.
func (p *Cluster) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&p.namespace, "agent-namespace", "", "namespace of the Agents that the cluster may use (required)")
	p.address.AddFlags(flags)
	flags.StringVar(&p.address.Host, apiServerAddress, "", "the flag of the compatible product for --external-api-server-address")
	flags.BoolVar(&p.dual, "default-dual", false, fmt.Sprintf("networks with IPv4 and IPv6: %s for pods and %s for Services, instead of --cluster-cidr and --service-cidr",
		strings.Join(dualPods, " and "), strings.Join(dualServices, " and ")))
	p.pool.AddFlags(flags)
}

// Complete implements cluster.Platform.
func (p *Cluster) Complete(ctx context.Context, env cluster.Environment) error {
	if p.namespace == "" {
		return errors.New("--agent-namespace is required: name the namespace of the Agents")
	}
	if problems := validation.IsDNS1123Label(p.namespace); len(problems) > 0 {
		return fmt.Errorf("--agent-namespace %q: %s", p.namespace, problems[0])
	}
	if err := p.pool.Complete(); err != nil {
		return err
	}
	return p.address.Complete(ctx, env.Client, env.Stderr)
}

// Apply implements cluster.Platform.
func (p *Cluster) Apply(hc *hyperv1.HostedCluster) {
	hc.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AgentPlatform, Agent: &hyperv1.AgentPlatformSpec{AgentNamespace: p.namespace}}
	hc.Spec.Services = publish.NodePort(p.address.Host)
	if !p.dual {
		return
	}
	hc.Spec.Networking.ClusterNetwork, hc.Spec.Networking.ServiceNetwork = nil, nil
	for i := range dualPods {
		hc.Spec.Networking.ClusterNetwork = append(hc.Spec.Networking.ClusterNetwork, hyperv1.ClusterNetworkEntry{CIDR: *ipnet.MustParseCIDR(dualPods[i])})
		hc.Spec.Networking.ServiceNetwork = append(hc.Spec.Networking.ServiceNetwork, hyperv1.ServiceNetworkEntry{CIDR: *ipnet.MustParseCIDR(dualServices[i])})
	}
}

// ApplyNodePool implements cluster.Platform.
func (p *Cluster) ApplyNodePool(pool *hyperv1.NodePool) { p.pool.Apply(pool) }

// Objects implements cluster.Platform.
func (*Cluster) Objects(string, string) []client.Object { return nil }

// NodePool is platform Agent for `create nodepool`, and the machine flags of `create cluster`.
type NodePool struct {
	labels   string
	selector *metav1.LabelSelector
}

// Type implements nodepool.Platform.
func (*NodePool) Type() hyperv1.PlatformType { return hyperv1.AgentPlatform }

// Example implements nodepool.Platform.
func (*NodePool) Example() string {
	return "--agentLabelSelector size=medium"
}

// AddFlags implements nodepool.Platform.
func (p *NodePool) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&p.labels, "agentLabelSelector", "", "labels of the Agents that may become nodes, as kubectl's --selector takes them, e.g. size=medium,rack in (7, 8) (default: any)")
}

// Complete implements nodepool.Platform.
func (p *NodePool) Complete() error {
	if p.labels == "" {
		return nil
	}
	var err error
	if p.selector, err = metav1.ParseToLabelSelector(p.labels); err != nil {
		return fmt.Errorf("--agentLabelSelector %q: %w", p.labels, err)
	}
	return nil
}

// Apply implements nodepool.Platform.
func (p *NodePool) Apply(pool *hyperv1.NodePool) {
	pool.Spec.Platform = hyperv1.NodePoolPlatform{Type: hyperv1.AgentPlatform, Agent: &hyperv1.AgentNodePoolPlatform{AgentLabelSelector: p.selector}}
}
