// SPDX-License-Identifier: Apache-2.0

package token

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/ignition-server/payload"
	"github.com/openshift/hypershift/support/hosted"
)

var (
	now     = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	errAway = errors.New("the API server is away")
	// key is the key of the token Secret of pool a.
	key = client.ObjectKey{Namespace: "hosted", Name: "token-a-0a1b"}
)

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: key.Namespace, Name: name}
}

func tokenSecret(generated time.Time) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: meta(key.Name), Data: map[string][]byte{TokenKey: []byte("first"), ReleaseKey: []byte("image")}}
	secret.Annotations = map[string]string{ConfigAnnotation: "true", NodePoolAnnotation: "clusters/a", GeneratedAnnotation: generated.Format(time.RFC3339Nano)}
	return secret
}

// rendering returns a release's name, or an error.
type rendering struct{ err error }

func (r *rendering) Generate(_ context.Context, request payload.Request) ([]byte, error) {
	return []byte(`{"release":"` + request.Release + `"}`), r.err
}

// newReconciler returns a reconciler whose API server fails as hooks define.
func newReconciler(t *testing.T, hooks interceptor.Funcs, objects ...client.Object) (*GomegaWithT, *Reconciler, *clocktesting.FakePassiveClock) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), hyperv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	clock := clocktesting.NewFakePassiveClock(now)
	c := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(hooks).WithObjects(objects...).Build()
	return NewWithT(t), &Reconciler{Client: c, Cache: NewCache(clock), Generator: &rendering{}, Clock: clock, Recorder: events.NewFakeRecorder(10), Look: TTL}, clock
}

func (r *Reconciler) serves(token string) bool { _, ok := r.Cache.Get(token); return ok }

// TestAwayAPIServer checks that machines can boot while the management cluster's API is unavailable.
func TestAwayAPIServer(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		hooks func(away *bool) interceptor.Funcs
		// due reports whether the token must be rotated, and ends whether its Secret has expired.
		due, ends bool
		says      string
		served    bool
	}{
		"is read": {hooks: func(away *bool) interceptor.Funcs {
			return interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if *away {
					return errAway
				}
				return c.Get(ctx, k, o, opts...)
			}}
		}, says: "read token Secret hosted/token-a-0a1b: ", served: true},
		"is rotated": {due: true, hooks: func(away *bool) interceptor.Funcs {
			return interceptor.Funcs{Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
				if *away {
					return errAway
				}
				return c.Update(ctx, o, opts...)
			}}
		}, says: "rotate the token of Secret hosted/token-a-0a1b: ", served: true},
		"is told its outcome": {hooks: func(away *bool) interceptor.Funcs {
			return interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				if *away {
					return errAway
				}
				return c.Patch(ctx, o, p, opts...)
			}}
		}, says: "report on token Secret hosted/token-a-0a1b: ", served: true},
		"is deleted after it expired": {ends: true, hooks: func(away *bool) interceptor.Funcs {
			return interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
				if *away {
					return errAway
				}
				return c.Delete(ctx, o, opts...)
			}}
		}, says: "delete expired token Secret hosted/token-a-0a1b: "},
	} {
		t.Run("When the API server is unreachable while a token "+name+", the token should stay valid until it expires", func(t *testing.T) {
			t.Parallel()
			away := false
			secret := tokenSecret(now)
			if tt.ends {
				secret.Annotations[ExpirationAnnotation] = now.Add(time.Hour).Format(time.RFC3339)
			}
			g, r, clock := newReconciler(t, tt.hooks(&away), secret)
			request := ctrl.Request{NamespacedName: key}
			_, err := r.Reconcile(t.Context(), request)
			g.Expect(err).NotTo(HaveOccurred())
			away = true
			if tt.due {
				clock.SetTime(now.Add(TTL / 2))
			}
			if tt.ends {
				clock.SetTime(now.Add(time.Hour))
			}
			if name == "is told its outcome" {
				r.Generator = &rendering{err: &payload.Problem{Reason: "InvalidConfig", Message: "remove the field"}}
			}
			_, err = r.Reconcile(t.Context(), request)
			g.Expect(err).To(MatchError(And(HavePrefix(tt.says), ContainSubstring(errAway.Error()))))
			g.Expect(r.serves("first")).To(Equal(tt.served))
			away = false
			_, err = r.Reconcile(t.Context(), request)
			g.Expect(err).NotTo(HaveOccurred(), "what was not done is done then")
			g.Expect(r.serves("first")).To(Equal(tt.served))
		})
	}
}

func TestServedMarks(t *testing.T) {
	t.Parallel()
	entry := Entry{Secret: key, NodePool: "clusters/a"}
	t.Run("When the Secret cannot be read, it should return the error", func(t *testing.T) {
		g, r, _ := newReconciler(t, interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errAway
		}})
		g.Expect(r.Served(t.Context(), entry)).To(MatchError(errAway))
	})
	t.Run("When the Secret cannot be annotated, it should return an error that names the Secret", func(t *testing.T) {
		g, r, _ := newReconciler(t, interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return errAway
		}}, tokenSecret(now))
		g.Expect(r.Served(t.Context(), entry)).To(MatchError(HavePrefix("mark token Secret hosted/token-a-0a1b as reached: ")))
	})
	t.Run("When the Secret has no annotations, it should still be annotated", func(t *testing.T) {
		bare := tokenSecret(now)
		bare.Annotations = nil
		g, r, _ := newReconciler(t, interceptor.Funcs{}, bare)
		g.Expect(r.Served(t.Context(), entry)).To(Succeed())
		g.Expect(r.Client.Get(t.Context(), key, bare)).To(Succeed())
		g.Expect(bare.Annotations).To(HaveKeyWithValue(ReachedAnnotation, "True"))
	})
}

// TestWhoIsRenderedAnew checks which tokens are rendered again after a change.
func TestWhoIsRenderedAnew(t *testing.T) {
	t.Parallel()
	role := func(namespace, name, grant string) *rbacv1.Role {
		r := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if grant != "" {
			r.Labels = map[string]string{hyperv1.SecretGrantLabel: grant}
		}
		return r
	}
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: meta("demo"), Spec: hyperv1.HostedControlPlaneSpec{Configuration: &hyperv1.ClusterConfiguration{
		Proxy: &configv1.ProxySpec{TrustedCA: configv1.ConfigMapNameReference{Name: "proxy-ca"}}, Image: &configv1.ImageSpec{AdditionalTrustedCA: configv1.ConfigMapNameReference{Name: "registry-ca"}},
	}}}
	all := []client.Object{
		role(key.Namespace, key.Name, hosted.IgnitionServer), role(key.Namespace, "token-b-9f9f", hosted.IgnitionServer), role(key.Namespace, "of-another-program", "other"), role(key.Namespace, "of-nobody", ""),
		role("elsewhere", "token-c-7777", hosted.IgnitionServer), hcp,
	}
	both := []reconcile.Request{{NamespacedName: key}, {NamespacedName: client.ObjectKey{Namespace: key.Namespace, Name: "token-b-9f9f"}}}
	failing := func(fails func(client.ObjectList) bool) interceptor.Funcs {
		return interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			if fails(l) {
				return errAway
			}
			return c.List(ctx, l, opts...)
		}}
	}
	never := func(client.ObjectList) bool { return false }
	for name, tt := range map[string]struct {
		configMap string
		fails     func(client.ObjectList) bool
		want      []reconcile.Request
	}{
		"the kubelet client CA changes":                     {hosted.KubeletClientCA, never, both},
		"the additional trust bundle changes":               {hosted.UserCABundle, never, both},
		"the proxy's CA changes":                            {"proxy-ca", never, both},
		"a registry's CA changes":                           {"registry-ca", never, both},
		"a ConfigMap changes that is not an input of nodes": {"etcd-ca", never, nil},
		"listing the HostedControlPlanes fails":             {"etcd-ca", func(l client.ObjectList) bool { _, ok := l.(*hyperv1.HostedControlPlaneList); return ok }, both},
		"listing the Roles of the tokens fails":             {hosted.KubeletClientCA, func(l client.ObjectList) bool { _, ok := l.(*rbacv1.RoleList); return ok }, nil},
	} {
		t.Run("When "+name+", it should reconcile the tokens of this cluster that depend on it", func(t *testing.T) {
			t.Parallel()
			g, r, _ := newReconciler(t, failing(tt.fails), all...)
			g.Expect(r.configMapChanged(t.Context(), &corev1.ConfigMap{ObjectMeta: meta(tt.configMap)})).To(ConsistOf(tt.want))
		})
	}
	t.Run("When a Role does not belong to the ignition-server, it should be ignored", func(t *testing.T) {
		g := NewWithT(t)
		for object, want := range map[client.Object]bool{all[0]: true, all[2]: false, all[3]: false} {
			g.Expect(granted.Generic(event.GenericEvent{Object: object})).To(Equal(want), object.GetName())
		}
	})
	t.Run("When a ConfigMap of the same name changes in another namespace, it should be ignored", func(t *testing.T) {
		g, r, _ := newReconciler(t, interceptor.Funcs{}, all...)
		g.Expect(r.configMapChanged(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "proxy-ca"}})).To(BeEmpty())
	})
}

func TestSecretReading(t *testing.T) {
	t.Parallel()
	t.Run("When a Secret is named after its pool, it should return the configuration hash at the end", func(t *testing.T) {
		for _, tt := range []struct{ pool, name, want string }{
			{"clusters/a", "token-a-0a1b", "0a1b"}, {"clusters/a-b", "token-a-b-0a1b", "0a1b"}, {"clusters/a", "token-b-0a1b", ""}, {"clusters/a", "token-a", ""},
			{"clusters/a", "user-data-a-0a1b", ""}, {"a", "token-a-0a1b", ""}, {"clusters/a", "token-a-", ""},
		} {
			secret := &corev1.Secret{ObjectMeta: meta(tt.name)}
			secret.Annotations = map[string]string{NodePoolAnnotation: tt.pool}
			if got := configHash(secret); got != tt.want {
				t.Errorf("%s of pool %s is of configuration %q, want %q", tt.name, tt.pool, got, tt.want)
			}
		}
	})
	t.Run("When half of a token's lifetime has passed, it should be due for rotation and not before", func(t *testing.T) {
		g := NewWithT(t)
		for after, want := range map[time.Duration]time.Duration{0: TTL / 2, TTL/2 - time.Second: time.Second, TTL / 2: 0, TTL: 0, -time.Hour: TTL/2 + time.Hour} {
			g.Expect(untilRotation(tokenSecret(now), now.Add(after))).To(Equal(want), after.String())
		}
		damaged := tokenSecret(now)
		damaged.Annotations[GeneratedAnnotation] = "yesterday"
		g.Expect(untilRotation(damaged, now)).To(BeZero())
	})
}

// TestCacheByConfiguration covers Nodes, which request a configuration of their pool by its hash.
func TestCacheByConfiguration(t *testing.T) {
	t.Parallel()
	g, clock := NewWithT(t), clocktesting.NewFakePassiveClock(now)
	c := NewCache(clock)
	plan := &InPlace{Plan: []byte("{}")}
	c.Put(Entry{Secret: key, NodePool: "clusters/a", Hash: "0a1b", Payload: []byte("1"), InPlace: plan}, "a")
	c.Put(Entry{Secret: client.ObjectKey{Name: "unnamed"}, NodePool: "clusters/a", Payload: []byte("2")}, "b")
	found := func(pool, hash string) bool { _, ok := c.Config(pool, hash); return ok }
	g.Expect([]bool{found("clusters/a", "0a1b"), found("clusters/a", "0a"), found("clusters/b", "0a1b"), found("clusters/a", "")}).To(Equal([]bool{true, false, false, false}))
	c.Put(Entry{Secret: key, NodePool: "clusters/a", Hash: "0a1b"}, "a")
	kept, ok := c.Config("clusters/a", "0a1b")
	g.Expect(ok).To(BeTrue())
	g.Expect(kept.InPlace).To(BeIdenticalTo(plan), "Nodes should not wait for a mistake to be corrected either")
	g.Expect(c.Len()).To(Equal(2))
	clock.SetTime(now.Add(TTL))
	g.Expect(found("clusters/a", "0a1b")).To(BeTrue())
	_, ok = c.Get("a")
	g.Expect(ok).To(BeTrue(), "to the end of its time")
	clock.SetTime(now.Add(TTL + 1))
	g.Expect(found("clusters/a", "0a1b")).To(BeFalse())
	_, ok = c.Get("a")
	g.Expect(ok).To(BeFalse())
}
