// SPDX-License-Identifier: Apache-2.0

package virtualip_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/vishvananda/netlink"

	"github.com/openshift/hypershift/hypershift-operator/virtualip"
	"github.com/openshift/hypershift/hypershift-operator/virtualip/segment"
	"github.com/openshift/hypershift/support/testenv"
)

// TestHolder lets two nodes, in network namespaces on one segment, compete for addresses. Each case checks that the
// nodes never have an address at the same time.
func TestHolder(t *testing.T) {
	config := testenv.Start(t)
	for _, tt := range []struct {
		name, lease string
		run         func(w *world, a, b *node)
	}{
		{"When the holder is stopped, the other node should take over at once and announce the addresses", "stopped", stopped},
		{"When the holder is killed, its kernel should remove the addresses before the other node takes over", "killed", func(w *world, a, b *node) { struck(w, a, b, syscall.SIGKILL) }},
		{"When the holder is frozen, its kernel should remove the addresses before the other node takes over", "still", func(w *world, a, b *node) { struck(w, a, b, syscall.SIGSTOP) }},
		{"When the holder loses the API server, the other node should take the addresses", "cut", cutOff},
		{"When both nodes lose the API server, neither should have the addresses until it is back", "away", away},
		{"When the holder's health check fails, the other node should take the addresses and keep them", "sick", sick},
		{"When the holder's link goes down, the other node should take the addresses", "cable", cable},
		{"When a node without the Lease has a leftover address, it should remove the address", "left", left},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, config, tt.lease)
			tt.run(w, w.nodes[0], w.nodes[1])
		})
	}
}

// both makes a the holder of the addresses, and lets b wait for them.
func both(w *world, a, b *node) (stop func()) {
	w.t.Helper()
	stop = w.start(a)
	w.holds(a)
	w.start(b)
	return stop
}

func stopped(w *world, a, b *node) {
	stop := both(w, a, b)
	for _, address := range addresses {
		w.segment.Remember(address, a.Hardware)
	}
	stop()
	w.lacks(a)
	w.holds(b)
	w.Eventually(w.holder, patience, pace).Should(Equal("b"))
	for _, address := range addresses {
		w.Eventually(func() string { return w.segment.Place(address) }, patience, pace).Should(Equal(b.Hardware.String()))
	}
}

func struck(w *world, a, b *node, signal syscall.Signal) {
	process := w.spawn(a)
	w.holds(a)
	w.start(b)
	w.Expect(process.Process.Signal(signal)).To(Succeed())
	w.holds(b)
	w.lacks(a)
	w.Expect(process.Process.Signal(syscall.SIGCONT)).To(Or(Succeed(), HaveOccurred()))
	w.Consistently(func() bool { return w.usurps(a) }, 3*time.Second, pace).Should(BeFalse(), "who was away is not the holder any more")
}

func cutOff(w *world, a, b *node) {
	both(w, a, b)
	a.away.Store(true)
	w.lacks(a)
	w.holds(b)
	a.away.Store(false)
}

func away(w *world, a, b *node) {
	both(w, a, b)
	a.away.Store(true)
	b.away.Store(true)
	w.lacks(a)
	w.lacks(b)
	a.away.Store(false)
	w.holds(a)
}

func sick(w *world, a, b *node) {
	both(w, a, b)
	a.sick.Store(true)
	w.lacks(a)
	w.holds(b)
	a.sick.Store(false)
	w.Consistently(func() bool { return w.usurps(a) }, 2*time.Second, pace).Should(BeFalse(), "who is well again waits for its turn")
}

func cable(w *world, a, b *node) {
	both(w, a, b)
	link, err := a.Handle.LinkByName(segment.Interface)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(a.Handle.LinkSetDown(link)).To(Succeed())
	w.holds(b)
	w.lacks(a)
}

// left checks that an address without a lifetime stays until the program starts and is then removed, even if the API is
// unreachable.
func left(w *world, a, b *node) {
	link, err := b.Handle.LinkByName(segment.Interface)
	w.Expect(err).NotTo(HaveOccurred())
	forgotten, err := netlink.ParseAddr(addresses[0].String() + "/32")
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(b.Handle.AddrAdd(link, forgotten)).To(Succeed())
	b.away.Store(true)
	w.start(b)
	w.lacks(b)
	w.start(a)
	w.holds(a)
}

func TestAnswers(t *testing.T) {
	g := NewWithT(t)
	code := &atomic.Int32{}
	code.Store(http.StatusOK)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(code.Load())) }))
	check := virtualip.Answers(server.URL)
	g.Expect(check(t.Context())).To(Succeed())
	code.Store(http.StatusServiceUnavailable)
	g.Eventually(func() error { return check(t.Context()) }).Should(MatchError(ContainSubstring("503")))
	server.Close()
	g.Expect(check(t.Context())).To(MatchError(ContainSubstring("no longer responding")))
	g.Expect(virtualip.Answers(server.URL)(t.Context())).To(Succeed(), "what never answered is not there")
}

func TestShortLease(t *testing.T) {
	holder := &virtualip.Holder{Lease: virtualip.MinLease - time.Second}
	NewWithT(t).Expect(holder.Run(t.Context())).To(MatchError(ContainSubstring("the minimum is 6s")))
}
