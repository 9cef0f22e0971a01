// SPDX-License-Identifier: Apache-2.0

package maas_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/openshift/hypershift/support/maas"
)

// refusal returns the error of a deployment for an answer of the server.
func refusal(t *testing.T, answer http.HandlerFunc) error {
	t.Helper()
	var calls atomic.Int32
	c := newClient(t, maas.Config{Endpoint: answers(t, &calls, answer), Retry: maas.RetryPolicy{Attempts: -1}})
	_, err := c.DeployMachine(t.Context(), "wq4h8c", maas.DeployRequest{})
	if err == nil {
		t.Fatal("a refusal is an error")
	}
	return fmt.Errorf("reconciling: %w", err)
}

func TestKindsOfErrors(t *testing.T) {
	kinds := map[string]func(error) bool{
		"not found": maas.IsNotFound, "conflict": maas.IsConflict, "unauthorized": maas.IsUnauthorized, "forbidden": maas.IsForbidden, "invalid": maas.IsInvalid,
		"gone": maas.IsGone, "unreachable": maas.IsUnreachable, "unavailable": maas.IsUnavailable, "uncertain": maas.IsUncertain,
	}
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		want   []string
	}{
		"400": {says(400, "text/plain", "no"), []string{"invalid"}},
		"401": {says(401, "text/plain", "no"), []string{"unauthorized"}},
		"403": {says(403, "text/plain", "no"), []string{"forbidden"}},
		"404": {says(404, "text/plain", "No Machine matches the given query."), []string{"not found"}},
		// MAAS sends this message for an address that is in use.
		"404 about another thing": {says(404, "text/plain", "The IP address is in use."), nil},
		"409":                     {says(409, "text/plain", "no"), []string{"conflict"}},
		"410":                     {says(410, "text/plain", "no"), []string{"gone"}},
		"429":                     {says(429, "text/plain", "no"), []string{"unavailable"}},
		"499":                     {says(499, "text/plain", "no"), nil},
		"500":                     {says(500, "text/plain", "no"), []string{"unavailable", "uncertain"}},
		"502":                     {says(502, "text/plain", "no"), []string{"unavailable", "uncertain"}},
		"503":                     {says(503, "text/plain", "no"), []string{"unavailable"}},
		"504":                     {says(504, "text/plain", "no"), []string{"unavailable", "uncertain"}},
		"a lost connection":       {drop, []string{"unreachable", "uncertain"}},
		"a page":                  {says(404, "text/html", "<p>"), []string{"unreachable"}},
		"a page with status 200":  {says(200, "text/html", "<p>"), []string{"unreachable", "uncertain"}},
	} {
		t.Run("When the answer is "+name+", it should match only the expected error kinds", func(t *testing.T) {
			err := refusal(t, tc.answer)
			want := map[string]bool{}
			for _, kind := range tc.want {
				want[kind] = true
			}
			got := map[string]bool{}
			for kind, is := range kinds {
				if is(err) {
					got[kind] = true
				}
				if is(nil) || is(errors.New("HTTP 404: matches the given query")) {
					t.Errorf("what is no error of MAAS passes for %s", kind)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%v\n-want +got:\n%s", err, diff)
			}
		})
	}
}

func TestWordsOfErrors(t *testing.T) {
	const text = "text/plain; charset=utf-8"
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"When MAAS gives a reason, it should print it":                               {says(409, text, " Machine is busy.\n"), "cannot deploy machine wq4h8c: Machine is busy. (HTTP 409)"},
		"When MAAS returns 403 without a reason, it should explain what that means":  {says(403, text, ""), "it belongs"},
		"When MAAS gives no reason, it should name the status":                       {says(410, text, ""), "cannot deploy machine wq4h8c: MAAS says Gone (HTTP 410)"},
		"When the status is unknown, it should report that MAAS gives no reason":     {says(599, text, ""), "cannot deploy machine wq4h8c: MAAS gives no reason (HTTP 599)"},
		"When the answer is an empty object, it should print it":                     {says(400, text, "{}"), "cannot deploy machine wq4h8c: {} (HTTP 400)"},
		"When the answer is an empty list, it should print it":                       {says(400, text, "[]"), "cannot deploy machine wq4h8c: [] (HTTP 400)"},
		"When a field is not a string, it should print it":                           {says(400, text, `{"mem": {"least": 5}}`), `cannot deploy machine wq4h8c: mem: {"least": 5} (HTTP 400)`},
		"When a list item is not a string, it should print the list":                 {says(400, text, `[1]`), `cannot deploy machine wq4h8c: [1] (HTTP 400)`},
		"When plain text has the media type of a page, it should print it":           {says(500, "text/html", "database is locked"), "database is locked (HTTP 500)"},
		"When the clocks differ, it should report by how much":                       {says(401, text, "Authorization Error: 'Expired timestamp: given 1 and now 2'"), "the clocks of MAAS and of this host differ by more than five minutes (HTTP 401)"},
		"When a nonce was used already, it should report that":                       {says(401, text, "Authorization Error: 'Nonce already used: 1'"), "its nonce was used before (HTTP 401)"},
		"When a 401 gives no reason, it should report that MAAS refuses the API key": {says(401, text, ""), "cannot deploy machine wq4h8c: MAAS refuses the API key (HTTP 401)"},
		"When a 401 gives an unknown reason, it should not print it":                 {says(401, text, "Expected &word"), "cannot deploy machine wq4h8c: MAAS refuses the API key (HTTP 401)"},
		"When an error answer breaks off, it should report its status": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write([]byte("half of"))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, "cannot deploy machine wq4h8c: MAAS says Conflict (HTTP 409)"},
	} {
		t.Run(name, func(t *testing.T) {
			want := tc.want
			if want == "it belongs" {
				want = "the object belongs to another user, is locked, or needs an administrator (HTTP 403)"
			}
			NewWithT(t).Expect(refusal(t, tc.answer)).To(MatchError(HaveSuffix(want)))
		})
	}
}

func TestFieldMessages(t *testing.T) {
	g := NewWithT(t)
	err := refusal(t, says(400, "application/json", `{"zone": ["No such zone.", "Try another."], "mem": "too much", "odd": 7}`))
	g.Expect(maas.FieldMessages(err, "zone")).To(Equal([]string{"No such zone.", "Try another."}))
	g.Expect(maas.FieldMessages(err, "mem")).To(Equal([]string{"too much"}))
	g.Expect(maas.FieldMessages(err, "odd")).To(Equal([]string{"7"}))
	g.Expect(maas.FieldMessages(err, "pool")).To(BeEmpty())
	g.Expect(maas.FieldMessages(refusal(t, says(409, "text/plain", "busy")), "zone")).To(BeEmpty())
	g.Expect(maas.FieldMessages(errors.New("zone"), "zone")).To(BeEmpty())
}

// TestLongErrors checks that long messages are truncated: conditions and events contain errors, and have their own
// limits.
func TestLongErrors(t *testing.T) {
	for name, text := range map[string]string{
		"the message is one text":            strings.Repeat("an image, ", 30_000),
		"the message belongs to one field":   `{"distro_series": ["` + strings.Repeat("an image, ", 1_000) + `"]}`,
		"the limit falls inside a character": strings.Repeat("x", 1_999) + strings.Repeat("é", 1_000),
	} {
		t.Run("When "+name+", it should be truncated at the end of a character", func(t *testing.T) {
			g := NewWithT(t)
			err := refusal(t, says(400, "text/plain; charset=utf-8", text))
			g.Expect(len(err.Error())).To(And(BeNumerically(">", 1_990), BeNumerically("<", 2_200)))
			g.Expect(err.Error()).To(HaveSuffix("... (HTTP 400)"))
			g.Expect(utf8.ValidString(err.Error())).To(BeTrue())
			for _, message := range maas.FieldMessages(err, "distro_series") {
				g.Expect(len(message)).To(BeNumerically("<", 2_100))
			}
		})
	}
	t.Run("When the message just fits, it should not be truncated", func(t *testing.T) {
		NewWithT(t).Expect(refusal(t, says(400, "text/plain", strings.Repeat("x", 2_000)))).To(MatchError(ContainSubstring(" " + strings.Repeat("x", 2_000) + " (HTTP")))
	})
}

func TestRetryAfterIsRead(t *testing.T) {
	at := time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 0, "soon": 0, "-5": 0, "0": 0, "1": time.Second, "3600": time.Hour, "3601": time.Hour, "99999999": time.Hour,
		at.Add(30 * time.Second).Format(http.TimeFormat): 30 * time.Second,
		at.Add(48 * time.Hour).Format(http.TimeFormat):   time.Hour,
		at.Add(-time.Minute).Format(http.TimeFormat):     0,
	} {
		t.Run("When a proxy sends Retry-After: "+header+", it should return "+want.String(), func(t *testing.T) {
			var calls atomic.Int32
			c := newClient(t, maas.Config{Clock: clocktesting.NewFakeClock(at), Retry: maas.RetryPolicy{Attempts: -1},
				Endpoint: answers(t, &calls, status(503, "Retry-After", header))})
			_, err := c.ListZones(t.Context())
			NewWithT(t).Expect(maas.RetryAfter(fmt.Errorf("reconciling: %w", err))).To(Equal(want))
		})
	}
	NewWithT(t).Expect(maas.RetryAfter(errors.New("no answer"))).To(BeZero())
}
