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

// ErrRefused is the error of a request that a Grudging client refuses.
var ErrRefused = errors.New("the server refuses this once")

// Grudging refuses each distinct request once. After the first refusal in a reconcile it also refuses all other new
// requests, like a server whose etcd briefly has no leader. A reconcile that succeeds despite a refusal has ignored an
// error.
type Grudging struct {
	client.WithWatch
	// Soon is the maximum requeue delay with which a reconcile need not report the refusal; zero for never. If Soon is
	// set, GET requests to another server may be optional.
	Soon    time.Duration
	known   map[string]bool
	refused string
}

// NewGrudging wraps a client. It is not safe for concurrent use.
func NewGrudging(c client.WithWatch) *Grudging {
	g := &Grudging{known: map[string]bool{}}
	g.WithWatch = Intercept(c, g.answer)
	return g
}

// most is the maximum number of reconciles, far more than any object needs.
const most = 2000

// Exhaust runs reconciles until the server has refused each request once. A reconcile with a refusal must fail with it,
// or requeue within a minute and report it in the conditions.
func (g *Grudging) Exhaust(t testing.TB, pass func() (ctrl.Result, error), conditions func() any) {
	t.Helper()
	quiet := 0
	for range most {
		g.refused = ""
		result, err := pass()
		switch refused := g.refused; {
		case refused == "" && err != nil:
			t.Fatalf("nothing was refused, but the reconcile failed: %v", err)
		case refused == "":
			if quiet++; quiet == 3 {
				return
			}
		case err == nil && !g.admits(result.RequeueAfter, conditions):
			t.Fatalf("the server refused %s, but the reconcile succeeded, and asks for another one in %s", refused, result.RequeueAfter)
		case err != nil && !g.failsOf(err, conditions):
			// The error of a later request hides that the refusal was ignored.
			t.Fatalf("the server refused %s, and the reconcile failed with another error: %v", refused, err)
		default:
			quiet = 0
		}
	}
	t.Fatal("each reconcile sent the server a new request")
}

// admits reports whether a reconcile that succeeded has handled the refusal: it requeues soon, or reports the refusal
// in the conditions.
func (g *Grudging) admits(again time.Duration, conditions func() any) bool {
	switch {
	case again <= 0 || again > time.Minute:
		return false
	case again <= g.Soon:
		return true
	}
	return g.tells(conditions)
}

// failsOf reports whether a failed reconcile failed because of the refusal, or reported it before another error.
func (g *Grudging) failsOf(err error, conditions func() any) bool {
	optional := g.Soon > 0 && strings.HasPrefix(g.refused, http.MethodGet+" ")
	return optional || strings.Contains(err.Error(), g.refused) || g.tells(conditions)
}

func (g *Grudging) tells(conditions func() any) bool {
	return strings.Contains(fmt.Sprint(conditions()), g.refused)
}

// answer does not refuse writes of a status after another refusal: the status reports that refusal.
func (g *Grudging) answer(request Request) error {
	if g.refused != "" && strings.HasSuffix(request.Verb, " status") {
		return request.Do()
	}
	if err := g.refuse(request.String()); err != nil {
		return err
	}
	return request.Do()
}

// refuse refuses requests that are new. After the first refusal of a reconcile, other new requests fail too, but they
// are not recorded. A later reconcile tests the refusal of each of them on its own.
func (g *Grudging) refuse(asked string) error {
	if g.known[asked] {
		return nil
	}
	if g.refused == "" {
		g.known[asked], g.refused = true, asked
	}
	return fmt.Errorf("%w: %s", ErrRefused, asked)
}

// Transport refuses requests to another server in the same way.
func (g *Grudging) Transport(next http.RoundTripper) http.RoundTripper {
	return RoundTrip(func(r *http.Request) (*http.Response, error) {
		if err := g.refuse(r.Method + " " + r.URL.RequestURI()); err != nil {
			return nil, err
		}
		return next.RoundTrip(r)
	})
}

// RoundTrip is a function that implements http.RoundTripper.
type RoundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (t RoundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }
