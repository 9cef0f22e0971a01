// SPDX-License-Identifier: Apache-2.0

// Package problem defines the error responses of a MAAS server.
package problem

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
)

// Problem is an error response: a status and a body.
type Problem struct {
	Status int
	// Type is the media type of the body.
	Type   string
	Body   string
	Header http.Header
}

// Error returns the status and the body.
func (p *Problem) Error() string { return fmt.Sprintf("%d: %s", p.Status, p.Body) }

// The media types of error responses.
const (
	plain = "text/plain; charset=utf-8"
	html  = "text/html; charset=utf-8"
	jsonT = "application/json"
)

// Text returns a plain text error response.
func Text(status int, format string, args ...any) *Problem {
	body := format
	if len(args) > 0 {
		body = fmt.Sprintf(format, args...)
	}
	return &Problem{Status: status, Type: plain, Body: body}
}

// HTML returns an error response that has the message of the library below MAAS.
func HTML(status int, body string) *Problem { return &Problem{Status: status, Type: html, Body: body} }

// Fields is a failed validation. It maps fields to their messages.
type Fields map[string][]string

// Add adds a message for a field.
func (f Fields) Add(field, format string, args ...any) {
	message := format
	if len(args) > 0 {
		message = fmt.Sprintf(format, args...)
	}
	f[field] = append(f[field], message)
}

// Problem returns the error response; nil if there are no messages.
func (f Fields) Problem() error {
	if len(f) == 0 {
		return nil
	}
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(f); err != nil {
		return fmt.Errorf("encoding validation messages: %w", err)
	}
	return &Problem{Status: http.StatusBadRequest, Type: jsonT, Body: spaced(bytes.TrimSpace(body.Bytes()))}
}

// Field returns the error response for the failed validation of one field.
func Field(field, format string, args ...any) error {
	f := Fields{}
	f.Add(field, format, args...)
	return f.Problem()
}

// spaced adds a space after commas and colons, as MAAS's encoder does.
func spaced(in []byte) string {
	out := make([]byte, 0, len(in)+8)
	quoted, escaped := false, false
	for _, c := range in {
		if c == '"' && !escaped {
			quoted = !quoted
		}
		escaped = c == '\\' && !escaped
		out = append(out, c)
		if !quoted && (c == ',' || c == ':') {
			out = append(out, ' ')
		}
	}
	return string(out)
}

// NotFound returns the error response for an ID that does not exist.
func NotFound(model string) *Problem {
	return Text(http.StatusNotFound, "No %s matches the given query.", model)
}

// Forbidden returns the error response for a user without the right to an operation.
func Forbidden() *Problem { return Text(http.StatusForbidden, "") }

// AdminOnly returns the error response of operations for administrators only.
func AdminOnly() *Problem {
	return Text(http.StatusForbidden, "This method is reserved for admin users.")
}

// Conflict returns the error response for an operation that the current state does not allow.
func Conflict(format string, args ...any) *Problem { return Text(http.StatusConflict, format, args...) }

// Unavailable returns the error response for a failure behind the MAAS server. Its Retry-After header gives the time of
// the next attempt.
func Unavailable(format string, args ...any) *Problem {
	p := Text(http.StatusServiceUnavailable, format, args...)
	p.Header = http.Header{"Retry-After": {"10"}}
	return p
}
