// SPDX-License-Identifier: Apache-2.0

package token

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/openshift/hypershift/support/machinetoken"
)

func TestCache(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	secret := types.NamespacedName{Namespace: "hosted", Name: "token-a"}
	entry := func(payload string) Entry {
		return Entry{Secret: secret, NodePool: "clusters/a", Payload: []byte(payload)}
	}
	tests := []struct {
		name string
		do   func(c *Cache, clock *clocktesting.FakePassiveClock)
		want map[string]string
	}{
		{
			"When two tokens are stored, it should find both",
			func(c *Cache, _ *clocktesting.FakePassiveClock) { c.Put(entry("1"), "new", "old") },
			map[string]string{"new": "1", "old": "1"},
		},
		{
			"When a token is rotated out, it should not find it any more",
			func(c *Cache, _ *clocktesting.FakePassiveClock) {
				c.Put(entry("1"), "b", "a")
				c.Put(entry("1"), "c", "b")
			},
			map[string]string{"c": "1", "b": "1"},
		},
		{
			"When the payload changes, it should return the new payload for every token",
			func(c *Cache, _ *clocktesting.FakePassiveClock) { c.Put(entry("1"), "a"); c.Put(entry("2"), "a") },
			map[string]string{"a": "2"},
		},
		{
			"When a new payload cannot be rendered, it should keep the last payload",
			func(c *Cache, _ *clocktesting.FakePassiveClock) {
				c.Put(entry("1"), "a")
				c.Put(Entry{Secret: secret}, "b", "a")
			},
			map[string]string{"a": "1", "b": "1"},
		},
		{
			"When no payload was ever rendered, it should find no token",
			func(c *Cache, _ *clocktesting.FakePassiveClock) { c.Put(Entry{Secret: secret}, "a") },
			map[string]string{},
		},
		{
			"When the token is empty, it should not be stored",
			func(c *Cache, _ *clocktesting.FakePassiveClock) { c.Put(entry("1"), "a", "") },
			map[string]string{"a": "1"},
		},
		{
			"When the Secret is dropped, it should drop only the tokens of that Secret",
			func(c *Cache, _ *clocktesting.FakePassiveClock) {
				c.Put(entry("1"), "a")
				c.Put(Entry{Secret: types.NamespacedName{Name: "other"}, Payload: []byte("2")}, "b")
				c.Drop(secret)
			},
			map[string]string{"b": "2"},
		},
		{
			"When the Secret was not refreshed within the TTL, it should not serve its tokens",
			func(c *Cache, clock *clocktesting.FakePassiveClock) {
				c.Put(entry("1"), "a")
				clock.SetTime(start.Add(TTL + time.Second))
			},
			map[string]string{},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			clock := clocktesting.NewFakePassiveClock(start)
			c := NewCache(clock)
			tt.do(c, clock)
			for _, token := range []string{"a", "b", "c", "new", "old", ""} {
				e, ok := c.Get(token)
				payload, want := tt.want[token]
				g.Expect(ok).To(Equal(want), "token %q", token)
				g.Expect(string(e.Payload)).To(Equal(payload), "token %q", token)
				g.Expect(e.Machine).To(BeEmpty())
				e, ok = c.Get(machinetoken.Derive([]byte(token), "workers-a"))
				g.Expect(ok).To(Equal(want), "token of a machine of %q", token)
				g.Expect(string(e.Payload)).To(Equal(payload), "token of a machine of %q", token)
				if want {
					g.Expect(e.Machine).To(Equal("workers-a"))
				}
			}
		})
	}
}
