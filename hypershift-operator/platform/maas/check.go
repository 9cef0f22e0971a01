// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/pace"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/maas"
)

// Reasons of PlatformCredentialsFound in addition to those of the API.
const (
	// ReasonChecking means that the operator has not called MAAS yet.
	ReasonChecking = "MAASNotCheckedYet"
	// ReasonAnotherUser means that MAAS accepts the credentials, but the machines belong to a different user, or to a
	// different MAAS.
	ReasonAnotherUser = "CredentialsOfAnotherUser"
)

const (
	defaultCheckTimeout = 5 * time.Second
	// parallelChecks limits how many of the controller's workers may wait for a MAAS concurrently. The other workers serve
	// clusters even if their MAAS does not answer. Each namespace has at most one request in flight.
	parallelChecks = pace.Workers / 2

	goodFor   = 5 * time.Minute
	firstWait = 10 * time.Second
	lastWait  = 2 * time.Minute
	busyWait  = 2 * time.Second
	// A namespace may make questionsAtOnce requests at once, and then one per questionEvery.
	questionsAtOnce = 10
	questionEvery   = 5 * time.Second
	// forgetAfter limits how long an unused answer is cached.
	forgetAfter = time.Hour
)

// WhoAmI gets the user name of an API key from a MAAS.
type WhoAmI func(ctx context.Context, cfg maas.Config) (string, error)

// checks makes one kind of request to MAAS servers, and caches the answers by credentials.
type checks[T any] struct {
	clock   clock.Clock
	query   func(ctx context.Context, cfg maas.Config) (T, error)
	timeout time.Duration

	mu sync.Mutex
	// open contains the namespaces with a request in flight.
	open map[string]bool
	// limits holds the rate limit of each namespace, so that frequent changes of a Secret do not cause as many calls
	// to MAAS.
	limits  map[string]*limit
	answers map[[sha256.Size]byte]answer[T]
}

type answer[T any] struct {
	// value is MAAS's answer, such as the user of the key; zero with an error.
	value    T
	err      error
	at       time.Time
	validFor time.Duration
}

// checkResult is the result that is reported for a cluster.
type checkResult[T any] struct {
	// known is false until MAAS has answered.
	known bool
	// value is MAAS's answer, such as the user of the key; zero with an error.
	value T
	err   error
	// again is the time until the next request.
	again time.Duration
}

func newChecks[T any](o Options, query func(ctx context.Context, cfg maas.Config) (T, error)) *checks[T] {
	c := &checks[T]{
		clock: o.Clock, query: query, timeout: o.CheckTimeout,
		open: map[string]bool{}, limits: map[string]*limit{}, answers: map[[sha256.Size]byte]answer[T]{},
	}
	if c.clock == nil {
		c.clock = clock.RealClock{}
	}
	if c.timeout == 0 {
		c.timeout = defaultCheckTimeout
	}
	return c
}

// withClient turns one API call into a query. The call is not retried, and contacts only addresses that are allowed for
// tenants.
func withClient[T any](o Options, call func(context.Context, *maas.Client) (T, error)) func(context.Context, maas.Config) (T, error) {
	return func(ctx context.Context, cfg maas.Config) (T, error) {
		cfg.Retry, cfg.Guard, cfg.Metrics = maas.RetryPolicy{Attempts: -1}, o.Guard, o.Calls
		c, err := maas.NewClient(cfg)
		if err != nil {
			var none T
			return none, err
		}
		defer c.CloseIdleConnections()
		return call(ctx, c)
	}
}

func whoAmI(ctx context.Context, c *maas.Client) (string, error) {
	user, err := c.WhoAmI(ctx)
	if err == nil && user.Username == "" {
		err = &maas.EndpointError{Operation: "check the API key", Endpoint: c.Endpoint(), Err: errors.New("it names no user")}
	}
	return user.Username, err
}

// ask returns the last answer while it is fresh. Otherwise it queries MAAS, unless the namespace has reached its rate
// limit, or too many requests are in flight.
func (c *checks[T]) ask(ctx context.Context, namespace string, cfg maas.Config) checkResult[T] {
	key := fingerprint(cfg)
	last, known := c.recall(key)
	if left := last.validFor - c.clock.Since(last.at); known && left > 0 {
		return checkResult[T]{known: true, value: last.value, err: last.err, again: left}
	}
	if wait := c.begin(namespace); wait > 0 {
		return checkResult[T]{known: known, value: last.value, err: last.err, again: wait}
	}
	defer c.end(namespace)
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	value, err := c.query(ctx, cfg)
	fresh := answer[T]{value: value, err: err, at: c.clock.Now(), validFor: validity(err, last.err, last.validFor)}
	c.remember(key, fresh)
	return checkResult[T]{known: true, value: value, err: err, again: fresh.validFor}
}

// limit is the rate limit of a namespace, which allows a burst.
type limit struct {
	left int
	at   time.Time
}

// begin returns how long a namespace must wait before its next request. Zero means that it may query now, until end is
// called.
func (c *checks[T]) begin(namespace string) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) >= parallelChecks || c.open[namespace] {
		return busyWait
	}
	now := c.clock.Now()
	l, known := c.limits[namespace]
	if !known {
		l = &limit{left: questionsAtOnce, at: now}
		c.limits[namespace] = l
	}
	if more := int(now.Sub(l.at) / questionEvery); more > 0 {
		l.left, l.at = min(questionsAtOnce, l.left+more), now
	}
	if l.left == 0 {
		return questionEvery - now.Sub(l.at)
	}
	l.left--
	c.open[namespace] = true
	return 0
}

func (c *checks[T]) end(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, namespace)
}

// validity returns how long a result is cached. The time doubles with each consecutive failure.
func validity(err, last error, waited time.Duration) time.Duration {
	if err == nil {
		return goodFor
	}
	if last == nil {
		return firstWait
	}
	return min(2*waited, lastWait)
}

func (c *checks[T]) recall(key [sha256.Size]byte) (answer[T], bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, known := c.answers[key]
	return last, known
}

func (c *checks[T]) remember(key [sha256.Size]byte, a answer[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for namespace, l := range c.limits {
		if c.clock.Since(l.at) > forgetAfter {
			delete(c.limits, namespace)
		}
	}
	for other, old := range c.answers {
		if c.clock.Since(old.at) > forgetAfter {
			delete(c.answers, other)
		}
	}
	c.answers[key] = a
}

func fingerprint(cfg maas.Config) [sha256.Size]byte {
	return sha256.Sum256([]byte(strings.Join([]string{cfg.Endpoint, cfg.APIKey, string(cfg.CABundle)}, "\x00")))
}

// good reports whether MAAS accepts the credentials.
func (v checkResult[T]) good() bool { return v.known && v.err == nil }

// refused reports whether the address policy for tenants blocks the endpoint. The provider must not get such an
// endpoint either.
func (v checkResult[T]) refused() bool {
	var refused *maas.RefusedAddressError
	return errors.As(v.err, &refused)
}

// condition returns the condition that describes the result.
func (v checkResult[T]) condition(secret client.ObjectKey) metav1.Condition {
	switch {
	case !v.known:
		return condition.Unknown(credentialsFound, ReasonChecking, "MAAS will be asked shortly whether it knows the credentials")
	case v.err == nil:
		return condition.True(credentialsFound, hyperv1.AsExpectedReason, "MAAS accepts the credentials")
	case maas.IsUnauthorized(v.err), maas.IsForbidden(v.err):
		return condition.False(credentialsFound, hyperv1.MAASUnauthorizedReason, fmt.Sprintf(
			"%s. Put a valid API key into %s of Secret %s", maas.Public(v.err), maas.SecretKeyAPIKey, secret))
	default:
		return condition.False(credentialsFound, hyperv1.MAASUnreachableReason, fmt.Sprintf(
			"%s. Check %s in Secret %s, and that the management cluster reaches MAAS", maas.Public(v.err), maas.SecretKeyEndpoint, secret))
	}
}
