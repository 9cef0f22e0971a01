// SPDX-License-Identifier: Apache-2.0

package undecodable

import (
	"encoding/json"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// event is an event of a watch whose object is not decoded.
type event struct {
	Type   watch.EventType `json:"type"`
	Object json.RawMessage `json:"object"`
}

// stream is the body of a watch without the events that cannot be decoded.
type stream struct {
	filter *Filter
	body   io.ReadCloser
	events *json.Decoder
	// initial reports whether the watch still sends the initial objects, which replace a list.
	initial bool
	// pending is the unread rest of the last event.
	pending []byte
}

func (f *Filter) stream(body io.ReadCloser, initial bool) io.ReadCloser {
	return &stream{filter: f, body: body, events: json.NewDecoder(body), initial: initial}
}

// Close implements io.Closer.
func (s *stream) Close() error { return s.body.Close() }

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	for len(s.pending) == 0 {
		var raw json.RawMessage
		if err := s.events.Decode(&raw); err != nil {
			return 0, err
		}
		if passed := s.pass(raw); passed != nil {
			s.pending = append(passed, '\n')
		}
	}
	n := copy(p, s.pending)
	s.pending = s.pending[n:]
	return n, nil
}

// pass returns what the client receives for an event; nil for nothing.
func (s *stream) pass(raw json.RawMessage) []byte {
	var e event
	if err := json.Unmarshal(raw, &e); err != nil {
		return raw
	}
	switch e.Type {
	case watch.Bookmark:
		var mark object
		err := json.Unmarshal(e.Object, &mark)
		if err == nil && mark.Metadata.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
			s.initial = false
		}
		return raw
	case watch.Added, watch.Modified, watch.Deleted:
		found, err := s.filter.decode(e.Object)
		if found != nil && (err == nil || e.Type == watch.Deleted) {
			s.filter.reports.remove(found)
		}
		if err == nil {
			return raw
		}
		return s.instead(e, found, err)
	default:
		return raw
	}
}

// instead returns what the client receives in place of an event that it cannot decode. A cache that follows a watch
// keeps the last good state if it receives nothing. A cache that starts over must receive that state.
func (s *stream) instead(e event, found *object, cause error) []byte {
	last := s.filter.lastGood(found)
	switch {
	case e.Type == watch.Deleted:
		return encode(e.Type, deleted(e.Object, last))
	case s.initial && last != nil:
		s.filter.reports.add(found, cause)
		return encode(e.Type, last)
	default:
		s.filter.reports.add(found, cause)
		return nil
	}
}

// deleted returns the last good state of a deleted object, with its metadata at the deletion. It returns only the
// metadata if there is no such state.
func deleted(raw, last []byte) []byte {
	var now, fields map[string]json.RawMessage
	if json.Unmarshal(raw, &now) != nil {
		return raw
	}
	if last == nil || json.Unmarshal(last, &fields) != nil {
		fields = map[string]json.RawMessage{"apiVersion": now["apiVersion"], "kind": now["kind"]}
	}
	fields["metadata"] = now["metadata"]
	written, err := json.Marshal(fields)
	if err != nil {
		return raw
	}
	return written
}

func encode(kind watch.EventType, raw []byte) []byte {
	written, err := json.Marshal(event{Type: kind, Object: raw})
	if err != nil {
		return nil
	}
	return written
}
