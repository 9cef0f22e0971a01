// SPDX-License-Identifier: Apache-2.0

package virtualip_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/openshift/hypershift/hypershift-operator/virtualip"
)

// diary is a fake Lease and network that records all calls.
type diary struct {
	// refuses is the error that the network returns for an address.
	refuses error

	mu     sync.Mutex
	lines  []string
	record *resourcelock.LeaderElectionRecord
	// unread reports that another node wrote the record and that it has not been read since.
	unread bool
}

// taken simulates another node that takes the Lease.
func (d *diary) taken(by string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.record, d.unread = &resourcelock.LeaderElectionRecord{HolderIdentity: by, LeaseDurationSeconds: 6}, true
}

// writable returns a conflict, as an API server does, for a write over an unread record.
func (d *diary) writable() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.unread {
		return apierrors.NewConflict(schema.GroupResource{}, "lease", errors.New("it was changed"))
	}
	return nil
}

// write records a line, except for renewals while the address is assigned.
func (d *diary) write(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := len(d.lines)
	if n == 0 || d.lines[n-1] == "dropped" || !slices.Contains(d.lines, line) || line == "dropped" {
		d.lines = append(d.lines, line)
	}
}

func (d *diary) read() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lines)
}

func (d *diary) Check(netip.Addr) error    { return nil }
func (d *diary) Announce(netip.Addr) error { d.write("announced"); return nil }
func (d *diary) Drop(netip.Addr) error     { d.write("dropped"); return nil }
func (d *diary) Hold(netip.Addr, time.Duration) (bool, error) {
	d.write("held")
	return true, d.refuses
}

func (d *diary) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.record == nil {
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{}, "lease")
	}
	d.unread = false
	raw, err := json.Marshal(d.record)
	return d.record, raw, err
}

func (d *diary) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return d.Update(ctx, record)
}

func (d *diary) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	if err := d.writable(); err != nil {
		return err
	}
	line := "lease taken"
	if record.HolderIdentity == "" {
		line = "lease given up"
	}
	d.write(line)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.record = &record
	return nil
}

func (d *diary) RecordEvent(string) {}
func (d *diary) Identity() string   { return "a" }
func (d *diary) Describe() string   { return "a diary" }

// TestOrder checks that no address is assigned without the Lease. Time only advances while the test waits, because a
// delay would lose the Lease.
func TestOrder(t *testing.T) {
	for _, tt := range []struct {
		name    string
		refuses error
		until   string
		want    []string
	}{
		{
			name: "When the holder is stopped, it should remove the address before it releases the Lease", until: "announced",
			want: []string{"dropped", "lease taken", "held", "announced", "dropped", "lease given up", "dropped"},
		},
		{
			name: "When the address cannot be assigned, it should release the Lease", refuses: errors.New("no such device"), until: "lease given up",
			want: []string{"dropped", "lease taken", "held", "dropped", "lease given up", "dropped"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, d := NewWithT(t), &diary{refuses: tt.refuses}
				holder := &virtualip.Holder{
					Addresses: addresses[:1], Network: d, Lock: d, Lease: virtualip.MinLease, Metrics: virtualip.NewMetrics(), Log: logr.Discard(),
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- holder.Run(ctx) }()
				g.Eventually(d.read, patience, time.Millisecond).Should(ContainElement(tt.until))
				cancel()
				g.Expect(<-done).To(Succeed())
				g.Expect(d.read()).To(Equal(tt.want))
			})
		})
	}
}

// TestTaken lets another node take the Lease while this one is stopped, and then ends this one. It must not release a
// Lease that it no longer holds.
func TestTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, d := NewWithT(t), &diary{}
		holder := &virtualip.Holder{
			Addresses: addresses[:1], Network: d, Lock: d, Lease: virtualip.MinLease, Metrics: virtualip.NewMetrics(), Log: logr.Discard(),
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- holder.Run(ctx) }()
		g.Eventually(d.read, patience, time.Millisecond).Should(ContainElement("announced"))
		d.taken("b")
		cancel()
		g.Expect(<-done).To(Succeed())
		g.Expect(d.record.HolderIdentity).To(Equal("b"))
		g.Expect(d.read()).NotTo(ContainElement("lease given up"))
		g.Expect(d.read()[4:]).To(And(Not(BeEmpty()), HaveEach("dropped")), "and the address is off")
	})
}
