// SPDX-License-Identifier: Apache-2.0

package ha

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/nodeaddress"
	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/journey"
)

const (
	virtualIPNamespace = "hypershift-virtual-ip"
	// holdsLabel selects the nodes that may have the address: all nodes that this test can stop.
	holdsLabel = "e2e.hypershift.openshift.io/holds-virtual-ip"
)

// virtualIP is the address of a node that does not exist. MAAS does not use it.
var virtualIP = env.Nodes(env.MaxNodes)[env.MaxNodes-1].Address

// installWithVirtualIP gives the management cluster a virtual IP, which moves when the node that has it fails.
func (s *suite) installWithVirtualIP(t *testing.T) {
	t.Helper()
	for _, n := range env.Nodes(3) {
		if !n.First() {
			s.must(t, s.Type(t.Context(), "kubectl", "label", "node", n.Name, holdsLabel+"=true"))
		}
	}
	s.must(t, s.Install(t.Context(), "--api-virtual-ip", virtualIP, "--api-virtual-ip-node-selector", holdsLabel+"=true"))
	s.must(t, s.Reach(t.Context(), "virtual IP held", 2*time.Minute, s.heldBy("")))
}

// holderDies cuts the power of the node that has the API's address.
func (s *suite) holderDies(t *testing.T) {
	first, err := s.holder(t.Context())
	s.must(t, err)
	NewWithT(t).Expect(s.published(t)).To(Equal(virtualIP), "create cluster takes the virtual IP of the management cluster")
	s.under(t, "holder of the API's address dies", func() {
		s.node(t, "stop", first)
		s.must(t, s.Reach(t.Context(), "virtual IP on another node", 2*time.Minute, s.heldBy(first)))
		s.must(t, s.Reach(t.Context(), "node known to be dead", 3*time.Minute, s.notReady(first)))
		s.node(t, "start", first)
		s.must(t, s.Reach(t.Context(), "control plane whole", wholeLimit, s.whole))
	})
}

// published returns the address at which nodes and kubeconfigs reach the API.
func (s *suite) published(t *testing.T) string {
	t.Helper()
	hc := &hyperv1.HostedCluster{}
	s.must(t, s.c.Get(t.Context(), client.ObjectKey{Namespace: journey.Namespace, Name: cluster}, hc))
	return hc.Status.ControlPlaneEndpoint.Host
}

// heldBy checks that a node has the address, and that its name is not the given one.
func (s *suite) heldBy(not string) journey.Check {
	return func(ctx context.Context) (bool, string, error) {
		holder, err := s.holder(ctx)
		return holder != "" && holder != not, fmt.Sprintf("held by %q", holder), client.IgnoreNotFound(err)
	}
}

// holder returns the node that has the address; empty if none does.
func (s *suite) holder(ctx context.Context) (string, error) {
	lease := &coordinationv1.Lease{}
	err := s.c.Get(ctx, client.ObjectKey{Namespace: virtualIPNamespace, Name: nodeaddress.VirtualIPComponent}, lease)
	return ptr.Deref(lease.Spec.HolderIdentity, ""), err
}
