// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"testing"
	"time"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/reservation"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// heir returns a fixture with a MaasMachine for which m1 is reserved. m1 has the key of the previous MaasMachine.
func heir(t *testing.T, change ...func(*infrav1.MaasMachine)) *rack {
	t.Helper()
	k := seeker(t, "alice", sibling("self", change...), allocated("m1", "old", status.Allocated), simtest.Machine{ID: "ready1"})
	k.reserves("m1", reservation.Record{UID: "old", Deployment: "pool", Set: "pool-1"})
	return k
}

// TestInherit checks that a MaasMachine takes the machine that is reserved for it, with its key. If that is not
// possible, it takes any other machine.
func TestInherit(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		set    func(*rack)
		held   string
		reason string
		again  time.Duration
	}{
		"the machine is available":                 {func(*rack) {}, "m1", "", 0},
		"the machine is reserved for another pool": {func(k *rack) { k.reserves("m1", reservation.Record{UID: "old", Deployment: "q"}) }, "ready1", "", 0},
		"another user has it":                      {func(k *rack) { k.site.Change("m1", func(m *inventory.Machine) { m.AgentName = "x" }) }, "ready1", "", 0},
		"the machine no longer fits":               {func(k *rack) { k.owner.Spec.FailureDomain = "north"; k.site.Change("ready1", inNorth) }, "", ReasonNoCapacity, 10 * time.Second},
		"MAAS does not list it":                    {func(k *rack) { away(k, "machines.read") }, "", ReasonUnavailable, 15 * time.Second},
		"no subnet contains its address":           {func(k *rack) { k.machine.Spec.StaticIP = &infrav1.StaticIPConfig{IP: "192.0.2.7"} }, "", "SubnetNotFound", 15 * time.Second},
		"the machine was deployed since":           {func(k *rack) { k.site.Change("m1", func(m *inventory.Machine) { m.Status = status.Deployed }) }, "ready1", "", 0},
	} {
		t.Run("When "+name+", it should claim that machine only if possible", func(t *testing.T) {
			t.Parallel()
			k := heir(t)
			tc.set(k)
			result, err := k.acquire(t.Context(), k.scope)
			k.expectReason(result, err, tc.reason, tc.again)
			if k.systemID() != tc.held || deref(k.stored().Spec.SystemID) != tc.held {
				t.Errorf("it has %q", k.systemID())
			}
			if tc.held == "" {
				return
			}
			uid := map[bool]string{true: "old", false: "self"}[tc.held == "m1"]
			if m := k.stored(); m.Annotations[UIDAnnotation] != uid || m.Annotations[infrav1.OwnerAnnotation] != "alice" {
				t.Errorf("it wrote down %v", m.Annotations)
			}
			if _, reserved := reservation.Records.Of(k.storedCluster())["m1"]; reserved != (tc.held != "m1") {
				t.Errorf("it is reserved: %t", reserved)
			}
			k.expectEvents(ReasonAllocated)
		})
	}
}

func inNorth(m *inventory.Machine) { m.ZoneID = 99 }

// TestInheritIsSignedFirst checks that only one of several MaasMachines claims the machine, wherever it is
// interrupted.
func TestInheritIsSignedFirst(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		seal   func(*rack)
		signed string
		held   string
		uid    string
	}{
		"the record can't be claimed":          {unwritable[*infrav1.MaasCluster], "", "", ""},
		"the allocation key can't be recorded": {unwritable[*infrav1.MaasMachine], "self", "", ""},
		"the machine can't be recorded":        {func(k *rack) { writable[*infrav1.MaasMachine](k, 1) }, "self", "", "old"},
		"the record can't be removed":          {func(k *rack) { writable[*infrav1.MaasCluster](k, 1) }, "self", "m1", "old"},
		"the siblings cannot be listed":        {func(k *rack) { deaf(k.Reconciler, errUnwritten) }, "", "", ""},
	} {
		t.Run("When "+name+", it should return the error", func(t *testing.T) {
			t.Parallel()
			k := heir(t)
			tc.seal(k)
			if _, err := k.acquire(t.Context(), k.scope); !errors.Is(err, errUnwritten) {
				t.Errorf("it is told as done: %v", err)
			}
			m := k.stored()
			if got := reservation.Records.Of(k.storedCluster())["m1"]; got.Successor != tc.signed || deref(m.Spec.SystemID) != tc.held || m.Annotations[UIDAnnotation] != tc.uid {
				t.Errorf("it is signed by %q, and has %q with the key of %q", got.Successor, deref(m.Spec.SystemID), m.Annotations[UIDAnnotation])
			}
			if k.site.Has("ready1").Owner != "" {
				t.Error("another one is taken too")
			}
		})
	}
}
