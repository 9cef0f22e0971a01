// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/support/maas"
)

// zonesAge is how old the list of MAAS's zones may be that machines are spread over.
const zonesAge = time.Minute

// spread remembers in which zone this process looks for machines that the cache does not show yet, so that twenty machines that are
// made at once do not all go to the zone that was the emptiest. A restart forgets it: the cache is whole then.
type spread struct {
	mu sync.Mutex
	// chosen are the zones by namespace and by UID of the MaasMachine.
	chosen map[string]map[types.UID]string
}

func newSpread() *spread {
	return &spread{chosen: map[string]map[types.UID]string{}}
}

// zones are those in which the machine may be, the most wanted first: the one that the Machine or the MaasMachine names, else those
// of the cluster, the one with the fewest siblings first. None means that it does not matter.
func (r *Reconciler) zones(ctx context.Context, s *scope) ([]string, error) {
	if zone := s.zone(); zone != "" {
		return []string{zone}, nil
	}
	var allowed []string
	if s.infra != nil {
		allowed = slices.Clone(s.infra.Spec.FailureDomains)
	}
	if len(allowed) == 0 {
		all, err := s.identity.Inventory.Zones(ctx, zonesAge)
		if err != nil || len(all) < 2 {
			return nil, err
		}
		allowed = names(all, func(z maas.Zone) string { return z.Name })
	}
	siblings, err := r.siblings(ctx, s)
	if err != nil {
		return nil, err
	}
	return r.spread.order(s.machine, siblings, allowed), nil
}

// order sorts zones by how many machines of the same MachineDeployment they have, and notes the first one as that of the machine.
func (p *spread) order(m *infrav1.MaasMachine, siblings []infrav1.MaasMachine, zones []string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, now := p.chosen[m.Namespace], map[types.UID]string{}
	machines := map[string]int{}
	for i := range siblings {
		other := &siblings[i]
		zone := zoneOf(other)
		if zone == "" {
			zone = before[other.UID]
			now[other.UID] = zone
		}
		if group(other) == group(m) && other.DeletionTimestamp.IsZero() {
			machines[zone]++
		}
	}
	slices.SortStableFunc(zones, func(a, b string) int { return machines[a] - machines[b] })
	now[m.UID] = zones[0]
	p.chosen[m.Namespace] = now
	return zones
}

// note corrects where a machine is looked for; an empty zone means nowhere for now.
func (p *spread) note(m *infrav1.MaasMachine, zone string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.chosen[m.Namespace] != nil {
		p.chosen[m.Namespace][m.UID] = zone
	}
}

// group is what machines are siblings by: their MachineDeployment, across its MachineSets, else their MachineSet, or that they are
// of the control plane.
func group(m *infrav1.MaasMachine) string {
	for _, label := range []string{clusterv1.MachineDeploymentNameLabel, clusterv1.MachineSetNameLabel} {
		if name := m.Labels[label]; name != "" {
			return label + "=" + name
		}
	}
	_, controlPlane := m.Labels[clusterv1.MachineControlPlaneLabel]
	if controlPlane {
		return clusterv1.MachineControlPlaneLabel
	}
	return ""
}

// zoneOf is where the machine is that a MaasMachine holds; empty when it holds none.
func zoneOf(m *infrav1.MaasMachine) string {
	id, _ := maas.ParseProviderID(deref(m.Spec.ProviderID))
	return id.Zone
}
