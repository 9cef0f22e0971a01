// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// start creates a pool whose cluster is ready, with its MachineDeployment.
func (s *world) start(mutate func(*hyperv1.NodePool)) {
	s.t.Helper()
	s.ready(nil)
	pool := fixture.NodePool(s.namespace)
	if mutate != nil {
		mutate(pool)
	}
	fixture.Create(s.t, s.client, pool)
	s.mustPass()
}

func (s *world) gone(obj client.Object, key client.ObjectKey) bool {
	s.t.Helper()
	err := s.client.Get(s.t.Context(), key, obj)
	s.Expect(client.IgnoreNotFound(err)).To(Succeed())
	return apierrors.IsNotFound(err)
}

// hold sets or removes Cluster API's finalizer on the MachineDeployment, as its controller does.
func (s *world) hold(held bool) {
	s.t.Helper()
	md := s.deployment()
	md.Finalizers = nil
	if held {
		md.Finalizers = []string{clusterv1.MachineDeploymentFinalizer}
	}
	s.Expect(s.client.Update(s.t.Context(), md)).To(Succeed())
}

// deletions tests disruptions of a pool's deletion.
func deletions(t *testing.T, c client.WithWatch) {
	t.Run("When a paused NodePool is deleted, it should resume its MachineDeployment, so that it can be deleted", func(t *testing.T) {
		s := newWorld(t, c, "paused-deleted")
		s.start(nil)
		s.change(func(p *hyperv1.NodePool) { p.Spec.PausedUntil = ptr.To("true") })
		s.mustPass()
		s.Expect(s.deployment().Annotations).To(HaveKey(clusterv1.PausedAnnotation))
		s.hold(true)
		s.Expect(c.Delete(t.Context(), s.pool())).To(Succeed())
		_, err := s.pass()
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(s.deployment().Annotations).NotTo(HaveKey(clusterv1.PausedAnnotation))
		s.Expect(s.deployment().DeletionTimestamp).NotTo(BeNil())
	})

	t.Run("When the MachineDeployment still exists, the NodePool should wait for it and keep its user-data", func(t *testing.T) {
		s := newWorld(t, c, "paused-deleted")
		result, err := s.pass()
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(result.RequeueAfter).NotTo(BeZero())
		s.Expect(s.condition("Ready").Message).To(Equal("Waiting for Cluster API to delete MachineDeployment paused-deleted-demo/demo"))
		s.secret(*s.deployment().Spec.Template.Spec.Bootstrap.DataSecretName)
		s.hold(false)
		_, err = s.pass()
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(s.gone(&hyperv1.NodePool{}, s.key())).To(BeTrue())
	})

	t.Run("When the MachineSet still exists, a NodePool that is updated in place should wait for it", func(t *testing.T) {
		s := newWorld(t, c, "set-deleted")
		s.start(func(p *hyperv1.NodePool) { p.Spec.Management.UpgradeType = hyperv1.UpgradeTypeInPlace })
		set := look(s, &clusterv1.MachineSet{}, fixture.PoolName)
		set.Finalizers = []string{clusterv1.MachineSetFinalizer}
		s.Expect(c.Update(t.Context(), set)).To(Succeed())
		s.Expect(c.Delete(t.Context(), s.pool())).To(Succeed())
		result, err := s.pass()
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(result.RequeueAfter).NotTo(BeZero())
		s.Expect(s.condition("Ready").Message).To(Equal("Waiting for Cluster API to delete MachineSet set-deleted-demo/demo"))
		look(s, set, fixture.PoolName)
		set.Finalizers = nil
		s.Expect(c.Update(t.Context(), set)).To(Succeed())
		_, err = s.pass()
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(s.gone(&hyperv1.NodePool{}, s.key())).To(BeTrue())
	})

	t.Run("When the cluster is paused, a deleted NodePool should report that it waits for the end of the pause", func(t *testing.T) {
		s := newWorld(t, c, "cluster-paused")
		s.start(nil)
		hc := &hyperv1.HostedCluster{}
		s.Expect(c.Get(t.Context(), ctrlKey(s.namespace, fixture.ClusterName), hc)).To(Succeed())
		hc.Spec.PausedUntil = ptr.To("true")
		s.Expect(c.Update(t.Context(), hc)).To(Succeed())
		s.hold(true)
		s.Expect(c.Delete(t.Context(), s.pool())).To(Succeed())
		_, err := s.pass()
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(s.condition("Ready").Message).To(ContainSubstring("HostedCluster demo is paused"))
	})

	t.Run("When the hosted namespace belongs to another cluster, a deleted NodePool should keep the machines there", func(t *testing.T) {
		s := newWorld(t, c, "shared")
		s.start(nil)
		md := s.deployment()
		md.Annotations[hyperv1.NodePoolAnnotation] = "shared-by/demo"
		s.Expect(c.Update(t.Context(), md)).To(Succeed())
		s.Expect(c.Delete(t.Context(), s.pool())).To(Succeed())
		_, err := s.pass()
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(s.gone(&hyperv1.NodePool{}, s.key())).To(BeTrue())
		s.Expect(s.deployment().DeletionTimestamp).To(BeNil())
	})
}

// disruptions tests what users and outages do to an existing pool.
func disruptions(t *testing.T, c client.WithWatch) {
	t.Run("When the release cannot be read, it should still pause and resume the MachineDeployment", func(t *testing.T) {
		s := newWorld(t, c, "pause-outage")
		s.start(nil)
		s.Releases = fixture.Releases{}
		s.change(func(p *hyperv1.NodePool) { p.Spec.PausedUntil = ptr.To("2026-11-20T12:30:00Z") })
		result, err := s.pass()
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(result.RequeueAfter).NotTo(BeZero())
		s.Expect(s.deployment().Annotations).To(HaveKey(clusterv1.PausedAnnotation))
		s.Expect(s.condition("ReconciliationActive").Status).To(Equal(corev1.ConditionFalse))
		s.clock.Step(31 * 60 * 1e9)
		s.mustPass()
		s.Expect(s.deployment().Annotations).NotTo(HaveKey(clusterv1.PausedAnnotation))
		s.Expect(s.condition("ReconciliationActive")).To(And(HaveField("Status", corev1.ConditionTrue), HaveField("Reason", "ReconciliationActive")))
	})

	t.Run("When the NodePool is paused, a change should wait until the pause ends", func(t *testing.T) {
		s := newWorld(t, c, "pause-change")
		s.start(nil)
		s.change(func(p *hyperv1.NodePool) { p.Spec.PausedUntil, p.Spec.Replicas = ptr.To("true"), ptr.To[int32](5) })
		s.mustPass()
		s.Expect(s.deployment().Spec.Replicas).To(HaveValue(BeEquivalentTo(2)))
		s.change(func(p *hyperv1.NodePool) { p.Spec.PausedUntil = nil })
		s.mustPass()
		s.Expect(s.deployment().Spec.Replicas).To(HaveValue(BeEquivalentTo(5)))
	})

	t.Run("When the cluster was restored with another UID, it should update the owner reference of the NodePool", func(t *testing.T) {
		s := newWorld(t, c, "restored")
		s.start(nil)
		pool := s.pool()
		current := pool.OwnerReferences[0].UID
		pool.OwnerReferences[0].UID = types.UID("of-the-cluster-that-was-backed-up")
		s.Expect(c.Update(t.Context(), pool)).To(Succeed())
		s.mustPass()
		s.Expect(s.pool().OwnerReferences).To(ConsistOf(HaveField("UID", current)))
	})

	t.Run("When a user removes data from a token Secret, it should be restored with the same token", func(t *testing.T) {
		s := newWorld(t, c, "token")
		s.start(nil)
		userData := *s.deployment().Spec.Template.Spec.Bootstrap.DataSecretName
		token := s.tokenOf(userData)
		whole := token.DeepCopy()
		token.Data = map[string][]byte{"token": whole.Data["token"]}
		s.Expect(c.Update(t.Context(), token)).To(Succeed())
		s.mustPass()
		s.Expect(s.tokenOf(userData).Data).To(Equal(whole.Data))
	})

	t.Run("When both Secrets of a configuration are deleted, they should be created again with the same names", func(t *testing.T) {
		s := newWorld(t, c, "token")
		userData := *s.deployment().Spec.Template.Spec.Bootstrap.DataSecretName
		s.Expect(c.Delete(t.Context(), s.tokenOf(userData))).To(Succeed())
		s.Expect(c.Delete(t.Context(), s.secret(userData))).To(Succeed())
		s.mustPass()
		s.Expect(s.tokenOf(userData).Data).To(HaveKey("token"))
		s.Expect(s.secret(userData).Data).To(HaveKey("value"))
		s.Expect(*s.deployment().Spec.Template.Spec.Bootstrap.DataSecretName).To(Equal(userData))
	})

	t.Run("When the API server refuses to create an object, the NodePool should report it until it succeeds", func(t *testing.T) {
		s := newWorld(t, c, "refused")
		s.start(nil)
		s.Expect(c.Delete(t.Context(), s.deployment())).To(Succeed())
		s.Reconciler.Client = interceptor.NewClient(c, interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
				if _, is := obj.(*clusterv1.MachineDeployment); is {
					return apierrors.NewInvalid(clusterv1.GroupVersion.WithKind("MachineDeployment").GroupKind(), obj.GetName(), nil)
				}
				return c.Create(ctx, obj, opts...)
			},
		})
		_, err := s.pass()
		s.Expect(err).To(HaveOccurred())
		failed := s.condition(string(hyperv1.ReconciliationSucceeded))
		s.Expect(failed.Status).To(Equal(corev1.ConditionFalse))
		s.Expect(failed.Severity).To(Equal("Warning"))
		s.Expect(failed.Message).To(ContainSubstring("creating MachineDeployment refused-demo/demo"))
		s.Reconciler.Client = c
		s.mustPass()
		s.Expect(scope.Find(s.pool().Status.Conditions, string(hyperv1.ReconciliationSucceeded))).To(BeNil())
	})
}

func TestReportMachinesThatGo(t *testing.T) {
	g := NewWithT(t)
	now := metav1.Now()
	s := scopeWith()
	s.Machines = []*clusterv1.Machine{{ObjectMeta: metav1.ObjectMeta{Name: "going", DeletionTimestamp: &now}}}
	s.reportTroubles()
	g.Expect(s.Conditions[hyperv1.NodePoolAllMachinesReadyConditionType].Reason).To(Equal(hyperv1.NodePoolNotFoundReason),
		"a pool whose last machine is going has none, and is not well for it")
}

// TestPausedPool checks that a pool that is created paused reports its problems, and that no object is created.
func TestPausedPool(t *testing.T) {
	c := fixture.Start(t)
	s := newWorld(t, c, "paused-from-birth")
	s.start(func(p *hyperv1.NodePool) {
		p.Spec.PausedUntil, p.Spec.Management.AutoRepair = ptr.To("true"), false
		p.Spec.TuningConfig = []corev1.LocalObjectReference{{Name: "not-there"}}
	})
	told := map[string]corev1.ConditionStatus{}
	for _, c := range s.pool().Status.Conditions {
		told[c.Type] = c.Status
	}
	s.Expect(told).To(Equal(map[string]corev1.ConditionStatus{
		"AllFieldsHonored": "False", "AllMachinesReady": "False", "AllNodesHealthy": "False", "AutorepairEnabled": "False", "AutoscalingEnabled": "False",
		"Ready": "False", "ReconciliationActive": "False", "SupportedVersionSkew": "True", "UpdateManagementEnabled": "True", "ValidArchPlatform": "True",
		"ValidPlatformConfig": "True", "ValidReleaseImage": "True",
	}))
	s.Expect(s.gone(&clusterv1.MachineDeployment{}, ctrlKey(s.hosted(), fixture.PoolName))).To(BeTrue())
}
