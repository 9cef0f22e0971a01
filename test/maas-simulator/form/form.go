// SPDX-License-Identifier: Apache-2.0

// Package form reads the parameters of a MAAS request from the query and from urlencoded or multipart bodies. It keeps
// their order.
package form

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
)

// MaxBody is the maximum size of a request's body in bytes.
const MaxBody = 64 << 20

// Pair is one parameter as it was sent.
type Pair struct{ Key, Value string }

// Values are parameters in the order of the request.
type Values []Pair

// ErrJSON is the error for a JSON body, which most operations of MAAS cannot read.
var ErrJSON = errors.New("'dict' object has no attribute 'lists'")

// Get returns the last value, as Django does; "" if there is none.
func (v Values) Get(key string) string {
	for i := len(v) - 1; i >= 0; i-- {
		if v[i].Key == key {
			return v[i].Value
		}
	}
	return ""
}

// Has reports whether the request contains the parameter, even with an empty value.
func (v Values) Has(key string) bool {
	for _, pair := range v {
		if pair.Key == key {
			return true
		}
	}
	return false
}

// All returns every value of a parameter.
func (v Values) All(key string) []string {
	var out []string
	for _, pair := range v {
		if pair.Key == key {
			out = append(out, pair.Value)
		}
	}
	return out
}

// Keys returns each parameter name once, in the order of first appearance.
func (v Values) Keys() []string {
	var keys []string
	seen := map[string]bool{}
	for _, pair := range v {
		if !seen[pair.Key] {
			seen[pair.Key] = true
			keys = append(keys, pair.Key)
		}
	}
	return keys
}

// Without returns a copy without the given parameters.
func (v Values) Without(keys ...string) Values {
	var out Values
	for _, pair := range v {
		keep := true
		for _, key := range keys {
			keep = keep && pair.Key != key
		}
		if keep {
			out = append(out, pair)
		}
	}
	return out
}

// Bool returns the value of a boolean parameter; false if it is missing or not a word for true.
func (v Values) Bool(key string) bool {
	on, _ := ParseBool(v.Get(key))
	return on
}

// ParseBool parses the words that MAAS accepts for true and false. ok is false for any other word.
func ParseBool(word string) (on, ok bool) {
	switch strings.ToLower(word) {
	case "true", "1", "on", "yes", "t", "y":
		return true, true
	case "false", "0", "off", "no", "f", "n", "":
		return false, true
	}
	return false, false
}

// Parse parses a urlencoded string.
func Parse(encoded string) (Values, error) {
	var out Values
	for _, part := range strings.Split(encoded, "&") {
		if part == "" {
			continue
		}
		key, value, _ := strings.Cut(part, "=")
		k, err1 := url.QueryUnescape(key)
		val, err2 := url.QueryUnescape(value)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("reading parameter %q: %w", key, err)
		}
		out = append(out, Pair{k, val})
	}
	return out, nil
}

// URLEncoded reports whether the request has the Content-Type of a urlencoded form.
func URLEncoded(r *http.Request) bool {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && media == "application/x-www-form-urlencoded"
}

// Body reads the parameters in a request's body. It returns ErrJSON for a JSON body.
func Body(r *http.Request) (Values, error) {
	if r.Body == nil {
		return nil, nil
	}
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil && r.Header.Get("Content-Type") != "" {
		return nil, fmt.Errorf("reading the media type: %w", err)
	}
	body := io.LimitReader(r.Body, MaxBody)
	switch media {
	case "application/json":
		return nil, ErrJSON
	case "multipart/form-data":
		return parts(multipart.NewReader(body, params["boundary"]))
	case "application/octet-stream":
		return nil, nil
	}
	raw, err := io.ReadAll(body)
	if err != nil {
		return nil, fmt.Errorf("reading the body: %w", err)
	}
	return Parse(string(raw))
}

func parts(reader *multipart.Reader) (Values, error) {
	var out Values
	for {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading a multipart body: %w", err)
		}
		value, err := io.ReadAll(part)
		if err != nil {
			return nil, fmt.Errorf("reading multipart parameter %q: %w", part.FormName(), err)
		}
		out = append(out, Pair{part.FormName(), string(value)})
	}
}
