// SPDX-License-Identifier: Apache-2.0

package maas_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/metrics/metricstest"
)

// answers starts a server that sends its answers in order, and repeats the last one indefinitely.
func answers(t *testing.T, calls *atomic.Int32, handlers ...http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := int(calls.Add(1))
		handlers[min(n, len(handlers))-1](w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/MAAS/"
}

func status(code int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if len(header) == 2 {
			w.Header().Set(header[0], header[1])
		}
		w.WriteHeader(code)
	}
}

func body(s string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(s)) }
}

func drop(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

func breakOff(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Length", "1000")
	_, _ = w.Write([]byte(`{"version": "3.`))
	_ = http.NewResponseController(w).Flush() // Send the beginning of the answer.
	panic(http.ErrAbortHandler)
}

func TestRetries(t *testing.T) {
	read := func(ctx context.Context, c *maas.Client) error { _, err := c.GetVersion(ctx); return err }
	write := func(ctx context.Context, c *maas.Client) error {
		_, err := c.AllocateMachine(ctx, maas.AllocateRequest{})
		return err
	}
	remove := func(ctx context.Context, c *maas.Client) error { return c.DeleteMachine(ctx, "wq4h8c") }
	good := body(`{"version": "3.6.5"}`)
	for name, tc := range map[string]struct {
		call     func(context.Context, *maas.Client) error
		handlers []http.HandlerFunc
		calls    int32
		fails    bool
	}{
		"When a read gets 503 and 502, it should retry":                    {read, []http.HandlerFunc{status(503), status(502), good}, 3, false},
		"When a read gets 429, it should retry":                            {read, []http.HandlerFunc{status(429, "Retry-After", "1"), good}, 2, false},
		"When a read loses its connection, it should retry":                {read, []http.HandlerFunc{drop, good}, 2, false},
		"When an answer breaks off, it should retry":                       {read, []http.HandlerFunc{breakOff, good}, 2, false},
		"When a read always gets 503, it should stop after three attempts": {read, []http.HandlerFunc{status(503)}, 3, true},
		"When a read gets 500, it should not retry":                        {read, []http.HandlerFunc{status(500), good}, 1, true},
		"When an allocation gets 503, it should not retry":                 {write, []http.HandlerFunc{status(503), good}, 1, true},
		"When an allocation loses its answer, it should not retry":         {write, []http.HandlerFunc{drop, good}, 1, true},
		"When a delete gets 504, it should retry":                          {remove, []http.HandlerFunc{status(504), status(204)}, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var calls atomic.Int32
			c := newClient(t, maas.Config{Endpoint: answers(t, &calls, tc.handlers...)})
			err := tc.call(t.Context(), c)
			g.Expect(err != nil).To(Equal(tc.fails), "%v", err)
			g.Expect(calls.Load()).To(Equal(tc.calls))
		})
	}
}

func TestUncertain(t *testing.T) {
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		want    bool
	}{
		"When the connection is lost, it should return an uncertain error":             {drop, true},
		"When a proxy times out waiting for MAAS, it should return an uncertain error": {status(504), true},
		"When MAAS crashes, it should return an uncertain error":                       {status(500), true},
		"When MAAS is busy, it should not return an uncertain error":                   {status(503), false},
		"When MAAS refuses, it should not return an uncertain error":                   {status(409), false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var calls atomic.Int32
			c := newClient(t, maas.Config{Endpoint: answers(t, &calls, tc.handler)})
			_, err := c.AllocateMachine(t.Context(), maas.AllocateRequest{})
			g.Expect(maas.IsUncertain(err)).To(Equal(tc.want), "%v", err)
		})
	}
}

func TestUnreachable(t *testing.T) {
	g := NewWithT(t)
	const address = "127.0.0.1:1" // No program listens on this port.
	c := newClient(t, maas.Config{Endpoint: "http://" + address + "/MAAS"})
	_, err := c.AllocateMachine(t.Context(), maas.AllocateRequest{})
	g.Expect(maas.IsUnreachable(err)).To(BeTrue())
	g.Expect(maas.IsUncertain(err)).To(BeFalse(), "not one byte was sent")
	g.Expect(err).To(MatchError(ContainSubstring("cannot allocate a machine: MAAS at " + address + " does not answer")))
	g.Expect(err.Error()).NotTo(ContainSubstring("/api/2.0"), "the URL of one call says less than the words for it")
}

func TestTimeout(t *testing.T) {
	g := NewWithT(t)
	hold := make(chan struct{})
	var calls atomic.Int32
	endpoint := answers(t, &calls, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hold:
		case <-r.Context().Done():
		}
	})
	defer close(hold)
	c := newClient(t, maas.Config{Endpoint: endpoint, ReadTimeout: 20 * time.Millisecond, Retry: maas.RetryPolicy{Attempts: -1}})
	_, err := c.GetVersion(t.Context())
	g.Expect(maas.IsUnreachable(err)).To(BeTrue())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.GetVersion(ctx)
	g.Expect(err).To(MatchError(context.Canceled))
	g.Expect(calls.Load()).To(BeNumerically("<=", 2), "a cancelled call is not repeated")
}

func TestAnswersThatAreNotMAAS(t *testing.T) {
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"When a login page answers, it should tell the user to check the endpoint":                       {body("<html>sign in</html>"), "is not that of a MAAS API, check the endpoint"},
		"When the server redirects, it should not follow and should tell the user to check the endpoint": {status(302, "Location", "https://elsewhere.example.com/"), "check the endpoint"},
		"When the answer is too large, it should report that":                                            {body(`{"version": "` + strings.Repeat("x", 5000) + `"}`), "larger than the client allows"},
		"When a proxy sends a page with an error, it should not print the page": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(500)
			_, _ = w.Write([]byte("<h1>oops</h1>"))
		}, "MAAS says Internal Server Error (HTTP 500)"},
		"When a list that MAAS never refuses gets a 403, it should tell the user to check the endpoint": {status(403), "check the endpoint: HTTP 403: MAAS never refuses this list"},
		"When a validation error is a list, it should join the messages":                                {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(400); _, _ = w.Write([]byte(`["a", "b"]`)) }, "a b (HTTP 400)"},
		"When a validation error has fields, it should print them in a fixed order": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(400)
			_, _ = w.Write([]byte(`{"zone": ["no"], "__all__": ["bad", "worse"], "arch": "odd"}`))
		}, "arch: odd; bad worse; zone: no (HTTP 400)"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var calls atomic.Int32
			c := newClient(t, maas.Config{Endpoint: answers(t, &calls, tc.handler), MaxBody: 4000})
			_, err := c.GetVersion(t.Context())
			g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}

func TestRetryAfterIsTold(t *testing.T) {
	g := NewWithT(t)
	var calls atomic.Int32
	c := newClient(t, maas.Config{Endpoint: answers(t, &calls, status(503, "Retry-After", "10"))})
	_, err := c.DeployMachine(t.Context(), "wq4h8c", maas.DeployRequest{})
	var e *maas.Error
	g.Expect(err).To(BeAssignableToTypeOf(e))
	g.Expect(err.(*maas.Error).RetryAfter).To(Equal(10 * time.Second))
	g.Expect(maas.IsUnavailable(err)).To(BeTrue())
}

// TestMetricsOfNoAnswer checks that metrics separate calls without an answer from refused ones, as alerts require.
func TestMetricsOfNoAnswer(t *testing.T) {
	counted := maas.NewMetrics(prometheus.NewRegistry())
	c := newClient(t, maas.Config{Endpoint: "https://maas/MAAS", Transport: &transport{answers: []any{errReset}}, Metrics: counted})
	_, err := c.ListZones(t.Context())
	g := NewWithT(t)
	g.Expect(maas.IsUnreachable(err)).To(BeTrue())
	g.Expect(metricstest.Of(t, counted.Collectors()...)).To(And(
		HaveKeyWithValue(`maas_client_request_duration_seconds_count{code="none",operation="zones.list"}`, 3.0),
		HaveKeyWithValue(`maas_client_retries_total{operation="zones.list"}`, 2.0)))
}

func TestMetrics(t *testing.T) {
	g := NewWithT(t)
	registry := prometheus.NewRegistry()
	var calls atomic.Int32
	c := newClient(t, maas.Config{Endpoint: answers(t, &calls, status(503), body("{}")), Metrics: maas.NewMetrics(registry)})
	_, err := c.GetVersion(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	families, err := registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	seen := map[string]uint64{}
	for _, family := range families {
		for _, metric := range family.Metric {
			name := family.GetName()
			for _, label := range metric.Label {
				name += " " + label.GetValue()
			}
			seen[name] = metric.GetHistogram().GetSampleCount() + uint64(metric.GetCounter().GetValue())
		}
	}
	g.Expect(seen).To(Equal(map[string]uint64{
		"maas_client_request_duration_seconds 200 version": 1,
		"maas_client_request_duration_seconds 503 version": 1,
		"maas_client_retries_total version":                1,
	}))
}

// TestConnectionsAreReused checks that the client reads the remainder of an answer, which is necessary to reuse the
// connection.
func TestConnectionsAreReused(t *testing.T) {
	page := strings.Repeat("x", 100<<10) // More than an error reads.
	version := func(ctx context.Context, c *maas.Client) error { _, err := c.GetVersion(ctx); return err }
	remove := func(ctx context.Context, c *maas.Client) error { return c.DeleteMachine(ctx, "wq4h8c") }
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		call   func(context.Context, *maas.Client) error
		fails  bool
	}{
		"a proxy sends a long error page":    {says(503, "text/html", page), version, true},
		"an answer has trailing data":        {body(`{"version": "3.6.5"}` + strings.Repeat(" ", 30<<10)), version, false},
		"an answer that is not read is long": {body(page[:30<<10]), remove, false},
		"an answer has an unexpected type":   {body(`{"version": [` + strings.Repeat("1, ", 10<<10) + `1]}`), version, true},
	} {
		t.Run("When "+name+", it should reuse the connection for the next call", func(t *testing.T) {
			g := NewWithT(t)
			var opened atomic.Int32
			server := httptest.NewUnstartedServer(tc.answer)
			server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				if state == http.StateNew {
					opened.Add(1)
				}
			}
			server.Start()
			t.Cleanup(server.Close)
			c := newClient(t, maas.Config{Endpoint: server.URL, Retry: maas.RetryPolicy{Attempts: -1}})
			const calls = 20
			for range calls {
				g.Expect(tc.call(t.Context(), c) != nil).To(Equal(tc.fails))
			}
			// On a busy machine a transport may drop a connection: within 50 ms after the answer, it must know that
			// the request was written.
			g.Expect(opened.Load()).To(BeNumerically("<", calls/2))
			c.CloseIdleConnections()
			before := opened.Load()
			g.Expect(tc.call(t.Context(), c) != nil).To(Equal(tc.fails))
			g.Expect(opened.Load()).To(BeNumerically(">", before), "connections that are given up are not used again")
		})
	}
}

func TestSlowLists(t *testing.T) {
	g := NewWithT(t)
	var calls atomic.Int32
	endpoint := answers(t, &calls, func(w http.ResponseWriter, r *http.Request) {
		var answer <-chan time.Time // The first list and the list of a named machine get no answer.
		if calls.Load() > 1 && !r.URL.Query().Has("id") {
			answer = time.After(time.Second)
		}
		select {
		case <-r.Context().Done():
		case <-answer:
			body("[]")(w, r)
		}
	})
	c, err := maas.NewClient(maas.Config{Endpoint: endpoint, APIKey: "a:b:c", ReadTimeout: 200 * time.Millisecond, Retry: maas.RetryPolicy{Attempts: -1}})
	g.Expect(err).NotTo(HaveOccurred())
	list := func(filter maas.MachineFilter) error {
		_, err := c.ListMachines(t.Context(), filter)
		return err
	}
	g.Expect(list(maas.MachineFilter{})).To(MatchError(context.DeadlineExceeded))
	g.Eventually(func() error { return list(maas.MachineFilter{}) }, 2*time.Minute).Should(Succeed(), "the next ones may take longer")
	g.Expect(list(maas.MachineFilter{SystemIDs: []string{"wq4h8c"}})).To(MatchError(context.DeadlineExceeded), "who names machines can ask for fewer")
}
