// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster/clustertest"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/hypershift-operator/platform/none"
	"github.com/openshift/hypershift/support/condition"
)

const operatorImage = "registry.example/hypershift:1"

func connection(server *clustertest.Server) Connection {
	return Connection{Client: server.Refusing, OperatorImage: operatorImage}
}

func TestConnection(t *testing.T) {
	t.Run("When the platform has a connection, it should copy its conditions, even if it fails", func(t *testing.T) {
		g, d := NewWithT(t), clustertest.NewServer()
		p := &clustertest.Plugin{Err: clustertest.ErrNotNow, Connection: platform.Connection{
			Conditions: []metav1.Condition{condition.False("A", "Why", "a"), condition.True("B", "Good", "b")},
			Gone:       []hyperv1.ConditionType{"C", "D"}, CheckAgain: time.Minute,
		}}
		s := clustertest.On(p)
		result, err := connection(d).Reconcile(t.Context(), s)
		g.Expect(err).To(MatchError(clustertest.ErrNotNow))
		g.Expect(result.RequeueAfter).To(Equal(time.Minute))
		g.Expect(s.Conditions).To(Equal(map[string]metav1.Condition{"A": p.Connection.Conditions[0], "B": p.Connection.Conditions[1]}))
		g.Expect(s.Cleared).To(Equal([]string{"C", "D"}))
		g.Expect(p.Seen).To(Equal([]platform.Cluster{s.ForPlatform(operatorImage)}))
	})
	t.Run("When the platform has no connection, it should do nothing", func(t *testing.T) {
		g, d, s := NewWithT(t), clustertest.NewServer(), clustertest.On(none.Platform{})
		result, err := connection(d).Reconcile(t.Context(), s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.IsZero()).To(BeTrue())
		g.Expect(connection(d).Delete(t.Context(), s)).To(BeEmpty())
		g.Expect(s.Conditions).To(BeEmpty())
	})
	gone := &meta.NoKindMatchError{}
	for name, tc := range map[string]struct {
		p        *clustertest.Plugin
		waitsFor string
		err      error
	}{
		"When the platform still has objects to delete, the deletion should wait": {&clustertest.Plugin{Says: "a policy"}, "a policy", nil},
		"When the platform returns an error, the deletion should fail":            {&clustertest.Plugin{Says: "a policy", Err: clustertest.ErrNotNow}, "a policy", clustertest.ErrNotNow},
		"When the CRDs of the platform are gone, the deletion should not wait":    {&clustertest.Plugin{Says: "a policy", Err: gone}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := NewWithT(t), clustertest.On(tc.p)
			waitsFor, err := connection(clustertest.NewServer()).Delete(t.Context(), s)
			g.Expect(waitsFor).To(Equal(tc.waitsFor))
			if tc.err == nil {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(tc.err))
			}
			g.Expect(tc.p.Seen).To(Equal([]platform.Cluster{s.ForPlatform(operatorImage)}))
		})
	}
}
