// SPDX-License-Identifier: Apache-2.0

// Package oauth verifies OAuth 1.0 credentials as a MAAS server does. Each user and each machine has one key;
// signatures are PLAINTEXT or HMAC-SHA1.
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

// Threshold is the maximum difference between a request's timestamp and the server's time.
const Threshold = 300 * time.Second

// ErrMissing is the error for a request without complete OAuth credentials. Such a request is anonymous.
var ErrMissing = errors.New("no OAuth credentials")

// Params holds the oauth_ parameters of a request.
type Params map[string]string

var required = []string{
	"oauth_consumer_key", "oauth_token", "oauth_signature_method", "oauth_signature", "oauth_timestamp", "oauth_nonce",
}

// Read returns the credentials in the Authorization header, or else in the query and the form. It returns ErrMissing if
// a parameter is missing.
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

// Verifier verifies credentials and remembers nonces. Create one with NewVerifier.
type Verifier struct {
	clock clock.PassiveClock

	mu     sync.Mutex
	nonces map[string]time.Time
	swept  time.Time
}

// NewVerifier returns a Verifier without nonces.
func NewVerifier(c clock.PassiveClock) *Verifier {
	return &Verifier{clock: c, nonces: map[string]time.Time{}, swept: c.Now()}
}

// Lookup returns the key with the consumer and the token. consumerKnown and tokenKnown report which of the two the
// server knows.
type Lookup func(consumer, token string) (key Key, consumerKnown, tokenKnown bool)

// Verify verifies a request's credentials. Its errors have the messages of a MAAS server. form holds the parameters of
// a urlencoded body; other bodies are not signed.
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
		// Clients differ. RFC 5849 requires a signature over every form. The server's library, and clients written for it,
		// include only the forms of POST requests.
		err = signed(r, nil, p, key)
	}
	return err
}

// signed returns an error if the signature is not the expected one.
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

// fresh rejects timestamps outside the threshold and nonces that were used before.
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

// sweep deletes nonces whose timestamps are already too old to be accepted.
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

// signature returns the expected signature, and the base string for the error message.
func signature(r *http.Request, form form.Values, p Params, key Key) (want, base string, err error) {
	// The consumer's secret is empty.
	secret := "&" + escape(key.Secret)
	switch p["oauth_signature_method"] {
	case "PLAINTEXT":
		// The base string contains the secret, so the error message does not show it.
		return secret, "&...", nil
	case "HMAC-SHA1":
		base = baseString(r, form, p)
		mac := hmac.New(sha1.New, []byte(secret))
		mac.Write([]byte(base))
		return base64.StdEncoding.EncodeToString(mac.Sum(nil)), base, nil
	}
	return "", "", refuse("Signature method %s not supported. Try one of the following: HMAC-SHA1, PLAINTEXT", p["oauth_signature_method"])
}

// baseString returns the base string that HMAC-SHA1 signs, according to RFC 5849, section 3.4.1. It contains the
// parameters of the header, the query and the form, sorted by name and then by value.
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
	// The sort compares pairs, not joined strings, because "a" sorts before "a-b", but "a-b=1" sorts before "a=1".
	slices.SortFunc(pairs, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	joined := make([]string, len(pairs))
	for i, pair := range pairs {
		joined[i] = pair[0] + "=" + pair[1]
	}
	return strings.Join([]string{r.Method, escape(target(r)), escape(strings.Join(joined, "&"))}, "&")
}

// target returns the base string URI. It has no query and no default port.
func target(r *http.Request) string {
	scheme, port := "http", ":80"
	if r.TLS != nil {
		scheme, port = "https", ":443"
	}
	return scheme + "://" + strings.TrimSuffix(strings.ToLower(r.Host), port) + r.URL.EscapedPath()
}

// escape percent-encodes a string as RFC 5849 requires.
func escape(s string) string {
	return strings.NewReplacer("+", "%20", "%7E", "~").Replace(url.QueryEscape(s))
}
