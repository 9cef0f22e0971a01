// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/lifecycle"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

// unwell makes a fifth of all calls fail: MAAS rejects the call, or executes it and loses or truncates the answer.
var unwell = []faults.Rule{
	{Kind: faults.Error, Rate: 0.05, Status: http.StatusInternalServerError},
	{Kind: faults.Error, Rate: 0.05, Status: http.StatusServiceUnavailable},
	{Kind: faults.LostAnswer, Rate: 0.05, Status: http.StatusGatewayTimeout},
	{Kind: faults.DropAfter, Rate: 0.05},
}

func TestFaults(t *testing.T) {
	t.Parallel()
	machines := 100
	if testing.Short() {
		machines = 20
	}
	s := simulated(t, machines, unwell...)
	s.Life.Durations = lifecycle.Durations{Deploy: 100 * time.Millisecond, Power: 50 * time.Millisecond}
	b := newWorld(t, testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI), "clusters-fault", simtest.Serve(t, s), s.Key("alice"))
	for range machines {
		b.add()
	}
	b.converge(wire{}, hasty, patience)
	b.expectNoLeak(marksOf(s))
	for _, m := range b.machines() {
		b.remove(m)
	}
	b.converge(wire{}, hasty, patience)
	b.expectNoLeak(marksOf(s))
}

// marksOf returns, for each machine, the UID of the MaasMachine in its ownership annotations.
func marksOf(s *simulator.Simulator) map[string]string {
	marks := map[string]string{}
	for _, m := range s.Machines() {
		if m.Owner != "" {
			marks[m.SystemID] = m.Annotations[maas.AnnotationMachineUID]
		}
	}
	return marks
}
