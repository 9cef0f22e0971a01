// SPDX-License-Identifier: Apache-2.0

package readthrough

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/testenv"
)

const (
	foreign  = 1000
	size     = 10 << 10
	patience = time.Minute
)

// wire counts the reads of Secrets by name, and the lists of Secrets with all content.
type wire struct {
	next         http.RoundTripper
	reads, whole atomic.Int64
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	_, rest, secrets := strings.Cut(r.URL.Path, "/secrets")
	switch {
	case r.Method != http.MethodGet || !secrets:
	case rest != "":
		w.reads.Add(1)
	case !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata"):
		w.whole.Add(1)
	}
	return w.next.RoundTrip(r)
}

// start runs a cache as a manager does, and returns a client that reads through it.
func start(t *testing.T, config *rest.Config) (client.Client, *reader, *wire) {
	t.Helper()
	g, w := NewWithT(t), &wire{}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { w.next = next; return w })
	kept, err := cache.New(config, cache.Options{DefaultTransform: Lean})
	g.Expect(err).NotTo(HaveOccurred())
	stopped := make(chan error, 1)
	go func() { stopped <- kept.Start(t.Context()) }()
	t.Cleanup(func() {
		if err := <-stopped; err != nil {
			t.Errorf("the cache ended with: %v", err)
		}
	})
	g.Expect(kept.WaitForCacheSync(t.Context())).To(BeTrue())
	options := client.Options{Cache: &client.CacheOptions{Reader: kept}}
	c, err := NewClient(client.New, &corev1.Secret{})(config, options)
	g.Expect(err).NotTo(HaveOccurred())
	r, err := newReader(config, options, &corev1.Secret{})
	g.Expect(err).NotTo(HaveOccurred())
	return c, r, w
}

func TestReadThrough(t *testing.T) {
	config := testenv.Start(t)
	config.RateLimiter = flowcontrol.NewFakeAlwaysRateLimiter()
	direct, err := client.New(config, client.Options{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for i := range foreign {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: fmt.Sprintf("foreign-%d", i)}, Data: map[string][]byte{"data": make([]byte, size)}}
		NewWithT(t).Expect(direct.Create(t.Context(), secret)).To(Succeed())
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pull-secret", Labels: map[string]string{"of": "user"},
			Annotations: map[string]string{lastApplied: "secret"}},
		Data: map[string][]byte{"key": []byte("first")},
	}
	NewWithT(t).Expect(direct.Create(t.Context(), secret)).To(Succeed())
	c, r, w := start(t, config)
	key := client.ObjectKeyFromObject(secret)

	t.Run("When a Secret is read again, it should be complete and need no API call", func(t *testing.T) {
		g, first, again := NewWithT(t), &corev1.Secret{}, &corev1.Secret{}
		g.Expect(r.Get(t.Context(), key, first)).To(Succeed())
		calls := w.reads.Load()
		g.Expect(r.Get(t.Context(), key, again)).To(Succeed())
		g.Expect(again).To(Equal(first))
		g.Expect(again.Annotations).To(HaveKey(lastApplied))
		g.Expect(w.reads.Load()).To(Equal(calls))
	})
	t.Run("When a reader changes its result, it should not affect the next reader", func(t *testing.T) {
		g, mine, yours := NewWithT(t), &corev1.Secret{}, &corev1.Secret{}
		g.Expect(r.Get(t.Context(), key, mine)).To(Succeed())
		mine.Data["key"][0] = 'X'
		g.Expect(r.Get(t.Context(), key, yours)).To(Succeed())
		g.Expect(yours.Data["key"]).To(BeEquivalentTo("first"))
	})
	t.Run("When Secrets are listed by label, it should return their content", func(t *testing.T) {
		g, list := NewWithT(t), &corev1.SecretList{}
		g.Expect(c.List(t.Context(), list, client.MatchingLabels{"of": "user"})).To(Succeed())
		g.Expect(list.Items).To(HaveExactElements(HaveField("Data", HaveKeyWithValue("key", []byte("first")))))
	})
	t.Run("When there are a thousand other Secrets, it should not cache their content", func(t *testing.T) {
		g, all := NewWithT(t), &metav1.PartialObjectMetadataList{}
		all.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
		g.Expect(c.List(t.Context(), all)).To(Succeed())
		g.Expect(len(all.Items)).To(BeNumerically(">", foreign))
		for i := range all.Items {
			g.Expect(all.Items[i].ManagedFields).To(BeEmpty())
			g.Expect(all.Items[i].Annotations).NotTo(HaveKey(lastApplied), "it is a copy of the content")
		}
		g.Expect(r.kept).To(HaveLen(1))
		g.Expect(w.whole.Load()).To(BeZero(), "lists and watches with content")
	})
	t.Run("When a user changes the Secret, it should be read again", func(t *testing.T) {
		g := NewWithT(t)
		secret.Data["key"] = []byte("second")
		g.Expect(direct.Update(t.Context(), secret)).To(Succeed())
		g.Eventually(func(g Gomega) {
			got := &corev1.Secret{}
			g.Expect(r.Get(t.Context(), key, got)).To(Succeed())
			g.Expect(got.Data["key"]).To(BeEquivalentTo("second"))
		}, patience).Should(Succeed())
	})
	t.Run("When the Secret is deleted, it should not be found, and its content should be dropped", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(direct.Delete(t.Context(), secret)).To(Succeed())
		g.Eventually(func() bool { return apierrors.IsNotFound(r.Get(t.Context(), key, &corev1.Secret{})) }, patience).Should(BeTrue())
		g.Eventually(func() int {
			r.mu.Lock()
			defer r.mu.Unlock()
			return len(r.kept)
		}, patience).Should(BeZero())
	})
	t.Run("When a kind is not read through, it should be cached completely", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(c.Get(t.Context(), client.ObjectKey{Name: "default"}, &corev1.Namespace{})).To(Succeed())
		g.Expect(r.kept).To(BeEmpty())
	})
}
