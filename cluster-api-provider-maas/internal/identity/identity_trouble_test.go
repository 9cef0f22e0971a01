// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/identity"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/pki"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

// bank is a management cluster that counts reads of Secrets and that can fail.
type bank struct {
	client.Client
	*identity.Resolver
	clock *clocktesting.FakePassiveClock
	reads map[string]int
	err   error
}

func newBank(options identity.Options, secrets ...client.Object) *bank {
	b := &bank{clock: clocktesting.NewFakePassiveClock(time.Now()), reads: map[string]int{}}
	b.Client = fakeclient.NewClientBuilder().WithObjects(secrets...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			b.reads[key.Name]++
			if b.err != nil {
				return b.err
			}
			return c.Get(ctx, key, obj, opts...)
		}}).Build()
	options.Reader, options.Clock = b.Client, b.clock
	b.Resolver = identity.NewResolver(options)
	return b
}

func (b *bank) later(d time.Duration) { b.clock.SetTime(b.clock.Now().Add(d)) }

func credentials(name, endpoint, apiKey string, more ...string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: map[string][]byte{maas.SecretKeyEndpoint: []byte(endpoint), maas.SecretKeyAPIKey: []byte(apiKey)}}
	for i := 0; i < len(more); i += 2 {
		s.Data[more[i]] = []byte(more[i+1])
	}
	return s
}

func named(name string) client.ObjectKey { return client.ObjectKey{Namespace: "ns", Name: name} }

// TestIdentityOfEach checks that a different MAAS, key or CA bundle yields a separate identity. Equal credentials
// share one, wherever they are stored.
func TestIdentityOfEach(t *testing.T) {
	g := NewWithT(t)
	b := newBank(identity.Options{},
		credentials("a", "http://h/MAAS", "a:b:c"), credentials("same", "http://h/MAAS", "a:b:c"),
		credentials("host", "http://other/MAAS", "a:b:c"), credentials("key", "http://h/MAAS", "a:b:d"))
	got := map[string]*identity.Identity{}
	for _, name := range []string{"a", "same", "host", "key"} {
		id, err := b.For(t.Context(), named(name))
		g.Expect(err).NotTo(HaveOccurred(), name)
		g.Expect(id.Client).NotTo(BeNil())
		g.Expect(id.Inventory).NotTo(BeNil())
		g.Expect(id.SetAside).NotTo(BeNil())
		got[name] = id
	}
	g.Expect(got["same"]).To(BeIdenticalTo(got["a"]), "one inventory serves both")
	for _, name := range []string{"host", "key"} {
		g.Expect(got[name]).NotTo(BeIdenticalTo(got["a"]), name)
		g.Expect(got[name].Inventory).NotTo(BeIdenticalTo(got["a"].Inventory), name)
	}
}

// TestIdentityWithCertificates checks that each CA bundle gets its own client.
func TestIdentityWithCertificates(t *testing.T) {
	g := NewWithT(t)
	bundles := map[string]string{}
	for _, name := range []string{"one", "two"} {
		ca, err := pki.NewCA(pki.Name{CommonName: name}, time.Now())
		g.Expect(err).NotTo(HaveOccurred())
		bundles[name] = string(ca.CertPEM)
	}
	b := newBank(identity.Options{}, credentials("one", "https://h/MAAS", "a:b:c", maas.SecretKeyCABundle, bundles["one"]),
		credentials("two", "https://h/MAAS", "a:b:c", maas.SecretKeyCABundle, bundles["two"]), credentials("none", "https://h/MAAS", "a:b:c"))
	seen := map[*identity.Identity]string{}
	for _, name := range []string{"one", "two", "none"} {
		id, err := b.For(t.Context(), named(name))
		g.Expect(err).NotTo(HaveOccurred(), name)
		g.Expect(seen).NotTo(HaveKey(id), name)
		seen[id] = name
	}
}

// TestSecretIsReadAgain checks that a Secret is read again after exactly ten seconds. An error is repeated for ten
// seconds too, since all machines need the Secret.
func TestSecretIsReadAgain(t *testing.T) {
	for name, trouble := range map[string]error{"When it can be read": nil, "When it cannot be read": errors.New("etcd has no leader")} {
		t.Run(name+", it should be read once in ten seconds", func(t *testing.T) {
			g := NewWithT(t)
			b := newBank(identity.Options{}, credentials("a", "http://h/MAAS", "a:b:c"))
			b.err = trouble
			ask := func() {
				t.Helper()
				_, err := b.For(t.Context(), named("a"))
				if trouble == nil {
					g.Expect(err).NotTo(HaveOccurred())
					return
				}
				g.Expect(err).To(MatchError(trouble))
				g.Expect(err).To(MatchError(ContainSubstring("reading the MAAS credentials in Secret ns/a")))
				g.Expect(identity.IsMissing(err)).To(BeFalse(), "nobody knows whether it is there")
			}
			for range 5 {
				ask()
			}
			b.later(10*time.Second - time.Millisecond)
			ask()
			g.Expect(b.reads).To(Equal(map[string]int{"a": 1}))
			b.later(time.Millisecond)
			ask()
			g.Expect(b.reads).To(Equal(map[string]int{"a": 2}))
		})
	}
}

// TestSecretThatComesBack checks that a created Secret takes effect, and a deleted one no longer does.
func TestSecretThatComesBack(t *testing.T) {
	g := NewWithT(t)
	b := newBank(identity.Options{Secret: named("a")})
	_, err := b.For(t.Context(), client.ObjectKey{})
	g.Expect(identity.IsMissing(err)).To(BeTrue())
	made := credentials("a", "http://h/MAAS", "a:b:c")
	g.Expect(b.Create(t.Context(), made)).To(Succeed())
	_, err = b.For(t.Context(), client.ObjectKey{})
	g.Expect(identity.IsMissing(err)).To(BeTrue(), "not before it is read again")
	b.later(10 * time.Second)
	first, err := b.For(t.Context(), client.ObjectKey{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(b.Delete(t.Context(), made)).To(Succeed())
	b.later(10 * time.Second)
	_, err = b.For(t.Context(), client.ObjectKey{})
	g.Expect(identity.IsMissing(err)).To(BeTrue(), "a key that was taken away must not be used on")
	g.Expect(b.Create(t.Context(), credentials("a", "http://h/MAAS", "a:b:c"))).To(Succeed())
	b.later(10 * time.Second)
	again, err := b.For(t.Context(), client.ObjectKey{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(BeIdenticalTo(first), "what is known of MAAS is known still")
}

// TestWhichSecret checks that the Secret of a cluster takes precedence over the Secret of the process, and that
// Secret over the environment. A missing Secret has no fallback: machines would be allocated for the wrong user.
func TestWhichSecret(t *testing.T) {
	g := NewWithT(t)
	environment := map[string][]byte{maas.SecretKeyEndpoint: []byte("http://environment/MAAS"), maas.SecretKeyAPIKey: []byte("a:b:c")}
	b := newBank(identity.Options{Secret: named("process"), Environment: environment}, credentials("process", "http://process/MAAS", "a:b:c"), credentials("own", "http://own/MAAS", "a:b:c"))
	for name, want := range map[client.ObjectKey]string{named("own"): "http://own/MAAS/api/2.0/", {}: "http://process/MAAS/api/2.0/", {Namespace: "ns"}: "http://process/MAAS/api/2.0/"} {
		id, err := b.For(t.Context(), name)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(id.Client.Endpoint()).To(Equal(want), "%v", name)
	}
	_, err := b.For(t.Context(), client.ObjectKey{Namespace: "elsewhere", Name: "own"})
	g.Expect(err).To(MatchError(ContainSubstring("Secret elsewhere/own with the MAAS credentials does not exist")))
	g.Expect(identity.IsMissing(err)).To(BeTrue())
}

// TestIsMissing checks that IsMissing also recognizes a wrapped error.
func TestIsMissing(t *testing.T) {
	g := NewWithT(t)
	_, err := newBank(identity.Options{}).For(t.Context(), client.ObjectKey{})
	g.Expect(identity.IsMissing(fmt.Errorf("looking after MaasCluster ns/a: %w", err))).To(BeTrue())
	g.Expect(identity.IsMissing(&maas.Error{StatusCode: http.StatusUnauthorized})).To(BeFalse(), "a key that MAAS refuses is there")
	g.Expect(identity.IsMissing(nil)).To(BeFalse())
}

// TestManyAtOnce checks that a hundred concurrent reconciles get one identity, whose inventory calls MAAS once for
// all.
func TestManyAtOnce(t *testing.T) {
	g := NewWithT(t)
	s := simtest.New(t, simtest.Rack)
	environment := map[string][]byte{maas.SecretKeyEndpoint: []byte(simtest.Listen(t, s.Simulator)), maas.SecretKeyAPIKey: []byte(s.Key("alice"))}
	r := identity.NewResolver(identity.Options{Environment: environment, Clock: s.Clock, Template: maas.Config{Clock: s.Clock, Retry: maas.RetryPolicy{Attempts: -1}}})
	s.ResetRequests()
	var all sync.WaitGroup
	users, errs := make([]string, 100), make([]error, 100)
	for i := range users {
		all.Go(func() {
			id, err := r.For(t.Context(), client.ObjectKey{})
			if err != nil {
				errs[i] = err
				return
			}
			user, err := id.Inventory.User(t.Context())
			users[i], errs[i] = user.Username, err
		})
	}
	all.Wait()
	g.Expect(errs).To(HaveEach(BeNil()))
	g.Expect(users).To(HaveEach("alice"))
	g.Expect(s.Load.Report().Of("users.whoami").Calls).To(Equal(1))
}
