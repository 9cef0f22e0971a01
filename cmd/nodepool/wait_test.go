// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/cmd/progress"
)

// placing is a platform that implements Placer.
type placing struct{ plain }

func (placing) Place(_ context.Context, _ client.Reader, machine *clusterv1.Machine) (string, error) {
	return map[string]string{"workers-a": "is calm-ant on lxd-1"}[machine.Name], nil
}

func machine(name, pool string) client.Object {
	return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: name, Annotations: map[string]string{hyperv1.NodePoolAnnotation: pool}}}
}

func TestWait(t *testing.T) {
	pool := func(nodes int32) *hyperv1.NodePool {
		p := &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "workers"}}
		p.Status.Replicas = nodes
		p.Status.Conditions = []hyperv1.NodePoolCondition{
			{Type: hyperv1.NodePoolValidReleaseImageConditionType, Status: "True"},
			{Type: hyperv1.NodePoolAllMachinesReadyConditionType, Status: "False", Reason: "InsufficientResources", Message: "no host has room"},
		}
		return p
	}
	machines := []client.Object{machine("workers-b", "clusters/workers"), machine("workers-a", "clusters/workers"), machine("other-a", "clusters/other")}
	for _, tt := range []struct {
		name    string
		pool    *hyperv1.NodePool
		objects []client.Object
		says    []string
		err     string
	}{
		{
			name: "When all nodes are ready, it should end and report where each Machine is placed", pool: pool(2), objects: machines,
			says: []string{"nodes: 2 of 2; workers-a is calm-ant on lxd-1, workers-b"},
		},
		{
			name: "When a Machine gets no node, it should report the cause and the command to look further", pool: pool(1), objects: machines,
			says: []string{"nodes: 1 of 2; workers-a is calm-ant on lxd-1, workers-b; AllMachinesReady is False (InsufficientResources): no host has room"},
			err:  "no host has room; look further with: kubectl describe nodepool -n clusters workers",
		},
		{name: "When there is no Machine yet, it should report the first unmet condition", pool: pool(0), says: []string{"nodes: 0 of 2; AllMachinesReady is False"}, err: "was not done after"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, out := NewWithT(t), &strings.Builder{}
			c := parse(t, "--wait", "--timeout", "50ms")
			c.platform = placing{}
			cl := fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(append(tt.objects, tt.pool)...).Build()
			err := c.waitReady(t.Context(), cl, progress.New(out, clock.RealClock{}))
			for _, says := range tt.says {
				g.Expect(out.String()).To(ContainSubstring(says))
			}
			g.Expect(out.String()).NotTo(ContainSubstring("other-a"))
			if tt.err == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tt.err)))
		})
	}
	t.Run("When --wait is not set, it should reject --timeout", func(t *testing.T) {
		NewWithT(t).Expect(parse(t, "--timeout", time.Minute.String()).check()).To(MatchError(ContainSubstring("add --wait")))
	})
}
