// SPDX-License-Identifier: Apache-2.0

package maas_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/openshift/hypershift/support/maas"
)

// TestEchoedKeyIsHidden checks that errors have no part of the API key. A server, or a proxy that shows the request,
// may repeat it in its answer.
func TestEchoedKeyIsHidden(t *testing.T) {
	for name, tc := range map[string]struct {
		code        int
		media, text string
	}{
		"a text":                              {400, "text/plain", "bad header: oauth_token=tokenkey01, oauth_signature=&tokensecret, consumerkey"},
		"fields":                              {400, "application/json", `{"tokenkey": ["tokenkey01"], "__all__": "tokensecret for consumerkey"}`},
		"a list":                              {409, "application/json", `["tokensecret", "tokenkey01 consumerkey"]`},
		"a page of a proxy":                   {404, "text/plain", "no route for tokensecret, tokenkey01, consumerkey"},
		"a message about an unknown endpoint": {404, "text/plain", "Unknown API endpoint: tokensecret tokenkey01 consumerkey"},
	} {
		t.Run("When the server repeats the key in "+name+", it should hide it", func(t *testing.T) {
			g := NewWithT(t)
			var calls atomic.Int32
			c := newClient(t, maas.Config{Endpoint: answers(t, &calls, says(tc.code, tc.media, tc.text))})
			for _, call := range []string{"GET machines/w/ ", "POST machines/w/?op=abort comment=c"} {
				err := requests()[call](t.Context(), c)
				g.Expect(err).To(HaveOccurred())
				all := fmt.Sprintf("%v %+v", err, err) + strings.Join(append(maas.FieldMessages(err, "tokenkey"), maas.FieldMessages(err, "__all__")...), " ")
				for part := range strings.SplitSeq(key, ":") {
					g.Expect(all).NotTo(ContainSubstring(part))
				}
				g.Expect(all).To(ContainSubstring("[hidden]"))
			}
		})
	}
	t.Run("When a part of the key is a short word, it should not hide that word", func(t *testing.T) {
		var calls atomic.Int32
		c := newClient(t, maas.Config{APIKey: "a:zone1:secret", Endpoint: answers(t, &calls, says(400, "text/plain", "a zone1 has no machine, secret"))})
		err := requests()["GET machines/w/ "](t.Context(), c)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("a zone1 has no machine, [hidden] (HTTP")), "six letters are hidden, fewer would tear words")
	})
}

// TestClientPrintsNoKey checks that printing a client, for example as a field of a reconciler, does not print the key.
func TestClientPrintsNoKey(t *testing.T) {
	c := newClient(t, maas.Config{Endpoint: "https://maas/MAAS"})
	holder := struct{ MAAS *maas.Client }{c}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		g := NewWithT(t)
		for _, printed := range []string{fmt.Sprintf(verb, c), fmt.Sprintf(verb, holder)} {
			for part := range strings.SplitSeq(key, ":") {
				g.Expect(printed).NotTo(ContainSubstring(part), verb)
			}
		}
	}
}

func TestSignatures(t *testing.T) {
	t.Run("When a call is retried, it should sign each attempt again", func(t *testing.T) {
		g := NewWithT(t)
		server := &transport{answers: []any{503}}
		c := newClient(t, maas.Config{Endpoint: "https://maas/MAAS", Transport: server, UserAgent: "provider/1"})
		_, err := c.ListZones(t.Context())
		g.Expect(maas.IsUnavailable(err)).To(BeTrue())
		seen := map[string]bool{}
		for _, req := range server.asked {
			_, nonce, _ := strings.Cut(req.Header.Get("Authorization"), "oauth_nonce=")
			nonce, _, _ = strings.Cut(nonce, ",")
			seen[nonce] = true
			g.Expect(req.Header.Get("User-Agent")).To(Equal("provider/1"))
			g.Expect(req.Header.Get("Accept")).To(Equal("application/json"))
		}
		g.Expect(seen).To(HaveLen(3), "MAAS refuses a nonce that it has seen")
	})
	t.Run("When a call is signed, it should use the current time", func(t *testing.T) {
		g := NewWithT(t)
		at := clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0))
		server := &transport{answers: []any{"[]"}}
		c := newClient(t, maas.Config{Endpoint: "https://maas/MAAS", Transport: server, Clock: at})
		for i := range 2 {
			_, err := c.ListZones(t.Context())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(server.asked[i].Header.Get("Authorization")).To(ContainSubstring(`oauth_timestamp="` + strconv.Itoa(1_700_000_000+60*i) + `"`))
			at.Step(time.Minute)
		}
	})
	t.Run("When the key has special characters, it should encode them", func(t *testing.T) {
		g := NewWithT(t)
		server := &transport{answers: []any{"[]"}}
		c := newClient(t, maas.Config{Endpoint: "https://maas/MAAS", Transport: server, APIKey: `co"n:to,k:s e+c/r&t`})
		_, err := c.ListZones(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(server.asked[0].Header.Get("Authorization")).To(And(ContainSubstring(`oauth_consumer_key="co%22n"`), ContainSubstring(`oauth_token="to%2Ck"`),
			ContainSubstring(`oauth_signature="%26s%20e%2Bc%2Fr%26t"`)))
	})
}

func TestAPIKey(t *testing.T) {
	for name, tc := range map[string]struct{ key, fails string }{
		"When the API key is empty, it should show an example":             {" \n", "the MAAS API key is empty"},
		"When the consumer is missing, it should return an error":          {":hunter2:c", "has 3 parts"},
		"When the token is missing, it should return an error":             {"hunter2::c", "has 3 parts"},
		"When the secret is missing, it should return an error":            {"hunter2:b:", "has 3 parts"},
		"When the API key has an extra part, it should return an error":    {"a:b:c:hunter2", "has 4 parts"},
		"When the API key ends in a newline, it should ignore the newline": {" a:b:c\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := maas.NewClient(maas.Config{Endpoint: "https://maas/MAAS", APIKey: tc.key})
			if tc.fails == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(And(ContainSubstring(tc.fails), ContainSubstring(`"consumer:token:secret"`))))
			g.Expect(err.Error()).NotTo(ContainSubstring("hunter2"))
		})
	}
}

func TestPlainHTTP(t *testing.T) {
	for endpoint, plain := range map[string]bool{
		"http://maas:5240/MAAS": true, "HTTP://maas/MAAS": true, "https://maas:5443/MAAS": false,
		// PlainHTTP is empty for invalid endpoints: NewClient reports them.
		"maas": false, "": false,
	} {
		t.Run("When the endpoint is "+endpoint+", it should report whether the key is sent in plain text", func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(maas.PlainHTTP(endpoint) != "").To(Equal(plain))
			if c, err := maas.NewClient(maas.Config{Endpoint: endpoint, APIKey: key}); err == nil {
				g.Expect(c.PlainHTTP()).To(Equal(maas.PlainHTTP(endpoint)))
			}
		})
	}
}
