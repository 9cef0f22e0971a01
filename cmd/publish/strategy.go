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

// Strategy are the flags of platforms that leave the way to the user: management clusters without Routes have ports of their nodes only.
type Strategy struct {
	Address
	way string
}

// AddFlags adds the flags.
func (s *Strategy) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&s.way, "service-publishing-strategy", byIngress, "how services are reached: Ingress (a load balancer and Routes), or NodePort (ports of the management cluster's nodes)")
	s.Address.AddFlags(flags)
}

// Complete finds out the address of the ports, and refuses one where there are none.
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

// Services are what a HostedCluster says of it.
func (s *Strategy) Services() []hyperv1.ServicePublishingStrategyMapping {
	if s.way == byNodePort {
		return NodePort(s.Host)
	}
	return LoadBalancer()
}
