// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// TestHandedPause checks how a pause and its end are propagated to the control plane and to Cluster API.
func TestHandedPause(t *testing.T) {
	const later, over = "2026-11-21T12:00:00Z", "2026-11-19T12:00:00Z"
	for name, test := range map[string]struct {
		until  *string
		capi   *bool
		paused bool
		writes []string
	}{
		"the cluster is paused, it should pause both":                               {ptr.To("true"), nil, true, []string{"patch v1beta1.HostedControlPlane clusters-demo/demo", "patch v1beta2.Cluster clusters-demo/demo-1"}},
		"the cluster is paused until a later date, it should pause both until then": {ptr.To(later), ptr.To(false), true, []string{"patch v1beta1.HostedControlPlane clusters-demo/demo", "patch v1beta2.Cluster clusters-demo/demo-1"}},
		"the pause has ended, it should resume the Cluster":                         {ptr.To(over), ptr.To(true), false, []string{"patch v1beta1.HostedControlPlane clusters-demo/demo", "patch v1beta2.Cluster clusters-demo/demo-1"}},
		"the cluster is resumed, it should resume the Cluster":                      {nil, ptr.To(true), false, []string{"patch v1beta2.Cluster clusters-demo/demo-1"}},
		"the cluster was never paused, it should write nothing":                     {nil, nil, false, nil},
	} {
		t.Run("When "+name, func(t *testing.T) {
			g := NewWithT(t)
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo-1"}, Spec: clusterv1.ClusterSpec{Paused: test.capi}}
			hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo"}}
			d := newDesk(cluster, hcp)
			s := withScope(func(s *scope) { s.HC.Spec.InfraID, s.HC.Spec.PausedUntil = "demo-1", test.until })
			s.HCP = &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo"}}
			g.Expect(d.Has(t, s.HCP)).To(BeTrue())
			state, err := pauseOf(t.Context(), s)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(state.Paused).To(Equal(test.paused))
			_, err = d.reconcilePause(t.Context(), s)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(d.Wrote).To(Equal(test.writes))
			g.Expect(d.Has(t, cluster) && d.Has(t, hcp)).To(BeTrue())
			g.Expect(ptr.Deref(cluster.Spec.Paused, false)).To(Equal(test.paused))
			g.Expect(hcp.Spec.PausedUntil).To(Equal(test.until))
		})
	}
}

func TestPauseMeetsRefusals(t *testing.T) {
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo-1"}}
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo"}}
	for name, test := range map[string]struct {
		objects []client.Object
		refuse  string
		writes  []string
		fails   bool
	}{
		"When the control plane and the Cluster are gone, it should return no error": {nil, "", []string{"patch v1beta1.HostedControlPlane clusters-demo/demo"}, false},
		"When the control plane cannot be paused, it should still pause the Cluster": {[]client.Object{cluster, hcp}, "patch v1beta1.HostedControlPlane", []string{"patch v1beta2.Cluster clusters-demo/demo-1"}, true},
		"When the Cluster cannot be paused, it should still pause the control plane": {[]client.Object{cluster, hcp}, "patch v1beta2.Cluster", []string{"patch v1beta1.HostedControlPlane clusters-demo/demo"}, true},
		"When the Cluster cannot be read, it should return an error":                 {[]client.Object{cluster, hcp}, "get v1beta2.Cluster", []string{"patch v1beta1.HostedControlPlane clusters-demo/demo"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(test.objects...)
			d.Refuse = test.refuse
			s := withScope(func(s *scope) {
				s.HC.Spec.InfraID, s.HC.Spec.PausedUntil, s.HCP = "demo-1", ptr.To("true"), hcp.DeepCopy()
			})
			_, err := d.reconcilePause(t.Context(), s)
			NewWithT(t).Expect(err != nil).To(Equal(test.fails))
			NewWithT(t).Expect(d.Wrote).To(Equal(test.writes))
		})
	}
	t.Run("When there is no control plane yet, it should return no error", func(t *testing.T) {
		_, err := newDesk().reconcilePause(t.Context(), withScope())
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	})
}

func TestReconciliationActive(t *testing.T) {
	for until, want := range map[string]string{
		"true":                 "False/ReconciliationPaused",
		"2026-11-21T12:00:00Z": "False/ReconciliationPaused",
		"2026-11-19T12:00:00Z": "True/ReconciliationActive",
		"":                     "True/ReconciliationActive",
		"soon":                 "False/InvalidPausedUntilValue",
	} {
		var value *string
		if until != "" {
			value = &until
		}
		c := reconciliationActive(value, now, 0)
		NewWithT(t).Expect(c.Type+": "+string(c.Status)+"/"+c.Reason).To(Equal("ReconciliationActive: "+want), until)
	}
}
