// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// leases returns Leases of nodes. Each argument is a node and the resource version of its Lease: "a 1".
func leases(states ...string) (all []coordinationv1.Lease) {
	for _, state := range states {
		name, version, _ := strings.Cut(state, " ")
		all = append(all, coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}})
	}
	return all
}

func nodes(names ...string) (all []corev1.Node) {
	for _, name := range names {
		all = append(all, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue}, {Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}})
	}
	return all
}

// TestSilence checks that only an observed change of a Lease proves that a node is connected, and only for two
// minutes.
func TestSilence(t *testing.T) {
	const second = time.Second
	type look struct {
		after  time.Duration
		leases []coordinationv1.Lease
	}
	for name, tc := range map[string]struct {
		looks  []look
		nodes  []corev1.Node
		status metav1.ConditionStatus
		said   string
	}{
		"the first observation":              {[]look{{0, leases("a 1")}}, nodes("a"), "", ""},
		"an observation before the timeout":  {[]look{{0, leases("a 1")}, {staleAfter - second, leases("a 1")}}, nodes("a"), "", ""},
		"no renewal within the timeout":      {[]look{{0, leases("a 1")}, {staleAfter, leases("a 1")}}, nodes("a"), metav1.ConditionFalse, "for 2m0s: do machines reach the address in status.controlPlaneEndpoint? Nodes: a"},
		"a renewal":                          {[]look{{0, leases("a 1")}, {20 * second, leases("a 2")}}, nodes("a"), metav1.ConditionTrue, "Nodes reach the API server"},
		"a renewal just before the timeout":  {[]look{{0, leases("a 1")}, {second, leases("a 2")}, {staleAfter, leases("a 2")}}, nodes("a"), metav1.ConditionTrue, "Nodes reach the API server"},
		"a renewal that is too old":          {[]look{{0, leases("a 1")}, {second, leases("a 2")}, {staleAfter + second, leases("a 2")}}, nodes("a"), metav1.ConditionFalse, "Nodes: a"},
		"a new Lease":                        {[]look{{0, leases()}, {20 * second, leases("a 7")}}, nodes("a"), metav1.ConditionTrue, "Nodes reach the API server"},
		"a Lease that is recreated":          {[]look{{0, leases("a 1")}, {second, leases()}, {2 * second, leases("a 1")}}, nodes("a"), metav1.ConditionTrue, "Nodes reach the API server"},
		"a deleted Lease":                    {[]look{{0, leases("a 1")}, {second, leases("a 2")}, {staleAfter, leases()}}, nodes("a"), metav1.ConditionFalse, "Nodes: a"},
		"one silent node before the timeout": {[]look{{0, leases("a 1", "b 1")}, {20 * second, leases("a 2", "b 1")}}, nodes("a", "b"), metav1.ConditionTrue, "Nodes reach the API server"},
		"one silent node":                    {[]look{{0, leases("a 1", "b 1")}, {staleAfter, leases("a 2", "b 1")}}, nodes("b", "a"), metav1.ConditionTrue, "1 of 2 nodes have not renewed their leases for 2m0s: b"},
		"a node without a Lease":             {[]look{{0, leases("a 1")}, {staleAfter, leases("a 2")}}, nodes("a", "b"), metav1.ConditionTrue, "1 of 2 nodes have not renewed their leases for 2m0s: b"},
		"many silent nodes":                  {[]look{{0, nil}, {staleAfter, nil}}, nodes("e", "d", "c", "b", "a"), metav1.ConditionFalse, "Nodes: a, b, c"},
		"a Lease without a node":             {[]look{{0, leases("z 1")}, {staleAfter, leases("z 2")}}, nodes("a"), metav1.ConditionFalse, "Nodes: a"},
		"no node":                            {[]look{{0, nil}}, nil, metav1.ConditionUnknown, "There is no node yet"},
	} {
		t.Run("When there is "+name+" the condition should report what is known", func(t *testing.T) {
			g, r, at := NewWithT(t), &renewals{}, now
			for _, l := range tc.looks {
				at = now.Add(l.after)
				r.observe(l.leases, at)
			}
			c, known := controlPlane(tc.nodes, r, at)
			g.Expect(known).To(Equal(tc.status != ""))
			g.Expect(c.Status).To(Equal(tc.status))
			g.Expect(c.Message).To(HaveSuffix(tc.said))
		})
	}
}

func TestObserveForgets(t *testing.T) {
	g, r := NewWithT(t), &renewals{}
	r.observe(leases("a 1", "b 1"), now)
	r.observe(leases("a 2", "b 2"), now.Add(time.Second))
	r.observe(leases("a 2"), now.Add(2*time.Second))
	g.Expect(r.seen).To(HaveLen(1), "nodes come and go for years")
	g.Expect(r.versions).To(HaveLen(1))
	g.Expect(r.since).To(Equal(now), "when looking began does not change")
}

// TestWhoIsAsked checks that each check queries a few nodes in turn, and only nodes that should answer.
func TestWhoIsAsked(t *testing.T) {
	var asked []string
	r := &Reconciler{Kubelet: func(_ context.Context, node string) error { asked = append(asked, node); return nil }}
	fleet := nodes("e", "a", "d", "b", "c", "down", "new")
	fleet[5].Status.Conditions[1].Status = corev1.ConditionUnknown
	fleet[6].Status.Conditions = nil
	for range 3 {
		r.dataPlane(t.Context(), fleet)
	}
	if diff := cmp.Diff(strings.Fields("a b c d e a b c d"), asked); diff != "" {
		t.Errorf("the nodes that were asked (-want +got):\n%s", diff)
	}
	asked = nil
	r.dataPlane(t.Context(), nodes("a"))
	if diff := cmp.Diff([]string{"a"}, asked); diff != "" {
		t.Errorf("the only node is asked once (-want +got):\n%s", diff)
	}
}

func TestDataPlane(t *testing.T) {
	for name, tc := range map[string]struct {
		deaf   string
		nodes  []corev1.Node
		status metav1.ConditionStatus
		reason string
		said   string
	}{
		"no node is Ready":                 {"", nil, metav1.ConditionUnknown, hyperv1.NoWorkerNodesAvailableReason, "There is no Ready node to ask"},
		"all kubelets answer":              {"", nodes("a", "b"), metav1.ConditionTrue, hyperv1.AsExpectedReason, "The API server reaches kubelets"},
		"some kubelets do not answer":      {"ca", nodes("a", "b", "c"), metav1.ConditionTrue, hyperv1.AsExpectedReason, "Some kubelets do not answer: a: deaf; c: deaf"},
		"no kubelet that it asks answers":  {"abc", nodes("a", "b", "c", "d"), metav1.ConditionFalse, hyperv1.LogsAccessFailedReason, "let the nodes reach Service konnectivity-server, or pods of the management cluster TCP 10250 of the nodes: a: deaf; b: deaf; c: deaf"},
		"the only kubelet does not answer": {"a", nodes("a"), metav1.ConditionFalse, hyperv1.LogsAccessFailedReason, ": a: deaf"},
	} {
		t.Run("When "+name+" the condition should report it", func(t *testing.T) {
			r := &Reconciler{Kubelet: func(_ context.Context, node string) error {
				if strings.Contains(tc.deaf, node) {
					return errors.New("deaf")
				}
				return nil
			}}
			c := r.dataPlane(t.Context(), tc.nodes)
			g := NewWithT(t)
			g.Expect(fmt.Sprint(c.Status, " ", c.Reason)).To(Equal(fmt.Sprint(tc.status, " ", tc.reason)))
			g.Expect(c.Message).To(HaveSuffix(tc.said))
		})
	}
}
