// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/deletion"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/hypershift-operator/platform/none"
	"github.com/openshift/hypershift/hypershift-operator/platform/registry"
)

func TestPrepare(t *testing.T) {
	t.Run("When a cluster has no IDs, it should get unique ones", func(t *testing.T) {
		g, one, other := NewWithT(t), on(none.Platform{}), on(none.Platform{})
		g.Expect(prepare(one)).To(Succeed())
		g.Expect(prepare(other)).To(Succeed())
		g.Expect(one.HC.Spec.ClusterID).To(MatchRegexp(uuidPattern.String()))
		g.Expect(one.HC.Spec.ClusterID).NotTo(Equal(other.HC.Spec.ClusterID))
		g.Expect(one.HC.Spec.InfraID).To(HavePrefix("demo-"))
		g.Expect(one.HC.Spec.InfraID).NotTo(Equal(other.HC.Spec.InfraID))
	})
	t.Run("When a cluster has IDs, it should keep them", func(t *testing.T) {
		g, s := NewWithT(t), on(&plugged{})
		s.HC.Spec.ClusterID, s.HC.Spec.InfraID = "id", "infra"
		g.Expect(prepare(s)).To(Succeed())
		g.Expect(s.HC.Spec.ClusterID + " " + s.HC.Spec.InfraID).To(Equal("id infra"))
		g.Expect(s.HC.Spec.Channel).To(Equal("identified"), "the platform may have some of its own")
	})
}

func TestObserve(t *testing.T) {
	pool := func(namespace, name, cluster string) *hyperv1.NodePool {
		p := fixture.NodePool(namespace)
		p.Name, p.Spec.ClusterName = name, cluster
		return p
	}
	hosted := &corev1.Namespace{ObjectMeta: ours("", "clusters-demo")}
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: ours("clusters-demo", "demo")}
	pools := []client.Object{pool("clusters", "b", "demo"), pool("clusters", "c", "other"), pool("clusters", "a", "demo"), pool("others", "d", "demo")}
	seen := func(s *scope) (names []string) {
		for _, p := range s.Pools {
			names = append(names, p.Name)
		}
		return names
	}
	t.Run("When all objects exist, it should read them", func(t *testing.T) {
		g, d, hc := NewWithT(t), newDesk(append(pools, hosted, hcp)...), fixture.HostedCluster("clusters")
		s, err := d.observe(t.Context(), hc)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.HC).To(BeIdenticalTo(hc))
		g.Expect(s.Now).To(BeTemporally("==", now))
		g.Expect(s.Platform).NotTo(BeNil())
		g.Expect(s.PlatformServed).To(BeTrue())
		g.Expect(s.Refused).To(BeEmpty())
		g.Expect(s.HCP.Name).To(Equal("demo"))
		g.Expect(seen(s)).To(Equal([]string{"a", "b"}))
	})
	t.Run("When no objects exist, it should return no error", func(t *testing.T) {
		g, d := NewWithT(t), newDesk()
		s, err := d.observe(t.Context(), fixture.HostedCluster("clusters"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.HCP).To(BeNil())
		g.Expect(s.Pools).To(BeEmpty())
	})
	t.Run("When the namespace belongs to another cluster, it should not read the objects in it", func(t *testing.T) {
		g, d := NewWithT(t), newDesk(append(pools, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters-demo"}}, hcp)...)
		s, err := d.observe(t.Context(), fixture.HostedCluster("clusters"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.Refused).To(ContainSubstring("namespace clusters-demo"))
		g.Expect(s.HCP).To(BeNil())
	})
	for refuse, says := range map[string]string{
		"get v1.Namespace":                "reading namespace clusters-demo",
		"get v1beta1.HostedControlPlane ": "reading HostedControlPlane clusters-demo/demo",
		"list v1beta1.NodePoolList":       "listing NodePools",
	} {
		t.Run("When the server refuses to "+refuse+", it should return the error", func(t *testing.T) {
			g, d := NewWithT(t), newDesk(hosted.DeepCopy(), hcp.DeepCopy())
			d.Refuse = refuse
			_, err := d.observe(t.Context(), fixture.HostedCluster("clusters"))
			g.Expect(err).To(MatchError(errNotNow))
			g.Expect(err).To(MatchError(HavePrefix(says)))
		})
	}
}

// TestPassInMemory runs the lifecycle of a cluster on a platform without its own machines.
func TestPassInMemory(t *testing.T) {
	hc := fixture.HostedCluster("clusters")
	hc.Spec.PausedUntil = ptr.To("true")
	p := &plugged{}
	g, d := NewWithT(t), newDesk()
	d.Direct = fake.NewClientBuilder().WithScheme(fixture.Scheme()).WithStatusSubresource(hc, &hyperv1.ControlPlaneComponent{}).
		WithObjects(append(fixture.Inputs("clusters"), hc)...).Build()
	d.Client, d.LiveReader = d.Direct, d.Direct
	d.Platforms = registry.Of(map[hyperv1.PlatformType]platform.Platform{hyperv1.MAASPlatform: p})
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(hc)}
	pass := func() ctrl.Result {
		result, err := d.Reconcile(t.Context(), request)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(client.IgnoreNotFound(d.Direct.Get(t.Context(), request.NamespacedName, hc))).To(Succeed())
		return result
	}
	pass()
	g.Expect(hc.Finalizers).To(Equal([]string{hyperv1.HostedClusterFinalizer}))
	g.Expect(hc.Spec.InfraID).To(HavePrefix("demo-"), "it has its identity before anything is made")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters-demo"}}
	g.Expect(d.Has(t, namespace)).To(BeFalse(), "nothing is made while it is paused")

	hc.Spec.PausedUntil = nil
	g.Expect(d.Direct.Update(t.Context(), hc)).To(Succeed())
	pass()
	g.Expect(d.Has(t, namespace)).To(BeTrue())
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo"}}
	g.Expect(d.Has(t, hcp)).To(BeTrue())
	g.Expect(hc.Status.Conditions).NotTo(BeEmpty(), "it is reported")

	hcp.Finalizers = []string{"test/operators"}
	g.Expect(d.Direct.Update(t.Context(), hcp)).To(Succeed())
	g.Expect(d.Direct.Delete(t.Context(), hc)).To(Succeed())
	g.Expect(pass().RequeueAfter).To(Equal(deletion.Poll))
	g.Expect(d.Has(t, hc)).To(BeTrue(), "it waits for its control plane")
	g.Expect(d.Has(t, hcp)).To(BeTrue())
	hcp.Finalizers = nil
	g.Expect(d.Direct.Update(t.Context(), hcp)).To(Succeed())
	for range 3 {
		pass()
	}
	g.Expect(d.Has(t, hc)).To(BeFalse())
	g.Expect(d.Has(t, namespace)).To(BeFalse())
}
