// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestPrintf(t *testing.T) {
	g := NewWithT(t)
	var out strings.Builder
	c := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	r := New(&out, c)
	r.Printf("nodes %d", 1)
	r.Printf("nodes %d", 1)
	c.Step(90 * time.Second)
	r.Printf("nodes %d", 2)
	g.Expect(out.String()).To(Equal("2026-01-02T03:04:05Z     0s  nodes 1\n2026-01-02T03:05:35Z  1m30s  nodes 2\n"))
}

func TestWait(t *testing.T) {
	tests := []struct {
		name    string
		timeout time.Duration
		states  []State
		errs    []error
		says    string
		prints  []string
	}{
		{
			name: "When the state is done, it should print each message once and return", states: []State{{Message: "one"}, {Message: "one"}, {Message: "two", Done: true}},
			prints: []string{"one", "two"},
		},
		{
			name: "When the timeout expires, it should report the blocking cause", timeout: 50 * time.Millisecond,
			states: []State{{Message: "waiting", Blocking: "no machine fits"}}, says: "the cluster was not done after 50ms; in the way: no machine fits",
		},
		{
			name: "When the timeout expires without a blocking cause, it should report the last message", timeout: 50 * time.Millisecond,
			states: []State{{Message: "1 of 2 nodes"}}, says: "in the way: 1 of 2 nodes",
		},
		{
			name: "When a check fails, it should print the error and retry", errs: []error{errors.New("connection refused")}, states: []State{{}, {Message: "there", Done: true}},
			prints: []string{"cannot read the cluster: connection refused", "there"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			var out strings.Builder
			n := 0
			err := New(&out, clock.RealClock{}).Wait(t.Context(), "the cluster", tt.timeout, time.Millisecond, func(context.Context) (State, error) {
				defer func() { n++ }()
				if n < len(tt.errs) {
					return State{}, tt.errs[n]
				}
				return tt.states[min(n, len(tt.states)-1)], nil
			})
			if tt.says == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
			}
			for _, line := range tt.prints {
				g.Expect(strings.Count(out.String(), line+"\n")).To(Equal(1), out.String())
			}
		})
	}
}

func TestWaitInterrupted(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	err := New(&strings.Builder{}, clock.RealClock{}).Wait(ctx, "the cluster", time.Hour, time.Hour, func(context.Context) (State, error) {
		cancel()
		return State{}, nil
	})
	g.Expect(err).To(MatchError(context.Canceled))
}
