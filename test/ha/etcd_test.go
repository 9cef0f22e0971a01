// SPDX-License-Identifier: Apache-2.0

package ha

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/test/journey"
)

// anotherRequest is a memory request above etcd's default. Changing it affects no pods of other components.
const anotherRequest = "264Mi"

// etcdChanges changes the pods of etcd while a member's host is down. It checks that the change does not stop the
// remaining members.
func (s *suite) etcdChanges(t *testing.T) {
	const node = "management-3"
	s.under(t, "etcd changes, node dead", func() {
		s.node(t, "stop", node)
		s.must(t, s.Reach(t.Context(), "node known to be dead", 5*time.Minute, s.notReady(node)))
		s.must(t, s.Type(t.Context(), "kubectl", "annotate", "hostedcluster", cluster, "-n", journey.Namespace, "--overwrite",
			hyperv1.ResourceRequestOverrideAnnotationPrefix+"/etcd.etcd=memory="+anotherRequest))
		// The control plane's operator may have run on that node. It starts on another node only after its pod has
		// been evicted.
		s.must(t, s.Reach(t.Context(), "change of etcd put off", wholeLimit, func(ctx context.Context) (bool, string, error) {
			c, err := s.members(ctx)
			return strings.Contains(c.Message, "an update of etcd waits until all members are healthy"), c.Reason + ": " + c.Message, err
		}))
		s.node(t, "start", node)
		s.must(t, s.Reach(t.Context(), "etcd changed", wholeLimit, s.changedEtcd))
		s.must(t, s.Reach(t.Context(), "control plane whole", wholeLimit, s.whole))
	})
}

// changedEtcd checks that all members of etcd have the change of etcdChanges.
func (s *suite) changedEtcd(ctx context.Context) (bool, string, error) {
	pods := &corev1.PodList{}
	if err := s.c.List(ctx, pods, client.InNamespace(journey.HostedNamespace(cluster)), client.MatchingLabels{"app": "etcd"}); err != nil {
		return false, "", err
	}
	changed, want := 0, resource.MustParse(anotherRequest)
	for _, pod := range pods.Items {
		if pod.Spec.Containers[0].Resources.Requests.Memory().Cmp(want) == 0 {
			changed++
		}
	}
	return changed == size, fmt.Sprintf("%d of %d members", changed, size), nil
}
