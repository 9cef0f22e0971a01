// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/test/journey"
)

// The cluster of virtual machines, and their pool.
const virtualCluster, virtualPool = "virtual", "vms"

// virtual is a cluster whose workers are virtual machines that MAAS composes: one on each LXD host and zone, none where no host has room,
// and all of them on the other host when one is drained. Then that one vanishes. Composing takes an administrator's key, which the cluster
// of the other parts does without.
func (s *suite) virtual(t *testing.T) {
	g := NewWithT(t)
	const name, pool = virtualCluster, virtualPool
	s.must(t, s.CreateCluster(t.Context(), name, 0, "--maas-api-key-file", s.AdminKeyFile()))
	s.must(t, s.FollowCluster(t.Context(), name, 0))
	t.Run("When the API server of another cluster is sent to its control plane, it should not get there", func(t *testing.T) {
		hosted := journey.HostedNamespace(name)
		etcd, api := s.podIP(t, hosted, "app", "etcd"), s.podIP(t, hosted, "app", "kube-apiserver")
		s.walled(t, "other-etcd", etcd, "https", 2379)
		s.walled(t, "other-etcd-metrics", etcd, "http", 2381)
		s.walled(t, "other-api", api, "https", 6443)
	})
	s.must(t, s.CreateVirtualPool(t.Context(), name, pool, 2, "--auto-repair"))
	s.must(t, s.FollowVirtualPool(t.Context(), name, pool, 2))
	s.reach(t, "virtual nodes ready", long, s.NodesReady(name, 2))
	on, err := journey.OnHosts(t.Context(), s.maas)
	s.must(t, err)
	g.Expect(on).To(Equal(map[string]int{"lxd-1": 1, "lxd-2": 1}), "one in each zone")
	g.Expect(s.providerIDsOfNodes(t, name)).To(Equal(s.providerIDsOfMachines(t, name)))

	s.must(t, s.CreateVirtualPool(t.Context(), name, "too-big", 1, "--min-memory", "1048576"))
	s.reach(t, "full hosts reported", soon, journey.PoolCondition(s.c, "too-big",
		hyperv1.NodePoolAllMachinesReadyConditionType, "False", "InsufficientResources"))
	s.must(t, s.Type(t.Context(), "hypershift", "destroy", "nodepool", "--name", "too-big", "--cluster-name", name))

	s.must(t, s.Type(t.Context(), "hypershift", "drain", "lxd-host", "lxd-1", "--credentials-secret", name+"-maas-credentials"))
	on, err = journey.OnHosts(t.Context(), s.maas)
	s.must(t, err)
	g.Expect(on).To(Equal(map[string]int{"lxd-2": 2}), "the drained host is empty")
	s.must(t, s.Type(t.Context(), "hypershift", "drain", "lxd-host", "lxd-1", "--undo", "--credentials-secret", name+"-maas-credentials"))

	// Longer than a busy machine takes from a Node that has just joined to one that is Ready: what replaces the lost ones must not be lost too.
	s.must(t, s.Type(t.Context(), "kubectl", "annotate", "nodepool", pool, "-n", journey.Namespace, hyperv1.MachineHealthCheckTimeoutAnnotation+"=2m"))
	s.admin(t, http.MethodPost, "/vm-hosts/lxd-2/away", nil)
}

// vanished looks at that cluster some time after the host of both of its machines vanished: they were replaced on the other one. A pool of metal
// goes with them in the same cluster.
func (s *suite) vanished(t *testing.T) {
	g := NewWithT(t)
	const name = virtualCluster
	s.must(t, s.Type(t.Context(), "hypershift", "create", "nodepool", "maas", "--name", "metal", "--cluster-name", name, "--replicas", "1", "--erase", "None"))
	s.reach(t, "machines of the lost host replaced", long, func(ctx context.Context) (bool, string, error) {
		on, err := journey.OnHosts(ctx, s.maas)
		return on["lxd-1"] == 2 && on["lxd-2"] == 0, fmt.Sprint(on), err
	})
	s.reach(t, "metal and virtual nodes ready", long, s.NodesReady(name, 3))
	s.admin(t, http.MethodPost, "/vm-hosts/lxd-2/back", nil)

	s.must(t, s.DestroyCluster(t.Context(), name))
	on, err := journey.OnHosts(t.Context(), s.maas)
	s.must(t, err)
	g.Expect(on).To(BeEmpty(), "virtual machines are deleted, not given back")
}

// providerIDsOfNodes are those that the kubelets said, by the name of the node.
func (s *suite) providerIDsOfNodes(t *testing.T, cluster string) map[string]string {
	t.Helper()
	guest, err := s.GuestClient(cluster)
	s.must(t, err)
	nodes := &corev1.NodeList{}
	s.must(t, guest.List(t.Context(), nodes))
	ids := map[string]string{}
	for _, node := range nodes.Items {
		ids[node.Name] = node.Spec.ProviderID
	}
	return ids
}

// providerIDsOfMachines are those of the virtual machines of a cluster, by their names.
func (s *suite) providerIDsOfMachines(t *testing.T, cluster string) map[string]string {
	t.Helper()
	machines, err := journey.Machines(t.Context(), s.c, cluster, "")
	s.must(t, err)
	ids := map[string]string{}
	for _, m := range machines {
		NewWithT(t).Expect(m.Spec.ProviderID).To(HaveValue(HavePrefix("maas-lxd:///")))
		ids[ptr.Deref(m.Status.Hostname, "")] = *m.Spec.ProviderID
	}
	return ids
}
