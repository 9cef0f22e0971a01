// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// authorization returns the header that signs one attempt with OAuth 1.0 PLAINTEXT. The signature is the (empty)
// consumer secret, an ampersand and the token secret. MAAS refuses a repeated nonce, so each attempt needs its own
// header.
func (k apiKey) authorization(now time.Time) (string, error) {
	nonce := make([]byte, 16)
	if _, err := rand.Read(nonce); err != nil {
		return "", fmt.Errorf("making a nonce: %w", err)
	}
	params := [][2]string{
		{"oauth_version", "1.0"},
		{"oauth_signature_method", "PLAINTEXT"},
		{"oauth_consumer_key", k.consumer},
		{"oauth_token", k.token},
		{"oauth_signature", "&" + k.secret},
		{"oauth_nonce", hex.EncodeToString(nonce)},
		{"oauth_timestamp", strconv.FormatInt(now.Unix(), 10)},
	}
	pairs := make([]string, 0, len(params))
	for _, p := range params {
		pairs = append(pairs, p[0]+`="`+percentEncode(p[1])+`"`)
	}
	return "OAuth " + strings.Join(pairs, ", "), nil
}

// percentEncode encodes a text according to RFC 3986, in which a space is %20.
func percentEncode(s string) string {
	return strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
}
