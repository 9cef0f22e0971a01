// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"net/http"
	"testing"
	"time"

	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// givenBack returns a fixture with a machine that is released in MAAS and still has the static address.
func givenBack(t *testing.T) *rack {
	t.Helper()
	k := addressed(t, "admin")
	if ok, _, err := k.place(t.Context(), k.scope); !ok {
		t.Fatal(err)
	}
	k.site.Change("m1", func(m *inventory.Machine) { m.Status, m.Owner, m.AgentName = status.Ready, "", "" })
	k.reread()
	k.expectEvents("StaticIPAssigned")
	return k
}

// TestFreeTells checks that events report what happened to the address, and that the link which the static address
// replaced is restored.
func TestFreeTells(t *testing.T) {
	t.Parallel()
	dhcp := func(k *rack, replaced string) {
		a := addressOf(k.machine)
		a.Replaced = replaced
		if err := setAddress(k.machine, a); err != nil {
			k.t.Fatal(err)
		}
	}
	refuse := func(operation string, code int, words string) func(*rack) {
		return func(k *rack) { simtest.Refuse(k.t, k.site.Simulator, operation, "", code, words) }
	}
	for name, tc := range map[string]struct {
		set    func(*rack)
		reason string
		again  time.Duration
		links  []string
		events []string
	}{
		"the link was automatic before":            {func(*rack) {}, "", 0, []string{"auto"}, []string{"StaticIPReleased"}},
		"the link used DHCP before":                {func(k *rack) { dhcp(k, "dhcp") }, "", 0, []string{"dhcp"}, []string{"StaticIPReleased"}},
		"there was no link before":                 {func(k *rack) { dhcp(k, "") }, "", 0, nil, []string{"StaticIPReleased"}},
		"a user changed the network":               {refuse("interface.link_subnet", http.StatusBadRequest, `{"mode": ["no"]}`), "", 0, nil, []string{"LinkNotRestored", "StaticIPReleased"}},
		"MAAS is too busy to restore the old link": {refuse("interface.link_subnet", http.StatusServiceUnavailable, "busy"), ReasonUnavailable, 15 * time.Second, []string{"static " + staticIP}, nil},
		"MAAS is too busy to unassign the address": {refuse("interface.unlink_subnet", http.StatusServiceUnavailable, "busy"), ReasonUnavailable, 15 * time.Second, []string{"auto", "static " + staticIP}, nil},
		"the user may not change links":            {refuse("interface.unlink_subnet", http.StatusForbidden, "no"), ReasonForbidden, 15 * time.Second, []string{"auto", "static " + staticIP}, nil},
		"MAAS does not have the machine":           {func(k *rack) { k.observed = nil }, "", 0, []string{"static " + staticIP}, nil},
		"another user has the machine":             {func(k *rack) { k.observed, k.foreign = nil, true }, "", 0, []string{"static " + staticIP}, []string{"StaticIPKept"}},
		"another user deployed the machine":        {func(k *rack) { k.observed.Status = maas.StatusDeployed }, "", 0, []string{"static " + staticIP}, []string{"StaticIPKept"}},
		"the address is already unassigned":        {func(k *rack) { dhcp(k, "auto"); k.observed.Interfaces = nil }, "", 0, []string{"static " + staticIP}, nil},
	} {
		t.Run("When "+name+", it should report what happened to the address", func(t *testing.T) {
			t.Parallel()
			k := givenBack(t)
			tc.set(k)
			result, err := k.free(t.Context(), k.scope)
			k.expectReason(result, err, tc.reason, tc.again)
			k.expectLinks("after that", tc.links...)
			k.expectEvents(tc.events...)
		})
	}
}

// TestFreeLooksAnew checks that the machine is read again after MAAS refused a link: the cached machine may be
// outdated.
func TestFreeLooksAnew(t *testing.T) {
	t.Parallel()
	k := givenBack(t)
	away(k, "interface.link_subnet")
	k.site.Change("m1", func(m *inventory.Machine) { m.Hostname = "renamed" })
	if _, err := k.free(t.Context(), k.scope); err == nil {
		t.Fatal("MAAS was not asked")
	}
	if m, err := k.identity.Inventory.Machine(t.Context(), "m1", time.Hour); err != nil || m.Hostname != "renamed" {
		t.Errorf("what MAAS said before is still believed: %+v, %v", m, err)
	}
}
