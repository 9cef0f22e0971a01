// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/hypershift/test/journey"
)

// ubuntu creates a pool with a stock MAAS image, next to one with Ignition: cloud-init fetches node-agent, which
// installs the release's container runtime and kubelet.
func (s *suite) ubuntu(t *testing.T) {
	g := NewWithT(t)
	const pool = "ubuntu"
	s.createCluster(t, 0)
	s.must(t, s.Type(t.Context(), "hypershift", "create", "nodepool", "maas", "--name", pool, "--cluster-name", s.cluster,
		"--replicas", "1", "--erase", "None", "--image", "ubuntu/noble"))
	s.must(t, s.FollowMachines(t.Context(), s.c, s.cluster, pool, 1))
	s.reach(t, "node of the stock image ready", long, s.NodesReady(s.cluster, 1))

	machines, err := journey.Machines(t.Context(), s.c, s.cluster, pool)
	s.must(t, err)
	nodes, err := s.nodes(t.Context())
	s.must(t, err)
	found := false
	for _, node := range nodes.Items {
		if node.Name == *machines[0].Status.Hostname {
			found = true
			g.Expect(node.Status.NodeInfo.OSImage).To(HavePrefix("Debian"), "it runs the packages of cloud images, and not the image with Ignition")
			g.Expect(node.Status.NodeInfo.ContainerRuntimeVersion).To(HavePrefix("containerd://"))
		}
	}
	g.Expect(found).To(BeTrue(), "the Node has the machine's name")
	s.reach(t, "a pod on the stock image", soon, s.podRuns(*machines[0].Status.Hostname))

	s.must(t, s.Type(t.Context(), "hypershift", "destroy", "nodepool", "--name", pool, "--cluster-name", s.cluster))
	s.reach(t, "node of the stock image gone", soon, s.NodesReady(s.cluster, 0))
	s.destroy(t)
}

// podRuns checks that the pods of kube-proxy and the node network run on a node, with the release's container
// runtime.
func (s *suite) podRuns(node string) journey.Check {
	return func(ctx context.Context) (bool, string, error) {
		out, err := s.Read(ctx, s.Guest(s.cluster, "get", "pods", "--all-namespaces", "--field-selector", "spec.nodeName="+
			node,
			"-o", "jsonpath={range .items[*]}{.metadata.name}={.status.phase} {end}")...)
		phases := strings.Fields(out)
		running := 0
		for _, phase := range phases {
			if strings.HasSuffix(phase, "="+string(corev1.PodRunning)) {
				running++
			}
		}
		return len(phases) > 0 && running == len(phases), fmt.Sprint(phases), err
	}
}
