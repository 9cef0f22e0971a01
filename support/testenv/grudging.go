// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrRefused is what a request fails with that a Grudging client refuses.
var ErrRefused = errors.New("the server refuses this once")

// Grudging refuses each request once, and one at a time, as a server does whose etcd has no leader for a moment. A pass in which one was
// refused, and which ends well all the same, did not look at the answer.
type Grudging struct {
	client.WithWatch
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
		case err == nil && (result.RequeueAfter <= 0 || result.RequeueAfter > time.Minute || !strings.Contains(fmt.Sprint(conditions()), refused)):
			t.Fatalf("the server refused %s, and the pass ended well, to look again in %s", refused, result.RequeueAfter)
		case err != nil && !errors.Is(err, ErrRefused):
			t.Fatalf("the server refused %s, and the pass failed with something else: %v", refused, err)
		default:
			quiet = 0
		}
	}
	t.Fatal("each pass asked the server for something new")
}

func (g *Grudging) answer(request Request) error {
	if asked := request.String(); g.refused == "" && !g.known[asked] {
		g.known[asked], g.refused = true, asked
		return fmt.Errorf("%w: %s", ErrRefused, asked)
	}
	return request.Do()
}
