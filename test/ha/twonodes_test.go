// SPDX-License-Identifier: Apache-2.0

package ha

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/test/journey"
)

// zoneLabel is a label that bare metal nodes rarely have.
const zoneLabel = "topology.kubernetes.io/zone"

// TestTwoNodes checks a highly available cluster on fewer nodes than it prefers: two nodes, without zones.
func TestTwoNodes(t *testing.T) {
	s := start(t, 2)
	s.must(t, s.Type(t.Context(), "kubectl", "label", "nodes", "--all", zoneLabel+"-"))
	s.must(t, s.Install(t.Context()))
	previous, err := s.PreviousReleaseImage(t.Context())
	s.must(t, err)
	s.must(t, s.CreateCluster(t.Context(), cluster, 0, "--control-plane-availability-policy", "HighlyAvailable", "--release-image", previous))
	s.must(t, s.FollowCluster(t.Context(), cluster, 0))
	s.must(t, s.Reach(t.Context(), "control plane whole", wholeLimit, s.whole))
	s.spread(t, map[string]int{"etcd": 2, "kube-apiserver": 2, "kube-controller-manager": 2, "kube-scheduler": 2})
	c, err := s.members(t.Context())
	s.must(t, err)
	NewWithT(t).Expect(c.Message).To(ContainSubstring("whose failure breaks the quorum"))

	s.cordoned(t)
	s.upgrade(t)
	s.spread(t, map[string]int{"etcd": 2, "kube-apiserver": 2})
	for _, figure := range s.figures {
		s.Say("%s", figure)
	}
	s.destroy(t)
}

// cordoned cordons the node of an etcd member and deletes the member's pod, which can run only there because of its
// volume. A condition must report that, and the API must stay available.
func (s *suite) cordoned(t *testing.T) {
	t.Helper()
	const node = "management-2"
	pod := s.memberOn(t, node)
	s.under(t, "member without a place", func() {
		s.must(t, s.Type(t.Context(), "kubectl", "cordon", node))
		s.must(t, s.Type(t.Context(), "kubectl", "delete", "pod", "-n", journey.HostedNamespace(cluster), pod))
		var said metav1.Condition
		s.must(t, s.Reach(t.Context(), "rule named", 5*time.Minute, func(ctx context.Context) (bool, string, error) {
			hc := &hyperv1.HostedCluster{}
			err := s.c.Get(ctx, client.ObjectKey{Namespace: journey.Namespace, Name: cluster}, hc)
			if c := meta.FindStatusCondition(hc.Status.Conditions, string(hyperv1.ControlPlanePodsScheduled)); c != nil {
				said = *c
			}
			return said.Status == metav1.ConditionFalse, said.Message, err
		}))
		NewWithT(t).Expect(said.Message).To(And(ContainSubstring(pod), ContainSubstring("cordoned")))
		s.must(t, s.Type(t.Context(), "kubectl", "uncordon", node))
		s.must(t, s.Reach(t.Context(), "control plane whole", wholeLimit, s.whole))
	})
}
