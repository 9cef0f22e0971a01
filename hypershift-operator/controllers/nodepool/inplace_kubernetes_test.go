// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope/scopetest"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// TestInPlaceKubernetes covers the operator's part of an in-place update. The test itself sets the annotations that
// the upgrader in the hosted cluster would set on the MachineSet.
func TestInPlaceKubernetes(t *testing.T) {
	c := fixture.Start(t)
	s := newWorld(t, c, "inplace-kubernetes")
	s.Releases = laterPayloads()
	s.ready(nil)
	pool := fixture.NodePool(s.namespace)
	pool.Spec.Replicas = ptr.To[int32](2)
	pool.Spec.Management = hyperv1.NodePoolManagement{UpgradeType: hyperv1.UpgradeTypeInPlace}
	fixture.Create(t, c, pool)
	g := newGuest(s)
	s.mustPass()
	g.scale()
	g.join()
	s.mustPass()
	before := g.set().Annotations
	was, machines := before[hyperv1.NodePoolTargetConfigVersionAnnotation], g.behind()
	says := func(annotation, text string) {
		t.Helper()
		g.write(g.set(), map[string]string{annotation: text})
		s.mustPass()
	}

	t.Run("When nothing changed, it should report the kubelet version and that all nodes run it", func(*testing.T) {
		s.Expect(s.condition("UpdateManagementEnabled").Status).To(Equal(corev1.ConditionTrue))
		s.Expect(before).To(HaveKeyWithValue(hyperv1.NodePoolKubeletVersionAnnotation, "1.36.3"))
		s.Expect(before).To(HaveKeyWithValue(hyperv1.NodePoolCurrentConfigVersionAnnotation, was))
		s.Expect(s.pool().Status.Version).To(Equal("1.36.3"))
	})

	hc := &hyperv1.HostedCluster{}
	s.Expect(c.Get(t.Context(), ctrlKey(s.namespace, fixture.ClusterName), hc)).To(Succeed())
	hc.Spec.Release.Image = laterImage
	s.Expect(c.Update(t.Context(), hc)).To(Succeed())
	s.change(func(p *hyperv1.NodePool) { p.Spec.Release.Image = laterImage })
	s.mustPass()
	target := g.set().Annotations[hyperv1.NodePoolTargetConfigVersionAnnotation]

	t.Run("When the release changes, it should set a target, use the release for new machines, and keep existing ones", func(*testing.T) {
		ms := g.set()
		s.Expect(target).NotTo(Equal(was))
		s.Expect(ms.Annotations).To(HaveKeyWithValue(hyperv1.NodePoolCurrentConfigVersionAnnotation, was))
		s.Expect(ms.Annotations).To(HaveKeyWithValue(hyperv1.NodePoolKubeletVersionAnnotation, "1.36.4"))
		s.Expect(*ms.Spec.Template.Spec.Bootstrap.DataSecretName).To(HaveSuffix(target))
		s.Expect(g.behind()).To(Equal(machines))
	})
	t.Run("While nodes are being updated, it should serve both configurations", func(*testing.T) {
		for _, hash := range []string{was, target} {
			s.Expect(s.secret("token-"+fixture.PoolName+"-"+hash).Annotations).NotTo(HaveKey(hyperv1.IgnitionServerTokenExpirationTimestampAnnotation), hash)
			s.Expect(s.secret("user-data-"+fixture.PoolName+"-"+hash).Data).To(HaveKey("value"), hash)
		}
	})
	t.Run("When the upgrader reports progress, the pool should report it too", func(*testing.T) {
		says(hyperv1.NodePoolUpgradeInProgressTrueAnnotation, "1 of 2 nodes are updated. Node a is being drained")
		s.Expect(s.condition("UpdatingVersion").Message).To(Equal("1 of 2 nodes are updated. Node a is being drained"))
		s.Expect(s.pool().Status.Version).To(Equal("1.36.3"))
	})
	t.Run("When a reconcile fails before it writes the MachineSet, it should report the same progress", func(*testing.T) {
		s.change(func(p *hyperv1.NodePool) { p.Spec.Replicas = ptr.To[int32](3) })
		whole := s.Client
		s.Client = refusing(c)
		_, err := s.pass()
		s.Client = whole
		s.Expect(err).To(MatchError(errRefused))
		s.Expect(s.condition("UpdatingVersion").Message).To(Equal("1 of 2 nodes are updated. Node a is being drained"))
		s.change(func(p *hyperv1.NodePool) { p.Spec.Replicas = ptr.To[int32](2) })
	})
	t.Run("When a node cannot be updated, the pool should report why and how to recover", func(*testing.T) {
		says(hyperv1.NodePoolUpgradeInProgressFalseAnnotation, "Node a went back: it was not Ready")
		failed := s.condition("UpdatingVersion")
		s.Expect(failed.Reason).To(Equal(hyperv1.NodePoolInplaceUpgradeFailedReason))
		s.Expect(failed.Severity).To(Equal("Warning"))
		s.Expect(failed.Message).To(Equal("Node a went back: it was not Ready. " +
			"The rollout is paused until this node recovers or its Machine is deleted; a replacement gets the desired configuration"))
	})
	t.Run("When all nodes are updated, it should report the version and retire the previous configuration", func(*testing.T) {
		says(hyperv1.NodePoolUpgradeInProgressFalseAnnotation, "")
		says(hyperv1.NodePoolCurrentConfigVersionAnnotation, target)
		s.Expect(g.idle()).To(BeTrue())
		s.Expect(s.pool().Status.Version).To(Equal("1.36.4"))
		s.Expect(s.secret("token-" + fixture.PoolName + "-" + was).Annotations).To(HaveKey(hyperv1.IgnitionServerTokenExpirationTimestampAnnotation))
		gone := s.gone(&corev1.Secret{}, client.ObjectKey{Namespace: s.hosted(), Name: "user-data-" + fixture.PoolName + "-" + was})
		s.Expect(gone).To(BeTrue())
		s.Expect(g.behind()).To(Equal(machines))
	})
}

var errRefused = scopetest.ErrRefused

// refusing returns a client that cannot write MachineSets.
func refusing(c client.WithWatch) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			if _, is := obj.(*clusterv1.MachineSet); is {
				return errRefused
			}
			return c.Update(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if _, is := obj.(*clusterv1.MachineSet); is {
				return errRefused
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
	})
}
