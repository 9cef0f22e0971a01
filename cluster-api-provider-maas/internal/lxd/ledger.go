// SPDX-License-Identifier: Apache-2.0

package lxd

import (
	"sync"
	"time"
)

// Ledger is the placement cache: it holds the placements of this process that the object cache may not show yet.
// Concurrent placements thus see each other. A restart loses the cache, but the MaasMachines hold all placements.
type Ledger struct {
	mu     sync.Mutex
	places map[string]Peer
}

// NewLedger returns an empty Ledger.
func NewLedger() *Ledger { return &Ledger{places: map[string]Peer{}} }

// Reserve selects a host for a machine UID and reserves its placement. The function read returns the peers in the
// object cache; it runs under the lock. It must return every MaasMachine that has a placement: a missing MaasMachine
// counts as deleted. Reserve returns the error of read.
func (l *Ledger) Reserve(uid, hostname string, now time.Time, request Request, hosts []Host, asOf time.Time, read func() ([]Peer, error), avoid map[string]bool) (*Placement, *Choice, Refusal, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	peers, err := read()
	if err != nil {
		return nil, nil, Refusal{}, err
	}
	choice, refusal := Select(request, hosts, asOf, l.others(uid, peers), avoid)
	if choice == nil {
		delete(l.places, uid)
		return nil, nil, refusal, nil
	}
	p := Placement{Host: choice.Host.Name, HostID: choice.Host.ID, Zone: choice.Host.Zone, Project: choice.Host.Project, Hostname: hostname,
		Cores: request.Cores, MemoryMiB: request.MemoryMiB, DiskGB: request.DiskGB, Store: choice.Store, At: now}
	l.places[uid] = Peer{UID: uid, Group: request.Group, Placement: p}
	return &p, choice, Refusal{}, nil
}

// others returns the peers without the machine itself, each with its newest placement. It drops placements of
// MaasMachines that no longer exist.
func (l *Ledger) others(uid string, peers []Peer) []Peer {
	known := map[string]bool{}
	var others []Peer
	for _, peer := range peers {
		known[peer.UID] = true
		if newer, ok := l.places[peer.UID]; ok && newer.At.After(peer.At) {
			newer.Leaving = peer.Leaving
			peer = newer
		} else if ok && !newer.Composed.IsZero() && peer.Composed.IsZero() {
			peer.Composed = newer.Composed
		}
		if peer.UID != uid && peer.Hostname != "" {
			others = append(others, peer)
		}
	}
	for id := range l.places {
		if !known[id] && id != uid {
			delete(l.places, id)
		}
	}
	return others
}

// Composed records when MAAS had composed the virtual machine.
func (l *Ledger) Composed(uid string, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if peer, ok := l.places[uid]; ok {
		peer.Composed = at
		l.places[uid] = peer
	}
}

// Forget releases a placement.
func (l *Ledger) Forget(uid string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.places, uid)
}
