// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/staticip"
)

// refusedFor is how long an address is not picked again that MAAS refused.
const refusedFor = 10 * time.Minute

// namespacedIP is an address as the MaasMachines of a namespace see it: another namespace may have another MAAS.
type namespacedIP struct{ namespace, ip string }

// claims remembers the addresses that this process chose and that the cache may not show yet, and those that MAAS refused. A
// restart forgets them: the cache is whole then, and MAAS refuses an address that somebody has.
type claims struct {
	mu sync.Mutex
	// chosen are the addresses by namespace and by UID of the MaasMachine.
	chosen  map[string]map[types.UID]string
	refused map[namespacedIP]time.Time
}

func newClaims() *claims {
	return &claims{chosen: map[string]map[types.UID]string{}, refused: map[namespacedIP]time.Time{}}
}

// of returns what was chosen for the MaasMachines of a namespace that are still there; mu must be held.
func (p *claims) of(m *infrav1.MaasMachine, siblings []infrav1.MaasMachine) map[types.UID]string {
	before, now := p.chosen[m.Namespace], map[types.UID]string{}
	for i := range siblings {
		if ip, ok := before[siblings[i].UID]; ok {
			now[siblings[i].UID] = ip
		}
	}
	p.chosen[m.Namespace] = now
	return now
}

// refuse notes that MAAS does not give an address.
func (p *claims) refuse(namespace, ip string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused[namespacedIP{namespace, ip}] = now.Add(refusedFor)
}

// addRefused adds what MAAS refused a short while ago; mu must be held.
func (p *claims) addRefused(namespace string, taken *staticip.Taken, now time.Time) {
	for refused, until := range p.refused {
		switch {
		case !now.Before(until):
			delete(p.refused, refused)
		case refused.namespace == namespace:
			taken.Add(refused.ip, "somebody: MAAS refused it a short while ago")
		}
	}
}
