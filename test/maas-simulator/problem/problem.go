// SPDX-License-Identifier: Apache-2.0

// Package problem holds the answers with which the server refuses a request.
package problem

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
)

// Problem is a refusal: a status and the body that the server sends with it.
type Problem struct {
	Status int
	// Type is the media type of the body.
	Type   string
	Body   string
	Header http.Header
}

// Error returns the body.
func (p *Problem) Error() string { return fmt.Sprintf("%d: %s", p.Status, p.Body) }

// The media types of refusals.
const (
	plain = "text/plain; charset=utf-8"
	html  = "text/html; charset=utf-8"
	jsonT = "application/json"
)

// Text is a refusal in words.
func Text(status int, format string, args ...any) *Problem {
	body := format
	if len(args) > 0 {
		body = fmt.Sprintf(format, args...)
	}
	return &Problem{Status: status, Type: plain, Body: body}
}

// HTML is a refusal that the library below the server words.
func HTML(status int, body string) *Problem { return &Problem{Status: status, Type: html, Body: body} }

// Fields is a failed validation: messages by field.
type Fields map[string][]string

// Add notes a message.
func (f Fields) Add(field, format string, args ...any) {
	message := format
	if len(args) > 0 {
		message = fmt.Sprintf(format, args...)
	}
	f[field] = append(f[field], message)
}

// Problem returns the refusal, nil when nothing was noted.
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

// Field is a failed validation of one field.
func Field(field, format string, args ...any) error {
	f := Fields{}
	f.Add(field, format, args...)
	return f.Problem()
}

// spaced puts a blank after commas and colons, as the server's encoder does.
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

// NotFound is the answer for an id that no object of the model has.
func NotFound(model string) *Problem {
	return Text(http.StatusNotFound, "No %s matches the given query.", model)
}

// Forbidden is the answer for a user who may not do this to that object.
func Forbidden() *Problem { return Text(http.StatusForbidden, "") }

// AdminOnly is the answer of operations that are for administrators.
func AdminOnly() *Problem {
	return Text(http.StatusForbidden, "This method is reserved for admin users.")
}

// Conflict is the answer to an operation that the state does not allow.
func Conflict(format string, args ...any) *Problem { return Text(http.StatusConflict, format, args...) }

// Unavailable is the answer when something behind the server does not work;
// clients are told when to come back.
func Unavailable(format string, args ...any) *Problem {
	p := Text(http.StatusServiceUnavailable, format, args...)
	p.Header = http.Header{"Retry-After": {"10"}}
	return p
}
