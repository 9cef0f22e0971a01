// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope/scopetest"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/releaseinfo"
)

const (
	aims     = hyperv1.NodePoolTargetConfigVersionAnnotation
	has      = hyperv1.NodePoolCurrentConfigVersionAnnotation
	progress = hyperv1.NodePoolUpgradeInProgressTrueAnnotation
	failure  = hyperv1.NodePoolUpgradeInProgressFalseAnnotation
)

// updatedInPlace returns a scope of a pool with in-place updates, reconciled up to its machines.
func updatedInPlace(machines ...*clusterv1.Machine) *reconciliation {
	s := onMAAS(pass(machines...))
	s.HC.Spec.InfraID, s.userData = "demo-abcde", "user-data-demo-wanted"
	s.Pool.Spec.Management = hyperv1.NodePoolManagement{UpgradeType: hyperv1.UpgradeTypeInPlace}
	s.Pool.Spec.NodeLabels = map[string]string{"rack": "1"}
	s.Pool.Spec.Taints = []hyperv1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
	return s
}

// setOf returns the MachineSet of a pool with in-place updates.
func setOf(annotations ...string) *clusterv1.MachineSet {
	return &clusterv1.MachineSet{ObjectMeta: inHosted("demo", annotations...)}
}

// serving returns two available machines with the desired configuration.
func serving() []*clusterv1.Machine {
	return []*clusterv1.Machine{scopetest.Machine("a", "wanted", housed, scopetest.Joined), scopetest.Machine("b", "wanted", housed, scopetest.Joined)}
}

var template = clusterv1.ContractVersionedObjectReference{APIGroup: "g", Kind: "K", Name: "demo-1"}

func TestApplyMachineSet(t *testing.T) {
	g, s := NewWithT(t), updatedInPlace()
	r := on(nil, s.Pool.DeepCopy())
	g.Expect(r.applyMachineSet(t.Context(), s, template)).To(Succeed())
	ms, own := read(t, r, &clusterv1.MachineSet{}, "demo"), s.ResourcesName()
	want := clusterv1.MachineSetSpec{
		ClusterName: "demo-abcde", Replicas: ptr.To[int32](2),
		Selector: metav1.LabelSelector{MatchLabels: map[string]string{own: own, clusterv1.ClusterNameLabel: "demo-abcde"}},
		Template: clusterv1.MachineTemplateSpec{
			ObjectMeta: clusterv1.ObjectMeta{
				Labels: map[string]string{own: own, clusterv1.ClusterNameLabel: "demo-abcde", "managed.hypershift.openshift.io.rack": "1"},
				Annotations: map[string]string{hyperv1.NodePoolAnnotation: "clusters/demo",
					hyperv1.NodePoolTaintsAnnotation: `[{"key":"gpu","effect":"NoSchedule"}]`},
			},
			Spec: clusterv1.MachineSpec{ClusterName: "demo-abcde", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("user-data-demo-wanted")},
				InfrastructureRef: template, Version: "1.36.3"},
		},
	}
	if diff := cmp.Diff(want, ms.Spec); diff != "" {
		t.Errorf("the set (-want +got):\n%s", diff)
	}
	for key, value := range map[string]string{
		aims: "wanted", has: "wanted", hyperv1.NodePoolMaxUnavailableAnnotation: "1",
		hyperv1.NodePoolKubeletVersionAnnotation: "1.36.3", hyperv1.NodePoolAnnotation: "clusters/demo",
	} {
		g.Expect(ms.Annotations).To(HaveKeyWithValue(key, value))
	}
	g.Expect(ms.Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, "demo-abcde"))
	g.Expect(s.says(hyperv1.NodePoolReadyConditionType)).To(Equal("False/WaitingForMachines: 0 of 2 machines are available"))
	g.Expect(s.version).To(BeEmpty())
}

func TestApplyMachineSetMarksCurrent(t *testing.T) {
	g, s := NewWithT(t), updatedInPlace(serving()...)
	s.replicas = ptr.To[int32](2)
	r := on(nil, s.Pool.DeepCopy())
	g.Expect(r.applyMachineSet(t.Context(), s, template)).To(Succeed())
	g.Expect(s.version).To(Equal("1.36.3"))
	pool := &hyperv1.NodePool{}
	g.Expect(r.Client.Get(t.Context(), ctrlKey("clusters", "demo"), pool)).To(Succeed())
	g.Expect(pool.Annotations).To(HaveKeyWithValue(hyperv1.NodePoolCurrentConfigVersionAnnotation, "wanted"))
	g.Expect(pool.Annotations).To(HaveKeyWithValue(hyperv1.NodePoolPlatformMachineTemplateAnnotation, "demo-1"))
}

func TestApplyMachineSetRefused(t *testing.T) {
	for name, test := range map[string]struct {
		refused refusals
		machine *clusterv1.Machine
	}{
		"a late machine cannot be annotated":                               {refusals{"patch Machine"}, scopetest.Machine("c", "old", housed)},
		"the MachineSet cannot be read":                                    {refusals{"get MachineSet"}, nil},
		"the MachineSet cannot be created":                                 {refusals{"create MachineSet"}, nil},
		"the annotation of a machine that is up to date cannot be removed": {refusals{"patch Machine"}, scopetest.Machine("c", "wanted", housed, late)},
		"the current configuration cannot be recorded in the pool":         {refusals{"patch NodePool"}, nil},
	} {
		t.Run("When "+name+", it should return the error", func(t *testing.T) {
			g, machines, objects := NewWithT(t), serving(), []client.Object{fixture.NodePool("clusters")}
			if test.machine != nil {
				machines, objects = append(machines, test.machine), append(objects, test.machine.DeepCopy())
			}
			unmarked := test.machine != nil && test.machine.Annotations[latecomerAnnotation] == ""
			r := on(test.refused, objects...)
			g.Expect(r.applyMachineSet(t.Context(), updatedInPlace(machines...), template)).To(MatchError(errRefused))
			if unmarked {
				g.Expect(read(t, r, &clusterv1.MachineSet{}, "demo")).To(BeNil(), "the upgrader is told of nothing before")
			}
		})
	}
}

// TestLatecomers checks which machines are marked, and which marks are removed, depending on the MachineSet's current
// configuration.
func TestLatecomers(t *testing.T) {
	for name, test := range map[string]struct {
		has           string
		machine       *clusterv1.Machine
		marked, again bool
	}{
		"a machine is joining with another configuration, it should be marked":             {"old", scopetest.Machine("a", "old", housed), true, false},
		"a machine is joining with the desired configuration, it should not be marked":     {"old", scopetest.Machine("a", "wanted", housed), false, false},
		"a machine with another configuration has joined in time, it should not be marked": {"old", scopetest.Machine("a", "old", housed, scopetest.Joined), false, false},
		"a late machine has not joined, it should stay marked":                             {"wanted", scopetest.Machine("a", "old", housed, late), true, false},
		"a late machine has joined, the update should start again":                         {"wanted", scopetest.Machine("a", "old", housed, late, scopetest.Joined), false, true},
		"a late machine joins while others are being updated, it should stay marked":       {"old", scopetest.Machine("a", "old", housed, late, scopetest.Joined), true, false},
		"a late machine has the desired configuration, the mark should be removed":         {"wanted", scopetest.Machine("a", "wanted", housed, late), false, false},
	} {
		t.Run("When "+name, func(t *testing.T) {
			g := NewWithT(t)
			r := on(nil, fixture.NodePool("clusters"), test.machine.DeepCopy(), setOf(aims, "wanted", has, test.has))
			s := updatedInPlace(test.machine)
			g.Expect(r.applyMachineSet(t.Context(), s, template)).To(Succeed())
			g.Expect(read(t, r, &clusterv1.Machine{}, "a").Annotations[latecomerAnnotation]).To(Equal(map[bool]string{true: "true"}[test.marked]))
			g.Expect(read(t, r, &clusterv1.MachineSet{}, "demo").Annotations[has]).To(Equal(map[bool]string{true: "old", false: test.has}[test.again]))
		})
	}
}

func TestNameKubelet(t *testing.T) {
	versioned := releaseinfo.New("r", releaseinfo.Payload{Version: "2.0.0", Distribution: releaseinfo.Kubernetes, ComponentVersions: map[string]string{"kubernetes": "1.36.3"}})
	for name, test := range map[string]struct {
		release *releaseinfo.ReleaseImage
		want    string
	}{
		"names no Kubernetes version, the MachineSet should name the release's version": {fixture.Payloads()[fixture.ReleaseImage], "1.36.3"},
		"names its Kubernetes version, the MachineSet should name that version":         {versioned, "1.36.3"},
		"has its own upgrader, the MachineSet should name no version":                   {fixture.Payloads()[fixture.OCPImage], ""},
	} {
		t.Run("When a release "+name, func(t *testing.T) {
			s, ms := pass(), setOf()
			s.Release = test.release
			s.nameKubelet(ms)
			NewWithT(t).Expect(ms.Annotations[hyperv1.NodePoolKubeletVersionAnnotation]).To(Equal(test.want))
		})
	}
}

func TestMaxUnavailableOfNodes(t *testing.T) {
	share, number, word := intstr.FromString("50%"), intstr.FromInt32(3), intstr.FromString("many")
	for name, test := range map[string]struct {
		limit    *hyperv1.InPlaceUpgrade
		machines int32
		nodes    int
		want     int
	}{
		"inPlace is not set":                  {nil, 4, 4, 1},
		"no limit is set":                     {&hyperv1.InPlaceUpgrade{}, 4, 4, 1},
		"a number is set":                     {&hyperv1.InPlaceUpgrade{MaxUnavailable: &number}, 4, 4, 3},
		"the number exceeds the joined nodes": {&hyperv1.InPlaceUpgrade{MaxUnavailable: &number}, 4, 2, 2},
		"a percentage is set":                 {&hyperv1.InPlaceUpgrade{MaxUnavailable: &share}, 5, 5, 2},
		"a percentage of one machine is set":  {&hyperv1.InPlaceUpgrade{MaxUnavailable: &share}, 1, 1, 1},
		"no node has joined":                  {&hyperv1.InPlaceUpgrade{MaxUnavailable: &share}, 5, 0, 1},
		"the limit is not a number":           {&hyperv1.InPlaceUpgrade{MaxUnavailable: &word}, 5, 5, 1},
	} {
		t.Run("When "+name+", it should limit the nodes that are updated at once", func(t *testing.T) {
			pool := fixture.NodePool("clusters")
			pool.Spec.Management.InPlace = test.limit
			NewWithT(t).Expect(maxUnavailable(pool, test.machines, test.nodes)).To(Equal(test.want))
		})
	}
	t.Run("When replicas is set, it should compute the percentage from the desired replicas", func(t *testing.T) {
		g, s := NewWithT(t), updatedInPlace(append(serving(), scopetest.Machine("c", "wanted", housed))...)
		s.Pool.Spec.Replicas, s.Pool.Spec.Management.InPlace = ptr.To[int32](6), &hyperv1.InPlaceUpgrade{MaxUnavailable: &share}
		r := on(nil)
		g.Expect(r.applyMachineSet(t.Context(), s, template)).To(Succeed())
		g.Expect(read(t, r, &clusterv1.MachineSet{}, "demo").Annotations).To(HaveKeyWithValue(hyperv1.NodePoolMaxUnavailableAnnotation, "2"))
	})
}
