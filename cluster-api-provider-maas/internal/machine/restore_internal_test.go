// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

// TestAwaitsRestore checks that a restored MaasCluster allocates nothing until the machines of the lost one are
// known.
func TestAwaitsRestore(t *testing.T) {
	t.Parallel()
	from, at := map[string]string{infrav1.RestoredFromAnnotation: "former"}, map[string]string{infrav1.RestoredFromAnnotation: "former", infrav1.RestoredAtAnnotation: "now"}
	deleted := ptr.To(metav1.NewTime(noon))
	for name, tc := range map[string]struct {
		infra *infrav1.MaasCluster
		want  bool
		uid   string
	}{
		"there is no MaasCluster":                         {nil, false, ""},
		"it is not a restored cluster":                    {&infrav1.MaasCluster{ObjectMeta: metav1.ObjectMeta{UID: "own"}}, false, "own"},
		"it is restored from another cluster":             {&infrav1.MaasCluster{ObjectMeta: metav1.ObjectMeta{UID: "own", Annotations: from}}, true, "former"},
		"its machines are known":                          {&infrav1.MaasCluster{ObjectMeta: metav1.ObjectMeta{UID: "own", Annotations: at}}, false, "former"},
		"it is restored from another cluster and deleted": {&infrav1.MaasCluster{ObjectMeta: metav1.ObjectMeta{UID: "own", Annotations: from, DeletionTimestamp: deleted}}, false, "former"},
	} {
		if got := AwaitsRestore(tc.infra); got != tc.want {
			t.Errorf("when %s, it is waited for: %t", name, got)
		}
		if tc.infra != nil && ClusterUID(tc.infra) != tc.uid {
			t.Errorf("when %s, its machines are those of %s", name, ClusterUID(tc.infra))
		}
	}
	r, _, _ := quiet()
	s := &scope{machine: holding(), infra: &infrav1.MaasCluster{}}
	if result, err := r.awaitRestore(s); !errors.Is(err, phase.ErrStop) || !soon(result, 10*time.Second) || s.findings.problem.Reason != ReasonRestoring || s.findings.problem.Message == "" {
		t.Errorf("%v, %v, %+v", result, err, s.findings.problem)
	}
}

// TestPool checks that the pool of a machine is its MachineDeployment, which outlives a MachineSet.
func TestPool(t *testing.T) {
	t.Parallel()
	for want, labels := range map[string]map[string]string{
		"":    {},
		"md":  {clusterv1.MachineDeploymentNameLabel: "md", clusterv1.MachineSetNameLabel: "set"},
		"set": {clusterv1.MachineSetNameLabel: "set"},
	} {
		if got := pool(sibling("a", func(m *infrav1.MaasMachine) { m.Labels = labels })); got != want {
			t.Errorf("%v is the pool %q", labels, got)
		}
	}
}

// TestFits checks that a running machine is taken as it is, while a reserved one must still match the spec.
func TestFits(t *testing.T) {
	t.Parallel()
	allocated, runs := maas.Machine{SystemID: "m1", Status: maas.StatusAllocated, CPUCount: 4}, maas.Machine{SystemID: "m1", Status: maas.StatusDeployed, CPUCount: 4}
	for name, tc := range map[string]struct {
		machine  maas.Machine
		restored bool
		cpu      int
		want     bool
	}{
		"it runs and was found":                        {runs, true, 4, true},
		"it runs, and more cores are requested now":    {runs, true, 8, true},
		"it does not run and was found":                {allocated, true, 4, false},
		"it is reserved":                               {allocated, false, 4, true},
		"it is reserved, and more cores are requested": {allocated, false, 8, false},
		"it is reserved, and another user deployed it": {runs, false, 4, false},
	} {
		k := seeker(t, "alice", sibling("self", func(m *infrav1.MaasMachine) { m.Spec.MinCPU = &tc.cpu }))
		fits, result, err := k.fits(t.Context(), k.scope, &tc.machine, tc.restored)
		if fits != tc.want || err != nil || !result.IsZero() {
			t.Errorf("when %s, it fits: %t, %v, %v", name, fits, result, err)
		}
	}
	k := seeker(t, "alice", sibling("self"))
	simtest.Fault(t, k.site.Simulator, faults.Rule{Kind: faults.Error, Status: http.StatusBadGateway})
	if fits, result, err := k.fits(t.Context(), k.scope, &allocated, false); fits || err == nil || !soon(result, 15*time.Second) || k.reason() != ReasonUnavailable {
		t.Errorf("who can't know the zones takes it: %t, %v, %v", fits, result, err)
	}
	k = addressed(t, "admin")
	k.machine.Spec.StaticIP.CIDR = "10.77.0.0/24"
	if fits, result, err := k.fits(t.Context(), k.scope, &allocated, false); fits || !errors.Is(err, phase.ErrStop) || !soon(result, 15*time.Second) || k.reason() == "" {
		t.Errorf("without the subnet it is taken: %t, %v, %v", fits, result, err)
	}
}

// TestKnowAddress checks that the address of a machine of a lost cluster is recorded, so that it is unassigned at the
// release.
func TestKnowAddress(t *testing.T) {
	t.Parallel()
	known := address{IP: staticIP, SystemID: "m1", Replaced: "auto"}
	for name, tc := range map[string]struct {
		change func(*rack)
		want   address
	}{
		"it runs with the address":    {nil, known},
		"no address is requested":     {func(k *rack) { k.machine.Spec.StaticIP = nil }, address{}},
		"another address is recorded": {func(k *rack) { annotate(k.machine, AddressAnnotation, `{"ip": "10.0.0.99"}`) }, address{IP: "10.0.0.99"}},
		"it runs with another address": {func(k *rack) {
			k.observed = &maas.Machine{SystemID: "m1", Status: maas.StatusDeployed}
		}, address{}},
	} {
		k := addressed(t, "admin")
		if ok, _, err := k.place(t.Context(), k.scope); !ok {
			t.Fatal(err)
		}
		k.reread()
		delete(k.machine.Annotations, AddressAnnotation)
		k.observed.Status = maas.StatusDeployed
		maybe(tc.change, k)
		fits, _, err := k.fits(t.Context(), k.scope, k.observed, true)
		if !fits || err != nil || addressOf(k.machine) != tc.want {
			t.Errorf("when %s, it is known that it has %+v; %t, %v", name, addressOf(k.machine), fits, err)
		}
	}
	k := addressed(t, "admin")
	if ok, _, err := k.place(t.Context(), k.scope); !ok {
		t.Fatal(err)
	}
	k.reread()
	delete(k.machine.Annotations, AddressAnnotation)
	unwritable[*infrav1.MaasMachine](k)
	if err := k.knowAddress(t.Context(), k.scope, k.observed); !errors.Is(err, errUnwritten) {
		t.Errorf("what is not written down is not known: %v", err)
	}
}
