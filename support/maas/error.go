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

// maxMessage is the maximum length of MAAS's message in an error, in bytes: for a refused deployment, MAAS lists all
// images.
const maxMessage = 2000

// Error is a refusal by MAAS.
type Error struct {
	// Operation describes the call, e.g. "deploy machine wq4h8c".
	Operation string
	// StatusCode is the HTTP status.
	StatusCode int
	// Message is MAAS's message, without secrets; it may be empty.
	Message string
	// Fields are the messages of a validation error by parameter; nil if MAAS sent none.
	Fields map[string][]string
	// RetryAfter is the delay that MAAS requested; zero if it requested none.
	RetryAfter time.Duration
}

// Error returns the operation, MAAS's message and the HTTP status.
func (e *Error) Error() string {
	message := e.Message
	if message == "" {
		message = e.hint()
	}
	return fmt.Sprintf("cannot %s: %s (HTTP %d)", e.Operation, message, e.StatusCode)
}

// hint explains a status in the MAAS API if the server sends no message.
func (e *Error) hint() string {
	switch e.StatusCode {
	case http.StatusUnauthorized:
		return "MAAS refuses the API key"
	case http.StatusForbidden:
		return "the MAAS user of the API key may not do this: the object belongs to another user, is locked, or needs an administrator"
	}
	if text := http.StatusText(e.StatusCode); text != "" {
		return "MAAS says " + text
	}
	return "MAAS gives no reason"
}

// UnreachableError reports a call without an answer, or with an incomplete or too large answer.
type UnreachableError struct {
	// Operation describes the call.
	Operation string
	// Endpoint is the host and port.
	Endpoint string
	// Sent reports whether MAAS may have received the call, and thus may have carried it out.
	Sent bool
	// Err is the cause.
	Err error
}

// Error returns the operation, the endpoint and the cause.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("cannot %s: MAAS at %s does not answer: %v", e.Operation, e.Endpoint, e.Err)
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// EndpointError reports an answer that is not from a MAAS API: from a proxy, a login page, another server, or a MAAS
// below another path. It says nothing about the object of the call.
type EndpointError struct {
	// Operation describes the call.
	Operation string
	// Endpoint is the host and port.
	Endpoint string
	// Done reports whether the answer indicates success, so that the call may have been carried out.
	Done bool
	// Err describes the problem of the answer.
	Err error
}

// Error returns the operation, the endpoint and the problem of the answer.
func (e *EndpointError) Error() string {
	return fmt.Sprintf("cannot %s: the answer of %s is not that of a MAAS API, check the endpoint: %v", e.Operation, e.Endpoint, e.Err)
}

// Unwrap returns the problem of the answer.
func (e *EndpointError) Unwrap() error { return e.Err }

func hasStatus(err error, codes ...int) bool {
	var e *Error
	return errors.As(err, &e) && slices.Contains(codes, e.StatusCode)
}

// unknownObject is the end of the message of all MAAS versions about an object that does not exist.
const unknownObject = " matches the given query"

// IsNotFound reports whether MAAS says that the object does not exist. A 404 with another message has another meaning:
// an address is in use, or the server is not a MAAS.
func IsNotFound(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.StatusCode == http.StatusNotFound && strings.Contains(e.Message, unknownObject)
}

// IsConflict reports whether the object's state does not allow the operation, or nothing matches an allocation.
func IsConflict(err error) bool { return hasStatus(err, http.StatusConflict) }

// IsUnauthorized reports whether MAAS refuses the API key.
func IsUnauthorized(err error) bool { return hasStatus(err, http.StatusUnauthorized) }

// IsForbidden reports whether the user of the API key lacks a right.
func IsForbidden(err error) bool { return hasStatus(err, http.StatusForbidden) }

// IsInvalid reports whether MAAS refuses a parameter; Fields of the *Error may name it.
func IsInvalid(err error) bool { return hasStatus(err, http.StatusBadRequest) }

// IsGone reports whether this version of MAAS no longer has the API endpoint.
func IsGone(err error) bool { return hasStatus(err, http.StatusGone) }

// IsUnreachable reports whether the call got no answer from a MAAS.
func IsUnreachable(err error) bool {
	var silent *UnreachableError
	var foreign *EndpointError
	return errors.As(err, &silent) || errors.As(err, &foreign)
}

// IsUnavailable reports whether MAAS answers, but cannot serve the call now: it is busy, its rack or power driver
// fails, or a proxy reaches no region.
func IsUnavailable(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.StatusCode == http.StatusTooManyRequests || e.StatusCode >= 500)
}

// IsUncertain reports whether the operation may have been carried out although the call failed. A 503 does not count:
// MAAS sends it after it has rolled back its transaction, and a proxy sends it when it reaches no region.
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

// RetryAfter returns the delay that MAAS, or a proxy in front of it, requested; zero if it requested none.
func RetryAfter(err error) time.Duration {
	var e *Error
	if errors.As(err, &e) {
		return e.RetryAfter
	}
	return 0
}

// FieldMessages returns MAAS's messages about one parameter of a refused call.
func FieldMessages(err error, field string) []string {
	var e *Error
	if errors.As(err, &e) {
		return e.Fields[field]
	}
	return nil
}

// foreign returns the reason why a 403 or 404 cannot be MAAS's answer to the call; empty if it can be. MAAS refuses in
// plain text. It returns an empty list instead of refusing one, and names an object that does not exist.
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
		return strings.TrimSuffix("MAAS never refuses this list: "+text, ": ")
	case status == http.StatusNotFound && (reading || text == "") && !strings.Contains(text, unknownObject):
		return strings.TrimSuffix("unexpected text for a missing object: "+text, ": ")
	}
	return ""
}

// newError parses the body of a refusal: an object of messages by parameter, a list of messages, or text.
func newError(operation string, status int, contentType string, body []byte, key apiKey) *Error {
	e := &Error{Operation: operation, StatusCode: status}
	switch {
	case status == http.StatusUnauthorized:
		e.Message = unauthorizedMessage(string(body))
	case e.readFields(body), e.readList(body):
	case strings.HasPrefix(contentType, "text/html") && strings.Contains(string(body), "<"):
		// Omit the page of a proxy or of Django: it does not help readers of a condition.
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

// unauthorizedMessage returns a message for a 401 without secrets: for a wrong signature, MAAS prints the correct one.
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

// scrub removes the parts of the key, which a server may repeat in its answer.
func (k apiKey) scrub(s string) string {
	for _, part := range []string{k.secret, k.token, k.consumer} {
		if len(part) >= 6 {
			s = strings.ReplaceAll(s, part, "[hidden]")
		}
	}
	return s
}
