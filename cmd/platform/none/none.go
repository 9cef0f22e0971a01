// SPDX-License-Identifier: Apache-2.0

// Package none implements platform None for the commands: the user provides the machines.
package none

import (
	"context"

	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/cluster"
	"github.com/openshift/hypershift/cmd/publish"
)

// Cluster is platform None for `create cluster`.
type Cluster struct {
	address      publish.Address
	loadBalancer bool
}

// Type implements cluster.Platform.
func (*Cluster) Type() hyperv1.PlatformType { return hyperv1.NonePlatform }

// Example implements cluster.Platform.
func (*Cluster) Example() string {
	return "--external-api-server-address api.example.com"
}

// AddFlags implements cluster.Platform.
func (p *Cluster) AddFlags(flags *pflag.FlagSet) {
	p.address.AddFlags(flags)
	flags.BoolVar(&p.loadBalancer, "expose-through-load-balancer", false, "publish the API by a load balancer and the other services by Routes")
}

// Complete implements cluster.Platform.
func (p *Cluster) Complete(ctx context.Context, env cluster.Environment) error {
	if p.loadBalancer {
		return nil
	}
	return p.address.Complete(ctx, env.Client, env.Stderr)
}

// Apply implements cluster.Platform.
func (p *Cluster) Apply(hc *hyperv1.HostedCluster) {
	hc.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.NonePlatform}
	if p.loadBalancer {
		hc.Spec.Services = publish.LoadBalancer()
		return
	}
	hc.Spec.Services = publish.NodePort(p.address.Host)
}

// ApplyNodePool implements cluster.Platform.
func (*Cluster) ApplyNodePool(pool *hyperv1.NodePool) {
	pool.Spec.Platform = hyperv1.NodePoolPlatform{Type: hyperv1.NonePlatform}
}

// Objects implements cluster.Platform.
func (*Cluster) Objects(string, string) []client.Object { return nil }

// NodePool is platform None for `create nodepool`.
type NodePool struct{}

// Type implements nodepool.Platform.
func (*NodePool) Type() hyperv1.PlatformType { return hyperv1.NonePlatform }

// Example implements nodepool.Platform.
func (*NodePool) Example() string {
	return ""
}

// AddFlags implements nodepool.Platform.
func (*NodePool) AddFlags(*pflag.FlagSet) {}

// Complete implements nodepool.Platform.
func (*NodePool) Complete() error { return nil }

// Apply implements nodepool.Platform.
func (*NodePool) Apply(pool *hyperv1.NodePool) {
	pool.Spec.Platform = hyperv1.NodePoolPlatform{Type: hyperv1.NonePlatform}
}
