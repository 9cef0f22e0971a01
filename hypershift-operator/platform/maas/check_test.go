// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/maas"
)

var (
	testConfig = maas.Config{Endpoint: "http://maas.example:5240/MAAS", APIKey: "a:b:c"}
	testSecret = client.ObjectKey{Namespace: "clusters", Name: "creds"}
)

// server is a MAAS that responds as the test specifies and counts the requests.
type server struct {
	user  string
	err   error
	asked int
}

func (s *server) whoAmI(context.Context, maas.Config) (string, error) {
	s.asked++
	return s.user, s.err
}

func TestAsk(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	unreachable := &maas.UnreachableError{Operation: "check the API key", Endpoint: "maas.example", Err: errors.New("refused")}

	t.Run("When a check succeeds, it should check again only after minutes", func(t *testing.T) {
		g, s := NewWithT(t), &server{}
		c := newChecks(Options{Clock: clock}, s.whoAmI)
		for range 3 {
			v := c.ask(t.Context(), "team", testConfig)
			g.Expect(v.condition(testSecret).Status).To(Equal(metav1.ConditionTrue))
			g.Expect(v.again).To(BeNumerically(">", 0))
		}
		g.Expect(s.asked).To(Equal(1))
		clock.Step(goodFor)
		c.ask(t.Context(), "team", testConfig)
		g.Expect(s.asked).To(Equal(2))
	})

	t.Run("When checks fail, it should wait longer before each retry", func(t *testing.T) {
		g, s := NewWithT(t), &server{err: unreachable}
		c := newChecks(Options{Clock: clock}, s.whoAmI)
		var waits []time.Duration
		for range 6 {
			v := c.ask(t.Context(), "team", testConfig)
			waits = append(waits, v.again)
			clock.Step(v.again)
		}
		g.Expect(waits).To(Equal([]time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 2 * time.Minute, 2 * time.Minute}))
	})

	t.Run("When the key changes, it should check immediately", func(t *testing.T) {
		g, s := NewWithT(t), &server{err: unreachable}
		c := newChecks(Options{Clock: clock}, s.whoAmI)
		c.ask(t.Context(), "team", testConfig)
		s.err = nil
		other := testConfig
		other.APIKey = "d:e:f"
		g.Expect(c.ask(t.Context(), "team", other).err).NotTo(HaveOccurred())
		g.Expect(s.asked).To(Equal(2))
	})

	t.Run("a namespace has only one check in flight, and other namespaces are checked concurrently", func(t *testing.T) {
		g := NewWithT(t)
		started, release := make(chan struct{}), make(chan struct{})
		c := newChecks(Options{Clock: clock}, func(context.Context, maas.Config) (string, error) {
			started <- struct{}{}
			<-release
			return "alice", nil
		})
		done := make(chan checkResult[string])
		ask := func(namespace, key string) {
			cfg := testConfig
			cfg.APIKey = key
			done <- c.ask(t.Context(), namespace, cfg)
		}
		go ask("team", "a:a:a")
		<-started
		second := testConfig
		second.APIKey = "b:b:b"
		g.Expect(c.ask(t.Context(), "team", second).again).To(Equal(busyWait))
		go ask("others", "c:c:c")
		<-started
		close(release)
		for range 2 {
			g.Expect((<-done).value).To(Equal("alice"))
		}
	})

	t.Run("When servers hang, it should block few workers and return immediately for the others", func(t *testing.T) {
		g := NewWithT(t)
		started, release := make(chan struct{}), make(chan struct{})
		c := newChecks(Options{Clock: clock}, func(context.Context, maas.Config) (string, error) {
			started <- struct{}{}
			<-release
			return "", unreachable
		})
		done := make(chan checkResult[string])
		for i := range parallelChecks {
			hanging := testConfig
			hanging.Endpoint += string(rune('a' + i))
			go func() { done <- c.ask(t.Context(), fmt.Sprint("team-", i), hanging) }()
			<-started
		}
		v := c.ask(t.Context(), "team", testConfig)
		g.Expect(v.known).To(BeFalse())
		g.Expect(v.again).To(Equal(busyWait))
		g.Expect(v.condition(testSecret).Reason).To(Equal(ReasonChecking))
		close(release)
		for range parallelChecks {
			g.Expect((<-done).err).To(HaveOccurred())
		}
	})

	t.Run("When a server takes too long, it should time out", func(t *testing.T) {
		g := NewWithT(t)
		c := newChecks(Options{Clock: clock, CheckTimeout: time.Millisecond}, func(ctx context.Context, _ maas.Config) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		})
		g.Expect(c.ask(t.Context(), "team", testConfig).err).To(MatchError(context.DeadlineExceeded))
	})

	t.Run("When a cached result is old, it should remove the result", func(t *testing.T) {
		g, s := NewWithT(t), &server{}
		c := newChecks(Options{Clock: clock}, s.whoAmI)
		c.ask(t.Context(), "team", testConfig)
		clock.Step(forgetAfter + time.Second)
		other := testConfig
		other.APIKey = "d:e:f"
		c.ask(t.Context(), "team", other)
		g.Expect(c.answers).To(HaveLen(1))
	})
}

func TestCheckResultCondition(t *testing.T) {
	for _, tc := range []struct {
		name           string
		err            error
		reason, advice string
	}{
		{"When the key is wrong, it should name the Secret's key", &maas.Error{Operation: "check the API key", StatusCode: 401},
			"MAASUnauthorized", "Put a valid API key into MAAS_API_KEY of Secret clusters/creds"},
		{"When MAAS does not answer, it should name the endpoint's key",
			&maas.UnreachableError{Operation: "check the API key", Endpoint: "maas.example", Err: errors.New("connection refused")},
			"MAASUnreachable", "Check MAAS_ENDPOINT in Secret clusters/creds"},
		{"When MAAS returns a gateway error, it should report MAASUnreachable", &maas.Error{Operation: "check the API key", StatusCode: 502},
			"MAASUnreachable", "Check MAAS_ENDPOINT"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			c := checkResult[string]{known: true, err: tc.err}.condition(testSecret)
			g.Expect(c.Status).To(Equal(metav1.ConditionFalse))
			g.Expect(c.Reason).To(Equal(tc.reason))
			g.Expect(c.Message).To(ContainSubstring(tc.advice))
		})
	}
}
