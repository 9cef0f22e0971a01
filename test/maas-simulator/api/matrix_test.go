// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// outcome is the result of an operation: the response's code, the status in the response or the next read, and the
// final status.
type outcome struct {
	code         int
	now, settled status.Status
}

func refused(code int) outcome { return outcome{code: code, now: -1, settled: -1} }

func leads(now, settled status.Status) outcome { return outcome{200, now, settled} }

// matrix maps each operation to its outcome for each status. In a status that is not listed, the operation fails with
// the default.
var matrix = map[string]struct {
	request  []string
	fallback outcome
	by       map[status.Status]outcome
}{
	"deploy": {
		fallback: refused(409),
		by: map[status.Status]outcome{
			status.Ready:     leads(status.Deploying, status.Deployed),
			status.Allocated: leads(status.Deploying, status.Deployed),
		},
	},
	"release": {
		fallback: refused(409),
		by: map[status.Status]outcome{
			status.Ready:             leads(status.Ready, status.Ready),
			status.Releasing:         leads(status.Releasing, status.Releasing),
			status.Allocated:         leads(status.Releasing, status.Ready),
			status.Reserved:          leads(status.Releasing, status.Ready),
			status.Broken:            leads(status.Releasing, status.Ready),
			status.Deploying:         leads(status.Releasing, status.Ready),
			status.Deployed:          leads(status.Releasing, status.Ready),
			status.FailedDeployment:  leads(status.Releasing, status.Ready),
			status.FailedDiskErasing: leads(status.Releasing, status.Ready),
			status.FailedReleasing:   leads(status.Releasing, status.Ready),
		},
	},
	"release with erase": {
		request:  []string{"erase", "true"},
		fallback: refused(409),
		by: map[status.Status]outcome{
			status.Ready:             leads(status.Ready, status.Ready),
			status.Releasing:         leads(status.Releasing, status.Releasing),
			status.Allocated:         leads(status.DiskErasing, status.Ready),
			status.Reserved:          leads(status.DiskErasing, status.Ready),
			status.Broken:            leads(status.DiskErasing, status.Ready),
			status.Deploying:         leads(status.DiskErasing, status.Ready),
			status.Deployed:          leads(status.DiskErasing, status.Ready),
			status.FailedDeployment:  leads(status.DiskErasing, status.Ready),
			status.FailedDiskErasing: leads(status.DiskErasing, status.Ready),
			status.FailedReleasing:   leads(status.DiskErasing, status.Ready),
		},
	},
	"abort": {
		fallback: refused(409),
		by: map[status.Status]outcome{
			status.Commissioning: leads(status.New, status.New),
			status.Deploying:     leads(status.Allocated, status.Allocated),
			status.DiskErasing:   leads(status.FailedDiskErasing, status.FailedDiskErasing),
			status.Testing:       leads(status.Ready, status.Ready),
		},
	},
	"commission": {
		fallback: refused(400),
		by: map[status.Status]outcome{
			status.New:                 leads(status.Commissioning, status.Ready),
			status.FailedCommissioning: leads(status.Commissioning, status.Ready),
			status.Missing:             leads(status.Commissioning, status.Ready),
			status.Ready:               leads(status.Commissioning, status.Ready),
			status.Broken:              leads(status.Commissioning, status.Ready),
			status.FailedTesting:       leads(status.Commissioning, status.Ready),
		},
	},
	"test": {
		fallback: refused(400),
		by: func() map[status.Status]outcome {
			by := map[status.Status]outcome{status.FailedTesting: leads(status.Testing, status.Ready)}
			for _, s := range []status.Status{
				status.New, status.FailedCommissioning, status.Missing, status.Ready, status.Reserved, status.Deployed, status.Retired,
				status.Broken, status.Allocated, status.FailedDeployment, status.FailedReleasing, status.FailedDiskErasing,
				status.RescueMode, status.FailedEnteringRescueMode, status.FailedExitingRescueMode,
			} {
				by[s] = leads(status.Testing, s)
			}
			return by
		}(),
	},
	"rescue_mode": {
		fallback: refused(409),
		by: func() map[status.Status]outcome {
			by := map[status.Status]outcome{}
			for _, s := range []status.Status{
				status.New, status.FailedCommissioning, status.Missing, status.Ready, status.Reserved, status.Deployed, status.Retired,
				status.Broken, status.Allocated, status.FailedDeployment, status.FailedDiskErasing, status.FailedTesting,
				status.FailedEnteringRescueMode, status.FailedExitingRescueMode, status.EnteringRescueMode,
			} {
				by[s] = leads(status.EnteringRescueMode, status.RescueMode)
			}
			return by
		}(),
	},
	"exit_rescue_mode": {
		fallback: refused(409),
		by: map[status.Status]outcome{
			status.RescueMode:               leads(status.ExitingRescueMode, status.Ready),
			status.EnteringRescueMode:       leads(status.ExitingRescueMode, status.Ready),
			status.ExitingRescueMode:        leads(status.ExitingRescueMode, status.Ready),
			status.FailedEnteringRescueMode: leads(status.ExitingRescueMode, status.Ready),
			status.FailedExitingRescueMode:  leads(status.ExitingRescueMode, status.Ready),
		},
	},
	"mark_broken": {
		request:  []string{"comment", "smoke"},
		fallback: leads(status.Broken, status.Broken),
		by: func() map[status.Status]outcome {
			by := map[status.Status]outcome{}
			for _, s := range unowned {
				by[s] = refused(403) // The operation is for the owner, and there is none.
			}
			return by
		}(),
	},
	"mark_fixed": {
		fallback: refused(409),
		by:       map[status.Status]outcome{status.Broken: leads(status.Ready, status.Ready)},
	},
	"override_failed_testing": {
		fallback: refused(409),
		by:       map[status.Status]outcome{status.FailedTesting: leads(status.Ready, status.Ready)},
	},
	"lock": {
		fallback: refused(409),
		by: map[status.Status]outcome{
			status.Deployed:  leads(status.Deployed, status.Deployed),
			status.Deploying: leads(status.Deploying, status.Deploying),
		},
	},
	"unlock": {fallback: refused(409)},
	"set_storage_layout": {
		request:  []string{"storage_layout", "lvm"},
		fallback: refused(409),
		by: map[status.Status]outcome{
			status.Ready:     leads(status.Ready, status.Ready),
			status.Allocated: leads(status.Allocated, status.Allocated),
		},
	},
	"restore_default_configuration": {
		fallback: refused(409),
		by: map[status.Status]outcome{
			status.Ready:         leads(status.Ready, status.Ready),
			status.Allocated:     leads(status.Allocated, status.Allocated),
			status.FailedTesting: leads(status.FailedTesting, status.FailedTesting),
		},
	},
}

// unowned are the statuses of machines without an owner.
var unowned = []status.Status{status.New, status.Ready, status.Retired, status.Missing, status.FailedCommissioning, status.Broken}

// in returns a site whose machine two has the status. The machine has an owner if the status usually implies one.
func in(t *testing.T, s status.Status) *simtest.Site {
	site := simtest.New(t, simtest.Rack)
	site.Change("aaaaa2", func(m *inventory.Machine) {
		m.Status, m.PowerState, m.Previous = s, "on", status.Ready
		m.Commissioned = true
		if !s.In(unowned...) {
			m.Owner = "admin"
		}
		if s == status.New || s == status.Commissioning {
			m.Commissioned = false
		}
	})
	return site
}

func TestEveryOperationInEveryStatus(t *testing.T) {
	for name, row := range matrix {
		for _, s := range status.All() {
			t.Run(fmt.Sprintf("When a machine is %s, %s should succeed or fail as in MAAS", s, name), func(t *testing.T) {
				g := NewWithT(t)
				want, listed := row.by[s]
				if !listed {
					want = row.fallback
				}
				site := in(t, s)
				op := name
				if op == "release with erase" {
					op = "release"
				}
				answer := site.Do("admin", "POST", "machines/aaaaa2/?op="+op, row.request...)
				g.Expect(answer.Code).To(Equal(want.code), answer.Body)
				if want.code != 200 {
					g.Expect(site.Has("aaaaa2").Status).To(Equal(s), "a refusal changes nothing")
					g.Expect(site.Has("aaaaa2").Task).To(BeNil())
					return
				}
				g.Expect(site.Has("aaaaa2").Status).To(Equal(want.now), "right after the answer")
				site.Settle(10 * time.Minute)
				g.Expect(site.Has("aaaaa2").Status).To(Equal(want.settled), "once all is done")
			})
		}
	}
}

func TestAllocateInEveryStatus(t *testing.T) {
	for _, s := range status.All() {
		t.Run(s.String(), func(t *testing.T) {
			g := NewWithT(t)
			site := in(t, s)
			answer := site.Do("admin", "POST", "machines/?op=allocate", "system_id", "aaaaa2")
			if s == status.Ready {
				g.Expect(answer.Code).To(Equal(200), answer.Body)
				g.Expect(site.Has("aaaaa2").Status).To(Equal(status.Allocated))
				return
			}
			g.Expect(answer.Code).To(Equal(409))
			g.Expect(answer.Body).To(Equal("No machine with system ID aaaaa2 available."))
		})
	}
}

func TestInterfacesInEveryStatus(t *testing.T) {
	for _, s := range status.All() {
		t.Run(s.String(), func(t *testing.T) {
			g := NewWithT(t)
			site := in(t, s)
			answer := site.Do("admin", "POST", "nodes/aaaaa2/interfaces/?op=create_physical", "name", "eth7", "mac_address", "52:54:00:00:00:77", "vlan", "1")
			if s.In(status.New, status.Ready, status.FailedTesting, status.Allocated, status.Broken) {
				g.Expect(answer.Code).To(Equal(200), answer.Body)
				return
			}
			g.Expect(answer.Code).To(Equal(409))
			g.Expect(answer.Body).To(Equal("Cannot create interface because the machine is not New, Ready, Allocated, or Broken."))
		})
	}
}
