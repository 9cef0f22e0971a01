// SPDX-License-Identifier: Apache-2.0

// Package api serves MAAS's REST API 2.0 from an inventory.
package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"k8s.io/utils/clock"

	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/form"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/lifecycle"
	"github.com/openshift/hypershift/test/maas-simulator/load"
	"github.com/openshift/hypershift/test/maas-simulator/oauth"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
	"github.com/openshift/hypershift/test/maas-simulator/render"
)

// Server is the handler of all paths below /MAAS/api/. Create one with New.
type Server struct {
	DB     *inventory.DB
	Life   *lifecycle.Life
	Faults *faults.Set
	Clock  clock.Clock
	// Meter delays requests by their cost.
	Meter *load.Meter
	// Observe is called for every request that gets a response. The user's name is empty for anonymous requests. Observe
	// may be nil.
	Observe func(operation, user string, status int)

	print    *render.Printer
	verifier *oauth.Verifier
	printed  printed
	routes   []route
}

// New returns a server for the database and the version of life.
func New(life *lifecycle.Life, meter *load.Meter, observe func(operation, user string, status int)) *Server {
	s := &Server{
		DB: life.DB, Life: life, Faults: life.Faults, Clock: life.Clock, Meter: meter, Observe: observe,
		print: &render.Printer{DB: life.DB, Version: life.Version}, verifier: oauth.NewVerifier(life.Clock),
	}
	s.routes = s.table()
	return s
}

// reply is a response other than 200 with JSON.
type reply struct {
	status int
	media  string
	body   []byte
	header http.Header
	// foreign means that the response does not come from MAAS.
	foreign bool
}

const (
	mediaJSON  = "application/json; charset=utf-8"
	mediaPlain = "text/plain; charset=utf-8"
	mediaHTML  = "text/html; charset=utf-8"
)

var noContent = reply{status: http.StatusNoContent, media: mediaPlain}

func text(status int, body string) reply {
	return reply{status: status, media: mediaPlain, body: []byte(body)}
}

// ServeHTTP serves a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	operation, user, answer := s.answer(w, r)
	if operation == dropped {
		return
	}
	for key, values := range answer.header {
		w.Header()[key] = values
	}
	if !answer.foreign {
		w.Header().Set("X-MAAS-API-Hash", apiHash)
		w.Header().Set("Vary", "Authorization,Cookie")
	}
	w.Header().Set("Content-Type", answer.media)
	if s.Observe != nil {
		s.Observe(operation, user, answer.status)
	}
	w.WriteHeader(answer.status)
	if r.Method != http.MethodHead {
		// The client may have disconnected.
		_, _ = w.Write(answer.body)
	}
}

// apiHash replaces the hash of the API's description.
const apiHash = "6d1f3f0e3d9bff0c0f9dc7a1f9f4f8d0c3b6b0a7"

// answer runs the operation of a request, with the faults that apply to the request.
func (s *Server) answer(w http.ResponseWriter, r *http.Request) (operation, user string, answer reply) {
	c, err := s.match(r)
	if err != nil {
		return "unknown", "", s.refusal(err)
	}
	if c.fixed != nil {
		return "unversioned", "", *c.fixed
	}
	c.caller = s.callerOf(c)
	operation, answer = s.faulty(w, c)
	return operation, c.caller, answer
}

// callerOf returns the name of the user whose key a request has; empty for none. It does not verify the credentials
// or use up the nonce, because faults apply before the authentication.
func (s *Server) callerOf(c *call) (name string) {
	params, err := oauth.Read(c.request, c.signed())
	if err != nil {
		return ""
	}
	// The function always returns nil.
	_ = s.DB.View(func() error {
		for _, u := range s.DB.Users.All() {
			for _, k := range u.Keys {
				if k.Consumer == params["oauth_consumer_key"] && k.Key == params["oauth_token"] {
					name = u.Name
				}
			}
		}
		return nil
	})
	return name
}

// priced runs the operation and delays the response by the operation's cost.
func (s *Server) priced(c *call) (answer reply) {
	s.Meter.Do(c.operation, func() int {
		if c.resource.name == "machine" {
			c.printed = 1
		}
		answer = s.run(c)
		return c.printed
	})
	return answer
}

// run authenticates the user and runs the operation.
func (s *Server) run(c *call) reply {
	result, err := s.perform(c)
	if err != nil {
		return s.refusal(err)
	}
	body := []byte(nil)
	switch r := result.(type) {
	case reply:
		return r
	case list:
		c.printed = len(r)
		body = r.encode()
	case json.RawMessage:
		body = r
	default:
		if body, err = json.Marshal(result); err != nil {
			return s.refusal(err)
		}
	}
	return reply{status: http.StatusOK, media: mediaJSON, body: body}
}

func (s *Server) perform(c *call) (any, error) {
	if err := s.authenticate(c); err != nil {
		return nil, err
	}
	op, err := c.choose()
	if err != nil {
		return nil, err
	}
	if err := c.parse(); err != nil {
		return nil, err
	}
	if op.outside != nil {
		return op.outside(c)
	}
	var result any
	if op.read != nil {
		err = s.DB.View(func() (err error) {
			result, err = op.read(c)
			return err
		})
		return result, err
	}
	err = s.DB.Update(func() (err error) {
		result, err = op.write(c)
		return err
	})
	if err == nil && c.after != nil {
		err = s.afterwards(c)
	}
	s.Life.Wake()
	return result, err
}

// afterwards runs the actions that MAAS runs after the response is determined. It stores their changes even if they
// return an error.
func (s *Server) afterwards(c *call) error {
	var refused error
	err := s.DB.Update(func() error {
		refused = c.after()
		return nil
	})
	return errors.Join(err, refused)
}

// authenticate sets the user of the request. A request without credentials is anonymous.
func (s *Server) authenticate(c *call) error {
	if c.resource.public {
		return nil
	}
	signed := c.signed()
	params, err := oauth.Read(c.request, signed)
	if errors.Is(err, oauth.ErrMissing) {
		return nil
	}
	var user *inventory.User
	// The function always returns nil.
	_ = s.DB.View(func() error {
		err = s.verifier.Verify(c.request, signed, params, func(consumer, token string) (oauth.Key, bool, bool) {
			var key oauth.Key
			var consumerKnown bool
			for _, u := range s.DB.Users.All() {
				for _, k := range u.Keys {
					if k.Consumer != consumer {
						continue
					}
					consumerKnown = true
					if k.Key == token {
						user, key = u, oauth.Key{Consumer: consumer, Token: token, Secret: k.Secret}
					}
				}
			}
			return key, consumerKnown, user != nil
		})
		return nil
	})
	if err != nil {
		refusal := problem.HTML(http.StatusUnauthorized, err.Error())
		refusal.Header = challenge
		return refusal
	}
	c.user = user
	return nil
}

var challenge = http.Header{"Www-Authenticate": {`OAuth realm="MAAS API"`}}

// refusal returns the error response of MAAS for an error.
func (s *Server) refusal(err error) reply {
	if errors.Is(err, form.ErrJSON) {
		return text(http.StatusInternalServerError, form.ErrJSON.Error())
	}
	var p *problem.Problem
	if errors.As(err, &p) {
		media := p.Type
		if strings.HasPrefix(media, "application/json") {
			media = "application/json"
		}
		return reply{status: p.Status, media: media, body: []byte(p.Body), header: p.Header}
	}
	return text(http.StatusInternalServerError, err.Error())
}
