// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrRefused is what a request fails with that a Grudging client refuses.
var ErrRefused = errors.New("the server refuses this once")

// Grudging refuses each request once, and all new ones of a pass after the first that it refused, as a server does whose etcd has no leader for a
// moment. A pass in which one was refused, and which ends well all the same, did not look at the answer.
type Grudging struct {
	client.WithWatch
	// Soon is how soon a pass may look again without telling of the refusal; zero for never. With it, what another server is asked for by GET
	// may be wanted and not needed.
	Soon    time.Duration
	known   map[string]bool
	refused string
}

// NewGrudging wraps a client. It serves one caller at a time.
func NewGrudging(c client.WithWatch) *Grudging {
	g := &Grudging{known: map[string]bool{}}
	g.WithWatch = Intercept(c, g.answer)
	return g
}

// most is how many requests a life may have: far more than one has.
const most = 2000

// Exhaust makes passes until the server refuses nothing any more. Each pass in which it refused something must fail of that, or look again
// within a minute and tell of it in the conditions.
func (g *Grudging) Exhaust(t testing.TB, pass func() (ctrl.Result, error), conditions func() any) {
	t.Helper()
	quiet := 0
	for range most {
		g.refused = ""
		result, err := pass()
		switch refused := g.refused; {
		case refused == "" && err != nil:
			t.Fatalf("nothing was refused, and the pass failed: %v", err)
		case refused == "":
			if quiet++; quiet == 3 {
				return
			}
		case err == nil && !g.admits(result.RequeueAfter, conditions):
			t.Fatalf("the server refused %s, and the pass ended well, to look again in %s", refused, result.RequeueAfter)
		case err != nil && !g.failsOf(err, conditions):
			// What was refused after it hides that its error was lost.
			t.Fatalf("the server refused %s, and the pass failed with something else: %v", refused, err)
		default:
			quiet = 0
		}
	}
	t.Fatal("each pass asked the server for something new")
}

// admits tells that a pass which ended well owned up to the refusal.
func (g *Grudging) admits(again time.Duration, conditions func() any) bool {
	switch {
	case again <= 0 || again > time.Minute:
		return false
	case again <= g.Soon:
		return true
	}
	return g.tells(conditions)
}

// failsOf tells that a pass which failed did so of the refusal, or told of it before it met another one.
func (g *Grudging) failsOf(err error, conditions func() any) bool {
	optional := g.Soon > 0 && strings.HasPrefix(g.refused, http.MethodGet+" ")
	return optional || strings.Contains(err.Error(), g.refused) || g.tells(conditions)
}

func (g *Grudging) tells(conditions func() any) bool {
	return strings.Contains(fmt.Sprint(conditions()), g.refused)
}

// answer refuses a status together with nothing else: in a pass that was refused something it is what tells of that.
func (g *Grudging) answer(request Request) error {
	if g.refused != "" && strings.HasSuffix(request.Verb, " status") {
		return request.Do()
	}
	if err := g.refuse(request.String()); err != nil {
		return err
	}
	return request.Do()
}

// refuse answers what was never asked before. After the first refusal of a pass all else that is new fails as well, and is asked for by the next one:
// what went through beside a refusal would never be refused by itself.
func (g *Grudging) refuse(asked string) error {
	if g.known[asked] {
		return nil
	}
	if g.refused == "" {
		g.known[asked], g.refused = true, asked
	}
	return fmt.Errorf("%w: %s", ErrRefused, asked)
}

// Transport refuses the requests to another server in the same way.
func (g *Grudging) Transport(next http.RoundTripper) http.RoundTripper {
	return RoundTrip(func(r *http.Request) (*http.Response, error) {
		if err := g.refuse(r.Method + " " + r.URL.RequestURI()); err != nil {
			return nil, err
		}
		return next.RoundTrip(r)
	})
}

// RoundTrip is an http.RoundTripper.
type RoundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (t RoundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }
