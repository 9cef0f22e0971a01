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

// zonesAge is the maximum age of the list of MAAS zones that is used for zone spreading.
const zonesAge = time.Minute

// spread remembers the chosen zones of machines that are not in the cache yet. Without it, twenty machines created
// together would all go to the emptiest zone. A restart loses it, but the cache is complete then.
type spread struct {
	mu sync.Mutex
	// chosen holds the zones by namespace and by UID of the MaasMachine.
	chosen map[string]map[types.UID]string
}

func newSpread() *spread {
	return &spread{chosen: map[string]map[types.UID]string{}}
}

// zones returns the zones in which the machine may be, in order of preference. If the Machine or the MaasMachine
// names a zone, that is the only one. Otherwise they are the zones of the cluster, the one with the fewest siblings
// first. An empty result means any zone.
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

// order sorts zones by the number of machines of the same MachineDeployment, and records the first zone for the
// machine.
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

// note updates the recorded zone of a machine; an empty zone means none for now.
func (p *spread) note(m *infrav1.MaasMachine, zone string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.chosen[m.Namespace] != nil {
		p.chosen[m.Namespace][m.UID] = zone
	}
}

// group returns the key by which machines are siblings: their MachineDeployment (across its MachineSets), else their
// MachineSet, else membership in the control plane.
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

// zoneOf returns the zone of the machine that is allocated to a MaasMachine; empty without a machine.
func zoneOf(m *infrav1.MaasMachine) string {
	id, _ := maas.ParseProviderID(deref(m.Spec.ProviderID))
	return id.Zone
}
