// SPDX-License-Identifier: Apache-2.0

package token_test

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/ignition-server/payload"
	"github.com/openshift/hypershift/ignition-server/token"
	"github.com/openshift/hypershift/support/metrics/metricstest"
	"github.com/openshift/hypershift/support/testenv"
)

const namespace = "default"

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// fakeGenerator returns the requested release, or an error.
type fakeGenerator struct {
	err error
	// planErr is the error for node plans only.
	planErr error
	asked   []payload.Request
}

func (f *fakeGenerator) Generate(_ context.Context, r payload.Request) ([]byte, error) {
	f.asked = append(f.asked, r)
	if f.err != nil {
		return nil, f.err
	}
	if r.Format == hyperv1.UserDataCloudConfig {
		return []byte(`{"plan":"` + r.ConfigHash + `"}`), f.planErr
	}
	return []byte(`{"release":"` + r.Release + `"}`), nil
}

type fixture struct {
	*GomegaWithT
	t          *testing.T
	client     client.Client
	clock      *clocktesting.FakePassiveClock
	generator  *fakeGenerator
	cache      *token.Cache
	reconciler *token.Reconciler
	recorder   *events.FakeRecorder
	key        client.ObjectKey
}

func newFixture(t *testing.T, c client.Client, name string) *fixture {
	clock := clocktesting.NewFakePassiveClock(start)
	f := &fixture{
		GomegaWithT: NewWithT(t), t: t, client: c, clock: clock, generator: &fakeGenerator{}, cache: token.NewCache(clock),
		recorder: events.NewFakeRecorder(10), key: client.ObjectKey{Namespace: namespace, Name: name},
	}
	f.reconciler = &token.Reconciler{Client: c, Cache: f.cache, Generator: f.generator, Clock: clock, Recorder: f.recorder, Look: token.TTL}
	return f
}

func (f *fixture) create(edit func(*corev1.Secret)) {
	f.t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: f.key.Name, Annotations: map[string]string{
			token.ConfigAnnotation: "true", token.NodePoolAnnotation: "clusters/workers", token.UpgradeTypeAnnotation: "Replace",
			token.GeneratedAnnotation: start.Format(time.RFC3339Nano),
		}},
		Data: map[string][]byte{token.TokenKey: []byte("first"), token.ReleaseKey: []byte("image"), token.ConfigKey: []byte("packed")},
	}
	if edit != nil {
		edit(secret)
	}
	f.Expect(f.client.Create(f.t.Context(), secret)).To(Succeed())
}

func (f *fixture) reconcile() (ctrl.Result, error) {
	f.t.Helper()
	return f.reconciler.Reconcile(f.t.Context(), ctrl.Request{NamespacedName: f.key})
}

func (f *fixture) mustReconcile() ctrl.Result {
	f.t.Helper()
	result, err := f.reconcile()
	f.Expect(err).NotTo(HaveOccurred())
	return result
}

func (f *fixture) secret() *corev1.Secret {
	f.t.Helper()
	secret := &corev1.Secret{}
	f.Expect(f.client.Get(f.t.Context(), f.key, secret)).To(Succeed())
	return secret
}

func (f *fixture) serves(tok string) bool {
	_, ok := f.cache.Get(tok)
	return ok
}

func TestReconcile(t *testing.T) {
	c := testenv.Client(t, testenv.Start(t), scheme.Scheme)

	t.Run("When the user data format is CloudConfig, it should render the payload in that format", func(t *testing.T) {
		f := newFixture(t, c, "token-cloud-config")
		f.create(func(s *corev1.Secret) { s.Annotations["hypershift.openshift.io/user-data-format"] = "CloudConfig" })
		f.mustReconcile()
		f.Expect(f.generator.asked).To(HaveLen(1))
		f.Expect(f.generator.asked[0].Format).To(BeEquivalentTo("CloudConfig"))
	})

	t.Run("When a token is new, it should be served and its Secret written once", func(t *testing.T) {
		f := newFixture(t, c, "token-new")
		f.create(nil)
		result := f.mustReconcile()
		f.Expect(result.RequeueAfter).To(Equal(token.TTL / 2))
		e, ok := f.cache.Get("first")
		f.Expect(ok).To(BeTrue())
		f.Expect(string(e.Payload)).To(Equal(`{"release":"image"}`))
		f.Expect(f.generator.asked).To(HaveExactElements(payload.Request{NodePool: "clusters/workers", Release: "image", Config: []byte("packed")}))
		secret := f.secret()
		f.Expect(string(secret.Data[token.ReasonKey])).To(Equal("AsExpected"))
		f.Expect(string(secret.Data[token.MessageKey])).To(ContainSubstring("success"))
		f.Expect(secret.Annotations).To(HaveKeyWithValue("hypershift.openshift.io/machine-tokens", "true"), "tokens of single machines are taken here")
		f.Expect(secret.Data).NotTo(HaveKey(token.PayloadKey))
		f.mustReconcile()
		f.Expect(f.secret().ResourceVersion).To(Equal(secret.ResourceVersion), "a settled Secret is not written")
	})

	t.Run("When half of a token's lifetime has passed, it should be rotated and both tokens served", func(t *testing.T) {
		f := newFixture(t, c, "token-rotate")
		f.create(nil)
		f.mustReconcile()
		f.clock.SetTime(start.Add(token.TTL / 2))
		f.Expect(f.mustReconcile().RequeueAfter).To(Equal(token.TTL / 2))
		secret := f.secret()
		f.Expect(string(secret.Data[token.OldTokenKey])).To(Equal("first"))
		f.Expect(string(secret.Data[token.TokenKey])).To(HaveLen(36))
		f.Expect(f.serves("first")).To(BeTrue())
		f.Expect(f.serves(string(secret.Data[token.TokenKey]))).To(BeTrue())

		f.clock.SetTime(start.Add(token.TTL))
		f.mustReconcile()
		f.Expect(f.serves("first")).To(BeFalse(), "a token ends with the second rotation")
	})

	t.Run("When another replica rotates the token first, it should get a conflict and serve that token", func(t *testing.T) {
		f := newFixture(t, c, "token-race")
		f.create(func(s *corev1.Secret) { s.Annotations[token.GeneratedAnnotation] = "long ago" })
		other := newFixture(t, c, "token-race")
		racing := *f.reconciler
		racing.Client = &interruptedClient{Client: c, before: func() { other.mustReconcile() }}
		_, err := racing.Reconcile(t.Context(), ctrl.Request{NamespacedName: f.key})
		f.Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
		f.mustReconcile()
		secret := f.secret()
		f.Expect(string(secret.Data[token.OldTokenKey])).To(Equal("first"), "rotated once only")
		f.Expect(f.serves(string(secret.Data[token.TokenKey]))).To(BeTrue())
	})

	t.Run("When a Secret has an architecture and input hashes, it should pass on both", func(t *testing.T) {
		f := newFixture(t, c, "token-arm64")
		f.create(func(s *corev1.Secret) {
			s.Annotations[token.ArchitectureAnnotation] = "arm64"
			s.Data[token.PullSecretHashKey], s.Data[token.TrustBundleHashKey], s.Data[token.ConfigurationHashKey] = []byte("p"), []byte("t"), []byte("c")
		})
		f.mustReconcile()
		e, _ := f.cache.Get("first")
		f.Expect(e.Architecture).To(Equal("arm64"))
		f.Expect(f.generator.asked[0].Hashes).To(Equal(payload.Hashes{PullSecret: "p", TrustBundle: "t", Configuration: "c"}))
		f.Expect(metricstest.Of(t, token.Collectors()...)).To(HaveKeyWithValue("ign_server_payload_cache_total", 1.0))
	})

	t.Run("When a Secret has an expiration, it should be served until then, not rotated, and deleted after", func(t *testing.T) {
		f := newFixture(t, c, "token-expire")
		f.create(func(s *corev1.Secret) {
			s.Annotations[token.ExpirationAnnotation] = start.Add(2 * time.Hour).Format(time.RFC3339)
			s.Annotations[token.GeneratedAnnotation] = start.Add(-token.TTL).Format(time.RFC3339Nano)
		})
		f.Expect(f.mustReconcile().RequeueAfter).To(Equal(2 * time.Hour))
		f.Expect(f.serves("first")).To(BeTrue())
		f.clock.SetTime(start.Add(2 * time.Hour))
		f.mustReconcile()
		f.Expect(f.serves("first")).To(BeFalse())
		err := c.Get(t.Context(), f.key, &corev1.Secret{})
		f.Expect(apierrors.IsNotFound(err)).To(BeTrue())
		f.mustReconcile()
	})

	t.Run("When the expiration is invalid, it should delete the Secret", func(t *testing.T) {
		f := newFixture(t, c, "token-damaged")
		f.create(func(s *corev1.Secret) { s.Annotations[token.ExpirationAnnotation] = "soon" })
		f.mustReconcile()
		f.Expect(apierrors.IsNotFound(c.Get(t.Context(), f.key, &corev1.Secret{}))).To(BeTrue())
	})

	t.Run("When the configuration is invalid, it should report the reason, keep the last payload, and recover", func(t *testing.T) {
		f := newFixture(t, c, "token-problem")
		f.create(nil)
		f.mustReconcile()
		f.generator.err = &payload.Problem{Reason: "InvalidConfig", Message: "remove the field", RetryAfter: time.Minute}
		f.Expect(f.mustReconcile().RequeueAfter).To(Equal(time.Minute))
		secret := f.secret()
		f.Expect(string(secret.Data[token.ReasonKey])).To(Equal("InvalidConfig"))
		f.Expect(string(secret.Data[token.MessageKey])).To(Equal("remove the field"))
		f.Expect(f.serves("first")).To(BeTrue())
		f.mustReconcile()
		f.Expect(f.secret().ResourceVersion).To(Equal(secret.ResourceVersion), "the same problem is written once")
		f.generator.err = nil
		f.mustReconcile()
		f.Expect(string(f.secret().Data[token.ReasonKey])).To(Equal("AsExpected"))
	})

	t.Run("When the control plane is outdated, a token should wait, but not once it was served", func(t *testing.T) {
		f := newFixture(t, c, "token-ahead")
		f.create(func(s *corev1.Secret) { s.Data[token.ConfigurationHashKey] = []byte("of-tomorrow") })
		f.generator.err = &payload.Problem{Reason: payload.ReasonOutdated, Message: "Waiting for the control plane", RetryAfter: time.Minute}
		f.Expect(f.mustReconcile().RequeueAfter).To(Equal(time.Minute))
		f.Expect(string(f.secret().Data[token.ReasonKey])).To(Equal(payload.ReasonOutdated))
		f.Expect(f.serves("first")).To(BeFalse())
		f.generator.err = nil
		f.mustReconcile()
		f.Expect(string(f.secret().Data[token.ReasonKey])).To(Equal("AsExpected"))
		f.mustReconcile()
		f.Expect(f.generator.asked).To(HaveLen(3))
		f.Expect(f.generator.asked[1].Hashes).To(Equal(payload.Hashes{Configuration: "of-tomorrow"}))
		f.Expect(f.generator.asked[2].Hashes).To(BeZero(), "an outdated token is rendered from what there is")
	})

	t.Run("When rendering fails, it should return the error", func(t *testing.T) {
		f := newFixture(t, c, "token-error")
		f.create(nil)
		f.generator.err = errors.New("API server is away")
		_, err := f.reconcile()
		f.Expect(err).To(MatchError(ContainSubstring("token-error: API server is away")))
	})

	t.Run("When the upgrade type is InPlace, it should also write the payload to the Secret", func(t *testing.T) {
		f := newFixture(t, c, "token-inplace")
		f.create(func(s *corev1.Secret) { s.Annotations[token.UpgradeTypeAnnotation] = "InPlace" })
		f.mustReconcile()
		unpacked, err := payload.Unpack(f.secret().Data[token.PayloadKey])
		f.Expect(err).NotTo(HaveOccurred())
		f.Expect(string(unpacked)).To(Equal(`{"release":"image"}`))
		version := f.secret().ResourceVersion
		f.mustReconcile()
		f.Expect(f.secret().ResourceVersion).To(Equal(version))
	})

	t.Run("When the upgrade type is InPlace, it should serve the plan by its configuration hash", func(t *testing.T) {
		f := newFixture(t, c, "token-workers-0a1b")
		f.create(func(s *corev1.Secret) { s.Annotations[token.UpgradeTypeAnnotation] = "InPlace" })
		f.mustReconcile()
		found, ok := f.cache.Config("clusters/workers", "0a1b")
		f.Expect(ok).To(BeTrue())
		f.Expect(found.InPlace).To(Equal(&token.InPlace{Plan: []byte(`{"plan":"0a1b"}`)}))
		for pool, hash := range map[string]string{"clusters/workers": "", "clusters/other": "0a1b", "other/workers": "0a1b"} {
			_, ok := f.cache.Config(pool, hash)
			f.Expect(ok).To(BeFalse(), "%s %s", pool, hash)
		}

		f.generator.planErr = &payload.Problem{Reason: "InvalidConfig", Message: "disks are not for machines that run"}
		f.mustReconcile()
		found, _ = f.cache.Config("clusters/workers", "0a1b")
		f.Expect(found.InPlace).To(Equal(&token.InPlace{Refusal: "disks are not for machines that run"}))
		f.Expect(f.serves("first")).To(BeTrue(), "machines that boot can have it all the same")

		f.Expect(c.Delete(t.Context(), f.secret())).To(Succeed())
		f.mustReconcile()
		_, ok = f.cache.Config("clusters/workers", "0a1b")
		f.Expect(ok).To(BeFalse())
	})

	t.Run("When the upgrade type is Replace, it should serve no plan to Nodes", func(t *testing.T) {
		f := newFixture(t, c, "token-workers-9f9f")
		f.create(nil)
		f.mustReconcile()
		found, ok := f.cache.Config("clusters/workers", "9f9f")
		f.Expect(ok).To(BeTrue())
		f.Expect(found.InPlace).To(BeNil())
	})

	t.Run("When the Secret is not a token, it should not change it", func(t *testing.T) {
		f := newFixture(t, c, "no-token")
		f.create(func(s *corev1.Secret) { s.Annotations = nil })
		f.mustReconcile()
		f.Expect(f.generator.asked).To(BeEmpty())
		f.Expect(f.secret().Data).NotTo(HaveKey(token.ReasonKey))
	})

	t.Run("When a machine fetches its configuration, the Secret should be annotated once", func(t *testing.T) {
		f := newFixture(t, c, "token-reached")
		f.create(nil)
		f.mustReconcile()
		e, _ := f.cache.Get("first")
		f.Expect(f.reconciler.Served(t.Context(), e)).To(Succeed())
		secret := f.secret()
		f.Expect(secret.Annotations).To(HaveKeyWithValue(token.ReachedAnnotation, "True"))
		f.Expect(f.recorder.Events).To(Receive(HavePrefix("Normal GetPayload A machine")))
		f.Expect(f.reconciler.Served(t.Context(), e)).To(Succeed())
		f.Expect(f.secret().ResourceVersion).To(Equal(secret.ResourceVersion))
		f.Expect(c.Delete(t.Context(), secret)).To(Succeed())
		f.Expect(f.reconciler.Served(t.Context(), e)).To(Succeed(), "a Secret that is gone is nothing to worry about")
	})
}

// interruptedClient calls a function just before an update.
type interruptedClient struct {
	client.Client
	before func()
}

func (c *interruptedClient) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	c.before()
	return c.Client.Update(ctx, obj, opts...)
}
