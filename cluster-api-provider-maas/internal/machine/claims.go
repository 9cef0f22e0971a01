// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/staticip"
)

// refusedFor is how long an address that MAAS rejected is not picked again.
const refusedFor = 10 * time.Minute

// namespacedIP is an address in the context of a namespace: another namespace may use another MAAS.
type namespacedIP struct{ namespace, ip string }

// claims holds the IP reservations of this process that the cache may not show yet, and the addresses that MAAS
// rejected. A restart loses both. The cache is complete then, and MAAS rejects an address that is in use.
type claims struct {
	mu sync.Mutex
	// chosen holds the addresses by namespace and by UID of the MaasMachine.
	chosen  map[string]map[types.UID]string
	refused map[namespacedIP]time.Time
}

func newClaims() *claims {
	return &claims{chosen: map[string]map[types.UID]string{}, refused: map[namespacedIP]time.Time{}}
}

// of returns the addresses chosen for the existing siblings of a MaasMachine, and drops the others. The caller must
// hold mu.
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

// refuse records that MAAS rejected an address.
func (p *claims) refuse(namespace, ip string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused[namespacedIP{namespace, ip}] = now.Add(refusedFor)
}

// addRefused adds the recently rejected addresses to taken. The caller must hold mu.
func (p *claims) addRefused(namespace string, taken *staticip.Taken, now time.Time) {
	for refused, until := range p.refused {
		switch {
		case !now.Before(until):
			delete(p.refused, refused)
		case refused.namespace == namespace:
			taken.Add(refused.ip, "an unknown owner (MAAS recently rejected it)")
		}
	}
}
