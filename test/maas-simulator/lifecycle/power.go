// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"time"

	"github.com/openshift/hypershift/test/maas-simulator/boot"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// PowerOn powers on a machine that has an owner.
func (l *Life) PowerOn(m *inventory.Machine, user, comment string) error {
	if m.Owner == "" {
		return problem.Conflict("Can't start node: it hasn't been allocated.")
	}
	if err := l.powerFault(m, "on"); err != nil && !errors.Is(err, errUnheard) {
		return unavailable(err)
	}
	l.request(m, user, "User powering node up", comment)
	if m.Task == nil && powered(m) {
		l.begin(m, taskPowerOn)
	}
	return nil
}

var powerOnSteps = []step{{
	after: share(power, 100),
	work: func(ctx context.Context, l *Life, m *inventory.Machine) error {
		if m.Status != status.Deployed {
			return l.powerFault(m, "on")
		}
		return workPowerOn(ctx, l, m)
	},
	done: func(l *Life, m *inventory.Machine) error {
		l.switched(m, "on")
		return nil
	},
}}

// PowerOff powers off a machine. changed is false if MAAS cannot control the machine's power.
func (l *Life) PowerOff(m *inventory.Machine, user, comment string) (changed bool, err error) {
	if err := l.powerFault(m, "off"); err != nil && !errors.Is(err, errUnheard) {
		return false, unavailable(err)
	}
	if !powered(m) {
		return false, nil
	}
	l.request(m, user, "User powering node down", comment)
	if m.Task == nil {
		l.begin(m, taskPowerOff)
	}
	return true, nil
}

var powerOffSteps = []step{{
	after: share(power, 100), work: workPowerOff,
	done: func(l *Life, m *inventory.Machine) error {
		if powered(m) {
			l.switched(m, "off")
			if m.Status == status.Allocated {
				// An aborted deployment keeps its addresses until the power is off.
				l.releaseAuto(m)
			}
		}
		return nil
	},
}}

// QueryPower queries the power state of the backend and stores it. It must run outside of an update.
func (l *Life) QueryPower(ctx context.Context, systemID string) (state string, err error) {
	var m *inventory.Machine
	if err := l.DB.View(func() error {
		if m = l.DB.Machines.Get(systemID); m == nil {
			return problem.NotFound("Machine")
		}
		return nil
	}); err != nil {
		return "", err
	}
	fault := l.powerFault(m, "query")
	state = m.PowerState
	switch {
	case fault != nil:
		state = "error"
	case !powered(m):
		state = "unknown"
	case l.hasMetal() && m.Task == nil:
		on, err := l.Backend.Power(ctx, systemID)
		if err != nil {
			return "", problem.Unavailable("querying the power of %s: %s", systemID, err.Error())
		}
		state = map[boot.State]string{boot.On: "on", boot.Off: "off"}[on]
	}
	return state, errors.Join(l.store(systemID, state), unavailable(fault))
}

func unavailable(err error) error {
	if err == nil {
		return nil
	}
	return problem.Unavailable("%s", err.Error())
}

func (l *Life) store(systemID, state string) error {
	return l.DB.Update(func() error {
		m := l.DB.Machines.Get(systemID)
		if m == nil || m.PowerState == state {
			return nil
		}
		l.DB.Machines.Edit(systemID).PowerState = state
		return nil
	})
}

// pollEvery is the interval of the power queries of idle machines.
const pollEvery = time.Minute

// pollPower updates the power states of idle machines until the context ends.
func (l *Life) pollPower(ctx context.Context) {
	for {
		timer := l.Clock.NewTimer(pollEvery)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
		for _, id := range l.idle() {
			if _, err := l.QueryPower(ctx, id); err != nil {
				l.Log("polling the power of machine %s: %v", id, err)
			}
		}
	}
}

// idle returns the system IDs of machines without a task whose power MAAS controls.
func (l *Life) idle() []string {
	var ids []string
	// The function always returns nil.
	_ = l.DB.View(func() error {
		for _, m := range l.DB.Machines.All() {
			if m.Task == nil && powered(m) {
				ids = append(ids, m.SystemID)
			}
		}
		return nil
	})
	return ids
}
