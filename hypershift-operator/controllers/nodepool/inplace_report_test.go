// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope/scopetest"
)

// TestFollowMachineSet checks when all machines count as up to date.
func TestFollowMachineSet(t *testing.T) {
	for name, test := range map[string]struct {
		has    string
		extra  *clusterv1.Machine
		wanted *int32
		done   bool
	}{
		"all machines are available":                         {"wanted", nil, ptr.To[int32](2), true},
		"more machines than desired are available":           {"wanted", nil, ptr.To[int32](1), true},
		"replicas is not set":                                {"wanted", nil, nil, true},
		"a machine is still missing":                         {"wanted", nil, ptr.To[int32](3), false},
		"nodes are updated":                                  {"old", nil, ptr.To[int32](2), false},
		"a late machine has the old configuration":           {"wanted", scopetest.Machine("c", "old", late), ptr.To[int32](2), false},
		"a late machine is being deleted":                    {"wanted", scopetest.Machine("c", "old", late, scopetest.Leaving), ptr.To[int32](2), true},
		"a machine with an old configuration joined in time": {"wanted", scopetest.Machine("c", "old", scopetest.Joined), ptr.To[int32](3), true},
	} {
		t.Run("When "+name+", it should report the version only if all nodes are up to date", func(t *testing.T) {
			g, machines := NewWithT(t), serving()
			if test.extra != nil {
				machines = append(machines, test.extra)
			}
			s, ms := updatedInPlace(machines...), setOf(aims, "wanted", has, test.has)
			ms.Spec.Replicas, s.replicas = test.wanted, ptr.To(available(machines))
			g.Expect(on(nil, s.Pool.DeepCopy()).followMachineSet(t.Context(), s, ms, "demo-1")).To(Succeed())
			g.Expect(s.version != "").To(Equal(test.done))
			g.Expect(s.says(hyperv1.NodePoolReadyConditionType)).NotTo(BeEmpty())
			want := "False/AsExpected: " + hyperv1.AllIsWellMessage
			if test.done {
				g.Expect(s.says(hyperv1.NodePoolUpdatingConfigConditionType)).To(Equal(want))
				return
			}
			g.Expect(s.says(hyperv1.NodePoolUpdatingConfigConditionType)).To(HavePrefix("True/AsExpected: "))
		})
	}
	t.Run("When there are no machines and no replica count, the pool should report the desired version", func(t *testing.T) {
		g, s := NewWithT(t), updatedInPlace()
		g.Expect(on(nil, s.Pool.DeepCopy()).followMachineSet(t.Context(), s, setOf(aims, "wanted", has, "wanted"), "demo-1")).To(Succeed())
		g.Expect(s.version).To(Equal("1.36.3"))
	})
}

// news holds the reported state of the updates of a pool's configuration and version.
type news struct{ Config, Version string }

func (s *reconciliation) news() news {
	return news{s.says(hyperv1.NodePoolUpdatingConfigConditionType), s.says(hyperv1.NodePoolUpdatingVersionConditionType)}
}

const atRest = "False/AsExpected: " + hyperv1.AllIsWellMessage

func TestTellUpdating(t *testing.T) {
	const plain, broken, wayOut = "True/AsExpected: Updating nodes to configuration configured", "False/InplaceUpgradeFailed: Node a went back",
		". The rollout is paused until this node recovers or its Machine is deleted; a replacement gets the desired configuration"
	const words, failed = "1 of 2 nodes are updated", "Node a went back"
	for name, test := range map[string]struct {
		config, version string
		set             []string
		machine         *clusterv1.Machine
		want            news
	}{
		"there is no set":                                                          {"old", "1.36.3", nil, nil, news{plain, atRest}},
		"the upgrader reports nothing":                                             {"old", "1.36.3", []string{aims, "wanted", has, "old"}, nil, news{plain, atRest}},
		"the upgrader reports progress":                                            {"old", "1.36.3", []string{aims, "wanted", has, "old", progress, words}, nil, news{"True/AsExpected: " + words, atRest}},
		"the upgrader reports progress of a version update":                        {"configured", "1.36.2", []string{aims, "wanted", has, "old", progress, words}, nil, news{atRest, "True/AsExpected: " + words}},
		"the upgrader reports progress of both updates":                            {"old", "1.36.2", []string{aims, "wanted", has, "old", progress, words}, nil, news{"True/AsExpected: " + words, "True/AsExpected: " + words}},
		"the upgrader does not know the desired configuration yet":                 {"old", "1.36.3", []string{aims, "old", has, "older", progress, words, failure, failed}, nil, news{plain, atRest}},
		"the upgrader has finished":                                                {"old", "1.36.3", []string{aims, "wanted", has, "wanted", progress, words, failure, failed}, nil, news{plain, atRest}},
		"a node failed to update":                                                  {"old", "1.36.3", []string{aims, "wanted", has, "old", progress, words, failure, failed}, nil, news{broken + wayOut, atRest}},
		"a node failed to update to a version":                                     {"configured", "1.36.2", []string{aims, "wanted", has, "old", failure, failed}, nil, news{atRest, broken + wayOut}},
		"the pool returns to its previous configuration":                           {"configured", "1.36.3", []string{aims, "wanted", has, "old", progress, words}, nil, news{"True/AsExpected: " + words, atRest}},
		"the pool returns to its previous configuration without reported progress": {"configured", "1.36.3", []string{aims, "wanted", has, "old"}, nil, news{plain, atRest}},
		"a machine is joining with the old configuration":                          {"configured", "1.36.3", []string{aims, "wanted", has, "wanted"}, scopetest.Machine("late-one", "old", late), news{"Machine late-one", atRest}},
	} {
		t.Run("When "+name+", the updating conditions should report it", func(t *testing.T) {
			g, s := NewWithT(t), updatedInPlace()
			if test.machine != nil {
				s.Machines = []*clusterv1.Machine{test.machine}
			}
			scope.Annotate(s.Pool, hyperv1.NodePoolCurrentConfigAnnotation, test.config)
			s.Pool.Status.Version = test.version
			var objects []client.Object
			if test.set != nil {
				objects = append(objects, setOf(test.set...))
			}
			g.Expect(on(nil, objects...).tellUpdating(t.Context(), s)).To(Succeed())
			got := s.news()
			if test.machine != nil {
				g.Expect(got.Config).To(And(HavePrefix("True/AsExpected: "), ContainSubstring(test.want.Config)))
				got.Config = test.want.Config
			}
			g.Expect(got).To(Equal(test.want))
		})
	}
}

func TestTellUpdatingElsewhere(t *testing.T) {
	t.Run("When machines are replaced, it should ignore a MachineSet of the same name", func(t *testing.T) {
		g, s := NewWithT(t), pass()
		scope.Annotate(s.Pool, hyperv1.NodePoolCurrentConfigAnnotation, "old")
		g.Expect(on(refusals{"get MachineSet"}).tellUpdating(t.Context(), s)).To(Succeed())
		g.Expect(s.news()).To(Equal(news{"True/AsExpected: Updating nodes to configuration configured", atRest}))
	})
	t.Run("When the MachineSet cannot be read, it should return an error", func(t *testing.T) {
		NewWithT(t).Expect(on(refusals{"get MachineSet"}).tellUpdating(t.Context(), updatedInPlace())).To(MatchError(errRefused))
	})
}

func TestAimAgain(t *testing.T) {
	for name, test := range map[string]struct{ before, current, want string }{
		"gets a new target during an update": {"other", "old", "old"},
		"has no target yet":                  {"", "wanted", "wanted"},
	} {
		t.Run("When a MachineSet "+name+", it should record the configuration of its nodes", func(t *testing.T) {
			ms := setOf(has, test.current)
			if test.before != "" {
				scope.Annotate(ms, aims, test.before)
			}
			g := NewWithT(t)
			g.Expect(pass().aim(ms)).To(BeFalse())
			g.Expect(ms.Annotations).To(Equal(map[string]string{aims: "wanted", has: test.want}))
		})
	}
	g := NewWithT(t)
	nameless := scopetest.Machine("a", "old", late, scopetest.Joined)
	nameless.Spec.Bootstrap.DataSecretName = nil
	g.Expect(pass(nameless).joinedLate()).To(BeEmpty())
}
