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
	// Soon is how soon a pass may look again without telling of the refusal; zero for never.
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

// Exhaust makes passes until the server refuses nothing any more. Each pass in which it refused something must fail, or look again within a
// minute and tell of it in the conditions.
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
		case err != nil && !errors.Is(err, ErrRefused):
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
	return strings.Contains(fmt.Sprint(conditions()), g.refused)
}

func (g *Grudging) answer(request Request) error {
	if err := g.refuse(request.String()); err != nil {
		return err
	}
	return request.Do()
}

// refuse answers what was never asked before. After the first refusal of a pass the rest of it fails as well, and is asked for by the next one:
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
