package main

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/maas/maastest"
	"github.com/openshift/hypershift/support/testenv"
)

// moment is when, around a call, a process is killed.
type moment int

const (
	beforeSend moment = iota
	afterSend
	afterAnswer
	moments
)

var errKilled = errors.New("the process is dead")

// victim is a process that dies at its n-th call of any API.
type victim struct {
	mu   sync.Mutex
	left int
	when moment
	dead bool
	kill context.CancelFunc
}

// strike tells whether this call is the fatal one.
func (v *victim) strike(r *http.Request) (fatal, dead bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.dead {
		return false, true
	}
	if r.URL.Query().Get("watch") != "" {
		return false, false
	}
	v.left--
	return v.left == 0, false
}

func (v *victim) die() {
	v.mu.Lock()
	v.dead = true
	v.mu.Unlock()
	v.kill()
}

// trip is a transport of the victim. A dead process sends nothing any more, but what it sent arrives.
type trip struct {
	victim *victim
	next   http.RoundTripper
}

func (t trip) RoundTrip(r *http.Request) (*http.Response, error) {
	fatal, dead := t.victim.strike(r)
	switch {
	case dead:
		return nil, errKilled
	case !fatal:
		return t.next.RoundTrip(r)
	}
	switch t.victim.when {
	case afterSend:
		go t.deliver(r.Clone(context.WithoutCancel(r.Context())))
	case afterAnswer:
		response, err := t.next.RoundTrip(r)
		t.victim.die()
		return response, err
	}
	t.victim.die()
	return nil, errKilled
}

// deliver lets a request arrive a moment after its process died.
func (t trip) deliver(r *http.Request) {
	<-time.After(rand.N(20 * time.Millisecond))
	if response, err := t.next.RoundTrip(r); err == nil {
		_ = response.Body.Close()
	}
}

// TestCrash kills the provider at a random call again and again, while machines are created and deleted. Two machines can't be
// deployed, so giving up on a machine is interrupted as well.
func TestCrash(t *testing.T) {
	t.Parallel()
	kills := 500
	if testing.Short() {
		kills = 40
	}
	const machines = 50
	server := inventoryOf(t, machines+10)
	server.DeployTime, server.ReleaseTime = 100*time.Millisecond, 50*time.Millisecond
	for _, bad := range []string{"m00003", "m00017"} {
		server.Edit(bad, func(m *maastest.Machine) { m.FailDeploys = math.MaxInt })
	}
	b := newStage(t, testenv.Start(t, crds.Infrastructure, crds.ClusterAPI), server.URL, server.APIKey)
	start := time.Now()
	for n := range kills {
		b.stir(machines)
		b.crash(moment(n%int(moments)), 1+rand.IntN(40))
	}
	t.Logf("%d kills in %s", kills, time.Since(start).Round(time.Second))
	b.converge(wire{}, hasty, 2*time.Minute)
	b.expectNoLeak(server)
	for _, m := range b.machines() {
		b.remove(m)
	}
	b.converge(wire{}, hasty, 2*time.Minute)
	b.expectNoLeak(server)
}

// stir creates machines up to a number, and deletes one now and then.
func (b *stage) stir(upTo int) {
	b.t.Helper()
	machines := b.machines()
	if len(machines) < upTo {
		b.add()
	}
	if len(machines) > upTo/4 {
		b.remove(machines[rand.IntN(len(machines))])
	}
}

// crash runs one incarnation of the provider until its n-th call.
func (b *stage) crash(when moment, n int) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 5*time.Second)
	defer cancel()
	v := &victim{left: n, when: when, kill: cancel}
	direct := http.DefaultTransport.(*http.Transport).Clone()
	direct.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	defer direct.CloseIdleConnections()
	// How a dead process ends says nothing.
	_ = b.incarnate(ctx, wire{
		kube: func(next http.RoundTripper) http.RoundTripper { return trip{v, next} },
		maas: trip{v, direct},
	}, hasty)
}
