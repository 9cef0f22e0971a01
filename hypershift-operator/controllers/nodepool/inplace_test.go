// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"

	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// laterOCP is a newer release than the fixture's.
const laterOCP = "registry.example/ocp-release:4.20.2"

// inPlace creates a pool of ready nodes, whose cluster was already updated to a later release.
func inPlace(t *testing.T, c client.WithWatch, name string, nodes int32, mutate func(*hyperv1.NodePool)) *guest {
	t.Helper()
	s := newWorld(t, c, name)
	payloads := fixture.Payloads()
	payloads[laterOCP] = releaseinfo.New(laterOCP, releaseinfo.Payload{
		Version: "4.20.2", Distribution: releaseinfo.OpenShift, Architecture: releaseinfo.ArchitectureMulti,
		Components: map[string]string{"hypershift": fixture.OCPOperator, "haproxy-router": "registry.example/ocp-haproxy:1"},
	})
	s.Releases = payloads
	s.openShift(hyperv1.UpgradeTypeInPlace)
	s.coreConfigs()
	hc := &hyperv1.HostedCluster{}
	s.Expect(c.Get(t.Context(), ctrlKey(name, fixture.ClusterName), hc)).To(Succeed())
	hc.Spec.Release.Image = laterOCP
	s.Expect(c.Update(t.Context(), hc)).To(Succeed())
	s.change(func(p *hyperv1.NodePool) {
		p.Spec.Replicas = ptr.To(nodes)
		if mutate != nil {
			mutate(p)
		}
	})
	g := newGuest(s)
	s.mustPass()
	g.scale()
	g.join()
	s.mustPass()
	s.Expect(s.pool().Status.Version).To(Equal("4.20.1"))
	s.Expect(g.idle()).To(BeTrue())
	return g
}

func (g *guest) upgradeRelease() {
	g.t.Helper()
	g.change(func(p *hyperv1.NodePool) { p.Spec.Release.Image = laterOCP })
}

// configure sets a KubeletConfig by name, replacing the previous one.
func (g *guest) configure(name string) {
	g.t.Helper()
	ref := g.configMap(name, "config", "apiVersion: machineconfiguration.openshift.io/v1\nkind: KubeletConfig\nmetadata: {name: "+name+"}\n")
	g.change(func(p *hyperv1.NodePool) { p.Spec.Config = []corev1.LocalObjectReference{ref} })
}

func TestInPlace(t *testing.T) {
	c := fixture.Start(t)

	t.Run("When the release changes, it should update nodes one at a time and replace no MAAS machine", func(t *testing.T) {
		g := inPlace(t, c, "inplace-release", 3, nil)
		before := g.behind()
		g.upgradeRelease()
		g.until("the second node", func() bool { return g.updated() == 2 })
		g.mustPass()
		g.Expect(g.condition("UpdatingVersion").Status).To(Equal(corev1.ConditionTrue))
		g.Expect(g.condition("UpdatingVersion").Message).To(MatchRegexp(`^Total Nodes: 3. Upgraded: [12]$`))
		g.Expect(g.condition("UpdatingConfig").Status).To(Equal(corev1.ConditionFalse), "no configuration changed")
		g.Expect(g.pool().Status.Version).To(Equal("4.20.1"), "until all nodes have it")
		g.until("the end of the update", g.idle)
		g.Expect(g.pool().Status.Version).To(Equal("4.20.2"))
		g.Expect(g.pool().Annotations).To(HaveKeyWithValue(hyperv1.NodePoolCurrentConfigVersionAnnotation, g.set().Annotations[hyperv1.NodePoolTargetConfigVersionAnnotation]))
		g.Expect(g.updated()).To(Equal(3))
		g.Expect(g.busiest).To(Equal(1))
		g.Expect(g.behind()).To(Equal(before))
	})

	t.Run("When the configuration changes, it should report a configuration update, not a version update", func(t *testing.T) {
		g := inPlace(t, c, "inplace-config", 1, nil)
		before := g.behind()
		g.configure("pods")
		g.step()
		g.mustPass()
		g.Expect(g.condition("UpdatingConfig").Status).To(Equal(corev1.ConditionTrue))
		g.Expect(g.condition("UpdatingVersion").Status).To(Equal(corev1.ConditionFalse))
		g.until("the end of the update", g.idle)
		g.Expect(g.behind()).To(Equal(before))

		g.mustPass()
		set := g.set()
		set.Spec.Selector.MatchLabels[clusterv1.ClusterNameLabel] = set.Spec.ClusterName
		g.Expect(c.Update(t.Context(), set)).To(Succeed(), "Cluster API's controller does this")
		counted := fixture.NewFaulty(c)
		g.Reconciler.Client = counted
		g.mustPass()
		g.Expect(counted.Log).To(BeEmpty(), "a settled pool writes nothing")
	})

	t.Run("When a node cannot be updated, it should report why and update no other, and go on after recovery", func(t *testing.T) {
		g := inPlace(t, c, "inplace-broken", 2, nil)
		g.broken["inplace-broken-0"] = "unexpected on-disk state: /etc/x"
		g.upgradeRelease()
		g.until("the failure", func() bool {
			return g.condition("UpdatingVersion").Reason == hyperv1.NodePoolInplaceUpgradeFailedReason
		})
		failed := g.condition("UpdatingVersion")
		g.Expect(failed.Status).To(Equal(corev1.ConditionFalse))
		g.Expect(failed.Severity).To(Equal("Warning"))
		g.Expect(failed.Message).To(And(HavePrefix("Node inplace-broken-0 in nodepool degraded: unexpected on-disk state: /etc/x. "), ContainSubstring("or its Machine is deleted")))
		for range 5 {
			g.step()
		}
		g.Expect(g.updated()).To(BeZero())
		g.Expect(g.pool().Status.Version).To(Equal("4.20.1"))
		g.broken = nil
		for _, node := range g.nodes() {
			g.write(node, map[string]string{daemonState: ""})
		}
		g.until("the end of the update", g.idle)
		g.Expect(g.pool().Status.Version).To(Equal("4.20.2"))
	})

	t.Run("When the pool is scaled up during an update, new machines should get the new release and be counted", func(t *testing.T) {
		g := inPlace(t, c, "inplace-scaled", 2, nil)
		g.upgradeRelease()
		g.until("the first node", func() bool { return g.updated() == 1 })
		g.change(func(p *hyperv1.NodePool) { p.Spec.Replicas = ptr.To[int32](3) })
		g.mustPass()
		g.scale()
		newest := look(g.world, g.machines()[2].DeepCopy(), "inplace-scaled-2")
		g.Expect(newest.Spec.Version).To(Equal("4.20.2"))
		g.Expect(*newest.Spec.Bootstrap.DataSecretName).To(HaveSuffix(g.set().Annotations[hyperv1.NodePoolTargetConfigVersionAnnotation]))
		g.until("the two nodes", func() bool { return g.updated() == 2 })
		g.mustPass()
		g.Expect(g.condition("UpdatingVersion").Status).To(Equal(corev1.ConditionTrue), "the third has no node yet")
		g.join()
		g.until("the end of the update", g.idle)
		g.Expect(g.pool().Status.Replicas).To(BeEquivalentTo(3))
		g.Expect(g.pool().Status.Version).To(Equal("4.20.2"))
	})

	t.Run("When the configuration changes during an update, all nodes should get the last one, one at a time", func(t *testing.T) {
		g := inPlace(t, c, "inplace-twice", 3, nil)
		before := g.behind()
		g.configure("first")
		g.until("the first node", func() bool { return g.updated() == 1 })
		first := g.set().Annotations[hyperv1.NodePoolTargetConfigVersionAnnotation]
		g.configure("second")
		g.until("the end of the updates", g.idle)
		g.Expect(g.set().Annotations[hyperv1.NodePoolTargetConfigVersionAnnotation]).NotTo(Equal(first))
		g.Expect(g.updated()).To(Equal(3))
		g.Expect(g.busiest).To(Equal(1))
		g.Expect(g.behind()).To(Equal(before))
	})

	t.Run("When a change is reverted during an update, it should also revert nodes that were updated", func(t *testing.T) {
		g := inPlace(t, c, "inplace-back", 2, nil)
		was := g.set().Annotations[hyperv1.NodePoolTargetConfigVersionAnnotation]
		g.configure("wrong")
		g.until("the first node", func() bool { return g.updated() == 1 })
		g.change(func(p *hyperv1.NodePool) { p.Spec.Config = nil })
		g.step()
		g.Expect(g.condition("UpdatingConfig").Status).To(Equal(corev1.ConditionTrue))
		g.until("the end of the update", g.idle)
		g.Expect(g.set().Annotations[hyperv1.NodePoolTargetConfigVersionAnnotation]).To(Equal(was))
		g.Expect(g.updated()).To(Equal(2))
	})
}

// TestInPlaceLatecomers checks that a machine is updated whose installation takes longer than the update of the
// others.
func TestInPlaceLatecomers(t *testing.T) {
	c := fixture.Start(t)
	g := inPlace(t, c, "inplace-late", 1, nil)
	g.change(func(p *hyperv1.NodePool) { p.Spec.Replicas = ptr.To[int32](2) })
	g.mustPass()
	g.scale()
	g.upgradeRelease()
	g.until("the node that there is", func() bool { return g.updated() == 1 })
	for range 3 {
		g.step()
	}
	t.Run("When the upgrader finishes before a machine joins, the update should stay in progress", func(t *testing.T) {
		NewWithT(t).Expect(g.condition("UpdatingVersion").Status).To(Equal(corev1.ConditionTrue))
		NewWithT(t).Expect(g.condition("UpdatingVersion").Message).To(Equal(
			"Machine inplace-late-1 is joining with the previous configuration; it is updated after it has joined"))
	})
	t.Run("When the late machine joins, it should be updated too", func(t *testing.T) {
		g.join()
		g.until("the end of the update", g.idle)
		NewWithT(t).Expect(g.updated()).To(Equal(2))
		NewWithT(t).Expect(g.pool().Status.Version).To(Equal("4.20.2"))
		for _, machine := range g.machines() {
			NewWithT(t).Expect(machine.Annotations).NotTo(HaveKey(latecomerAnnotation))
		}
	})
}

func TestMaxUnavailable(t *testing.T) {
	for name, tc := range map[string]struct {
		said  *intstr.IntOrString
		nodes int
		want  int
	}{
		"When no limit is set, it should update one node at a time":                         {nodes: 4, want: 1},
		"When the limit is a number, it should return that number":                          {said: ptr.To(intstr.FromInt32(3)), nodes: 4, want: 3},
		"When the limit is a percentage, it should return the rounded-down number of nodes": {said: ptr.To(intstr.FromString("70%")), nodes: 4, want: 2},
		"When the percentage is less than one node, it should return one":                   {said: ptr.To(intstr.FromString("10%")), nodes: 4, want: 1},
		"When the limit exceeds the nodes, it should return the number of nodes":            {said: ptr.To(intstr.FromInt32(5)), nodes: 2, want: 2},
		"When there is no node yet, it should return one":                                   {said: ptr.To(intstr.FromString("100%")), want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			pool := &hyperv1.NodePool{}
			if tc.said != nil {
				pool.Spec.Management.InPlace = &hyperv1.InPlaceUpgrade{MaxUnavailable: tc.said}
			}
			NewWithT(t).Expect(maxUnavailable(pool, 4, tc.nodes)).To(Equal(tc.want))
		})
	}
}

func TestInPlaceShare(t *testing.T) {
	t.Run("When maxUnavailable is a percentage, it should update at most that share of nodes at once", func(t *testing.T) {
		g := inPlace(t, fixture.Start(t), "inplace-share", 3, func(p *hyperv1.NodePool) {
			p.Spec.Management.InPlace = &hyperv1.InPlaceUpgrade{MaxUnavailable: ptr.To(intstr.FromString("70%"))}
		})
		g.upgradeRelease()
		g.until("the end of the update", g.idle)
		g.Expect(g.busiest).To(Equal(2))
		g.Expect(g.updated()).To(Equal(3))
	})
}
