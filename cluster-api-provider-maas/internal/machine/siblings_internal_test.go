// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/handover"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lxd"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/staticip"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/maas"
)

// sibling returns a MaasMachine of the namespace. Its UID equals its name.
func sibling(name string, change ...func(*infrav1.MaasMachine)) *infrav1.MaasMachine {
	m := &infrav1.MaasMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Labels: map[string]string{clusterv1.MachineDeploymentNameLabel: "pool"}}}
	for _, do := range change {
		do(m)
	}
	return m
}

func annotated(key, value string) func(*infrav1.MaasMachine) {
	return func(m *infrav1.MaasMachine) { annotate(m, key, value) }
}

func in(zone string) func(*infrav1.MaasMachine) {
	return func(m *infrav1.MaasMachine) { m.Spec.ProviderID = ptr.To("maas:///" + zone + "/" + m.Name) }
}

func leaving(m *infrav1.MaasMachine) {
	m.DeletionTimestamp, m.Finalizers = ptr.To(metav1.NewTime(noon)), []string{infrav1.MachineFinalizer}
}

func running(id string) func(*infrav1.MaasMachine) {
	return func(m *infrav1.MaasMachine) {
		m.Spec.SystemID, m.Status.Initialization.Provisioned = &id, ptr.To(true)
	}
}

// among returns a reconciler whose clock is at noon, and whose cache has these MaasMachines.
func among(t *testing.T, siblings ...*infrav1.MaasMachine) *Reconciler {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(infrav1.AddToScheme(s), clusterv1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	r, _, _ := quiet()
	b := fakeclient.NewClientBuilder().WithScheme(s)
	for _, m := range siblings {
		b.WithObjects(m)
	}
	r.Client = b.Build()
	r.Reader = r.Client
	return r
}

// deaf makes all lists of the reconciler fail.
func deaf(r *Reconciler, cause error) {
	r.Client = interceptor.NewClient(r.Client.(client.WithWatch), interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return cause }})
}

// TestOccupied checks that a machine that a sibling still uses is not allocated, even if MAAS reports it as Ready. If
// one may be Ready, the provider picks the machine itself.
func TestOccupied(t *testing.T) {
	t.Parallel()
	failed := func(released bool) func(*infrav1.MaasMachine) {
		return func(m *infrav1.MaasMachine) {
			if err := setFailures(m, []failure{{SystemID: "x", Released: released}}); err != nil {
				panic(err)
			}
		}
	}
	lost := func(m *infrav1.MaasMachine) {
		running("x")(m)
		m.Status.Conditions = []metav1.Condition{condition.False(ConditionDeployed, lifecycle.ReasonTerminated, "")}
	}
	handed := func(record handover.Record) *infrav1.MaasCluster {
		infra := &infrav1.MaasCluster{}
		if err := handover.Records.Set(infra, "x", record); err != nil {
			panic(err)
		}
		return infra
	}
	for name, tc := range map[string]struct {
		sibling             *infrav1.MaasMachine
		infra               *infrav1.MaasCluster
		occupied, contested bool
	}{
		"there is no sibling":                                           {nil, nil, false, false},
		"a sibling has no machine yet":                                  {sibling("a"), nil, false, false},
		"a sibling will get an address":                                 {sibling("a", annotated(AddressAnnotation, `{"ip": "10.0.0.7"}`)), nil, false, false},
		"a sibling has its address on the machine":                      {sibling("a", annotated(AddressAnnotation, `{"ip": "10.0.0.7", "systemID": "x"}`)), nil, true, true},
		"the deployment of a sibling failed on it":                      {sibling("a", failed(false)), nil, true, true},
		"the deployment of a sibling failed on it, and it was released": {sibling("a", failed(true)), nil, false, false},
		"a sibling reserves it for a successor":                         {sibling("a", running("x"), annotated(KeptAnnotation, "pool"), leaving), nil, true, true},
		"a sibling runs on it":                                          {sibling("a", running("x")), nil, true, false},
		"a sibling ran on it and lost it":                               {sibling("a", lost), nil, true, true},
		"a sibling that runs on it is deleted":                          {sibling("a", running("x"), leaving), nil, false, false},
		"a sibling is only being deployed on it":                        {sibling("a", func(m *infrav1.MaasMachine) { m.Spec.SystemID = ptr.To("x") }), nil, false, false},
		"the cluster has its pending release":                           {nil, handed(handover.Record{UID: "gone"}), true, false},
		"the cluster has its pending release with an address":           {nil, handed(handover.Record{UID: "gone", Address: "{}"}), true, true},
		"its pending release is corrupt": {nil, &infrav1.MaasCluster{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{handover.Records.Key("x"): "{"}}}, true, false},
	} {
		t.Run("When "+name+", the machine should be excluded only if it is in use", func(t *testing.T) {
			t.Parallel()
			self := sibling("self", running("x"), annotated(AddressAnnotation, `{"ip": "10.0.0.9", "systemID": "x"}`))
			all := []*infrav1.MaasMachine{self, sibling("elsewhere", running("x"), func(m *infrav1.MaasMachine) { m.Namespace = "other" })}
			if tc.sibling != nil {
				all = append(all, tc.sibling)
			}
			s := &scope{machine: self, infra: tc.infra}
			if err := among(t, all...).occupied(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if s.occupied["x"] != tc.occupied || s.contested != tc.contested {
				t.Errorf("occupied %t, contested %t", s.occupied["x"], s.contested)
			}
		})
	}
	r := among(t)
	down := errors.New("no cache")
	deaf(r, down)
	if err := r.occupied(t.Context(), &scope{machine: sibling("self")}); !errors.Is(err, down) {
		t.Errorf("who can't see its siblings takes nothing: %v", err)
	}
}

// TestSpreadOrder checks that the zone with the fewest siblings comes first.
func TestSpreadOrder(t *testing.T) {
	t.Parallel()
	of := func(group string) func(*infrav1.MaasMachine) {
		return func(m *infrav1.MaasMachine) { m.Labels = map[string]string{clusterv1.MachineSetNameLabel: group} }
	}
	for name, tc := range map[string]struct {
		siblings []*infrav1.MaasMachine
		want     []string
	}{
		"there are no siblings":                               {nil, []string{"c", "a", "b"}},
		"one sibling is in the first zone":                    {[]*infrav1.MaasMachine{sibling("1", in("c"))}, []string{"a", "b", "c"}},
		"one sibling is in each zone but the last":            {[]*infrav1.MaasMachine{sibling("1", in("c")), sibling("2", in("a"))}, []string{"b", "c", "a"}},
		"two siblings are in one zone":                        {[]*infrav1.MaasMachine{sibling("1", in("a")), sibling("2", in("a")), sibling("3", in("c"))}, []string{"b", "c", "a"}},
		"the only sibling is being deleted":                   {[]*infrav1.MaasMachine{sibling("1", in("c"), leaving)}, []string{"c", "a", "b"}},
		"one sibling belongs to another pool":                 {[]*infrav1.MaasMachine{sibling("1", in("c"), of("other"))}, []string{"c", "a", "b"}},
		"one sibling is in an unknown zone":                   {[]*infrav1.MaasMachine{sibling("1", in("elsewhere"))}, []string{"c", "a", "b"}},
		"one sibling has the provider ID of another provider": {[]*infrav1.MaasMachine{sibling("1", func(m *infrav1.MaasMachine) { m.Spec.ProviderID = ptr.To("aws:///c/1") })}, []string{"c", "a", "b"}},
		"one sibling has neither a machine nor a zone":        {[]*infrav1.MaasMachine{sibling("1")}, []string{"c", "a", "b"}},
		"one sibling is virtual and counts like any other":    {[]*infrav1.MaasMachine{sibling("1", func(m *infrav1.MaasMachine) { m.Spec.ProviderID = ptr.To(lxdID("c")) })}, []string{"a", "b", "c"}},
	} {
		t.Run("When "+name+", the emptiest zone should come first", func(t *testing.T) {
			t.Parallel()
			r := among(t, append(tc.siblings, sibling("self", in("c")))...)
			allowed := []string{"c", "a", "b"}
			s := &scope{machine: sibling("self"), owner: &clusterv1.Machine{}, infra: &infrav1.MaasCluster{Spec: infrav1.MaasClusterSpec{FailureDomains: allowed}}}
			got, err := r.zones(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff([]string{"c", "a", "b"}, allowed); diff != "" {
				t.Errorf("the MaasCluster, which is shared, was sorted:\n%s", diff)
			}
		})
	}
}

func lxdID(zone string) string {
	return formatProviderID(infrav1.MaasMachineSpec{ProvisioningMode: infrav1.ProvisioningModeLXD}, &maas.Machine{SystemID: "x", Zone: maas.Zone{Name: zone}})
}

// TestSpreadAtOnce checks that machines created concurrently account for each other before the cache shows their zones.
func TestSpreadAtOnce(t *testing.T) {
	t.Parallel()
	p := newSpread()
	all := []infrav1.MaasMachine{*sibling("0"), *sibling("1"), *sibling("2"), *sibling("3"), *sibling("4"), *sibling("5")}
	others := func(i int) []infrav1.MaasMachine {
		return append(append([]infrav1.MaasMachine{}, all[:i]...), all[i+1:]...)
	}
	count := map[string]int{}
	for i := range all {
		count[p.order(&all[i], others(i), []string{"a", "b", "c"})[0]]++
	}
	if diff := cmp.Diff(map[string]int{"a": 2, "b": 2, "c": 2}, count); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// MAAS had no machine in the first zone of this sibling, and allocated one in b.
	p.note(&all[0], "b")
	if got := p.order(sibling("6"), all, []string{"a", "b", "c"})[0]; got != "a" {
		t.Errorf("the next one goes to %s", got)
	}
	// No zone had a machine. Siblings that wait for a machine must not count in any zone.
	for i := range all {
		p.note(&all[i], "")
	}
	if got := p.order(sibling("7"), all, []string{"c", "a"})[0]; got != "c" {
		t.Errorf("those who wait for a machine take the zone from one who looks: %s", got)
	}
	// Namespaces are independent, and the zones of deleted machines are dropped.
	other := sibling("8")
	other.Namespace = "other"
	p.note(other, "a")
	p.order(other, nil, []string{"a"})
	p.order(sibling("9"), nil, []string{"a"})
	if diff := cmp.Diff(map[string]map[types.UID]string{"ns": {"9": "a"}, "other": {"8": "a"}}, p.chosen); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestZoneThatIsSaid checks that a configured zone takes precedence over zone spreading, and the zone of the Machine
// over the zone of the MaasMachine.
func TestZoneThatIsSaid(t *testing.T) {
	t.Parallel()
	r := among(t)
	deaf(r, errors.New("no cache"))
	m := sibling("self")
	m.Spec.FailureDomain = ptr.To("template")
	owner := &clusterv1.Machine{}
	for _, want := range []string{"template", "machine"} {
		got, err := r.zones(t.Context(), &scope{machine: m, owner: owner, infra: &infrav1.MaasCluster{Spec: infrav1.MaasClusterSpec{FailureDomains: []string{"a"}}}})
		if err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("it is %v, %v, and not %s", got, err, want)
		}
		owner.Spec.FailureDomain = "machine"
	}
}

// TestGroup checks that the machines of one pool are siblings across its rollouts.
func TestGroup(t *testing.T) {
	t.Parallel()
	groups := map[string]string{}
	for name, labels := range map[string]map[string]string{
		"pool":          {clusterv1.MachineDeploymentNameLabel: "p", clusterv1.MachineSetNameLabel: "p-1"},
		"set":           {clusterv1.MachineSetNameLabel: "p"},
		"other set":     {clusterv1.MachineSetNameLabel: "q", clusterv1.MachineDeploymentNameLabel: ""},
		"control plane": {clusterv1.MachineControlPlaneLabel: ""},
		"alone":         {},
	} {
		got := group(&infrav1.MaasMachine{ObjectMeta: metav1.ObjectMeta{Labels: labels}})
		if other, taken := groups[got]; taken {
			t.Errorf("%s and %s are siblings, by %q", name, other, got)
		}
		groups[got] = name
	}
	next := group(&infrav1.MaasMachine{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{clusterv1.MachineDeploymentNameLabel: "p", clusterv1.MachineSetNameLabel: "p-2"}}})
	if groups[next] != "pool" {
		t.Errorf("the next roll-out is %q", next)
	}
}

// TestAddressOfSiblings checks that no two MaasMachines of a namespace choose the same address, whatever the cache and
// MAAS show.
func TestAddressOfSiblings(t *testing.T) {
	t.Parallel()
	subnet := &maas.Subnet{ID: 1, CIDR: "10.0.0.0/24"}
	ranged := func(m *infrav1.MaasMachine) {
		m.Spec.StaticIP = &infrav1.StaticIPConfig{Range: &infrav1.IPRange{Start: "10.0.0.7", End: "10.0.0.9"}}
	}
	fixed := func(ip string) func(*infrav1.MaasMachine) {
		return func(m *infrav1.MaasMachine) { m.Spec.StaticIP = &infrav1.StaticIPConfig{IP: ip} }
	}
	a, b, c := sibling("a", ranged), sibling("b", ranged, annotated(AddressAnnotation, `{"ip": "10.0.0.7"}`)), sibling("c", ranged)
	r := among(t, a, b, c)
	pick := func(m *infrav1.MaasMachine, observed *maas.Machine) (string, *staticip.Refusal) {
		t.Helper()
		ip, refusal, err := r.choice(t.Context(), &scope{machine: m, observed: observed}, subnet, staticip.NewTaken(subnet, nil, nil, ""))
		if err != nil {
			t.Fatal(err)
		}
		return ip, refusal
	}
	if ip, _ := pick(a, nil); ip != "10.0.0.8" {
		t.Errorf("beside one that wrote down its address, it is %s", ip)
	}
	if ip, _ := pick(c, nil); ip != "10.0.0.9" {
		t.Errorf("beside one that chose a moment ago, it is %s", ip)
	}
	if ip, _ := pick(a, nil); ip != "10.0.0.8" {
		t.Errorf("who asks again gets %s", ip)
	}
	if _, refusal := pick(sibling("d", fixed("10.0.0.9")), nil); refusal == nil || refusal.Reason != staticip.ReasonInUse {
		t.Errorf("an address that a sibling chose a moment ago: %+v", refusal)
	}
	if err := r.Client.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	r.claims.refuse("ns", "10.0.0.9", noon.Add(-refusedFor+1))
	if _, refusal := pick(sibling("e", ranged), nil); refusal == nil || refusal.Reason != staticip.ReasonRangeExhausted {
		t.Errorf("what MAAS refused a moment ago is picked again: %+v", refusal)
	}
	if ip, refusal := pick(sibling("f", fixed("10.0.0.9")), nil); ip != "10.0.0.9" {
		t.Errorf("who may have one address alone asks MAAS again: %+v", refusal)
	}
	r.claims.refuse("ns", "10.0.0.9", noon.Add(-refusedFor))
	if ip, refusal := pick(sibling("g", ranged), nil); ip != "10.0.0.9" {
		t.Errorf("what was refused long ago, and whose holder is gone, is %q: %+v", ip, refusal)
	}
	own := &maas.Machine{IPAddresses: []string{"10.0.0.7"}, Interfaces: []maas.Interface{{Links: []maas.Link{{Mode: "static", IPAddress: "10.0.0.7"}}}}}
	if ip, _ := pick(a, own); ip != "10.0.0.7" {
		t.Errorf("a machine that has an address of the range gets %s", ip)
	}
}

// TestRefusedElsewhere checks that an address that was rejected in another namespace can be chosen: that namespace may
// use another MAAS.
func TestRefusedElsewhere(t *testing.T) {
	t.Parallel()
	p, subnet := newClaims(), &maas.Subnet{CIDR: "10.0.0.0/24"}
	p.refuse("other", "10.0.0.7", noon)
	taken := staticip.NewTaken(subnet, nil, nil, "")
	p.addRefused("ns", taken, noon)
	if ip, refusal := staticip.Pick(&infrav1.StaticIPConfig{IP: "10.0.0.7"}, subnet, taken); ip == "" {
		t.Errorf("%+v", refusal)
	}
	p.addRefused("ns", taken, noon.Add(refusedFor))
	if len(p.refused) != 0 {
		t.Errorf("what nobody needs any more stays: %v", p.refused)
	}
}

// TestPeers checks that siblings count for the placement of virtual machines by the UID of their allocation, and keep
// their reservation until they are gone.
func TestPeers(t *testing.T) {
	t.Parallel()
	place := lxd.Placement{Host: "h", Hostname: "vm-1", Cores: 2, At: noon}
	placed := func(m *infrav1.MaasMachine) {
		if err := lxd.SetPlacement(m, place); err != nil {
			panic(err)
		}
	}
	r := among(t, sibling("self", placed), sibling("a", placed, leaving), sibling("b", annotated(UIDAnnotation, "former")), sibling("c", annotated(lxd.PlacementAnnotation, "{")))
	got, err := r.peers(t.Context(), &scope{machine: sibling("self")})
	if err != nil {
		t.Fatal(err)
	}
	pool := clusterv1.MachineDeploymentNameLabel + "=pool"
	want := []lxd.Peer{{UID: "a", Group: pool, Placement: place, Leaving: true}, {UID: "former", Group: pool}, {UID: "c", Group: pool}}
	if diff := cmp.Diff(want, got, cmpopts.SortSlices(func(a, b lxd.Peer) bool { return a.UID < b.UID })); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
