// SPDX-License-Identifier: Apache-2.0

package guest_test

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/guest"
)

// writes counts the writes to a guest, and can reject them.
type writes struct {
	n       int
	refusal error
}

func (w *writes) funcs() interceptor.Funcs {
	return interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
		w.n++
		if w.refusal != nil {
			return w.refusal
		}
		return c.Patch(ctx, obj, patch, opts...)
	}}
}

func kubeconfigSecret(name, text string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: map[string][]byte{"value": []byte(text)}}
}

// servers returns the kubeconfig with the URL of this server.
func servers(host string) string {
	return strings.ReplaceAll(kubeconfig, "https://guest.example.com:6443", host)
}

// many is a fixture with several guest clusters. It connects to the server in the kubeconfig.
type many struct {
	*guest.Nodes
	management client.Client
	clock      *clocktesting.FakePassiveClock
	dialed     []string
	refusal    error
}

func newMany(guests map[string]client.Client, funcs interceptor.Funcs, objects ...client.Object) *many {
	m := &many{clock: clocktesting.NewFakePassiveClock(time.Now()), management: fakeclient.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(funcs).Build()}
	m.Nodes = &guest.Nodes{Reader: m.management, Clock: m.clock, Connect: func(cfg *rest.Config) (client.Client, error) {
		m.dialed = append(m.dialed, cfg.Host)
		return guests[cfg.Host], m.refusal
	}}
	return m
}

func (m *many) set(t *testing.T, key client.ObjectKey) error {
	t.Helper()
	return m.SetProviderID(t.Context(), key, []string{"mole"}, id, "az1")
}

func (m *many) later(d time.Duration) { m.clock.SetTime(m.clock.Now().Add(d)) }

func TestWriteThatFails(t *testing.T) {
	g := NewWithT(t)
	w := &writes{refusal: errors.New("no quorum")}
	w2 := newMany(map[string]client.Client{"https://a": fakeclient.NewClientBuilder().WithObjects(node("mole", "")).WithInterceptorFuncs(w.funcs()).Build()},
		interceptor.Funcs{}, kubeconfigSecret("demo-kubeconfig", servers("https://a")))
	err := w2.set(t, key)
	g.Expect(err).To(MatchError(w.refusal))
	g.Expect(err).To(MatchError(ContainSubstring("node mole")))
	w.refusal = nil
	g.Expect(w2.set(t, key)).To(Succeed(), "the next pass writes, and needs no new list for it")
	g.Expect(w.n).To(Equal(2))
	for range 3 {
		g.Expect(w2.set(t, key)).To(Succeed())
	}
	g.Expect(w.n).To(Equal(2), "what was written is known, and not written again")
	g.Expect(w2.SetProviderID(t.Context(), key, []string{"mole"}, "maas:///az1/other", "az1")).To(MatchError(ContainSubstring("delete the Node")), "two machines of one name")
}

// TestKubeconfigThatIsRenewed checks that a changed kubeconfig takes effect. Certificates are renewed while the
// provider runs, and a cluster may be recreated with the same name.
func TestKubeconfigThatIsRenewed(t *testing.T) {
	g := NewWithT(t)
	guests := map[string]client.Client{}
	for _, host := range []string{"https://a", "https://b", "https://c"} {
		guests[host] = fakeclient.NewClientBuilder().WithObjects(node("mole", "")).Build()
	}
	m := newMany(guests, interceptor.Funcs{}, kubeconfigSecret("demo-kubeconfig", servers("https://a")))
	for range 3 {
		g.Expect(m.set(t, key)).To(Succeed())
		m.later(10 * time.Second)
	}
	g.Expect(m.dialed).To(Equal([]string{"https://a"}), "one connection serves as long as the kubeconfig does")
	secret := kubeconfigSecret("demo-kubeconfig", servers("https://b"))
	g.Expect(m.management.Update(t.Context(), secret)).To(Succeed())
	m.later(10 * time.Second)
	g.Expect(m.set(t, key)).To(Succeed())
	g.Expect(m.dialed).To(Equal([]string{"https://a", "https://b"}))
	g.Expect(m.management.Delete(t.Context(), secret)).To(Succeed())
	again := kubeconfigSecret("demo-kubeconfig", servers("https://c"))
	again.UID = "another"
	g.Expect(m.management.Create(t.Context(), again)).To(Succeed())
	m.later(10 * time.Second)
	g.Expect(m.set(t, key)).To(Succeed())
	g.Expect(m.dialed).To(Equal([]string{"https://a", "https://b", "https://c"}))
}

// TestOwnKubeconfigFirst checks that the kubeconfig of the provider takes precedence. It has fewer permissions than
// Cluster API's kubeconfig, which belongs to an administrator of the cluster.
func TestOwnKubeconfigFirst(t *testing.T) {
	g := NewWithT(t)
	guests := map[string]client.Client{"https://own": fakeclient.NewClientBuilder().WithObjects(node("mole", "")).Build()}
	m := newMany(guests, interceptor.Funcs{}, kubeconfigSecret("demo-kubeconfig", servers("https://admin")), kubeconfigSecret("demo-provider-kubeconfig", servers("https://own")))
	g.Expect(m.set(t, key)).To(Succeed())
	g.Expect(m.dialed).To(Equal([]string{"https://own"}))
}

// TestKubeconfigThatCannotBeRead checks that the provider does not fall back to the administrator kubeconfig if the
// API server does not answer.
func TestKubeconfigThatCannotBeRead(t *testing.T) {
	g := NewWithT(t)
	down := errors.New("etcd has no leader")
	m := newMany(nil, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
		if key.Name == "demo-provider-kubeconfig" {
			return down
		}
		return c.Get(ctx, key, obj, opts...)
	}}, kubeconfigSecret("demo-kubeconfig", servers("https://admin")))
	err := m.set(t, key)
	g.Expect(err).To(MatchError(down))
	g.Expect(err).To(MatchError(ContainSubstring("Secret ns/demo-provider-kubeconfig")))
	g.Expect(errors.Is(err, guest.ErrNoNode)).To(BeFalse(), "a Node is not waited for when nobody could look")
	g.Expect(m.dialed).To(BeEmpty())
}

func TestConnectionThatFails(t *testing.T) {
	g := NewWithT(t)
	guests := map[string]client.Client{"https://a": fakeclient.NewClientBuilder().WithObjects(node("mole", "")).Build()}
	m := newMany(guests, interceptor.Funcs{}, kubeconfigSecret("demo-kubeconfig", servers("https://a")))
	m.refusal = errors.New("bad certificate")
	for range 5 {
		g.Expect(m.set(t, key)).To(MatchError(ContainSubstring("connecting to cluster ns/demo: bad certificate")))
	}
	g.Expect(m.dialed).To(HaveLen(1), "a failure serves all machines of the cluster for a while")
	m.refusal = nil
	m.later(10*time.Second - time.Millisecond)
	g.Expect(m.set(t, key)).To(HaveOccurred())
	m.later(time.Millisecond)
	g.Expect(m.set(t, key)).To(Succeed())
	g.Expect(m.dialed).To(HaveLen(2))
}

func TestForget(t *testing.T) {
	g := NewWithT(t)
	other := client.ObjectKey{Namespace: "ns", Name: "other"}
	guests := map[string]client.Client{"https://a": fakeclient.NewClientBuilder().WithObjects(node("mole", "")).Build(), "https://b": fakeclient.NewClientBuilder().WithObjects(node("mole", "")).Build()}
	m := newMany(guests, interceptor.Funcs{}, kubeconfigSecret("demo-kubeconfig", servers("https://a")), kubeconfigSecret("other-kubeconfig", servers("https://b")))
	m.Forget(key) // The key is not known yet.
	g.Expect(m.set(t, key)).To(Succeed())
	g.Expect(m.set(t, other)).To(Succeed(), "clusters of one namespace are told apart")
	m.Forget(key)
	g.Expect(m.set(t, key)).To(Succeed())
	g.Expect(m.set(t, other)).To(Succeed())
	g.Expect(m.dialed).To(Equal([]string{"https://a", "https://b", "https://a"}), "of one that was made anew, nothing old is believed; the other one stays")
}

// TestGuestsDoNotWaitForEachOther checks that a guest cluster that hangs delays only the machines of that cluster.
func TestGuestsDoNotWaitForEachOther(t *testing.T) {
	g := NewWithT(t)
	asked, answer := make(chan struct{}), make(chan struct{})
	hangs := fakeclient.NewClientBuilder().WithObjects(node("mole", "")).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			close(asked)
			<-answer
			return c.List(ctx, list, opts...)
		}}).Build()
	m := newMany(map[string]client.Client{"https://a": hangs, "https://b": fakeclient.NewClientBuilder().WithObjects(node("mole", "")).Build()}, interceptor.Funcs{},
		kubeconfigSecret("demo-kubeconfig", servers("https://a")), kubeconfigSecret("other-kubeconfig", servers("https://b")))
	var waiting sync.WaitGroup
	var slow error
	waiting.Go(func() { slow = m.SetProviderID(t.Context(), key, []string{"mole"}, id, "az1") })
	<-asked
	g.Expect(m.set(t, client.ObjectKey{Namespace: "ns", Name: "other"})).To(Succeed())
	close(answer)
	waiting.Wait()
	g.Expect(slow).NotTo(HaveOccurred())
}

// TestNamesInTheirOrder checks that the full name is looked up only if no Node has the host name.
func TestNamesInTheirOrder(t *testing.T) {
	g := NewWithT(t)
	w := newGuest(t, kubeconfig, node("mole.maas", ""), node("mole", ""))
	g.Expect(w.nodes.SetProviderID(t.Context(), key, []string{"mole", "mole.maas"}, id, "az1")).To(Succeed())
	ids := map[string]string{}
	for _, name := range []string{"mole", "mole.maas"} {
		n := &corev1.Node{}
		g.Expect(w.guest.Get(t.Context(), client.ObjectKey{Name: name}, n)).To(Succeed())
		ids[name] = n.Spec.ProviderID
	}
	g.Expect(ids).To(Equal(map[string]string{"mole": id, "mole.maas": ""}))
}

// TestGuestOverHTTPS connects like the provider. An error of the guest API server is reported with the name of the
// cluster.
func TestGuestOverHTTPS(t *testing.T) {
	g := NewWithT(t)
	var mu sync.Mutex
	var tokens []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		tokens = append(tokens, r.Header.Get("Authorization"))
		http.Error(w, "who are you", http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: server.Certificate().Raw}))
	m := newMany(nil, interceptor.Funcs{}, kubeconfigSecret("demo-kubeconfig",
		strings.ReplaceAll(servers(server.URL), "server:", "certificate-authority-data: "+ca+", server:")))
	m.Connect = nil
	err := m.set(t, key)
	g.Expect(err).To(MatchError(ContainSubstring("cluster ns/demo")))
	g.Expect(errors.Is(err, guest.ErrNoNode)).To(BeFalse(), "nobody could look for the Node")
	mu.Lock()
	defer mu.Unlock()
	g.Expect(tokens).NotTo(BeEmpty())
	g.Expect(tokens).To(HaveEach("Bearer t"), "the key of the kubeconfig")
}
