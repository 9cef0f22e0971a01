// SPDX-License-Identifier: Apache-2.0

package maas_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/openshift/hypershift/support/maas"
)

// transport answers the attempts in order without a network, and repeats the last answer indefinitely. An answer is an
// error, or a status and a text.
type transport struct {
	answers []any
	// asked holds the requests, and left the time until each request's deadline.
	asked []*http.Request
	left  []time.Duration
	// before runs before each answer.
	before func()
}

func (s *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	s.asked = append(s.asked, req)
	if at, ok := req.Context().Deadline(); ok {
		s.left = append(s.left, time.Until(at))
	}
	if s.before != nil {
		s.before()
	}
	switch answer := s.answers[min(len(s.asked), len(s.answers))-1].(type) {
	case error:
		return nil, answer
	case int:
		return &http.Response{StatusCode: answer, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
	default:
		text := fmt.Sprint(answer)
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), Request: req}, nil
	}
}

// over is a clock whose timers fire at once.
type over struct {
	clock.RealClock
	waited []time.Duration
}

func (c *over) After(d time.Duration) <-chan time.Time {
	c.waited = append(c.waited, d)
	done := make(chan time.Time, 1)
	done <- c.Now()
	return done
}

const machine = `{"system_id": "wq4h8c"}`

var (
	errDial  = &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	errName  = &net.DNSError{Err: "no such host", Name: "maas"}
	errReset = &net.OpError{Op: "read", Err: errors.New("connection reset by peer")}
)

// TestRepeatedPosts checks that a POST is repeated only if MAAS cannot have received it. Otherwise a second release
// could release a machine that another user has allocated in between.
func TestRepeatedPosts(t *testing.T) {
	for name, tc := range map[string]struct {
		answers []any
		calls   int
		sent    bool
		fails   bool
	}{
		"When no connection is established at first, it should retry":                      {[]any{errDial, errDial, machine}, 3, false, false},
		"When the host name does not resolve at first, it should retry":                    {[]any{errName, machine}, 2, false, false},
		"When every connection attempt fails, it should not return an uncertain error":     {[]any{errDial}, 3, false, true},
		"When the connection breaks, it should not retry":                                  {[]any{errReset, machine}, 1, true, true},
		"When only the last attempt was sent, it should return an uncertain error":         {[]any{errDial, errReset, machine}, 2, true, true},
		"When MAAS limits the rate of calls, it should not retry":                          {[]any{429, machine}, 1, false, true},
		"When a proxy has no region to forward to, it should not retry":                    {[]any{503, machine}, 1, false, true},
		"When the caller has cancelled, it should not retry":                               {[]any{&net.OpError{Op: "dial", Err: context.Canceled}, machine}, 1, false, true},
		"When a proxy loses the answer, it should return an uncertain error and not retry": {[]any{502, machine}, 1, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			server := &transport{answers: tc.answers}
			c := newClient(t, maas.Config{Endpoint: "https://maas/MAAS", Transport: server})
			_, err := c.ReleaseMachine(t.Context(), "wq4h8c", maas.ReleaseRequest{})
			g.Expect(err != nil).To(Equal(tc.fails), "%v", err)
			g.Expect(server.asked).To(HaveLen(tc.calls))
			g.Expect(maas.IsUncertain(err)).To(Equal(tc.sent), "%v", err)
		})
	}
}

func TestDelays(t *testing.T) {
	delays := func(t *testing.T, policy maas.RetryPolicy) []time.Duration {
		t.Helper()
		waits := &over{}
		c := newClient(t, maas.Config{Endpoint: "https://maas/MAAS", Transport: &transport{answers: []any{503}}, Retry: policy, Clock: waits})
		if _, err := c.ListZones(t.Context()); !maas.IsUnavailable(err) {
			t.Fatal(err)
		}
		return waits.waited
	}
	within := func(low, high time.Duration) OmegaMatcher {
		return And(BeNumerically(">=", low), BeNumerically("<=", high))
	}
	t.Run("When a call is retried, its delays should double and have jitter around the mean", func(t *testing.T) {
		g := NewWithT(t)
		seen := map[time.Duration]bool{}
		for range 20 {
			waited := delays(t, maas.RetryPolicy{Attempts: 4, BaseDelay: time.Second, MaxDelay: time.Hour, Budget: time.Hour})
			g.Expect(waited).To(HaveLen(3))
			g.Expect(waited[0]).To(within(500*time.Millisecond, 1500*time.Millisecond))
			g.Expect(waited[1]).To(within(time.Second, 3*time.Second))
			g.Expect(waited[2]).To(within(2*time.Second, 6*time.Second))
			seen[waited[0]] = true
		}
		g.Expect(len(seen)).To(BeNumerically(">", 1), "many clients must not come back at the same time")
	})
	t.Run("When the delays have grown, none should exceed the maximum delay", func(t *testing.T) {
		waited := delays(t, maas.RetryPolicy{Attempts: 8, BaseDelay: time.Second, MaxDelay: 2 * time.Second, Budget: time.Hour})
		g := NewWithT(t)
		g.Expect(waited).To(HaveLen(7))
		g.Expect(waited).To(HaveEach(within(0, 2*time.Second)))
		g.Expect(waited[6]).To(Equal(2 * time.Second))
	})
	t.Run("When the next attempt would exceed the budget, it should stop", func(t *testing.T) {
		NewWithT(t).Expect(delays(t, maas.RetryPolicy{Attempts: 9, BaseDelay: time.Hour, MaxDelay: time.Hour, Budget: time.Minute})).To(BeEmpty())
	})
	t.Run("When the policy is empty, it should try three times within its budget", func(t *testing.T) {
		waited := delays(t, maas.RetryPolicy{Budget: time.Hour})
		g := NewWithT(t)
		g.Expect(waited).To(HaveLen(2))
		g.Expect(waited[0]).To(within(250*time.Millisecond, 750*time.Millisecond))
	})
	t.Run("When Retry-After exceeds the delay but not the budget, it should wait that long", func(t *testing.T) {
		g := NewWithT(t)
		var calls atomic.Int32
		waits := &over{}
		c := newClient(t, maas.Config{Endpoint: answers(t, &calls, status(503, "Retry-After", "5"), body("[]")), Clock: waits})
		_, err := c.ListZones(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(waits.waited).To(Equal([]time.Duration{5 * time.Second}))
	})
	t.Run("When the caller cancels during a delay, it should return the last error of MAAS", func(t *testing.T) {
		g := NewWithT(t)
		still := clocktesting.NewFakeClock(time.Now())
		server := &transport{answers: []any{503, "[]"}}
		c := newClient(t, maas.Config{Endpoint: "https://maas/MAAS", Transport: server, Clock: still})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := c.ListZones(ctx)
			done <- err
		}()
		g.Eventually(still.HasWaiters, time.Minute).Should(BeTrue())
		cancel()
		var err error
		g.Eventually(done, time.Minute).Should(Receive(&err))
		g.Expect(maas.IsUnavailable(err)).To(BeTrue(), "%v", err)
		g.Expect(server.asked).To(HaveLen(1))
	})
}

// TestRateLimit checks that the longest delay of several rate-limit answers applies, whichever call received it.
func TestRateLimit(t *testing.T) {
	t.Run("When MAAS sends no Retry-After, it should send the next call", func(t *testing.T) {
		g := NewWithT(t)
		server := &transport{answers: []any{429, "[]"}}
		c := newClient(t, maas.Config{Endpoint: "https://maas/MAAS", Transport: server, Retry: maas.RetryPolicy{Attempts: -1}})
		_, err := c.ListZones(t.Context())
		g.Expect(maas.IsUnavailable(err)).To(BeTrue())
		_, err = c.ListZones(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
	})
	t.Run("When a concurrent call gets a shorter Retry-After, it should keep the longer one", func(t *testing.T) {
		g := NewWithT(t)
		var calls atomic.Int32
		still := clocktesting.NewFakeClock(time.Now())
		var c *maas.Client
		inner := status(429, "Retry-After", "90")
		c = newClient(t, maas.Config{Clock: still, Retry: maas.RetryPolicy{Attempts: -1}, Endpoint: answers(t, &calls, func(w http.ResponseWriter, r *http.Request) {
			// MAAS answers a second call while the first is in progress.
			_, err := c.ListPools(r.Context())
			if maas.RetryAfter(err) != 90*time.Second {
				t.Errorf("the inner call: %v", err)
			}
			status(429, "Retry-After", "10")(w, r)
		}, inner)})
		_, err := c.ListZones(t.Context())
		g.Expect(maas.RetryAfter(err)).To(Equal(10 * time.Second))
		_, err = c.ListZones(t.Context())
		g.Expect(maas.RetryAfter(err)).To(Equal(90 * time.Second))
		g.Expect(calls.Load()).To(BeEquivalentTo(2))
	})
}

func TestDeadlines(t *testing.T) {
	list := func(filter maas.MachineFilter) func(context.Context, *maas.Client) error {
		return func(ctx context.Context, c *maas.Client) error { _, err := c.ListMachines(ctx, filter); return err }
	}
	for name, tc := range map[string]struct {
		call func(context.Context, *maas.Client) error
		want time.Duration
	}{
		"a read":               {requests()["GET machines/w/ "], 7 * time.Second},
		"a change":             {requests()["PUT machines/w/ swap_size=0"], 11 * time.Second},
		"a removal":            {requests()["DELETE machines/w/ "], 11 * time.Second},
		"a list of machines":   {list(maas.MachineFilter{Zones: []string{"z"}}), 21 * time.Second},
		"a list by system ID":  {list(maas.MachineFilter{SystemIDs: []string{"w"}}), 7 * time.Second},
		"a list by allocation": {list(maas.MachineFilter{AgentNames: []string{"k"}}), 7 * time.Second},
		"a VM creation": {only(func(ctx context.Context, c *maas.Client) (*maas.Machine, error) {
			return c.ComposeMachine(ctx, 7, maas.ComposeRequest{})
		}), 130 * time.Second},
	} {
		t.Run("When the call is "+name+", it should have the matching timeout", func(t *testing.T) {
			server := &transport{answers: []any{409}}
			c := newClient(t, maas.Config{Endpoint: "https://maas/MAAS", Transport: server, ReadTimeout: 7 * time.Second, WriteTimeout: 11 * time.Second})
			start := time.Now()
			_ = tc.call(t.Context(), c)
			NewWithT(t).Expect(server.left).To(ConsistOf(And(BeNumerically("<=", tc.want), BeNumerically(">=", tc.want-time.Since(start)))))
		})
	}
}

// TestPatience checks that the timeout of machine lists grows up to a limit while MAAS is slow, and is reset when MAAS
// is fast again.
func TestPatience(t *testing.T) {
	const read = time.Hour // Long enough that the duration of the test does not matter.
	still := clocktesting.NewFakeClock(time.Now())
	server := &transport{answers: []any{nil}}
	c := newClient(t, maas.Config{Endpoint: "https://maas/MAAS", Transport: server, ReadTimeout: read, Retry: maas.RetryPolicy{Attempts: -1}, Clock: still})
	list := func(ctx context.Context, answer any) time.Duration {
		server.answers, server.left = []any{answer}, nil
		_, _ = c.ListMachines(ctx, maas.MachineFilter{})
		return server.left[0].Round(read)
	}
	g, ctx := NewWithT(t), t.Context()
	for i, want := range []time.Duration{3 * read, 6 * read, 12 * read, 12 * read} {
		g.Expect(list(ctx, context.DeadlineExceeded)).To(Equal(want), "list %d", i)
	}
	g.Expect(list(ctx, errReset)).To(Equal(12*read), "a lost connection says nothing of its time")
	g.Expect(list(ctx, "[]")).To(Equal(12*read), "a list that was quick ends it")
	g.Expect(list(ctx, errReset)).To(Equal(3 * read))

	gone, cancel := context.WithTimeout(ctx, 0)
	defer cancel()
	list(gone, context.DeadlineExceeded)
	g.Expect(list(ctx, errReset)).To(Equal(3*read), "a caller in a hurry says nothing of MAAS")
	list(ctx, context.DeadlineExceeded)
	server.before = func() { still.Step(read) }
	g.Expect(list(ctx, "[]")).To(Equal(6 * read))
	server.before = nil
	g.Expect(list(ctx, "[]")).To(Equal(6*read), "one that took its time shows that it is needed")
}
