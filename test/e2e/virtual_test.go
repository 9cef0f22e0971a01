// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/test/journey"
)

// virtualPool is a pool of virtual machines.
const virtualPool = "vms"

// virtual tests a cluster whose workers are virtual machines composed by MAAS, one on each LXD host and zone. No
// machine is composed if no host has capacity. After a drain of one host, all of them are on the other host. Without
// -short, a host is lost too. Composing requires an administrator's key.
func (s *suite) virtual(t *testing.T) {
	g := NewWithT(t)
	s.must(t, s.CreateCluster(t.Context(), s.cluster, 0, "--maas-api-key-file", s.keyFile))
	s.must(t, s.FollowCluster(t.Context(), s.cluster, 0))
	s.must(t, s.CreateVirtualPool(t.Context(), s.cluster, virtualPool, 2, "--auto-repair"))
	s.must(t, s.FollowVirtualPool(t.Context(), s.cluster, virtualPool, 2))
	s.reach(t, "virtual nodes ready", long, s.NodesReady(s.cluster, 2))
	on, err := journey.OnHosts(t.Context(), s.maas)
	s.must(t, err)
	g.Expect(on).To(Equal(map[string]int{"lxd-1": 1, "lxd-2": 1}), "one in each zone")
	g.Expect(s.providerIDsOfNodes(t)).To(Equal(s.providerIDsOfMachines(t)))

	s.must(t, s.CreateVirtualPool(t.Context(), s.cluster, "beyond-hosts", 1, "--min-memory", "1048576"))
	s.reach(t, "full hosts reported", soon, journey.PoolCondition(s.c, "beyond-hosts",
		hyperv1.NodePoolAllMachinesReadyConditionType, "False", "InsufficientResources"))
	s.destroyPool(t, "beyond-hosts")

	credentials := s.cluster + "-maas-credentials"
	s.must(t, s.Type(t.Context(), "hypershift", "drain", "lxd-host", "lxd-1", "--credentials-secret", credentials))
	on, err = journey.OnHosts(t.Context(), s.maas)
	s.must(t, err)
	g.Expect(on).To(Equal(map[string]int{"lxd-2": 2}), "the drained host is empty")
	s.must(t, s.Type(t.Context(), "hypershift", "drain", "lxd-host", "lxd-1", "--undo", "--credentials-secret",
		credentials))
	if !testing.Short() {
		s.vanished(t)
	}
	s.destroy(t)
	on, err = journey.OnHosts(t.Context(), s.maas)
	s.must(t, err)
	g.Expect(on).To(BeEmpty(), "virtual machines are deleted, not released")
}

// vanished removes the LXD host that has both machines, and checks that they are replaced on the other host. The same
// cluster also has a pool of bare metal.
func (s *suite) vanished(t *testing.T) {
	// This timeout is longer than a Node needs to become Ready on a busy machine, so that the replacements are not
	// replaced as well.
	s.must(t, s.Type(t.Context(), "kubectl", "annotate", "nodepool", virtualPool, "-n", journey.Namespace,
		hyperv1.MachineHealthCheckTimeoutAnnotation+"=2m"))
	s.admin(t.Context(), t, http.MethodPost, "/vm-hosts/lxd-2/away", nil)
	back := sync.OnceFunc(func() {
		s.admin(context.WithoutCancel(t.Context()), t, http.MethodPost, "/vm-hosts/lxd-2/back", nil)
	})
	t.Cleanup(back)
	s.createPool(t, "metal", "--resource-pool", workers)
	s.reach(t, "machines of the lost host replaced", long, func(ctx context.Context) (bool, string, error) {
		on, err := journey.OnHosts(ctx, s.maas)
		return on["lxd-1"] == 2 && on["lxd-2"] == 0, fmt.Sprint(on), err
	})
	s.reach(t, "metal and virtual nodes ready", long, s.NodesReady(s.cluster, 3))
	back()
}

// providerIDsOfNodes returns the provider IDs reported by the kubelets, by node name.
func (s *suite) providerIDsOfNodes(t *testing.T) map[string]string {
	t.Helper()
	guest, err := s.GuestClient(s.cluster)
	s.must(t, err)
	nodes := &corev1.NodeList{}
	s.must(t, guest.List(t.Context(), nodes))
	ids := map[string]string{}
	for _, node := range nodes.Items {
		ids[node.Name] = node.Spec.ProviderID
	}
	return ids
}

// providerIDsOfMachines returns the provider IDs of the virtual machines, by machine name.
func (s *suite) providerIDsOfMachines(t *testing.T) map[string]string {
	t.Helper()
	machines, err := journey.Machines(t.Context(), s.c, s.cluster, "")
	s.must(t, err)
	ids := map[string]string{}
	for _, m := range machines {
		NewWithT(t).Expect(m.Spec.ProviderID).To(HaveValue(HavePrefix("maas-lxd:///")))
		ids[ptr.Deref(m.Status.Hostname, "")] = *m.Spec.ProviderID
	}
	return ids
}
