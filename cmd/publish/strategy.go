// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// Ways to publish the services of a cluster.
const (
	byIngress  = "Ingress"
	byNodePort = "NodePort"
)

// Strategy holds the flags of platforms that let the user choose the strategy. Management clusters without Routes
// support node ports only.
type Strategy struct {
	Address
	way string
}

// AddFlags adds the flags.
func (s *Strategy) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&s.way, "service-publishing-strategy", byIngress, "how services are reached: Ingress (a load balancer and Routes), or NodePort (ports of the management cluster's nodes)")
	s.Address.AddFlags(flags)
}

// Complete determines the address of the node ports. It rejects an address if the strategy has no node ports.
func (s *Strategy) Complete(ctx context.Context, connect func() (client.Client, error), stderr io.Writer) error {
	switch {
	case s.way == byNodePort:
		return s.Address.Complete(ctx, connect, stderr)
	case s.way != byIngress:
		return fmt.Errorf("--service-publishing-strategy %q: use %s or %s", s.way, byIngress, byNodePort)
	case s.Host != "":
		return fmt.Errorf("--%s goes with --service-publishing-strategy %s only", addressFlag, byNodePort)
	}
	return nil
}

// Services returns the service publishing strategies of the HostedCluster.
func (s *Strategy) Services() []hyperv1.ServicePublishingStrategyMapping {
	if s.way == byNodePort {
		return NodePort(s.Host)
	}
	return LoadBalancer()
}
