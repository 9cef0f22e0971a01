// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope/scopetest"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/hypershift-operator/platform/none"
	"github.com/openshift/hypershift/support/condition"
)

func TestRolloutStrategy(t *testing.T) {
	surge, unavailable := intstr.FromInt32(3), intstr.FromString("25%")
	limits := &hyperv1.RollingUpdate{MaxSurge: &surge, MaxUnavailable: &unavailable}
	for _, tc := range []struct {
		name string
		pool hyperv1.ReplaceUpgrade
		want clusterv1.MachineDeploymentRolloutStrategy
	}{
		{"When a rolling update has limits, it should set both", hyperv1.ReplaceUpgrade{Strategy: hyperv1.UpgradeStrategyRollingUpdate, RollingUpdate: limits},
			clusterv1.MachineDeploymentRolloutStrategy{Type: clusterv1.RollingUpdateMachineDeploymentStrategyType,
				RollingUpdate: clusterv1.MachineDeploymentRolloutStrategyRollingUpdate{MaxSurge: &surge, MaxUnavailable: &unavailable}}},
		{"When a rolling update has no limits, it should use Cluster API's defaults", hyperv1.ReplaceUpgrade{Strategy: hyperv1.UpgradeStrategyRollingUpdate},
			clusterv1.MachineDeploymentRolloutStrategy{Type: clusterv1.RollingUpdateMachineDeploymentStrategyType}},
		{"When the strategy is OnDelete, it should set no limits", hyperv1.ReplaceUpgrade{Strategy: hyperv1.UpgradeStrategyOnDelete, RollingUpdate: limits},
			clusterv1.MachineDeploymentRolloutStrategy{Type: clusterv1.OnDeleteMachineDeploymentStrategyType}},
	} {
		t.Run(tc.name, func(t *testing.T) { NewWithT(t).Expect(rolloutStrategy(&tc.pool)).To(Equal(tc.want)) })
	}
}

// TestMachineDeployment checks which settings of a pool reach Cluster API.
func TestMachineDeployment(t *testing.T) {
	s := newWorld(t, fixture.Start(t), "limits")
	s.ready(nil)
	pool := fixture.NodePool(s.namespace)
	surge, unavailable := intstr.FromInt32(2), intstr.FromInt32(1)
	pool.Spec.Management.Replace = &hyperv1.ReplaceUpgrade{Strategy: hyperv1.UpgradeStrategyRollingUpdate,
		RollingUpdate: &hyperv1.RollingUpdate{MaxSurge: &surge, MaxUnavailable: &unavailable}}
	pool.Spec.NodeDrainTimeout, pool.Spec.NodeVolumeDetachTimeout = &metav1.Duration{Duration: 90e9}, &metav1.Duration{Duration: 60e9}
	fixture.Create(t, s.client, pool)
	s.mustPass()
	md := s.deployment()
	t.Run("When a pool limits its rolling update, it should set the limits in the MachineDeployment", func(t *testing.T) {
		NewWithT(t).Expect(md.Spec.Rollout.Strategy.RollingUpdate.MaxSurge).To(HaveValue(Equal(surge)))
		NewWithT(t).Expect(md.Spec.Rollout.Strategy.RollingUpdate.MaxUnavailable).To(HaveValue(Equal(unavailable)))
	})
	t.Run("When a pool limits node drain and volume detach, it should set both timeouts for its machines", func(t *testing.T) {
		NewWithT(t).Expect(md.Spec.Template.Spec.Deletion.NodeDrainTimeoutSeconds).To(HaveValue(BeEquivalentTo(90)))
		NewWithT(t).Expect(md.Spec.Template.Spec.Deletion.NodeVolumeDetachTimeoutSeconds).To(HaveValue(BeEquivalentTo(60)))
	})
	t.Run("When the MachineDeployment is created, it should carry the pool's selector and the cluster label", func(t *testing.T) {
		name := (&scope.Scope{HC: &hyperv1.HostedCluster{Spec: hyperv1.HostedClusterSpec{InfraID: "demo-abcde"}}, Pool: pool}).ResourcesName()
		NewWithT(t).Expect(md.Spec.Selector.MatchLabels).To(HaveKeyWithValue(name, name))
		NewWithT(t).Expect(md.Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, "demo-abcde"))
		NewWithT(t).Expect(md.Spec.Template.Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, "demo-abcde"))
	})
}

func TestTemplatesInUse(t *testing.T) {
	s := newWorld(t, fixture.Start(t), "templates")
	s.ready(nil)
	fixture.Create(t, s.client, fixture.NodePool(s.namespace))
	s.mustPass()
	first := s.templates()[0].Name
	md := s.deployment()
	old := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.hosted(), Name: "old"}, Spec: clusterv1.MachineSetSpec{
		ClusterName: md.Spec.ClusterName, Replicas: ptr.To[int32](1), Selector: md.Spec.Selector, Template: md.Spec.Template}}
	stranger := &infrav1.MaasMachineTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: s.hosted(), Name: "strangers",
		Annotations: map[string]string{hyperv1.NodePoolAnnotation: s.namespace + "/another"}}, Spec: s.templates()[0].Spec}
	fixture.Create(t, s.client, old, stranger)
	s.change(func(p *hyperv1.NodePool) { p.Spec.Platform.MAAS.Image = "custom/another" })
	s.mustPass()
	names := func() (names []string) {
		for _, template := range s.templates() {
			names = append(names, template.Name)
		}
		slices.Sort(names)
		return names
	}
	t.Run("When a MachineSet still uses a template, it should keep the template", func(t *testing.T) {
		NewWithT(t).Expect(names()).To(And(HaveLen(3), ContainElement(first)))
	})
	t.Run("When no MachineSet uses a template, it should delete it and keep templates of other pools", func(t *testing.T) {
		NewWithT(t).Expect(s.client.Delete(t.Context(), old)).To(Succeed())
		s.mustPass()
		NewWithT(t).Expect(names()).To(And(HaveLen(2), Not(ContainElement(first)), ContainElement("strangers")))
	})
}

// reporter is the MAAS platform with conditions about its machines.
type reporter struct {
	platform.Platform
	told *[]string
}

func (r reporter) MachineConditions(machines []client.Object) []metav1.Condition {
	for _, m := range machines {
		*r.told = append(*r.told, m.GetName())
	}
	return []metav1.Condition{{Type: "Told", Status: metav1.ConditionTrue}}
}

// behind returns the MaasMachine of a machine. With a reason, it is not ready.
func behind(name, reason string) *infrav1.MaasMachine {
	m := &infrav1.MaasMachine{ObjectMeta: inHosted(name)}
	if reason != "" {
		m.Status.Conditions = []metav1.Condition{condition.False("Ready", reason, "in MAAS's words")}
	}
	return m
}

// seen sets a machine's conditions, and changes the name of its MaasMachine.
func seen(conditions ...metav1.Condition) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) {
		m.Spec.InfrastructureRef.Name = "maas-" + m.Name
		m.Status.Conditions = append(m.Status.Conditions, conditions...)
	}
}

func TestReportMachines(t *testing.T) {
	const ready, healthy, pool = hyperv1.NodePoolAllMachinesReadyConditionType, hyperv1.NodePoolAllNodesHealthyConditionType, hyperv1.NodePoolReadyConditionType
	isReady, isHealthy := condition.True(clusterv1.MachineReadyCondition, "Ready", ""), condition.True(clusterv1.MachineNodeHealthyCondition, "Healthy", "")
	elsewhere := behind("maas-a", "Elsewhere")
	elsewhere.Namespace = "elsewhere"
	for name, test := range map[string]struct {
		machines             []*clusterv1.Machine
		ready, healthy, pool string
		count                int32
		told                 []string
	}{
		"there are no machines": {nil, "False/NotFound: There are no machines", "False/NotFound: There are no machines", "False/WaitingForMachines: 0 of 2 machines are available", 0, nil},
		"all machines are being deleted": {[]*clusterv1.Machine{scopetest.Machine("a", "wanted", scopetest.Joined, scopetest.Leaving, seen())}, "False/NotFound: There are no machines", "False/NotFound: There are no machines",
			"False/WaitingForMachines: 0 of 2 machines are available", 0, nil},
		"all machines are available": {[]*clusterv1.Machine{scopetest.Machine("a", "wanted", scopetest.Joined, seen(isReady, isHealthy)), scopetest.Machine("c", "wanted", scopetest.Joined, seen(isReady, isHealthy))},
			"True/AsExpected: " + hyperv1.AllIsWellMessage, "True/AsExpected: " + hyperv1.AllIsWellMessage, "True/AsExpected: 2 of 2 machines are available", 2, []string{"maas-a", "maas-c"}},
		"one machine is not ready": {[]*clusterv1.Machine{scopetest.Machine("a", "wanted", scopetest.Joined, seen(isReady, isHealthy)), scopetest.Machine("b", "wanted", seen(condition.False(clusterv1.MachineReadyCondition, "NotReady", "no")))},
			"False/NoCapacity: Machine b: in MAAS's words", "False/WaitingForNode: Machine b: Cluster API has not checked the machine yet",
			"False/NoCapacity: 1 of 2 machines are available. Machine b: in MAAS's words", 1, []string{"maas-a", "maas-b"}},
		"only Cluster API has not checked the machine": {[]*clusterv1.Machine{scopetest.Machine("a", "wanted", seen(condition.False(clusterv1.MachineNodeHealthyCondition, "", "")))},
			"False/WaitingForMachine: Machine a: Cluster API has not checked the machine yet", "False/WaitingForNode: Machine a: WaitingForNode",
			"False/WaitingForMachine: 0 of 2 machines are available. Machine a: Cluster API has not checked the machine yet", 0, []string{"maas-a"}},
		"the MaasMachine does not exist": {[]*clusterv1.Machine{scopetest.Machine("d", "wanted", scopetest.Joined, seen(isReady, isHealthy))},
			"True/AsExpected: " + hyperv1.AllIsWellMessage, "True/AsExpected: " + hyperv1.AllIsWellMessage, "False/WaitingForMachines: 1 of 2 machines are available", 1, nil},
	} {
		t.Run("When "+name+", the conditions should report it", func(t *testing.T) {
			g, s, told := NewWithT(t), onMAAS(pass(test.machines...)), []string(nil)
			s.Platform = reporter{s.Platform, &told}
			result, err := on(nil, behind("maas-a", ""), behind("maas-b", "NoCapacity"), behind("maas-c", ""), elsewhere).reportMachines(t.Context(), s)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(result.IsZero()).To(BeTrue())
			g.Expect(s.says(ready)).To(Equal(test.ready))
			g.Expect(s.says(healthy)).To(Equal(test.healthy))
			g.Expect(s.says(pool)).To(Equal(test.pool))
			g.Expect(s.replicas).To(HaveValue(Equal(test.count)))
			g.Expect(told).To(Equal(test.told))
			g.Expect(s.says("Told") != "").To(Equal(test.told != nil))
		})
	}
}

func TestReportMachinesElsewhere(t *testing.T) {
	t.Run("When there are no machines, it should list no platform machines", func(t *testing.T) {
		_, err := on(refusals{"list MaasMachineList"}).reportMachines(t.Context(), onMAAS(pass()))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	})
	t.Run("When the platform's machines cannot be listed, it should return an error and set no condition", func(t *testing.T) {
		g, s := NewWithT(t), onMAAS(pass(scopetest.Machine("a", "wanted")))
		_, err := on(refusals{"list MaasMachineList"}).reportMachines(t.Context(), s)
		g.Expect(err).To(MatchError(errRefused))
		g.Expect(s.Conditions).To(BeEmpty())
	})
	t.Run("When the user brings the machines, it should not count them", func(t *testing.T) {
		g, s := NewWithT(t), pass(scopetest.Machine("a", "wanted", scopetest.Joined))
		s.Platform = none.Platform{}
		_, err := on(nil).reportMachines(t.Context(), s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.replicas).To(BeNil())
		g.Expect(s.Infra).To(BeNil())
		g.Expect(s.says(hyperv1.NodePoolReadyConditionType)).To(BeEmpty())
	})
}

func TestNotTrue(t *testing.T) {
	reason, message := notTrue(machineWith("m", condition.True("T", "R", "well")), "T", "otherwise")
	g := NewWithT(t)
	g.Expect(reason).To(BeEmpty())
	g.Expect(message).To(BeEmpty())
}

func TestBucketsInOrder(t *testing.T) {
	b := buckets{}
	b.add("B", "m2", "x")
	b.add("B", "m1", "")
	b.add("A", "m3", strings.Repeat("y", 2*maxBucketMessage))
	c := b.condition("T")
	g := NewWithT(t)
	g.Expect(c.Reason).To(Equal("A,B"))
	first, rest, _ := strings.Cut(c.Message, "\n")
	g.Expect(first).To(And(HavePrefix("Machine m3: yyy"), HaveLen(1000)), "one reason leaves room for others")
	g.Expect(rest).To(Equal("Machine m1: B\nMachine m2: x"))
}

// TestNodesInfoCounts checks which machines count as nodes, and which of the nodes count as ready.
func TestNodesInfoCounts(t *testing.T) {
	known := func(m *clusterv1.Machine) { m.Status.NodeInfo = &corev1.NodeSystemInfo{KubeletVersion: "v1"} }
	healthy := func(m *clusterv1.Machine) {
		m.Status.Conditions = append(m.Status.Conditions, condition.True(clusterv1.MachineNodeHealthyCondition, "Healthy", ""))
	}
	for name, test := range map[string]struct {
		machine        *clusterv1.Machine
		ready, unready int32
	}{
		"the node is healthy":                  {scopetest.Machine("a", "wanted", scopetest.Joined, known, healthy), 1, 0},
		"the node was not checked":             {scopetest.Machine("a", "wanted", scopetest.Joined, known), 0, 1},
		"the node's details are not known yet": {scopetest.Machine("a", "wanted", scopetest.Joined), 0, 0},
		"the machine has no node reference":    {scopetest.Machine("a", "wanted", known), 0, 0},
	} {
		t.Run("When "+name+", it should count the node as ready, as unready or not at all", func(t *testing.T) {
			g, info := NewWithT(t), nodesInfo([]*clusterv1.Machine{test.machine}, "")
			if test.ready+test.unready == 0 {
				g.Expect(info).To(BeNil())
				return
			}
			g.Expect(info.NodeVersions).To(ConsistOf(hyperv1.NodeVersion{OCPVersion: "1.36.3", KubeletVersion: "v1", ReadyNodeCount: &test.ready, UnreadyNodeCount: &test.unready}))
		})
	}
}
