// SPDX-License-Identifier: Apache-2.0

package maas_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/maas"
)

func TestStringMap(t *testing.T) {
	for text, want := range map[string]maas.StringMap{
		`null`:                         nil,
		`{}`:                           {},
		`{"a": "b", "c": ""}`:          {"a": "b", "c": ""},
		`{"n": 1.50, "t": true}`:       {"n": "1.50", "t": "true"},
		`{"o": {"x": null}, "l": [1]}`: {"o": `{"x": null}`, "l": "[1]"},
		`{"a": null}`:                  {"a": ""},
	} {
		t.Run("When MAAS returns "+text+", it should decode each value as a string", func(t *testing.T) {
			got := maas.StringMap{"of": "before"}
			if err := json.Unmarshal([]byte(text), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	for _, text := range []string{`[]`, `"x"`, `7`} {
		t.Run("When MAAS returns "+text+", it should return an error", func(t *testing.T) {
			var got maas.StringMap
			NewWithT(t).Expect(json.Unmarshal([]byte(text), &got)).NotTo(Succeed())
		})
	}
}

// TestAddressesOfNames checks that IPs ignores empty entries. A DNS resource keeps an empty entry for a machine that
// released its address.
func TestAddressesOfNames(t *testing.T) {
	g := NewWithT(t)
	g.Expect(maas.DNSResource{}.IPs()).To(BeEmpty())
	g.Expect(maas.DNSResource{IPAddresses: []maas.IPAddress{{IP: ""}, {IP: "10.0.0.2"}, {}, {IP: "10.0.0.1"}}}.IPs()).To(Equal([]string{"10.0.0.2", "10.0.0.1"}))
}

// TestEmptyAnswers checks empty answers to power calls. MAAS sends them when there is nothing to change.
func TestEmptyAnswers(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{"null": body("null"), "nothing": status(204)} {
		t.Run("When the answer is "+name+", it should not return an error", func(t *testing.T) {
			g := NewWithT(t)
			var calls atomic.Int32
			c := newClient(t, maas.Config{Endpoint: answers(t, &calls, answer)})
			m, err := c.PowerOffMachine(t.Context(), "wq4h8c", true, "")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(m.SystemID).To(BeEmpty())
			m, err = c.PowerOnMachine(t.Context(), "wq4h8c", "")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(m.SystemID).To(BeEmpty())
			g.Expect(c.DeleteMachine(t.Context(), "wq4h8c")).To(Succeed())
			_, err = c.GetMachine(t.Context(), "wq4h8c")
			g.Expect(maas.IsUnreachable(err)).To(BeTrue(), "a machine that is read has an id: %v", err)
		})
	}
}

// TestBoundOfAnswers checks the size limit of answers: the server of a tenant's endpoint must not exhaust the
// operator's memory.
func TestBoundOfAnswers(t *testing.T) {
	const answer = `{"version": "3.6.5"}`
	for name, tc := range map[string]struct {
		bound int64
		fits  bool
	}{
		"just fits": {int64(len(answer)), true}, "is a byte too long": {int64(len(answer)) - 1, false},
	} {
		t.Run("When an answer "+name+", it should enforce the size limit", func(t *testing.T) {
			g := NewWithT(t)
			var calls atomic.Int32
			c := newClient(t, maas.Config{Endpoint: answers(t, &calls, body(answer)), MaxBody: tc.bound, Retry: maas.RetryPolicy{Attempts: -1}})
			_, err := c.GetVersion(t.Context())
			g.Expect(err == nil).To(Equal(tc.fits), "%v", err)
			_, err = c.AllocateMachine(t.Context(), maas.AllocateRequest{})
			g.Expect(maas.IsUncertain(err)).To(BeTrue(), "too long or no machine: something was allocated: %v", err)
		})
	}
	t.Run("When an error is longer than the limit, it should still report its status", func(t *testing.T) {
		var calls atomic.Int32
		c := newClient(t, maas.Config{Endpoint: answers(t, &calls, says(409, "text/plain", answer)), MaxBody: 5})
		_, err := c.AllocateMachine(t.Context(), maas.AllocateRequest{})
		NewWithT(t).Expect(maas.IsConflict(err)).To(BeTrue(), "%v", err)
	})
}

// TestBoundsOfLists checks the limits of lists and objects: an empty object takes a hundred times the memory of its
// text.
func TestBoundsOfLists(t *testing.T) {
	for name, answer := range map[string]string{
		"a list of too many machines":    "[" + strings.TrimSuffix(strings.Repeat("{},", 60_000), ",") + "]",
		"a machine of several megabytes": `{"system_id": "wq4h8c", "description": "` + strings.Repeat("x", 5<<20) + `"}`,
	} {
		t.Run("When MAAS returns "+name+", it should return an error", func(t *testing.T) {
			var calls atomic.Int32
			c := newClient(t, maas.Config{Endpoint: answers(t, &calls, body(answer)), Retry: maas.RetryPolicy{Attempts: -1}})
			var err error
			if answer[0] == '[' {
				_, err = c.ListMachines(t.Context(), maas.MachineFilter{})
			} else {
				_, err = c.GetMachine(t.Context(), "wq4h8c")
			}
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring("larger than the client allows")))
		})
	}
	t.Run("When MAAS returns thousands of machines, it should read the list", func(t *testing.T) {
		g := NewWithT(t)
		var calls atomic.Int32
		one := `{"system_id": "wq4h8c", "description": "` + strings.Repeat("x", 15<<10) + `"}`
		answer := "[" + strings.Repeat(one+",", 2_999) + one + "]"
		c := newClient(t, maas.Config{Endpoint: answers(t, &calls, body(answer))})
		g.Expect(c.ListMachines(t.Context(), maas.MachineFilter{})).To(HaveLen(3_000))
	})
}

func TestRaw(t *testing.T) {
	t.Run("When a caller uses Raw, it should return the answer unchanged", func(t *testing.T) {
		g := NewWithT(t)
		server := &transport{answers: []any{`{"b": 1,  "a": [2]}`}}
		c := newClient(t, maas.Config{Endpoint: "https://maas/MAAS", Transport: server})
		raw, err := c.Raw(t.Context(), "fabrics/7/vlans/", url.Values{"name": {"a b", "c&d"}})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(raw)).To(Equal(`{"b": 1,  "a": [2]}`))
		g.Expect(server.asked[0].URL.String()).To(Equal("https://maas/MAAS/api/2.0/fabrics/7/vlans/?name=a+b&name=c%26d"))
	})
	for _, path := range []string{"../../accounts/", "machines/../users/", "./machines/", "machines/..", "machines/."} {
		t.Run("When a path has dot segments, as "+path+" does, it should send nothing", func(t *testing.T) {
			g := NewWithT(t)
			server := &transport{answers: []any{"{}"}}
			_, err := newClient(t, maas.Config{Endpoint: "https://maas/MAAS", Transport: server}).Raw(t.Context(), path, nil)
			g.Expect(err).To(MatchError(ContainSubstring(`must not be "." or ".."`)))
			g.Expect(server.asked).To(BeEmpty())
		})
	}
	for _, id := range []string{".", ".."} {
		t.Run("When the machine ID is "+id+", it should delete nothing", func(t *testing.T) {
			g := NewWithT(t)
			server := &transport{answers: []any{204}}
			c := newClient(t, maas.Config{Endpoint: "https://maas/MAAS", Transport: server})
			g.Expect(c.DeleteMachine(t.Context(), id)).NotTo(Succeed())
			g.Expect(c.DeleteTag(t.Context(), id)).NotTo(Succeed())
			g.Expect(server.asked).To(BeEmpty())
		})
	}
}
