// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// maxMessage bounds what an error keeps of MAAS's words: a refused deployment lists every image there is.
const maxMessage = 2000

// Error is a refusal by MAAS.
type Error struct {
	// Operation says what was asked, e.g. "deploy machine wq4h8c".
	Operation string
	// StatusCode is the HTTP status.
	StatusCode int
	// Message is what MAAS said, without secrets; it may be empty.
	Message string
	// Fields are the messages of a validation error by parameter; nil when MAAS gave none.
	Fields map[string][]string
	// RetryAfter is how long MAAS asked to wait; zero when it did not.
	RetryAfter time.Duration
}

// Error tells the operation, MAAS's words and the HTTP status.
func (e *Error) Error() string {
	message := e.Message
	if message == "" {
		message = e.hint()
	}
	return fmt.Sprintf("cannot %s: %s (HTTP %d)", e.Operation, message, e.StatusCode)
}

// hint says what a status means on the MAAS API where the server says nothing.
func (e *Error) hint() string {
	switch e.StatusCode {
	case http.StatusUnauthorized:
		return "MAAS refuses the API key"
	case http.StatusForbidden:
		return "the MAAS user of the API key may not do this: the object belongs to someone else, is locked, or needs an administrator"
	}
	if text := http.StatusText(e.StatusCode); text != "" {
		return "MAAS says " + text
	}
	return "MAAS gives no reason"
}

// UnreachableError is a call that got no answer, or one that was no answer of a MAAS.
type UnreachableError struct {
	// Operation says what was asked.
	Operation string
	// Endpoint is host and port.
	Endpoint string
	// Sent tells whether MAAS may have received the call, and thus may have done what was asked.
	Sent bool
	// Err is the cause.
	Err error
}

// Error tells the operation, the endpoint and the cause.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("cannot %s: MAAS at %s does not answer: %v", e.Operation, e.Endpoint, e.Err)
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// EndpointError is an answer that no MAAS gives: that of a proxy, of a login page, of another server, or of a MAAS below another
// path. It says nothing about what was asked for.
type EndpointError struct {
	// Operation says what was asked.
	Operation string
	// Endpoint is host and port.
	Endpoint string
	// Done tells whether the answer claims success, so that what was asked for may have been done.
	Done bool
	// Err says what is wrong with the answer.
	Err error
}

// Error tells the operation, the endpoint and what is wrong with the answer.
func (e *EndpointError) Error() string {
	return fmt.Sprintf("cannot %s: the answer of %s is not that of a MAAS API, check the endpoint: %v", e.Operation, e.Endpoint, e.Err)
}

// Unwrap returns what is wrong with the answer.
func (e *EndpointError) Unwrap() error { return e.Err }

func hasStatus(err error, codes ...int) bool {
	var e *Error
	return errors.As(err, &e) && slices.Contains(codes, e.StatusCode)
}

// unknownObject is how every version of MAAS ends its words about an object that it does not have.
const unknownObject = " matches the given query"

// IsNotFound tells that MAAS says that it does not know the object. A 404 in other words says something else: that an address is
// in use, or that what answers is no MAAS.
func IsNotFound(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.StatusCode == http.StatusNotFound && strings.Contains(e.Message, unknownObject)
}

// IsConflict tells that the object's state does not allow the operation, or that nothing matches an allocation.
func IsConflict(err error) bool { return hasStatus(err, http.StatusConflict) }

// IsUnauthorized tells that MAAS refuses the API key.
func IsUnauthorized(err error) bool { return hasStatus(err, http.StatusUnauthorized) }

// IsForbidden tells that the user of the API key lacks a right.
func IsForbidden(err error) bool { return hasStatus(err, http.StatusForbidden) }

// IsInvalid tells that MAAS refuses a parameter; Fields of the *Error may tell which.
func IsInvalid(err error) bool { return hasStatus(err, http.StatusBadRequest) }

// IsGone tells that this MAAS does not have the endpoint any more.
func IsGone(err error) bool { return hasStatus(err, http.StatusGone) }

// IsUnreachable tells that no answer of a MAAS came.
func IsUnreachable(err error) bool {
	var silent *UnreachableError
	var foreign *EndpointError
	return errors.As(err, &silent) || errors.As(err, &foreign)
}

// IsUnavailable tells that MAAS answers, but cannot serve now: it is busy, its rack or power driver fails, a proxy has no
// region to ask.
func IsUnavailable(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.StatusCode == http.StatusTooManyRequests || e.StatusCode >= 500)
}

// IsUncertain tells that the operation may have been done although the call failed. A 503 is not such a failure: MAAS rolls its
// transaction back before it says that it is busy, and a proxy says it when it has no region to ask.
func IsUncertain(err error) bool {
	var silent *UnreachableError
	if errors.As(err, &silent) {
		return silent.Sent
	}
	var foreign *EndpointError
	if errors.As(err, &foreign) {
		return foreign.Done
	}
	return hasStatus(err, http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout)
}

// RetryAfter is how long MAAS, or a proxy before it, asked to wait; zero when it did not.
func RetryAfter(err error) time.Duration {
	var e *Error
	if errors.As(err, &e) {
		return e.RetryAfter
	}
	return 0
}

// FieldMessages returns what MAAS said about one parameter of a call that it refused.
func FieldMessages(err error, field string) []string {
	var e *Error
	if errors.As(err, &e) {
		return e.Fields[field]
	}
	return nil
}

// foreign says why a 403 or 404 can't be MAAS's word on what was asked for; empty when it may be. MAAS refuses in plain text, a
// list that the key may not read is empty there, and an object that it does not have is named.
func foreign(request call, status int, contentType, text string) string {
	if status != http.StatusForbidden && status != http.StatusNotFound {
		return ""
	}
	reading := !request.inBody()
	switch {
	case strings.Contains(contentType, "html"), strings.Contains(contentType, "json"), strings.HasPrefix(text, "<"), strings.HasPrefix(text, "{"):
		return "a page or document with the error, as proxies send it"
	case strings.HasPrefix(text, "Unknown API endpoint"):
		return text
	case reading && request.collection():
		return strings.TrimSuffix("MAAS refuses no such list: "+text, ": ")
	case status == http.StatusNotFound && (reading || text == "") && !strings.Contains(text, unknownObject):
		return strings.TrimSuffix("MAAS has other words for an object that it does not have: "+text, ": ")
	}
	return ""
}

// newError reads the body of a refusal: an object of messages by parameter, a list of messages, or text.
func newError(operation string, status int, contentType string, body []byte, key apiKey) *Error {
	e := &Error{Operation: operation, StatusCode: status}
	switch {
	case status == http.StatusUnauthorized:
		e.Message = unauthorizedMessage(string(body))
	case e.readFields(body), e.readList(body):
	case strings.HasPrefix(contentType, "text/html") && strings.Contains(string(body), "<"):
		// The page of a proxy or of Django says nothing to a person who reads a condition.
	default:
		e.Message = strings.TrimSpace(string(body))
	}
	e.Message = key.scrub(shorten(e.Message))
	for field, messages := range e.Fields {
		for i := range messages {
			messages[i] = key.scrub(shorten(messages[i]))
		}
		e.Fields[field] = messages
	}
	return e
}

// unauthorizedMessage keeps the part of a 401 that is safe: for a wrong signature, MAAS prints the right one.
func unauthorizedMessage(body string) string {
	for text, message := range map[string]string{
		"Expired timestamp":    "MAAS refuses the signature as too old: the clocks of MAAS and of this host differ by more than five minutes",
		"Nonce already used":   "MAAS refuses the signature: its nonce was used before",
		"Invalid access token": "MAAS does not know the token of the API key: it was revoked or is of another MAAS",
		"Invalid signature":    "the secret part of the API key is wrong",
		"Invalid API key":      "MAAS does not know the API key",
	} {
		if strings.Contains(body, text) {
			return message
		}
	}
	return "MAAS refuses the API key"
}

func (e *Error) readFields(body []byte) bool {
	var raw map[string]json.RawMessage
	if json.Unmarshal(body, &raw) != nil || len(raw) == 0 {
		return false
	}
	e.Fields = make(map[string][]string, len(raw))
	var parts []string
	for field, value := range raw {
		e.Fields[field] = readMessages(value)
		text := strings.Join(e.Fields[field], " ")
		if field != "__all__" {
			text = field + ": " + text
		}
		parts = append(parts, text)
	}
	slices.Sort(parts)
	e.Message = strings.Join(parts, "; ")
	return true
}

func readMessages(value json.RawMessage) []string {
	var many []string
	if json.Unmarshal(value, &many) == nil {
		return many
	}
	var one string
	if json.Unmarshal(value, &one) == nil {
		return []string{one}
	}
	return []string{string(value)}
}

func (e *Error) readList(body []byte) bool {
	var list []string
	if json.Unmarshal(body, &list) != nil || len(list) == 0 {
		return false
	}
	e.Message = strings.Join(list, " ")
	return true
}

func shorten(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessage], "") + "..."
}

// scrub removes the parts of the key that a server may have echoed.
func (k apiKey) scrub(s string) string {
	for _, part := range []string{k.secret, k.token, k.consumer} {
		if len(part) >= 6 {
			s = strings.ReplaceAll(s, part, "[hidden]")
		}
	}
	return s
}
