// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster/clustertest"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/hypershift-operator/platform/none"
	"github.com/openshift/hypershift/support/condition"
)

func issuer(server *clustertest.Server) Issuer {
	return Issuer{Client: server.Refusing, OperatorImage: operatorImage}
}

func TestIssuerIsPublished(t *testing.T) {
	kind := string(hyperv1.ValidOIDCConfiguration)
	why := condition.False(kind, "Why", "what")
	documents := map[string][]byte{"keys": []byte("a")}
	for name, tc := range map[string]struct {
		p          *clustertest.Plugin
		refuse     string
		conditions map[string]metav1.Condition
		cleared    []string
		finalizers []string
		again      time.Duration
		err        error
		did        []string
	}{
		"When there are documents, it should add the finalizer and then publish them": {p: &clustertest.Plugin{Documents: documents, Again: time.Hour},
			conditions: map[string]metav1.Condition{kind: condition.True(kind, "Published", "")}, finalizers: []string{clustertest.PluginFinalizer}, again: time.Hour, did: []string{"documents", "publish a"}},
		"When the finalizer cannot be added, it should publish nothing":     {p: &clustertest.Plugin{Documents: documents}, refuse: "patch", err: clustertest.ErrNotNow, did: []string{"documents"}},
		"When the documents cannot be read, it should return an error":      {p: &clustertest.Plugin{Documents: documents, Why: why, Err: clustertest.ErrNotNow}, err: clustertest.ErrNotNow, did: []string{"documents"}},
		"When there are no documents, the condition should give the reason": {p: &clustertest.Plugin{Why: why}, conditions: map[string]metav1.Condition{kind: why}, did: []string{"documents"}},
		"When there is nothing to report, the condition should be removed":  {p: &clustertest.Plugin{}, cleared: []string{kind}, did: []string{"documents"}},
	} {
		t.Run(name, func(t *testing.T) {
			g, hc := NewWithT(t), fixture.HostedCluster("clusters")
			d, s := clustertest.NewServer(hc), clustertest.On(tc.p)
			g.Expect(d.Has(t, s.HC)).To(BeTrue())
			d.Refuse = tc.refuse
			result, err := issuer(d).Reconcile(t.Context(), s)
			if tc.err == nil {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(tc.err))
			}
			g.Expect(result.RequeueAfter).To(Equal(tc.again))
			g.Expect(s.Conditions).To(HaveLen(len(tc.conditions)))
			for key, want := range tc.conditions {
				g.Expect(s.Conditions[key]).To(Equal(want))
			}
			g.Expect(s.Cleared).To(Equal(tc.cleared))
			g.Expect(tc.p.Did).To(Equal(tc.did))
			g.Expect(tc.p.Seen[0].OperatorImage).To(Equal(operatorImage))
			g.Expect(d.Has(t, hc)).To(BeTrue())
			g.Expect(hc.Finalizers).To(Equal(tc.finalizers))
		})
	}
	t.Run("When the platform publishes no issuer, it should do nothing", func(t *testing.T) {
		g, s := NewWithT(t), clustertest.On(none.Platform{})
		_, err := issuer(clustertest.NewServer()).Reconcile(t.Context(), s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(issuer(clustertest.NewServer()).Withdraw(t.Context(), s)).To(BeEmpty())
		g.Expect(s.Conditions).To(BeEmpty())
	})
}

func TestIssuerIsWithdrawn(t *testing.T) {
	for name, tc := range map[string]struct {
		had, left []string
		p         *clustertest.Plugin
		refuse    string
		did       []string
	}{
		"When documents were published, it should withdraw them and remove the finalizer": {[]string{"other", clustertest.PluginFinalizer}, []string{"other"}, &clustertest.Plugin{}, "", []string{"withdraw"}},
		"When nothing was published, it should not call the cloud":                        {[]string{"other"}, []string{"other"}, &clustertest.Plugin{Err: clustertest.ErrNotNow}, "", nil},
		"When the documents cannot be withdrawn, it should keep the finalizer":            {[]string{clustertest.PluginFinalizer}, []string{clustertest.PluginFinalizer}, &clustertest.Plugin{Err: clustertest.ErrNotNow}, "", []string{"withdraw"}},
		"When the finalizer cannot be removed, it should return an error":                 {[]string{clustertest.PluginFinalizer}, []string{clustertest.PluginFinalizer}, &clustertest.Plugin{}, "patch", []string{"withdraw"}},
	} {
		t.Run(name, func(t *testing.T) {
			g, hc := NewWithT(t), fixture.HostedCluster("clusters")
			hc.Finalizers = tc.had
			d, s := clustertest.NewServer(hc), clustertest.On(tc.p)
			g.Expect(d.Has(t, s.HC)).To(BeTrue())
			d.Refuse = tc.refuse
			waitsFor, err := issuer(d).Withdraw(t.Context(), s)
			g.Expect(waitsFor).To(BeEmpty())
			if tc.did != nil && (tc.p.Err != nil || tc.refuse != "") {
				g.Expect(err).To(MatchError(clustertest.ErrNotNow))
			} else {
				g.Expect(err).NotTo(HaveOccurred())
			}
			g.Expect(tc.p.Did).To(Equal(tc.did))
			if tc.did != nil {
				g.Expect(tc.p.Seen).To(HaveLen(1))
				g.Expect(tc.p.Seen[0]).To(Equal(platform.Cluster{HostedCluster: s.HC, Namespace: s.Namespace, OperatorImage: operatorImage}))
			}
			g.Expect(d.Has(t, hc)).To(BeTrue())
			g.Expect(hc.Finalizers).To(Equal(tc.left))
		})
	}
}
