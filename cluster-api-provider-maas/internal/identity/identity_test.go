// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"context"
	"errors"
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
)

var key = client.ObjectKey{Namespace: "ns", Name: "maas"}

func secret(apiKey string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "maas"},
		Data: map[string][]byte{"MAAS_ENDPOINT": []byte("http://h/MAAS"), "MAAS_API_KEY": []byte(apiKey)}}
}

func TestRotation(t *testing.T) {
	g := NewWithT(t)
	reads := 0
	c := fakeclient.NewClientBuilder().WithObjects(secret("a:b:c")).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			reads++
			return c.Get(ctx, key, obj, opts...)
		}}).Build()
	clock := clocktesting.NewFakePassiveClock(time.Now())
	r := identity.NewResolver(identity.Options{Reader: c, Clock: clock, Secret: key})
	first, err := r.For(t.Context(), client.ObjectKey{})
	g.Expect(err).NotTo(HaveOccurred())
	for range 100 {
		again, err := r.For(t.Context(), key)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again).To(BeIdenticalTo(first), "one client and one inventory for each user of a MAAS")
	}
	g.Expect(reads).To(Equal(1))

	changed := &corev1.Secret{}
	g.Expect(c.Get(t.Context(), key, changed)).To(Succeed())
	changed.Data["MAAS_API_KEY"] = []byte("a:b:new")
	g.Expect(c.Update(t.Context(), changed)).To(Succeed())
	clock.SetTime(clock.Now().Add(11 * time.Second))
	second, err := r.For(t.Context(), key)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(second).NotTo(BeIdenticalTo(first), "a changed Secret needs no restart")
}

func TestMissing(t *testing.T) {
	for name, tc := range map[string]struct {
		objects []client.Object
		options identity.Options
		says    string
	}{
		"When the Secret does not exist, the error should say what to create":                {nil, identity.Options{Secret: key}, "Secret ns/maas with the MAAS credentials does not exist: create it"},
		"When the key is malformed, the error should name MAAS_API_KEY but not its value":    {[]client.Object{secret("hunter2")}, identity.Options{Secret: key}, "of Secret ns/maas are unusable: MAAS_API_KEY"},
		"When there is no Secret and no environment, the error should list the missing keys": {nil, identity.Options{}, "of the environment are unusable: the Secret lacks MAAS_ENDPOINT and MAAS_API_KEY"},
		"When the CA bundle is not PEM, it should return an error":                           {nil, identity.Options{Environment: map[string][]byte{"MAAS_ENDPOINT": []byte("http://h/MAAS"), "MAAS_API_KEY": []byte("a:b:c"), "MAAS_CA_BUNDLE": []byte("x")}}, "must be PEM"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			tc.options.Reader = fakeclient.NewClientBuilder().WithObjects(tc.objects...).Build()
			tc.options.Clock = clocktesting.NewFakePassiveClock(time.Now())
			_, err := identity.NewResolver(tc.options).For(t.Context(), client.ObjectKey{})
			g.Expect(identity.IsMissing(err)).To(BeTrue())
			g.Expect(err).To(MatchError(ContainSubstring(tc.says)))
			g.Expect(err.Error()).NotTo(ContainSubstring("hunter2"))
		})
	}
}

func TestAPIServerTrouble(t *testing.T) {
	g := NewWithT(t)
	broken := errors.New("broken")
	c := fakeclient.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return broken
		},
	}).Build()
	_, err := identity.NewResolver(identity.Options{Reader: c, Secret: key, Clock: clocktesting.NewFakePassiveClock(time.Now())}).For(t.Context(), client.ObjectKey{})
	g.Expect(err).To(MatchError(broken))
	g.Expect(identity.IsMissing(err)).To(BeFalse())
}

func TestWhoAskedGivesUp(t *testing.T) {
	g := NewWithT(t)
	c := fakeclient.NewClientBuilder().WithObjects(secret("a:b:c")).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return c.Get(ctx, key, obj, opts...)
		},
	}).Build()
	r := identity.NewResolver(identity.Options{Reader: c, Secret: key, Clock: clocktesting.NewFakePassiveClock(time.Now())})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := r.For(gone, client.ObjectKey{})
	g.Expect(err).To(MatchError(context.Canceled))
	_, err = r.For(t.Context(), client.ObjectKey{})
	g.Expect(err).NotTo(HaveOccurred(), "the next one is not told of it")

	answers := fakeclient.NewClientBuilder().WithObjects(secret("a:b:c")).Build()
	_, err = identity.NewResolver(identity.Options{Reader: answers, Secret: key, Clock: clocktesting.NewFakePassiveClock(time.Now())}).For(gone, client.ObjectKey{})
	g.Expect(err).NotTo(HaveOccurred(), "credentials that were read are there")
}

func TestEnvironment(t *testing.T) {
	g := NewWithT(t)
	r := identity.NewResolver(identity.Options{Clock: clocktesting.NewFakePassiveClock(time.Now()),
		Environment: map[string][]byte{"MAAS_ENDPOINT": []byte("http://h/MAAS"), "MAAS_API_KEY": []byte("a:b:c")}})
	id, err := r.For(t.Context(), client.ObjectKey{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(id.Client.Endpoint()).To(Equal("http://h/MAAS/api/2.0/"))
}
