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
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/maas"
)

// Reasons of PlatformCredentialsFound beside those of the API.
const (
	// ReasonChecking means that MAAS was not asked yet.
	ReasonChecking = "MAASNotCheckedYet"
	// ReasonAnotherUser means that MAAS knows the credentials, and that they are of another user than the machines, or of another MAAS.
	ReasonAnotherUser = "CredentialsOfAnotherUser"
)

const (
	defaultCheckTimeout = 5 * time.Second
	// parallelChecks bounds how many of the controller's workers may wait for a MAAS at the same time; the other workers
	// serve clusters whatever their MAAS does.
	parallelChecks = 3

	goodFor   = 5 * time.Minute
	firstWait = 10 * time.Second
	lastWait  = 2 * time.Minute
	busyWait  = 2 * time.Second
	// A namespace may ask so many questions at once, and then one in that time.
	questionsAtOnce = 10
	questionEvery   = 5 * time.Second
	// forgetAfter bounds how long an answer is remembered that nobody asks for any more.
	forgetAfter = time.Hour
)

// WhoAmI asks a MAAS for the name of an API key's user.
type WhoAmI func(ctx context.Context, cfg maas.Config) (string, error)

// checks remembers what MAAS servers said of credentials.
type checks struct {
	clock   clock.Clock
	whoAmI  WhoAmI
	timeout time.Duration
	slots   chan struct{}

	mu sync.Mutex
	// limits are by namespace: who changes a Secret again and again does not have the operator call as often.
	limits  map[string]*limit
	answers map[[sha256.Size]byte]answer
}

type answer struct {
	// user is whose key it is; empty with an error.
	user     string
	err      error
	at       time.Time
	validFor time.Duration
}

// checkResult is what a cluster is told.
type checkResult struct {
	// known is false when MAAS was not asked yet.
	known bool
	// user is whose key it is; empty with an error.
	user string
	err  error
	// again is when to ask again.
	again time.Duration
}

func newChecks(o Options) *checks {
	c := &checks{
		clock: o.Clock, whoAmI: o.WhoAmI, timeout: o.CheckTimeout,
		slots: make(chan struct{}, parallelChecks), limits: map[string]*limit{}, answers: map[[sha256.Size]byte]answer{},
	}
	if c.clock == nil {
		c.clock = clock.RealClock{}
	}
	if c.whoAmI == nil {
		c.whoAmI = whoAmI(o)
	}
	if c.timeout == 0 {
		c.timeout = defaultCheckTimeout
	}
	return c
}

func whoAmI(o Options) WhoAmI {
	return func(ctx context.Context, cfg maas.Config) (string, error) {
		cfg.Retry, cfg.Guard, cfg.Metrics = maas.RetryPolicy{Attempts: -1}, o.Guard, o.Calls
		c, err := maas.NewClient(cfg)
		if err != nil {
			return "", err
		}
		defer c.CloseIdleConnections()
		user, err := c.WhoAmI(ctx)
		if err == nil && user.Username == "" {
			err = &maas.EndpointError{Operation: "check the API key", Endpoint: cfg.Endpoint, Err: errors.New("it names no user")}
		}
		return user.Username, err
	}
}

// ask returns the last answer while it is fresh. Else it asks, unless the namespace has asked too often, or too many questions are
// open already.
func (c *checks) ask(ctx context.Context, namespace string, cfg maas.Config) checkResult {
	key := fingerprint(cfg)
	last, known := c.recall(key)
	if left := last.validFor - c.clock.Since(last.at); known && left > 0 {
		return checkResult{known: true, user: last.user, err: last.err, again: left}
	}
	if wait := c.wait(namespace); wait > 0 {
		return checkResult{known: known, user: last.user, err: last.err, again: wait}
	}
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	default:
		return checkResult{known: known, user: last.user, err: last.err, again: busyWait}
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	user, err := c.whoAmI(ctx, cfg)
	fresh := answer{user: user, err: err, at: c.clock.Now(), validFor: validity(err, last)}
	c.remember(key, fresh)
	return checkResult{known: true, user: user, err: err, again: fresh.validFor}
}

// limit lets a namespace ask some times at once, and then slowly.
type limit struct {
	left int
	at   time.Time
}

// wait is how long a namespace has to wait until it may ask; zero lets it ask now.
func (c *checks) wait(namespace string) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
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
	return 0
}

// validity doubles the wait with each failure in a row.
func validity(err error, last answer) time.Duration {
	if err == nil {
		return goodFor
	}
	if last.err == nil {
		return firstWait
	}
	return min(2*last.validFor, lastWait)
}

func (c *checks) recall(key [sha256.Size]byte) (answer, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, known := c.answers[key]
	return last, known
}

func (c *checks) remember(key [sha256.Size]byte, a answer) {
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

// good tells that MAAS knows the credentials.
func (v checkResult) good() bool { return v.known && v.err == nil }

// refused tells that the endpoint is one that tenants may not have called: the provider must not get it either.
func (v checkResult) refused() bool {
	var refused *maas.RefusedAddressError
	return errors.As(v.err, &refused)
}

// condition puts a result into words.
func (v checkResult) condition(secret client.ObjectKey) metav1.Condition {
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
