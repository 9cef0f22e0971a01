// SPDX-License-Identifier: Apache-2.0

// Package simtest creates small simulated MAAS sites for tests, and sends API requests to them without a client
// library.
package simtest

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/lifecycle"
	"github.com/openshift/hypershift/test/maas-simulator/load"
	"github.com/openshift/hypershift/test/maas-simulator/render"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
)

// Site is a simulator with a clock that the test controls.
type Site struct {
	*simulator.Simulator
	// Clock moves only when the test moves it.
	Clock *testclock.FakeClock
	t     testing.TB
}

// Durations are long enough for a test to observe every step.
var Durations = lifecycle.Durations{
	Power: 2 * time.Second, Deploy: 100 * time.Second, Commission: 100 * time.Second, Test: 100 * time.Second, Erase: 100 * time.Second,
	Rescue: 100 * time.Second, DeployTimeout: time.Hour, ReleaseTimeout: 5 * time.Minute, NodeTimeout: 30 * time.Minute,
}

// Start is the initial time of a site's clock.
var Start = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// New returns a site with the seed, and with the users admin, alice and bob.
func New(t testing.TB, seed string, change ...func(*simulator.Options)) *Site {
	t.Helper()
	clock := testclock.NewFakeClock(Start)
	o := simulator.Options{
		Seed: []byte(seed), Clock: clock, Durations: Durations, RandomSeed: 1, Log: t.Logf,
		Users:       []simulator.User{{Name: "admin", Admin: true}, {Name: "alice"}, {Name: "bob"}},
		MetadataURL: "http://192.0.2.1:5240/MAAS/metadata/",
	}
	for _, c := range change {
		c(&o)
	}
	s, err := simulator.New(o)
	if err != nil {
		t.Fatalf("making a simulator: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("closing the simulator: %v", err)
		}
	})
	return &Site{Simulator: s, Clock: clock, t: t}
}

// Answer is a response of the server.
type Answer struct {
	Code   int
	Body   string
	Header http.Header
}

// Object decodes the body as a JSON object.
func (a Answer) Object() map[string]any {
	var o map[string]any
	if err := json.Unmarshal([]byte(a.Body), &o); err != nil {
		return map[string]any{"not an object": a.Body}
	}
	return o
}

// List decodes the body as a list of JSON objects.
func (a Answer) List() []map[string]any {
	var l []map[string]any
	if err := json.Unmarshal([]byte(a.Body), &l); err != nil {
		return []map[string]any{{"not a list": a.Body}}
	}
	return l
}

// Each returns a field of every object in a list.
func (a Answer) Each(field string) []string {
	out := []string{}
	for _, o := range a.List() {
		out = append(out, fmt.Sprint(o[field]))
	}
	return out
}

// Do sends a request to a path below the API's root. An empty user sends no credentials. form contains keys and values
// in turn.
func (s *Site) Do(user, method, path string, form ...string) Answer {
	s.t.Helper()
	var encoded []string
	for i := 0; i+1 < len(form); i += 2 {
		encoded = append(encoded, url.QueryEscape(form[i])+"="+url.QueryEscape(form[i+1]))
	}
	r := httptest.NewRequestWithContext(s.t.Context(), method, render.Root+path, strings.NewReader(strings.Join(encoded, "&")))
	if method == http.MethodPost || method == http.MethodPut {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if user != "" {
		r.Header.Set("Authorization", s.Authorization(s.Key(user)))
	}
	return s.Send(r)
}

// Send sends a request.
func (s *Site) Send(r *http.Request) Answer {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return Answer{Code: w.Code, Body: w.Body.String(), Header: w.Header()}
}

// Authorization returns an OAuth header for a key of the form consumer:token:secret.
func (s *Site) Authorization(key string) string {
	parts := strings.SplitN(key, ":", 3)
	if len(parts) != 3 {
		s.t.Fatalf("the key %q has not three parts", key)
	}
	return fmt.Sprintf(`OAuth realm="", oauth_version="1.0", oauth_signature_method="PLAINTEXT", oauth_consumer_key="%s", `+
		`oauth_token="%s", oauth_signature="%%26%s", oauth_nonce="%s", oauth_timestamp="%d"`,
		parts[0], parts[1], parts[2], rand.Text(), s.Clock.Now().Unix())
}

// Settle moves the clock by one second at a time until all running operations have ended, but at most by the given
// time.
func (s *Site) Settle(within time.Duration) {
	s.t.Helper()
	s.Life.Tick(s.t.Context())
	for range int(within / time.Second) {
		if !s.busy() {
			return
		}
		s.Pass(time.Second)
	}
}

// Pass moves the clock and runs the operations that are then due.
func (s *Site) Pass(d time.Duration) {
	s.Clock.Step(d)
	s.Life.Tick(s.t.Context())
}

func (s *Site) busy() bool {
	for _, m := range s.Machines() {
		if m.Task != nil {
			return true
		}
	}
	return false
}

// Has returns the machine with the system ID or hostname. The test fails if there is none.
func (s *Site) Has(name string) *inventory.Machine {
	s.t.Helper()
	m := s.Machine(name)
	if m == nil {
		s.t.Fatalf("there is no machine %s", name)
	}
	return m
}

// Serve runs a simulator and serves it over HTTP on the loopback interface until the test ends. It returns the URL of
// the API.
func Serve(t testing.TB, s *simulator.Simulator) string {
	t.Helper()
	go s.Run(t.Context())
	return Listen(t, s)
}

// Listen serves a simulator over HTTP on the loopback interface until the test ends. It returns the URL of the API.
// Machines change their state only by Life.Tick.
func Listen(t testing.TB, s *simulator.Simulator) string {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		// Requests that wait for their cost must not block the shutdown of the server.
		free := s.Load.Set(load.Cost{})
		server.Close()
		if err := errors.Join(free, s.Close()); err != nil {
			t.Error(err)
		}
	})
	return server.URL + "/MAAS"
}
