// SPDX-License-Identifier: Apache-2.0

// Package oauth checks OAuth 1.0 credentials the way a MAAS server does: one
// key for each user or machine, signed as plain text or with HMAC-SHA1.
package oauth

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // HMAC-SHA1 is what OAuth 1.0 signs with.
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/openshift/hypershift/test/maas-simulator/form"
)

// Threshold is how far a request's timestamp may be from the server's time.
const Threshold = 300 * time.Second

// ErrMissing says that a request carries no complete OAuth credentials, and
// counts as anonymous.
var ErrMissing = errors.New("no OAuth credentials")

// Params are the oauth_ parameters of a request.
type Params map[string]string

var required = []string{
	"oauth_consumer_key", "oauth_token", "oauth_signature_method", "oauth_signature", "oauth_timestamp", "oauth_nonce",
}

// Read finds the credentials in the Authorization header, the query or the form.
func Read(r *http.Request, form form.Values) (Params, error) {
	params := Params{}
	if scheme, rest, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "OAuth") {
		for _, part := range strings.Split(rest, ",") {
			key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
			decoded, err := url.PathUnescape(strings.Trim(value, `"`))
			if err != nil {
				return nil, ErrMissing
			}
			params[key] = decoded
		}
	} else {
		for key, values := range r.URL.Query() {
			if strings.HasPrefix(key, "oauth_") {
				params[key] = values[0]
			}
		}
		for _, pair := range form {
			if strings.HasPrefix(pair.Key, "oauth_") {
				params[pair.Key] = pair.Value
			}
		}
	}
	for _, key := range required {
		if _, ok := params[key]; !ok {
			return nil, ErrMissing
		}
	}
	return params, nil
}

// Key is a credential that the server knows.
type Key struct {
	Consumer, Token, Secret string
}

// Verifier checks credentials and remembers nonces. Make one with NewVerifier.
type Verifier struct {
	clock clock.PassiveClock

	mu     sync.Mutex
	nonces map[string]time.Time
	swept  time.Time
}

// NewVerifier makes a verifier.
func NewVerifier(c clock.PassiveClock) *Verifier {
	return &Verifier{clock: c, nonces: map[string]time.Time{}, swept: c.Now()}
}

// Lookup finds a key by its consumer and token; consumer says whether at least
// the consumer is known.
type Lookup func(consumer, token string) (key Key, consumerKnown, tokenKnown bool)

// Verify checks a request's credentials; its errors are the server's words. The
// form is what an urlencoded body holds; bodies of other kinds are not signed.
func (v *Verifier) Verify(r *http.Request, form form.Values, p Params, find Lookup) error {
	key, consumerKnown, tokenKnown := find(p["oauth_consumer_key"], p["oauth_token"])
	if !consumerKnown {
		return errors.New("Authorization Error: Invalid API key.")
	}
	if !tokenKnown {
		return refuse("Invalid access token: %s", p["oauth_token"])
	}
	if err := v.fresh(p); err != nil {
		return err
	}
	err := signed(r, form, p, key)
	if err != nil && r.Method != http.MethodPost && form != nil {
		// Clients differ: by RFC 5849 every form is signed, but the server's library, and clients made for it, sign those of POST only.
		err = signed(r, nil, p, key)
	}
	return err
}

// signed compares a signature with what it should be.
func signed(r *http.Request, form form.Values, p Params, key Key) error {
	want, base, err := signature(r, form, p, key)
	if err != nil {
		return err
	}
	if subtle.ConstantTimeCompare([]byte(want), []byte(p["oauth_signature"])) != 1 {
		return refuse("Invalid signature. Expected signature base string: %s", base)
	}
	return nil
}

func refuse(format string, args ...any) error {
	return fmt.Errorf("Authorization Error: '%s'", fmt.Sprintf(format, args...))
}

// fresh refuses old timestamps and nonces that were used before.
func (v *Verifier) fresh(p Params) error {
	now := v.clock.Now()
	seconds, err := strconv.ParseInt(p["oauth_timestamp"], 10, 64)
	if err != nil {
		return refuse("invalid literal for int() with base 10: %s", p["oauth_timestamp"])
	}
	if lapsed := now.Sub(time.Unix(seconds, 0)).Abs(); lapsed > Threshold+time.Second {
		return refuse("Expired timestamp: given %d and now %d has a greater difference than threshold %d",
			seconds, now.Unix(), int(Threshold.Seconds()))
	}
	id := strings.Join([]string{p["oauth_consumer_key"], p["oauth_token"], p["oauth_timestamp"], p["oauth_nonce"]}, "\x00")
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sweep(now)
	if _, used := v.nonces[id]; used {
		return refuse("Nonce already used: %s", p["oauth_nonce"])
	}
	v.nonces[id] = now
	return nil
}

// sweep forgets nonces whose timestamps are refused by now.
func (v *Verifier) sweep(now time.Time) {
	if now.Sub(v.swept) < Threshold {
		return
	}
	v.swept = now
	for id, used := range v.nonces {
		if now.Sub(used) > 3*Threshold {
			delete(v.nonces, id)
		}
	}
}

// signature works out what the client should have sent.
func signature(r *http.Request, form form.Values, p Params, key Key) (want, base string, err error) {
	// The consumer's secret is empty.
	secret := "&" + escape(key.Secret)
	switch p["oauth_signature_method"] {
	case "PLAINTEXT":
		// The expected string holds the secret and is not told.
		return secret, "&...", nil
	case "HMAC-SHA1":
		base = baseString(r, form, p)
		mac := hmac.New(sha1.New, []byte(secret))
		mac.Write([]byte(base))
		return base64.StdEncoding.EncodeToString(mac.Sum(nil)), base, nil
	}
	return "", "", refuse("Signature method %s not supported. Try one of the following: HMAC-SHA1, PLAINTEXT", p["oauth_signature_method"])
}

// baseString is what HMAC signs, by RFC 5849, section 3.4.1: the parameters of
// the header, the query and the form, sorted by name and then by value.
func baseString(r *http.Request, form form.Values, p Params) string {
	var pairs [][2]string
	add := func(key, value string) { pairs = append(pairs, [2]string{escape(key), escape(value)}) }
	for key, value := range p {
		if key != "oauth_signature" && key != "realm" {
			add(key, value)
		}
	}
	for key, values := range r.URL.Query() {
		for _, value := range values {
			if !strings.HasPrefix(key, "oauth_") {
				add(key, value)
			}
		}
	}
	for _, pair := range form {
		if !strings.HasPrefix(pair.Key, "oauth_") {
			add(pair.Key, pair.Value)
		}
	}
	// As pairs: "a-b=1" comes before "a=1" where "a" comes before "a-b".
	slices.SortFunc(pairs, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	joined := make([]string, len(pairs))
	for i, pair := range pairs {
		joined[i] = pair[0] + "=" + pair[1]
	}
	return strings.Join([]string{r.Method, escape(target(r)), escape(strings.Join(joined, "&"))}, "&")
}

// target is the base string URI: without the query, and without the port that
// the scheme has anyway.
func target(r *http.Request) string {
	scheme, port := "http", ":80"
	if r.TLS != nil {
		scheme, port = "https", ":443"
	}
	return scheme + "://" + strings.TrimSuffix(strings.ToLower(r.Host), port) + r.URL.EscapedPath()
}

// escape encodes as RFC 5849 wants it.
func escape(s string) string {
	return strings.NewReplacer("+", "%20", "%7E", "~").Replace(url.QueryEscape(s))
}
