// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/placement"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/quarantine"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

func away(k *rack, operations ...string) {
	for _, operation := range operations {
		simtest.Refuse(k.t, k.site.Simulator, operation, "", http.StatusServiceUnavailable, "busy")
	}
}

// TestChooseMachine checks that MAAS picks and no list is read, unless some of the machines that it might pick must
// not be allocated.
func TestChooseMachine(t *testing.T) {
	t.Parallel()
	quarantined := func(r quarantine.Record) func(*rack) {
		return func(k *rack) {
			if err := quarantine.Records.Set(k.infra, "cheap1", r); err != nil {
				k.t.Fatal(err)
			}
		}
	}
	waits := func(reason string) func(*rack) {
		return func(k *rack) {
			k.machine.Status.Conditions = []metav1.Condition{condition.False(ConditionAllocated, reason, "")}
			k.machine.Status.Conditions[0].LastTransitionTime = metav1.NewTime(simtest.Start)
		}
	}
	static := func(k *rack) { k.machine.Spec.StaticIP = &infrav1.StaticIPConfig{IP: staticIP} }
	last := simtest.Start.Add(-time.Minute)
	for name, tc := range map[string]struct {
		set   func(*rack)
		held  string
		lists int
		asks  int
	}{
		"every machine may be allocated":           {nil, "cheap1", 0, 1},
		"one machine is set aside":                 {func(k *rack) { k.identity.SetAside.Add("cheap1", simtest.Start.Add(1)) }, "dear01", 1, 1},
		"one machine is no longer set aside":       {func(k *rack) { k.identity.SetAside.Add("cheap1", simtest.Start) }, "cheap1", 0, 1},
		"one machine failed a minute ago":          {quarantined(quarantine.Record{Last: last}), "dear01", 1, 1},
		"one machine failed more than an hour ago": {quarantined(quarantine.Record{Last: last.Add(-time.Hour)}), "cheap1", 1, 1},
		"one machine is in quarantine":             {quarantined(quarantine.Record{Last: last.Add(-time.Hour), Quarantined: true}), "dear01", 1, 1},
		"a static IP address is requested":         {static, "cheap1", 1, 1},
		"MAAS does not list VM hosts":              {func(k *rack) { away(k, "vm-hosts.read") }, "cheap1", 1, 1},
		"a machine became available after a wait":  {waits(ReasonNoCapacity), "cheap1", 1, 1},
		"the allocation timed out before":          {waits(ReasonAllocationTimedOut), "cheap1", 1, 1},
		"MAAS was unreachable before":              {waits(ReasonUnreachable), "cheap1", 0, 1},
		"the first zone has no matching machine": {func(k *rack) {
			k.machine.Spec.Tags = []string{"big"}
		}, "dear01", 0, 2},
		"one zone has a matching machine after a wait": {func(k *rack) {
			waits(ReasonNoCapacity)(k)
			k.machine.Spec.Tags = []string{"big"}
		}, "dear01", 1, 1},
		"its failed machine is not released yet": {func(k *rack) {
			failedOn(k.t, failure{SystemID: "cheap1", At: last.Add(-100 * time.Hour)})(k.machine)
			k.scope.contested = true
			away(k, "vm-hosts.read")
		}, "dear01", 1, 1},
	} {
		t.Run("When "+name+", it should allocate the right machine and read no needless list", func(t *testing.T) {
			t.Parallel()
			k := seeker(t, "alice", sibling("self"), simtest.Machine{ID: "cheap1", Zone: "north", CPU: 1}, simtest.Machine{ID: "dear01", Zone: "south", CPU: 64, Tags: []string{"big"}})
			k.infra.Spec.FailureDomains = []string{"north", "south"}
			maybe(tc.set, k)
			if k.machine.Spec.StaticIP == nil {
				away(k, "subnets.read") // The list of subnets is not needed.
			}
			k.asked("")
			_, err := k.choose(t.Context(), k.scope)
			if err != nil || k.systemID() != tc.held {
				t.Errorf("it has %q, %+v: %v", k.systemID(), k.findings.problem, err)
			}
			report := k.site.Load.Report()
			if lists, asks := report.Of("machines.read").Calls, report.Of("machines.allocate").Calls; lists != tc.lists || asks != tc.asks {
				t.Errorf("MAAS made %d lists, and was asked for a machine %d times", lists, asks)
			}
		})
	}
}

// TestChooseContested checks that a machine is not allocated while a sibling still has its address on it.
func TestChooseContested(t *testing.T) {
	t.Parallel()
	k := seeker(t, "alice", sibling("self"), simtest.Machine{ID: "cheap1", CPU: 1}, simtest.Machine{ID: "dear01", CPU: 64})
	if err := k.Client.Create(t.Context(), sibling("a", annotated(AddressAnnotation, `{"ip": "10.0.0.7", "systemID": "cheap1"}`))); err != nil {
		t.Fatal(err)
	}
	if _, err := k.choose(t.Context(), k.scope); err != nil || k.systemID() != "dear01" {
		t.Errorf("it has %q: %v", k.systemID(), err)
	}
}

// TestChooseNothing checks that a problem with the MaasMachine is reported before a machine is allocated.
func TestChooseNothing(t *testing.T) {
	t.Parallel()
	ignition := map[string][]byte{bootstrapKey: []byte(`{"ignition": {"version": "3.4.0"}}`)}
	listed := func(k *rack) { k.identity.SetAside.Add("x", simtest.Start.Add(time.Hour)) }
	for name, tc := range map[string]struct {
		set    func(*rack)
		reason string
		again  time.Duration
	}{
		"no subnet contains its address": {func(k *rack) { k.machine.Spec.StaticIP = &infrav1.StaticIPConfig{IP: "192.0.2.7"} }, "SubnetNotFound", 15 * time.Second},
		"MAAS does not list zones":       {func(k *rack) { away(k, "zones.read") }, ReasonUnavailable, 15 * time.Second},
		"MAAS does not list machines":    {func(k *rack) { listed(k); away(k, "machines.read") }, ReasonUnavailable, 15 * time.Second},
		"MAAS has no such pool": {func(k *rack) {
			listed(k)
			simtest.Refuse(k.t, k.site.Simulator, "machines.read", "", http.StatusBadRequest, `{"pool": ["no"]}`)
		}, ReasonNoCapacity, 10 * time.Second},
		"the only machine is set aside":                     {func(k *rack) { k.identity.SetAside.Add("ready1", simtest.Start.Add(time.Hour)) }, ReasonNoCapacity, 10 * time.Second},
		"another user allocated it a moment ago":            {func(k *rack) { listed(k); k.Reader = takesMeanwhile(k) }, ReasonNoCapacity, 10 * time.Second},
		"there is no bootstrap data":                        {func(k *rack) { k.giveData(nil) }, ReasonWaitingForBootstrapData, 15 * time.Second},
		"MAAS does not list images":                         {func(k *rack) { away(k, "boot-resources.read") }, ReasonUnavailable, 15 * time.Second},
		"the image does not support the format of the data": {func(k *rack) { k.machine.Spec.Image = "ubuntu/noble"; k.giveData(ignition) }, ReasonFormatNotSupported, 15 * time.Second},
	} {
		t.Run("When "+name+", it should report why no machine is allocated", func(t *testing.T) {
			t.Parallel()
			k := seeker(t, "alice", sibling("self"), simtest.Machine{ID: "ready1"})
			tc.set(k)
			result, err := k.choose(t.Context(), k.scope)
			k.expectReason(result, err, tc.reason, tc.again)
			if n := k.asked("machines.allocate"); n > 0 || k.site.Has("ready1").Owner != "" {
				t.Errorf("MAAS was asked %d times", n)
			}
		})
	}
	for name, set := range map[string]func(*rack){
		"its siblings": func(k *rack) { k.owner.Spec.FailureDomain = "default"; deaf(k.Reconciler, errUnwritten) },
		"the Secret":   unreadable,
	} {
		k := seeker(t, "alice", sibling("self"), simtest.Machine{ID: "ready1"})
		set(k)
		if _, err := k.choose(t.Context(), k.scope); !errors.Is(err, errUnwritten) || k.site.Has("ready1").Owner != "" {
			t.Errorf("who can't read %s goes on: %v", name, err)
		}
	}
}

// takesMeanwhile allocates the machine to another user while the bootstrap data is read.
func takesMeanwhile(k *rack) client.Reader {
	return interceptor.NewClient(k.Reader.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			k.identity.Inventory.Take("ready1")
			return c.Get(ctx, key, obj, opts...)
		}})
}

// TestNoCapacity checks that the delay grows with the time waited, and after a while the condition reports a timeout.
func TestNoCapacity(t *testing.T) {
	t.Parallel()
	for waited, tc := range map[time.Duration]struct {
		limit  time.Duration
		reason string
		again  time.Duration
	}{
		0:                  {0, ReasonNoCapacity, 10 * time.Second},
		40 * time.Second:   {0, ReasonNoCapacity, 10 * time.Second},
		80 * time.Second:   {0, ReasonNoCapacity, 20 * time.Second},
		10 * time.Minute:   {0, ReasonNoCapacity, 2 * time.Minute},
		10*time.Minute + 1: {0, ReasonAllocationTimedOut, 2 * time.Minute},
		100 * time.Hour:    {0, ReasonAllocationTimedOut, 2 * time.Minute},
		time.Minute:        {time.Minute, ReasonNoCapacity, 15 * time.Second},
		time.Minute + 1:    {time.Minute, ReasonAllocationTimedOut, 15 * time.Second},
	} {
		r, clock, _ := quiet()
		m := sibling("self")
		m.CreationTimestamp = metav1.NewTime(noon)
		m.Spec.Timeouts.Allocate = &metav1.Duration{Duration: tc.limit}
		clock.SetTime(noon.Add(waited))
		r.spread.chosen["ns"] = map[types.UID]string{"self": "north"}
		s := &scope{machine: m}
		result, err := r.noCapacity(s, "none fits")
		if err == nil || s.findings.problem.Reason != tc.reason || !strings.HasSuffix(s.findings.problem.Message, "none fits") {
			t.Errorf("after %s it is %+v, %v", waited, s.findings.problem, err)
		}
		if result.RequeueAfter < tc.again || result.RequeueAfter > tc.again+tc.again/5+time.Millisecond {
			t.Errorf("after %s it is looked at again after %s", waited, result.RequeueAfter)
		}
		if got := r.spread.chosen["ns"]["self"]; got != "" {
			t.Errorf("it waits in zone %s", got)
		}
	}
}

// TestExplain checks that the message reports a name that MAAS does not have, with a sorted list of the existing
// ones. A list that cannot be read is omitted.
func TestExplain(t *testing.T) {
	t.Parallel()
	has := func(kind, name, names string) string {
		return fmt.Sprintf("; MAAS has no %s %q, it has: %s", kind, name, names)
	}
	named := placement.Request{Zones: []string{"north", "nozone"}, Pool: "nopool", Tags: []string{"gpu", "notag"}}
	for name, tc := range map[string]struct {
		request placement.Request
		away    []string
		want    string
	}{
		"the request names nothing":   {placement.Request{MinCPU: 65}, []string{"zones.read", "tags.read", "resourcepools.read"}, "none of 5 Ready machines has 65 cores"},
		"MAAS has none of the names":  {named, nil, has("zone", "nozone", "default, north, south") + has("resource pool", "nopool", "blue, default") + has("tag", "notag", "fast, gpu")},
		"zones can't be read":         {named, []string{"zones.read"}, has("resource pool", "nopool", "blue, default") + has("tag", "notag", "fast, gpu")},
		"pools can't be read":         {named, []string{"resourcepools.read"}, has("zone", "nozone", "default, north, south") + has("tag", "notag", "fast, gpu")},
		"tags can't be read":          {named, []string{"tags.read"}, has("zone", "nozone", "default, north, south") + has("resource pool", "nopool", "blue, default")},
		"the machines can't be read":  {placement.Request{MinCPU: 65}, []string{"machines.read"}, "no Ready machine fits"},
		"a machine matches after all": {placement.Request{}, nil, "every machine that fits was taken a moment ago"},
	} {
		t.Run("When "+name+", the message should say so", func(t *testing.T) {
			t.Parallel()
			k := seekerOf(t, "alice", sibling("self"), simtest.Rack)
			away(k, tc.away...)
			got := k.explain(t.Context(), k.scope, tc.request)
			if diff := cmp.Diff(tc.want, got); !strings.HasSuffix(got, tc.want) || strings.Count(got, "MAAS has no") != strings.Count(tc.want, "MAAS has no") {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestZonesOf checks that zonesOf returns each zone once, in the order of the machines.
func TestZonesOf(t *testing.T) {
	t.Parallel()
	var machines []maas.Machine
	for _, zone := range []string{"south", "north", "south", "east", "north"} {
		machines = append(machines, maas.Machine{Zone: maas.Zone{Name: zone}})
	}
	if diff := cmp.Diff([]string{"south", "north", "east"}, zonesOf(machines)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestBootstrapIsAwaited checks that the message about missing bootstrap data names the Secret.
func TestBootstrapIsAwaited(t *testing.T) {
	t.Parallel()
	k := seeker(t, "alice", sibling("self"))
	k.Reader = fakeclient.NewClientBuilder().Build()
	result, err := k.checkBootstrap(t.Context(), k.scope)
	k.expectReason(result, err, ReasonWaitingForBootstrapData, 15*time.Second)
	if !strings.Contains(k.findings.problem.Message, "Secret bootstrap") {
		t.Errorf("it says %s", k.findings.problem.Message)
	}
}
