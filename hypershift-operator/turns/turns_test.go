// SPDX-License-Identifier: Apache-2.0

package turns_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/openshift/hypershift/hypershift-operator/turns"
)

func named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "clusters", Name: name}
}

// world holds turns for two control planes, and records which ones were woken.
type world struct {
	*GomegaWithT
	*turns.Turns
	clock *testingclock.FakeClock
	woken []string
}

func newWorld(t *testing.T) *world {
	w := &world{GomegaWithT: NewWithT(t), clock: testingclock.NewFakeClock(time.Unix(0, 0))}
	w.Turns = turns.New(2, w.clock, func(name types.NamespacedName) { w.woken = append(w.woken, name.Name) })
	w.Expect(w.Take(named("a"))).To(BeTrue())
	w.Expect(w.Take(named("b"))).To(BeTrue())
	return w
}

func (w *world) settle(name string) {
	w.Report(named(name), true)
	w.clock.Step(30 * time.Second)
	w.Report(named(name), true)
}

func TestTurns(t *testing.T) {
	t.Run("When all turns are taken, the others should wait in order", func(t *testing.T) {
		w := newWorld(t)
		for range 2 {
			w.Expect(w.Take(named("c"))).To(BeFalse())
			w.Expect(w.Take(named("d"))).To(BeFalse())
		}
		w.Expect(w.Take(named("a"))).To(BeTrue(), "a control plane keeps its turn")
		w.settle("a")
		w.Expect(w.woken).To(Equal([]string{"c"}))
		w.Expect(w.Take(named("c"))).To(BeTrue())
		w.Expect(w.Take(named("d"))).To(BeFalse())
		w.settle("b")
		w.Expect(w.woken).To(Equal([]string{"c", "d"}))
	})
	t.Run("When components still change, the turn should not end", func(t *testing.T) {
		w := newWorld(t)
		w.Report(named("a"), true)
		w.clock.Step(20 * time.Second)
		w.Report(named("a"), false)
		w.Report(named("a"), true)
		w.clock.Step(20 * time.Second)
		w.Report(named("a"), true)
		w.Expect(w.Holds(named("a"))).To(BeTrue())
		w.Expect(w.Take(named("c"))).To(BeFalse())
	})
	t.Run("When a control plane never completes, its turn should end after ten minutes", func(t *testing.T) {
		w := newWorld(t)
		w.Expect(w.Take(named("c"))).To(BeFalse())
		w.clock.Step(10 * time.Minute)
		w.Expect(w.Holds(named("a"))).To(BeFalse())
		w.Expect(w.woken).To(Equal([]string{"c"}))
		w.Expect(w.Take(named("c"))).To(BeTrue())
	})
	t.Run("When a control plane is deleted, it should leave its turn or its place", func(t *testing.T) {
		w := newWorld(t)
		w.Expect(w.Take(named("c"))).To(BeFalse())
		w.Expect(w.Take(named("d"))).To(BeFalse())
		w.Leave(named("c"))
		w.Expect(w.woken).To(BeEmpty())
		w.Leave(named("a"))
		w.Expect(w.woken).To(Equal([]string{"d"}))
	})
	t.Run("When there is no limit, every control plane should have a turn", func(t *testing.T) {
		g := NewWithT(t)
		unlimited := turns.New(0, testingclock.NewFakeClock(time.Unix(0, 0)), nil)
		g.Expect(unlimited.Take(named("a"))).To(BeTrue())
		g.Expect(unlimited.Holds(named("a"))).To(BeFalse())
		g.Expect(unlimited.Most()).To(BeZero())
		unlimited.Report(named("a"), true)
		unlimited.Leave(named("a"))
	})
}
