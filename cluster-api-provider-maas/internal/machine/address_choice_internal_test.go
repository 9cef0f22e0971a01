// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"strings"
	"testing"
	"time"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/staticip"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

// within requests a static address of a range.
func within(start, end string) func(*infrav1.MaasMachine) {
	return func(m *infrav1.MaasMachine) {
		m.Spec.StaticIP = &infrav1.StaticIPConfig{Range: &infrav1.IPRange{Start: start, End: end}}
	}
}

// TestAddressCondition checks that the condition reports the address of the machine, or why it has none.
func TestAddressCondition(t *testing.T) {
	t.Parallel()
	carries := &maas.Machine{Interfaces: []maas.Interface{{Name: "eth0", Links: []maas.Link{{Mode: "static", IPAddress: staticIP}}}}}
	chosen := annotated(AddressAnnotation, `{"ip": "`+staticIP+`"}`)
	problem := &Problem{ReasonUnreachable, "down"}
	for name, tc := range map[string]struct {
		change   func(*infrav1.MaasMachine)
		observed *maas.Machine
		found    findings
		want     string
		words    string
	}{
		"the machine has the address":                {chosen, carries, findings{}, "True StaticIPAssigned", staticIP + " on eth0"},
		"the machine runs with the address":          {chosen, carries, findings{ready: true, problem: problem}, "True StaticIPAssigned", staticIP + " on eth0"},
		"the machine runs without the address":       {chosen, &maas.Machine{}, findings{ready: true, problem: problem}, "False MachineDeployedBefore", ""},
		"the machine runs and no address was chosen": {nil, carries, findings{ready: true}, "False MachineDeployedBefore", ""},
		"MAAS is unreachable":                        {chosen, &maas.Machine{}, findings{problem: problem}, "False MAASUnreachable", "down"},
		"no machine has the chosen address yet":      {chosen, nil, findings{}, "False StaticIPPending", staticIP},
		"no address was chosen":                      {nil, nil, findings{}, "False StaticIPPending", "chosen"},
		"the annotation is corrupt":                  {annotated(AddressAnnotation, "{"), nil, findings{}, "False StaticIPPending", "chosen"},
	} {
		self := sibling("self")
		maybe(tc.change, self)
		c := (&scope{machine: self, observed: tc.observed, findings: tc.found}).addressCondition()
		if got := string(c.Status) + " " + c.Reason; got != tc.want || !strings.Contains(c.Message, tc.words) || c.Type != ConditionStaticIP {
			t.Errorf("when %s, it is %+v", name, c)
		}
	}
}

// TestEnsureAddress checks that an address is chosen once, and recorded before a machine is allocated. A problem with
// it is reported.
func TestEnsureAddress(t *testing.T) {
	t.Parallel()
	ranged := within("10.0.0.50", "10.0.0.51")
	for name, tc := range map[string]struct {
		change func(*infrav1.MaasMachine)
		set    func(*rack)
		want   string
		subnet bool
		reason string
	}{
		"the range has a free address":      {change: ranged, want: "10.0.0.50", subnet: true},
		"an address is recorded":            {change: func(m *infrav1.MaasMachine) { ranged(m); annotate(m, AddressAnnotation, `{"ip":"10.0.0.51"}`) }, want: "10.0.0.51", subnet: true},
		"no static address is requested":    {set: func(k *rack) { away(k, "") }},
		"this reconcile already checked it": {change: ranged, set: func(k *rack) { k.subnet = &maas.Subnet{}; away(k, "") }, subnet: true},
		"MAAS does not list subnets":        {change: ranged, set: func(k *rack) { away(k, "subnets.read") }, reason: ReasonUnavailable},
		"MAAS reports no owners":            {change: ranged, set: func(k *rack) { away(k, "subnet.ip_addresses") }, reason: ReasonUnavailable},
		"MAAS does not list ranges":         {change: ranged, set: func(k *rack) { away(k, "ipranges.read") }, reason: ReasonUnavailable},
		"MAAS has no such subnet":           {change: within("192.0.2.7", "192.0.2.8"), reason: staticip.ReasonSubnetNotFound},
		"a sibling has the only address": {change: within("10.0.0.50", "10.0.0.50"), reason: staticip.ReasonRangeExhausted, set: func(k *rack) {
			if err := k.Client.Create(k.t.Context(), sibling("a", annotated(AddressAnnotation, `{"ip": "10.0.0.50"}`))); err != nil {
				k.t.Fatal(err)
			}
		}},
		"MAAS rejected the only address": {change: within("10.0.0.50", "10.0.0.50"), reason: staticip.ReasonRangeExhausted, set: func(k *rack) { k.claims.refuse("ns", "10.0.0.50", simtest.Start) }},
	} {
		t.Run("When "+name+", it should record an address or report why not", func(t *testing.T) {
			t.Parallel()
			self := sibling("self")
			maybe(tc.change, self)
			k := seeker(t, "alice", self)
			maybe(tc.set, k)
			again := time.Duration(0)
			if tc.reason != "" {
				again = 15 * time.Second
			}
			result, err := k.ensureAddress(t.Context(), k.scope)
			k.expectReason(result, err, tc.reason, again)
			if got := addressOf(k.stored()); got != (address{IP: tc.want}) || (k.subnet != nil) != tc.subnet {
				t.Errorf("it wrote down %+v, and knows %+v", got, k.subnet)
			}
		})
	}
	for name, seal := range map[string]func(*rack){
		"the address cannot be recorded": unwritable[*infrav1.MaasMachine],
		"siblings can't be seen":         func(k *rack) { deaf(k.Reconciler, errUnwritten) },
	} {
		k := seeker(t, "alice", sibling("self", ranged))
		seal(k)
		if _, err := k.ensureAddress(t.Context(), k.scope); !errors.Is(err, errUnwritten) || k.subnet != nil {
			t.Errorf("where %s, it goes on: %v", name, err)
		}
	}
}

// TestOwnAddressIsClaimed checks that a machine keeps its address, and no sibling chooses it, even if it is not
// recorded yet.
func TestOwnAddressIsClaimed(t *testing.T) {
	t.Parallel()
	subnet := &maas.Subnet{ID: 1, CIDR: "10.0.0.0/24"}
	a, b := sibling("a", within("10.0.0.7", "10.0.0.9")), sibling("b", within("10.0.0.7", "10.0.0.9"))
	r := among(t, a, b)
	choice := func(m *infrav1.MaasMachine, observed *maas.Machine) string {
		ip, refusal, err := r.choice(t.Context(), &scope{machine: m, observed: observed}, subnet, staticip.NewTaken(subnet, nil, nil, ""))
		if err != nil || refusal != nil {
			t.Fatalf("%+v, %v", refusal, err)
		}
		return ip
	}
	own := &maas.Machine{IPAddresses: []string{"10.0.0.7"}, Interfaces: []maas.Interface{{Links: []maas.Link{{Mode: "static", IPAddress: "10.0.0.7"}}}}}
	if got := choice(a, own); got != "10.0.0.7" {
		t.Errorf("it gets %s", got)
	}
	if got := choice(b, &maas.Machine{}); got != "10.0.0.8" {
		t.Errorf("its sibling, whose machine carries none, gets %q", got)
	}
}
