// SPDX-License-Identifier: Apache-2.0

package oauth_test

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // HMAC-SHA1 is what OAuth 1.0 signs with.
	"encoding/base64"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	testclock "k8s.io/utils/clock/testing"

	"github.com/openshift/hypershift/test/maas-simulator/form"
	"github.com/openshift/hypershift/test/maas-simulator/oauth"
)

var now = time.Unix(1_700_000_000, 0)

func find(consumer, token string) (oauth.Key, bool, bool) {
	return oauth.Key{Consumer: "c", Token: "t", Secret: "s&cret"}, consumer == "c", token == "t"
}

func TestRead(t *testing.T) {
	const header = `oauth realm="", oauth_consumer_key="c%2Bd", oauth_token="t", oauth_signature_method="PLAINTEXT", ` +
		`oauth_signature="%26s", oauth_timestamp="1", oauth_nonce="n"`
	g := NewWithT(t)
	r := httptest.NewRequest("GET", "/x", nil)
	_, err := oauth.Read(r, nil)
	g.Expect(err).To(MatchError(oauth.ErrMissing))
	r.Header.Set("Authorization", header)
	p, err := oauth.Read(r, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p).To(And(HaveKeyWithValue("oauth_consumer_key", "c+d"), HaveKeyWithValue("oauth_signature", "&s")))
	r.Header.Set("Authorization", `OAuth oauth_token="%zz"`)
	_, err = oauth.Read(r, nil)
	g.Expect(err).To(MatchError(oauth.ErrMissing))

	q := url.Values{"oauth_consumer_key": {"c"}, "oauth_token": {"t"}, "oauth_signature_method": {"PLAINTEXT"}, "oauth_signature": {"&s"},
		"oauth_timestamp": {"1"}, "oauth_nonce": {"n"}, "op": {"whoami"}}
	p, err = oauth.Read(httptest.NewRequest("GET", "/x?"+q.Encode(), nil), nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p).NotTo(HaveKey("op"))

	var fields form.Values
	for key, values := range q {
		fields = append(fields, form.Pair{Key: key, Value: values[0]})
	}
	p, err = oauth.Read(httptest.NewRequest("POST", "/x", nil), fields)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p).To(And(HaveKeyWithValue("oauth_nonce", "n"), Not(HaveKey("op"))))
}

func plaintext(nonce string) oauth.Params {
	return oauth.Params{
		"oauth_consumer_key": "c", "oauth_token": "t", "oauth_signature_method": "PLAINTEXT", "oauth_signature": "&s%26cret",
		"oauth_timestamp": "1700000000", "oauth_nonce": nonce,
	}
}

func TestVerify(t *testing.T) {
	r := httptest.NewRequest("GET", "http://MAAS.example:5240/MAAS/api/2.0/users/?op=whoami&b=x%20y", nil)
	t.Run("When the signature is HMAC-SHA1, it should be computed from the request", func(t *testing.T) {
		g := NewWithT(t)
		p := plaintext("h")
		p["oauth_signature_method"], p["oauth_version"] = "HMAC-SHA1", "1.0"
		// This base string is written by hand according to RFC 5849, section 3.4.1.
		base := "GET&http%3A%2F%2Fmaas.example%3A5240%2FMAAS%2Fapi%2F2.0%2Fusers%2F&b%3Dx%2520y%26oauth_consumer_key%3Dc%26oauth_nonce%3Dh%26" +
			"oauth_signature_method%3DHMAC-SHA1%26oauth_timestamp%3D1700000000%26oauth_token%3Dt%26oauth_version%3D1.0%26op%3Dwhoami"
		mac := hmac.New(sha1.New, []byte("&s%26cret"))
		mac.Write([]byte(base))
		p["oauth_signature"] = base64.StdEncoding.EncodeToString(mac.Sum(nil))
		v := oauth.NewVerifier(testclock.NewFakeClock(now))
		g.Expect(v.Verify(r, nil, p, find)).To(Succeed())
		p["oauth_nonce"] = "other"
		g.Expect(v.Verify(r, nil, p, find)).To(MatchError(ContainSubstring("Invalid signature")))
	})
	t.Run("When there is a form, its parameters should be signed as in the example of RFC 5849, section 3.4.1.1", func(t *testing.T) {
		g := NewWithT(t)
		post := httptest.NewRequest("POST", "http://EXAMPLE.com:80/request?b5=%3D%253D&a3=a&c%40=&a2=r%20b", nil)
		fields := form.Values{{Key: "c2"}, {Key: "a3", Value: "2 q"}}
		p := oauth.Params{
			"oauth_consumer_key": "9djdj82h48djs9d2", "oauth_token": "kkk9d7dh3k39sjv7", "oauth_signature_method": "HMAC-SHA1",
			"oauth_timestamp": "137131201", "oauth_nonce": "7d8f3e4a", "realm": "Example",
		}
		const base = "POST&http%3A%2F%2Fexample.com%2Frequest&a2%3Dr%2520b%26a3%3D2%2520q%26a3%3Da%26b5%3D%253D%25253D%26c%2540%3D%26c2%3D%26" +
			"oauth_consumer_key%3D9djdj82h48djs9d2%26oauth_nonce%3D7d8f3e4a%26oauth_signature_method%3DHMAC-SHA1%26oauth_timestamp%3D137131201%26" +
			"oauth_token%3Dkkk9d7dh3k39sjv7"
		mac := hmac.New(sha1.New, []byte("&dh893hdasih9"))
		mac.Write([]byte(base))
		p["oauth_signature"] = base64.StdEncoding.EncodeToString(mac.Sum(nil))
		known := func(consumer, token string) (oauth.Key, bool, bool) {
			return oauth.Key{Consumer: consumer, Token: token, Secret: "dh893hdasih9"}, true, true
		}
		clock := testclock.NewFakeClock(time.Unix(137131201, 0))
		g.Expect(oauth.NewVerifier(clock).Verify(post, fields, p, known)).To(Succeed())
		g.Expect(oauth.NewVerifier(clock).Verify(post, fields[:1], p, known)).To(MatchError(ContainSubstring("Invalid signature")))
	})
	t.Run("When a signature omits the form, it should be accepted for a PUT and rejected for a POST", func(t *testing.T) {
		g := NewWithT(t)
		fields := form.Values{{Key: "swap_size", Value: "0"}}
		for method, taken := range map[string]bool{"PUT": true, "POST": false} {
			request := httptest.NewRequest(method, "http://maas/x", nil)
			p := plaintext("u")
			p["oauth_signature_method"] = "HMAC-SHA1"
			mac := hmac.New(sha1.New, []byte("&s%26cret"))
			mac.Write([]byte(method + "&http%3A%2F%2Fmaas%2Fx&oauth_consumer_key%3Dc%26oauth_nonce%3Du%26oauth_signature_method%3DHMAC-SHA1%26" +
				"oauth_timestamp%3D1700000000%26oauth_token%3Dt"))
			p["oauth_signature"] = base64.StdEncoding.EncodeToString(mac.Sum(nil))
			err := oauth.NewVerifier(testclock.NewFakeClock(now)).Verify(request, fields, p, find)
			g.Expect(err == nil).To(Equal(taken), "%s: %v", method, err)
		}
	})
	t.Run("When one name is a prefix of another, parameters should be sorted by name", func(t *testing.T) {
		g := NewWithT(t)
		post := httptest.NewRequest("POST", "http://maas/x", nil)
		fields := form.Values{{Key: "machine-uid", Value: "2"}, {Key: "machine", Value: "1"}}
		p := plaintext("s")
		p["oauth_signature_method"], p["oauth_signature"] = "HMAC-SHA1", ""
		g.Expect(oauth.NewVerifier(testclock.NewFakeClock(now)).Verify(post, fields, p, find)).
			To(MatchError(ContainSubstring("x&machine%3D1%26machine-uid%3D2%26oauth_consumer_key%3Dc%26")))
	})
	t.Run("When a nonce is repeated, it should be rejected while its timestamp is valid", func(t *testing.T) {
		g := NewWithT(t)
		clock := testclock.NewFakeClock(now)
		v := oauth.NewVerifier(clock)
		g.Expect(v.Verify(r, nil, plaintext("a"), find)).To(Succeed())
		g.Expect(v.Verify(r, nil, plaintext("b"), find)).To(Succeed())
		g.Expect(v.Verify(r, nil, plaintext("a"), find)).To(MatchError("Authorization Error: 'Nonce already used: a'"))
		clock.Step(oauth.Threshold)
		g.Expect(v.Verify(r, nil, plaintext("a"), find)).To(MatchError(ContainSubstring("Nonce already used")), "also when old nonces are swept")
		clock.Step(time.Hour)
		g.Expect(v.Verify(r, nil, plaintext("a"), find)).To(MatchError(ContainSubstring("Expired timestamp")))
	})
	t.Run("When the timestamp is in the future, it should be rejected too", func(t *testing.T) {
		v := oauth.NewVerifier(testclock.NewFakeClock(now.Add(-time.Hour)))
		NewWithT(t).Expect(v.Verify(r, nil, plaintext("a"), find)).To(MatchError(ContainSubstring("Expired timestamp")))
	})
}
