// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
)

// dropped is the operation of a request whose connection a fault has closed.
const dropped = "\x00dropped"

// faulty runs an operation with the faults that match the request.
func (s *Server) faulty(w http.ResponseWriter, c *call) (string, reply) {
	hits := s.Faults.Request(c.operation, c.target())
	if rule, hit := hits[faults.Latency]; hit {
		s.wait(c.request, time.Duration(rule.Delay))
	}
	if _, hit := hits[faults.Drop]; hit {
		closeConnection(w)
		return dropped, reply{}
	}
	if rule, hit := hits[faults.Proxy]; hit {
		return c.operation, page(rule.Code(), rule.Message)
	}
	if rule, hit := hits[faults.Error]; hit {
		return c.operation, s.refusal(injected(rule))
	}
	answer := s.priced(c)
	if rule, hit := hits[faults.LostAnswer]; hit {
		return c.operation, s.refusal(injected(rule))
	}
	if _, hit := hits[faults.DropAfter]; hit {
		cutShort(w, answer)
		return dropped, reply{}
	}
	return c.operation, answer
}

// target returns the machine or the VM host that the request's path names.
func (c *call) target() (t faults.Target) {
	t.User = c.caller
	if len(c.path) == 0 {
		return t
	}
	// The function always returns nil.
	_ = c.DB.View(func() error {
		if m := c.DB.Machines.Get(c.path[0]); m != nil {
			t.SystemID, t.Hostname = m.SystemID, m.Hostname
		} else if c.resource.name == "vm-host" {
			if h, err := c.vmHost(); err == nil {
				t.SystemID, t.Hostname = c.path[0], h.Name
			}
		}
		return nil
	})
	return t
}

// page returns the response of a web server other than MAAS.
func page(status int, body string) reply {
	if body == "" {
		title := fmt.Sprintf("%d %s", status, http.StatusText(status))
		body = "<html>\n<head><title>" + title + "</title></head>\n<body><h1>" + title + "</h1></body>\n</html>\n"
	}
	return reply{status: status, media: "text/html", body: []byte(body), foreign: true}
}

func injected(rule faults.Rule) error {
	if rule.Code() == http.StatusServiceUnavailable {
		return problem.Unavailable("%s", rule.Text("The service is unavailable."))
	}
	refusal := problem.Text(rule.Code(), "%s", rule.Text(http.StatusText(rule.Code())))
	if json.Valid([]byte(rule.Message)) && strings.HasPrefix(rule.Message, "{") {
		refusal.Type = "application/json"
	}
	return refusal
}

func (s *Server) wait(r *http.Request, d time.Duration) {
	timer := s.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-r.Context().Done():
	case <-timer.C():
	}
}

// closeConnection closes the connection without a response.
func closeConnection(w http.ResponseWriter) {
	if hijacker, ok := w.(http.Hijacker); ok {
		if conn, _, err := hijacker.Hijack(); err == nil {
			_ = conn.Close() // The fault closes the connection.
			return
		}
	}
	panic(http.ErrAbortHandler)
}

// cutShort sends half of a response and closes the connection.
func cutShort(w http.ResponseWriter, answer reply) {
	w.Header().Set("Content-Type", answer.media)
	w.WriteHeader(answer.status)
	_, _ = w.Write(answer.body[:len(answer.body)/2]) // The fault omits the rest.
	if flusher, ok := w.(http.Flusher); ok {
		flusher.Flush()
	}
	panic(http.ErrAbortHandler)
}
