// SPDX-License-Identifier: Apache-2.0

package maas_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/openshift/hypershift/support/maas"
)

// says returns a handler that answers with the given status, media type and body.
func says(code int, media, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", media)
		w.WriteHeader(code)
		_, _ = w.Write([]byte(text))
	}
}

// TestWhoSaysSo checks the source of answers that determine what happens to a machine. If the controller takes a
// proxy's answer for MAAS's, it loses track of a running machine.
func TestWhoSaysSo(t *testing.T) {
	const text, page, object = "text/plain; charset=utf-8", "text/html; charset=utf-8", "application/json"
	get := func(ctx context.Context, c *maas.Client) error { _, err := c.GetMachine(ctx, "wq4h8c"); return err }
	list := func(ctx context.Context, c *maas.Client) error {
		_, err := c.ListMachines(ctx, maas.MachineFilter{})
		return err
	}
	whoami := func(ctx context.Context, c *maas.Client) error { _, err := c.WhoAmI(ctx); return err }
	release := func(ctx context.Context, c *maas.Client) error {
		_, err := c.ReleaseMachine(ctx, "wq4h8c", maas.ReleaseRequest{})
		return err
	}
	for name, tc := range map[string]struct {
		call   func(context.Context, *maas.Client) error
		answer http.HandlerFunc
		want   func(error) bool
	}{
		"When MAAS does not find a machine, it should return a not-found error":                    {get, says(404, text, "No Machine matches the given query."), maas.IsNotFound},
		"When MAAS does not find the machine to release, it should return a not-found error":       {release, says(404, text, "No Machine matches the given query."), maas.IsNotFound},
		"When MAAS forbids access to a machine, it should return a forbidden error":                {get, says(403, text, ""), maas.IsForbidden},
		"When an operation is for administrators only, it should return a forbidden error":         {release, says(403, text, "This method is reserved for admin users."), maas.IsForbidden},
		"When the API is below another path, it should return an unreachable error":                {get, says(404, text, "Unknown API endpoint: /api/2.0/machines/wq4h8c/."), maas.IsUnreachable},
		"When a router does not know the path, it should return an unreachable error":              {get, says(404, text, "404 page not found\n"), maas.IsUnreachable},
		"When a router does not know the path of a release, it should return an unreachable error": {release, says(404, page, "<h1>Not Found</h1>"), maas.IsUnreachable},
		"When a release gets an empty 404, it should return an unreachable error":                  {release, says(404, text, ""), maas.IsUnreachable},
		"When a proxy refuses with an HTML page, it should return an unreachable error":            {get, says(403, page, "<h1>Forbidden</h1>"), maas.IsUnreachable},
		"When a gateway refuses with a JSON object, it should return an unreachable error":         {get, says(403, object, `{"message": "Forbidden"}`), maas.IsUnreachable},
		"When a page is short, it should be recognized by its media type":                          {get, says(403, page, "Forbidden"), maas.IsUnreachable},
		"When a JSON document is short, it should be recognized by its media type":                 {get, says(403, object, `"Forbidden"`), maas.IsUnreachable},
		"When a page has the wrong media type, it should be recognized by its text":                {get, says(403, text, "<h1>Forbidden</h1>"), maas.IsUnreachable},
		"When a JSON document has the wrong media type, it should be recognized by its text":       {get, says(403, text, `{"message": "Forbidden"}`), maas.IsUnreachable},
		"When a list is forbidden, it should return an unreachable error":                          {list, says(403, text, ""), maas.IsUnreachable},
		"When a list is not found, it should return an unreachable error":                          {list, says(404, text, "No Machine matches the given query."), maas.IsUnreachable},
		"When whoami is forbidden, it should return an unreachable error":                          {whoami, says(403, text, "RBAC: access denied"), maas.IsUnreachable},
		"When the answer to a release names no machine, it should return an uncertain error":       {release, says(200, object, "{}"), maas.IsUncertain},
		"When the answer to a release is null, it should return an uncertain error":                {release, says(200, object, "null"), maas.IsUncertain},
		"When the answer to a release is a page, it should return an uncertain error":              {release, says(200, page, "<html>"), maas.IsUncertain},
		"When the answer to a release is a list, it should return an uncertain error":              {release, says(200, object, "[]"), maas.IsUncertain},
		"When a proxy refuses a release, it should not return an uncertain error":                  {release, says(403, page, "<html>"), func(err error) bool { return !maas.IsUncertain(err) }},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var calls atomic.Int32
			c := newClient(t, maas.Config{Endpoint: answers(t, &calls, tc.answer), Retry: maas.RetryPolicy{Attempts: -1}})
			err := tc.call(t.Context(), c)
			g.Expect(err).To(HaveOccurred())
			g.Expect(tc.want(err)).To(BeTrue(), "%v", err)
			for kind, is := range map[string]func(error) bool{"not found": maas.IsNotFound, "forbidden": maas.IsForbidden} {
				g.Expect(maas.IsUnreachable(err) && is(err)).To(BeFalse(), "says nothing of the machine: %s: %v", kind, err)
			}
		})
	}
}

func TestRetryAfterIsHeeded(t *testing.T) {
	g := NewWithT(t)
	var calls atomic.Int32
	clock := clocktesting.NewFakeClock(time.Now())
	c := newClient(t, maas.Config{Clock: clock, Endpoint: answers(t, &calls, status(503, "Retry-After", "60"), status(429, "Retry-After", "90"), body(`[]`))})
	_, err := c.ListZones(t.Context())
	g.Expect(maas.RetryAfter(err)).To(Equal(time.Minute), "%v", err)
	g.Expect(calls.Load()).To(BeEquivalentTo(1), "a second attempt would come sooner than it was asked for")

	_, err = c.ListZones(t.Context())
	g.Expect(maas.RetryAfter(err)).To(Equal(90*time.Second), "%v", err)
	clock.Step(80 * time.Second)
	_, err = c.ListPools(t.Context())
	g.Expect(err).To(MatchError(ContainSubstring("cannot list resource pools: MAAS limits the rate of calls; retry in 10s")))
	g.Expect(maas.RetryAfter(err)).To(Equal(10 * time.Second))
	g.Expect(maas.IsUnavailable(err)).To(BeTrue(), "who did not ask waits as who did")
	g.Expect(calls.Load()).To(BeEquivalentTo(2), "nobody may call a server that limits the rate")
	clock.Step(10 * time.Second)
	_, err = c.ListPools(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
}
