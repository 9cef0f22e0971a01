// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/journey"
)

// mistakes makes each user mistake and reads the condition that reports it.
func (s *suite) mistakes(t *testing.T) {
	s.createCluster(t, 0)
	for _, tc := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"wrong API key", s.wrongKey},
		{"unreachable MAAS", s.unreachable},
		{"unknown release image", s.unknownRelease},
		{"unknown machine image", s.unknownImage},
		{"no machine satisfies the constraints", s.noMachineFits},
	} {
		t.Run(tc.name, tc.run)
	}
	s.noCrashLoop(t)
	s.destroy(t)
}

func (s *suite) wrongKey(t *testing.T) {
	key := s.Path("wrong.key")
	NewWithT(t).Expect(os.WriteFile(key, []byte("nobody:nothing:never"), 0o600)).To(Succeed())
	s.must(t, s.CreateCluster(t.Context(), "mistakes-key", 0, "--maas-api-key-file", key, "--skip-preflight"))
	s.reach(t, "wrong key reported", soon, journey.ClusterCondition(s.c, "mistakes-key",
		string(hyperv1.PlatformCredentialsFound), "False", hyperv1.MAASUnauthorizedReason))
	s.must(t, s.DestroyCluster(t.Context(), "mistakes-key"))
}

func (s *suite) unreachable(t *testing.T) {
	s.must(t, s.CreateCluster(t.Context(), "mistakes-maas", 0, "--maas-endpoint", "http://"+env.Gateway+":9/MAAS"))
	s.reach(t, "unreachable MAAS reported", soon, journey.ClusterCondition(s.c, "mistakes-maas",
		string(hyperv1.PlatformCredentialsFound), "False", hyperv1.MAASUnreachableReason))
	s.must(t, s.DestroyCluster(t.Context(), "mistakes-maas"))
}

func (s *suite) unknownRelease(t *testing.T) {
	s.must(t, s.CreateCluster(t.Context(), "mistakes-release", 0, "--network-type", "Other", "--release-image",
		env.Registry+"/hypershift/release:none"))
	s.reach(t, "unknown release reported", soon, journey.ClusterCondition(s.c, "mistakes-release",
		string(hyperv1.ValidReleaseImage), "False", hyperv1.InvalidImageReason))
	s.must(t, s.DestroyCluster(t.Context(), "mistakes-release"))
}

func (s *suite) unknownImage(t *testing.T) {
	s.createPool(t, "no-image", "--image", "custom/no-such-image")
	s.reach(t, "unknown image reported", soon, journey.PoolCondition(s.c, "no-image",
		hyperv1.NodePoolAllMachinesReadyConditionType, "False", "Image"))
	s.destroyPool(t, "no-image")
}

func (s *suite) noMachineFits(t *testing.T) {
	s.createPool(t, "too-big", "--min-cpu", "512")
	s.reach(t, "missing capacity reported", soon, journey.PoolCondition(s.c, "too-big",
		hyperv1.NodePoolAllMachinesReadyConditionType, "False", "Capacity"))
	s.destroyPool(t, "too-big")
}

func (s *suite) createPool(t *testing.T, name string, flags ...string) {
	t.Helper()
	argv := append([]string{"hypershift", "create", "nodepool", "maas", "--name", name, "--cluster-name", s.cluster,
		"--replicas", "1", "--erase", "None"}, flags...)
	s.must(t, s.Type(t.Context(), argv...))
}

func (s *suite) destroyPool(t *testing.T, name string) {
	t.Helper()
	s.noTurns(t, nil)
	s.removePool(t, name)
}

// removePool destroys a pool of a cluster whose objects an older operator may have changed in turns.
func (s *suite) removePool(t *testing.T, name string) {
	t.Helper()
	s.must(t, s.Type(t.Context(), "hypershift", "destroy", "nodepool", "--name", name, "--cluster-name", s.cluster))
}

// noCrashLoop checks that no mistake has made a container restart.
func (s *suite) noCrashLoop(t *testing.T) {
	g := NewWithT(t)
	for _, namespace := range []string{journey.OperatorNamespace, journey.HostedNamespace(s.cluster)} {
		pods := &corev1.PodList{}
		g.Expect(s.c.List(t.Context(), pods, client.InNamespace(namespace))).To(Succeed())
		for _, pod := range pods.Items {
			for _, c := range pod.Status.ContainerStatuses {
				waiting := c.State.Waiting
				g.Expect(waiting == nil || waiting.Reason != "CrashLoopBackOff").To(BeTrue(), "%s/%s %s is in a crash loop", namespace, pod.Name, c.Name)
			}
		}
	}
}
