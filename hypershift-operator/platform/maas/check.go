package maas

import (
	"context"
	"crypto/sha256"
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

	mu      sync.Mutex
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
		slots: make(chan struct{}, parallelChecks), answers: map[[sha256.Size]byte]answer{},
	}
	if c.clock == nil {
		c.clock = clock.RealClock{}
	}
	if c.whoAmI == nil {
		c.whoAmI = whoAmI
	}
	if c.timeout == 0 {
		c.timeout = defaultCheckTimeout
	}
	return c
}

func whoAmI(ctx context.Context, cfg maas.Config) (string, error) {
	cfg.Retry = maas.RetryPolicy{Attempts: -1}
	c, err := maas.NewClient(cfg)
	if err != nil {
		return "", err
	}
	defer c.CloseIdleConnections()
	user, err := c.WhoAmI(ctx)
	return user.Username, err
}

// ask returns the last answer while it is fresh. Else it asks, unless too many questions are open already.
func (c *checks) ask(ctx context.Context, cfg maas.Config) checkResult {
	key := fingerprint(cfg)
	last, known := c.recall(key)
	if left := last.validFor - c.clock.Since(last.at); known && left > 0 {
		return checkResult{known: true, user: last.user, err: last.err, again: left}
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

// condition puts a result into words.
func (v checkResult) condition(secret client.ObjectKey) metav1.Condition {
	switch {
	case !v.known:
		return condition.Unknown(credentialsFound, ReasonChecking, "MAAS will be asked shortly whether it knows the credentials")
	case v.err == nil:
		return condition.True(credentialsFound, hyperv1.AsExpectedReason, "MAAS accepts the credentials")
	case maas.IsUnauthorized(v.err), maas.IsForbidden(v.err):
		return condition.False(credentialsFound, hyperv1.MAASUnauthorizedReason, fmt.Sprintf(
			"%v. Put a valid API key into %s of Secret %s", v.err, maas.SecretKeyAPIKey, secret))
	default:
		return condition.False(credentialsFound, hyperv1.MAASUnreachableReason, fmt.Sprintf(
			"%v. Check %s in Secret %s, and that the management cluster reaches MAAS", v.err, maas.SecretKeyEndpoint, secret))
	}
}
