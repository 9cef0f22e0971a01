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

// diary is a Lease and a network that write down what is done to them.
type diary struct {
	// refuses is what the network says to an address.
	refuses error

	mu     sync.Mutex
	lines  []string
	record *resourcelock.LeaderElectionRecord
	// unread says that another wrote the record, and that nobody has read it since.
	unread bool
}

// taken is another node that takes the Lease.
func (d *diary) taken(by string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.record, d.unread = &resourcelock.LeaderElectionRecord{HolderIdentity: by, LeaseDurationSeconds: 6}, true
}

// writable refuses, as an API server does, what is written over something that was not read.
func (d *diary) writable() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.unread {
		return apierrors.NewConflict(schema.GroupResource{}, "lease", errors.New("it was changed"))
	}
	return nil
}

// write leaves out what only goes on: renewals while the address is there.
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

// TestOrder holds that no address is there without the Lease. No time passes but what is waited for: one that stood still would lose the Lease.
func TestOrder(t *testing.T) {
	for _, tt := range []struct {
		name    string
		refuses error
		until   string
		want    []string
	}{
		{
			name: "When it is stopped, the address should go before the Lease is given up", until: "announced",
			want: []string{"dropped", "lease taken", "held", "announced", "dropped", "lease given up", "dropped"},
		},
		{
			name: "When the address cannot be put on, the Lease should be left to others", refuses: errors.New("no such device"), until: "lease given up",
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

// TestTaken has another node take the Lease while this one stands still, and end then: what is not its own any more is not its to give up.
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
