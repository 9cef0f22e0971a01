// SPDX-License-Identifier: Apache-2.0

package oauth_test

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // HMAC-SHA1 is what OAuth 1.0 signs with.
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	testclock "k8s.io/utils/clock/testing"

	"github.com/openshift/hypershift/test/maas-simulator/oauth"
)

// TestIncomplete verifies that a request without complete credentials is anonymous.
func TestIncomplete(t *testing.T) {
	names := []string{"oauth_consumer_key", "oauth_token", "oauth_signature_method", "oauth_signature", "oauth_timestamp", "oauth_nonce"}
	for _, missing := range append(names, "") {
		t.Run("When "+missing+" is missing, the request should be anonymous", func(t *testing.T) {
			g := NewWithT(t)
			var parts []string
			for _, name := range names {
				if name != missing {
					parts = append(parts, name+`="x"`)
				}
			}
			header := httptest.NewRequest("GET", "/x", nil)
			header.Header.Set("Authorization", "OAuth "+strings.Join(parts, ","))
			query := httptest.NewRequest("GET", "/x?"+strings.ReplaceAll(strings.Join(parts, "&"), `"`, ""), nil)
			_, err := oauth.Read(header, nil)
			_, inQuery := oauth.Read(query, nil)
			if missing == "" {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(inQuery).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(oauth.ErrMissing))
			g.Expect(inQuery).To(MatchError(oauth.ErrMissing))
		})
	}
	g := NewWithT(t)
	quoted := httptest.NewRequest("GET", "/x", nil)
	quoted.Header.Set("Authorization", `OAuth oauth_consumer_key="another", oauth_token=bare,oauth_signature_method="x", oauth_signature="%22q%22", oauth_timestamp="1",  oauth_nonce="n"`)
	p, err := oauth.Read(quoted, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p).To(And(HaveKeyWithValue("oauth_consumer_key", "another"), HaveKeyWithValue("oauth_token", "bare"), HaveKeyWithValue("oauth_signature", `"q"`),
		HaveKeyWithValue("oauth_nonce", "n")))
	for _, header := range []string{"OAuth", "", "Bearer abc", "OAuthoauth_token=x"} {
		r := httptest.NewRequest("GET", "/x", nil)
		r.Header.Set("Authorization", header)
		_, err := oauth.Read(r, nil)
		g.Expect(err).To(MatchError(oauth.ErrMissing), header)
	}
}

// TestThreshold verifies the largest accepted difference of the clocks: five minutes, and one second for rounding on
// the server.
func TestThreshold(t *testing.T) {
	r := httptest.NewRequest("GET", "http://maas/x", nil)
	for skew, taken := range map[time.Duration]bool{
		0: true, 300 * time.Second: true, 301 * time.Second: true, 301*time.Second + time.Nanosecond: false, -301 * time.Second: true,
		-301*time.Second - time.Nanosecond: false,
	} {
		err := oauth.NewVerifier(testclock.NewFakeClock(now.Add(skew))).Verify(r, nil, plaintext("a"), find)
		NewWithT(t).Expect(err == nil).To(Equal(taken), "%s: %v", skew, err)
	}
}

// TestNonces verifies that a nonce is valid once for a key and a timestamp. A request that fails before the nonce check
// does not use up its nonce.
func TestNonces(t *testing.T) {
	g := NewWithT(t)
	r := httptest.NewRequest("GET", "http://maas/x", nil)
	clock := testclock.NewFakeClock(now)
	v := oauth.NewVerifier(clock)
	any2 := func(consumer, token string) (oauth.Key, bool, bool) {
		return oauth.Key{Consumer: consumer, Token: token, Secret: "s&cret"}, true, true
	}
	send := func(change func(oauth.Params)) error {
		p := plaintext("n")
		change(p)
		return v.Verify(r, nil, p, any2)
	}
	g.Expect(send(func(oauth.Params) {})).To(Succeed())
	g.Expect(send(func(p oauth.Params) { p["oauth_token"] = "other" })).To(Succeed(), "another token's nonces are its own")
	g.Expect(send(func(p oauth.Params) { p["oauth_consumer_key"] = "other" })).To(Succeed())
	g.Expect(send(func(p oauth.Params) { p["oauth_timestamp"] = fmt.Sprint(now.Unix() + 1) })).To(Succeed())
	g.Expect(send(func(oauth.Params) {})).To(MatchError(ContainSubstring("Nonce already used: n")))
	g.Expect(send(func(p oauth.Params) { p["oauth_timestamp"] = "1.5" })).To(MatchError(ContainSubstring("invalid literal for int() with base 10: 1.5")))
	// After the old nonces are deleted, a new nonce is accepted once and then rejected.
	clock.Step(2 * time.Hour)
	fresh := func(p oauth.Params) { p["oauth_timestamp"] = fmt.Sprint(clock.Now().Unix()) }
	g.Expect(send(fresh)).To(Succeed())
	g.Expect(send(fresh)).To(MatchError(ContainSubstring("Nonce already used")))
}

// TestSecureTarget verifies that the signed URI begins with https over TLS, without port 443.
func TestSecureTarget(t *testing.T) {
	for host, target := range map[string]string{
		"maas:443": "https%3A%2F%2Fmaas%2Fx%2520y", "maas:5443": "https%3A%2F%2Fmaas%3A5443%2Fx%2520y", "maas:80": "https%3A%2F%2Fmaas%3A80%2Fx%2520y",
	} {
		g := NewWithT(t)
		r := httptest.NewRequest("GET", "/x%20y", nil)
		r.Host, r.TLS = host, &tls.ConnectionState{}
		p := plaintext("t")
		p["oauth_signature_method"] = "HMAC-SHA1"
		mac := hmac.New(sha1.New, []byte("&s%26cret"))
		mac.Write([]byte("GET&" + target + "&oauth_consumer_key%3Dc%26oauth_nonce%3Dt%26oauth_signature_method%3DHMAC-SHA1%26" +
			"oauth_timestamp%3D1700000000%26oauth_token%3Dt"))
		p["oauth_signature"] = base64.StdEncoding.EncodeToString(mac.Sum(nil))
		g.Expect(oauth.NewVerifier(testclock.NewFakeClock(now)).Verify(r, nil, p, find)).To(Succeed(), host)
	}
}
