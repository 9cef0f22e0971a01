// SPDX-License-Identifier: Apache-2.0

package virtualip

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
)

// slow is a Network whose calls block, as if the process were stopped while it sets an address in the kernel.
type slow struct {
	stills []time.Duration
	told   []time.Duration
	// until is when the kernel removes the address; zero if it is not assigned.
	until time.Time
}

func (*slow) Check(netip.Addr) error    { return nil }
func (*slow) Announce(netip.Addr) error { return nil }

func (s *slow) Drop(netip.Addr) error {
	s.until = time.Time{}
	return nil
}

func (s *slow) Hold(_ netip.Addr, life time.Duration) (bool, error) {
	if still := min(len(s.told), len(s.stills)); still < len(s.stills) {
		<-time.After(s.stills[still])
	}
	added := s.until.IsZero()
	s.told, s.until = append(s.told, life), time.Now().Add(life)
	return added, nil
}

func TestRenewed(t *testing.T) {
	for name, tt := range map[string]struct {
		asked  time.Duration
		stills []time.Duration
		told   []time.Duration
		// keeps is how long the kernel keeps the address after the renewal was requested; zero if it is not assigned.
		keeps time.Duration
	}{
		"When nothing is delayed, it should assign the address for the full lifetime":           {told: []time.Duration{4 * time.Second}, keeps: 4 * time.Second},
		"When the API server was slow, it should assign the address for the remaining lifetime": {asked: 2 * time.Second, told: []time.Duration{2 * time.Second}, keeps: 4 * time.Second},
		"When the API server was too slow, it should not assign the address":                    {asked: 5 * time.Second},
		"When the process was paused briefly, it should shorten the lifetime in the kernel":     {stills: []time.Duration{2 * time.Second}, told: []time.Duration{4 * time.Second, 2 * time.Second}, keeps: 4 * time.Second},
		"When the process was paused until the Lease expired, it should remove the address":     {stills: []time.Duration{7 * time.Second}, told: []time.Duration{4 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked, node := time.Now(), &slow{stills: tt.stills}
				<-time.After(tt.asked)
				h := &Holder{Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1")}, Network: node, Lease: MinLease, Metrics: NewMetrics(), Log: logr.Discard()}
				h.renewed(asked)
				if diff := cmp.Diff(tt.told, node.told); diff != "" {
					t.Errorf("what the kernel was told (-want +got):\n%s", diff)
				}
				var keeps time.Duration
				if !node.until.IsZero() {
					keeps = node.until.Sub(asked)
				}
				if keeps != tt.keeps || h.held != (tt.keeps > 0) {
					t.Errorf("kept for %s (held %t), want %s", keeps, h.held, tt.keeps)
				}
			})
		})
	}
}
