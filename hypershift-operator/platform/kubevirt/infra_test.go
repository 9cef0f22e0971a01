// SPDX-License-Identifier: Apache-2.0

package kubevirt

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/maas"
)

// infraServer starts an API server that serves only versions.
func infraServer(t *testing.T, answers map[string]string) *httptest.Server {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, known := answers[r.URL.Path]
		if !known {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(server.Close)
	return server
}

func kubeconfigOf(server *httptest.Server) string {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"a","contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],
		"clusters":[{"name":"a","cluster":{"server":%q,"certificate-authority-data":%q}}],"users":[{"name":"a","user":{"token":"SECRET"}}]}`,
		server.URL, base64.StdEncoding.EncodeToString(ca))
}

func versions(kubernetes, kubeVirt string) map[string]string {
	return map[string]string{
		"/version":                                  fmt.Sprintf(`{"gitVersion":%q}`, kubernetes),
		"/apis/subresources.kubevirt.io":            `{"kind":"APIGroup","preferredVersion":{"groupVersion":"subresources.kubevirt.io/v1"}}`,
		"/apis/subresources.kubevirt.io/v1/version": fmt.Sprintf(`{"gitVersion":%q}`, kubeVirt),
	}
}

// local allows the operator to call servers of this test.
func local() *maas.Guard {
	return &maas.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
}

// patient is the timeout of calls to servers of this test, which is longer than the operator's because the machine may
// be busy.
const patient = time.Minute

func TestClusterElsewhere(t *testing.T) {
	for _, tc := range []struct {
		name    string
		answers map[string]string
		reason  string
		says    string
	}{
		{"When all versions are new enough, it should accept the cluster", versions("v1.27.0-rc.1+abc", "v1.0.0-alpha.0"), "AsExpected", ""},
		{"When Kubernetes is too old, it should report the required version", versions("v1.26.9", "v1.2.0"), "InfraClusterVersionUnsupported", "Kubernetes 1.26.9: it must be 1.27.0 or newer"},
		{"When KubeVirt is too old, it should report the required version", versions("v1.31.0", "v0.59.0"), "InfraClusterVersionUnsupported", "KubeVirt 0.59.0: it must be 1.0.0 or newer"},
		{"When KubeVirt's version is invalid, it should reject the cluster", versions("v1.31.0", "?"), "InfraClusterVersionUnsupported", "KubeVirt"},
		{"When KubeVirt's API group has no preferred version, it should report it", map[string]string{"/version": `{"gitVersion":"v1.31.0"}`, "/apis/subresources.kubevirt.io": `{}`},
			"InfraClusterVersionUnsupported", "does not say which version"},
		{"When KubeVirt is missing, it should report what to install", map[string]string{"/version": `{"gitVersion":"v1.31.0"}`}, "InfraClusterVersionUnsupported", "install KubeVirt"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, server := NewWithT(t), infraServer(t, tc.answers)
			credentials, err := (&Platform{infra: infraClusters{guard: local(), timeout: patient}}).ReconcileCredentials(t.Context(), testClient(t, userSecret("config", kubeconfigOf(server))), testCluster(elsewhere()))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(credentials.Condition.Reason).To(Equal(tc.reason))
			g.Expect(credentials.Condition.Message).To(And(ContainSubstring(tc.says), Not(ContainSubstring("SECRET"))))
			g.Expect(credentials.Hash).NotTo(BeEmpty(), "the provider tries too")
			g.Expect(credentials.CheckAgain).To(BeNumerically(">", 0))
		})
	}
}

// TestClusterIsAskedOnce checks that versions are requested again only after some minutes, or after a change of the
// kubeconfig.
func TestClusterIsAskedOnce(t *testing.T) {
	for what, answers := range map[string]map[string]string{"new enough": versions("v1.31.0", "v1.2.0"), "too old": versions("v1.26.9", "v1.2.0")} {
		t.Run("When the versions are "+what+", they should be requested once and the result should be reported again", func(t *testing.T) {
			g, clock := NewWithT(t), clocktesting.NewFakePassiveClock(time.Now())
			var asked []string
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/version" {
					asked = append(asked, r.UserAgent())
				}
				_, _ = w.Write([]byte(answers[r.URL.Path]))
			}))
			t.Cleanup(server.Close)
			given := userSecret("config", kubeconfigOf(server))
			p, c := &Platform{infra: infraClusters{guard: local(), clock: clock, timeout: patient}}, testClient(t, given)
			found := func() metav1.Condition {
				credentials, err := p.ReconcileCredentials(t.Context(), c, testCluster(elsewhere()))
				g.Expect(err).NotTo(HaveOccurred())
				return credentials.Condition
			}
			first := found()
			g.Expect([]metav1.Condition{found(), found()}).To(HaveEach(first))
			g.Expect(asked).To(Equal([]string{"hypershift-operator"}), "who looks into their API server's log sees who calls")
			clock.SetTime(clock.Now().Add(goodFor))
			g.Expect(found()).To(Equal(first))
			g.Expect(asked).To(HaveLen(2))
			given.Data["config"] = []byte(strings.Replace(kubeconfigOf(server), "SECRET", "OTHER", 1))
			g.Expect(c.Update(t.Context(), given)).To(Succeed())
			g.Expect(found()).To(Equal(first))
			g.Expect(asked).To(HaveLen(3))
		})
	}
}

func TestClusterThatCannotBeUsed(t *testing.T) {
	server := infraServer(t, versions("v1.31.0", "v1.2.0"))
	gone := infraServer(t, nil)
	gone.Close()
	unending := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(append(append([]byte(`{"gitVersion":"v1.31.0","more":"`), bytes.Repeat([]byte("1"), mostAnswer)...), `"}`...))
	}))
	t.Cleanup(unending.Close)
	for _, tc := range []struct {
		name, kubeconfig string
		guard            *maas.Guard
		reason, says     string
	}{
		{"When the address is not allowed, it should not call the server", kubeconfigOf(server), nil, "InfraClusterAddressRefused", "--kubevirt-allow-cidrs"},
		{"When the server does not answer, it should report it without the address", kubeconfigOf(gone), local(), "InfraClusterUnreachable", "does not answer"},
		{"When the server's certificate is not valid, it should report it", fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"a","contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],
			"clusters":[{"name":"a","cluster":{"server":%q}}],"users":[{"name":"a","user":{"token":"SECRET"}}]}`, server.URL), local(), "InfraClusterUnreachable", "its certificate is not valid"},
		{"When the answer is too large, it should report it", kubeconfigOf(unending), local(), "InfraClusterRequestFailed",
			"its answer is larger than"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, p := NewWithT(t), &Platform{}
			p.infra.guard, p.infra.timeout = tc.guard, patient
			credentials, err := p.ReconcileCredentials(t.Context(), testClient(t, userSecret("config", tc.kubeconfig)), testCluster(elsewhere()))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(credentials.Condition.Status).To(Equal(metav1.ConditionFalse))
			g.Expect(credentials.Condition.Reason).To(Equal(tc.reason))
			g.Expect(credentials.Condition.Message).To(And(ContainSubstring(tc.says), Not(ContainSubstring("127.0.0.1")), Not(ContainSubstring("SECRET"))))
		})
	}
}

func TestParallelCalls(t *testing.T) {
	of := func(user string) *infraCluster { return &infraCluster{user: user, failed: map[string]*setback{}} }
	busy := func(err error) bool {
		var failure *infraError
		return errors.As(err, &failure) && failure.reason == reasonBusy
	}
	t.Run("a namespace has only one call in flight", func(t *testing.T) {
		g, clusters := NewWithT(t), &infraClusters{}
		g.Expect(clusters.begin(of("a"), "x")).To(Succeed())
		g.Expect(busy(clusters.begin(of("a"), "y"))).To(BeTrue())
		g.Expect(clusters.begin(of("b"), "x")).To(Succeed())
		g.Expect(clusters.end(of("a"), "x", nil)).To(Succeed())
		g.Expect(clusters.begin(of("a"), "y")).To(Succeed())
	})
	t.Run("parallel calls of all namespaces are limited", func(t *testing.T) {
		g, clusters := NewWithT(t), &infraClusters{}
		for user := range callsOfOthers(parallelCalls) {
			g.Expect(clusters.begin(of(user), "x")).To(Succeed())
		}
		g.Expect(busy(clusters.begin(of("last"), "x"))).To(BeTrue())
		g.Expect(clusters.end(of("other-0"), "x", nil)).To(Succeed())
		g.Expect(clusters.begin(of("last"), "x")).To(Succeed())
	})
}

// callsOfOthers returns calls in flight, each on behalf of a different namespace.
func callsOfOthers(n int) map[string]bool {
	calls := map[string]bool{}
	for i := range n {
		calls[fmt.Sprintf("other-%d", i)] = true
	}
	return calls
}

// growing lists the waits after consecutive failures.
var growing = []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 2 * time.Minute,
	2 * time.Minute}

// TestWaits checks that an external cluster that does not respond is called less and less often, and at once after it
// has responded.
func TestWaits(t *testing.T) {
	g, clock := NewWithT(t), clocktesting.NewFakePassiveClock(time.Now())
	clusters, cluster := &infraClusters{clock: clock}, &infraCluster{failed: map[string]*setback{}}
	down := &infraError{reason: reasonUnreachable, connection: true}
	for _, wait := range growing {
		g.Expect(clusters.begin(cluster, "x")).To(Succeed())
		g.Expect(clusters.end(cluster, "x", down)).To(MatchError(down))
		g.Expect(down.again).To(Equal(wait), "the condition is looked at when the next call may go")
		clock.SetTime(clock.Now().Add(wait - time.Second))
		g.Expect(clusters.begin(cluster, "another subject")).To(MatchError(down),
			"what is known is told instead of another call")
		clock.SetTime(clock.Now().Add(time.Second))
	}
	for what, answer := range map[string]error{"answered": nil, "refused one thing": &infraError{reason: reasonForbidden}} {
		g.Expect(clusters.begin(cluster, "x")).To(Succeed(), what)
		g.Expect(errors.Is(clusters.end(cluster, what, answer), answer)).To(BeTrue(), what)
		g.Expect(clusters.begin(cluster, "x")).To(Succeed(), "one that %s is there", what)
		g.Expect(clusters.end(cluster, "x", down)).To(MatchError(down))
		g.Expect(down.again).To(Equal(10*time.Second), "after one that %s the wait begins anew", what)
		clock.SetTime(clock.Now().Add(10 * time.Second))
	}
}

// TestNotYet checks that a cluster that returns a different error for each call is called less and less often, however
// often it is reconciled.
func TestNotYet(t *testing.T) {
	for name, answer := range map[string]func(n int) error{
		"a conflict": func(n int) error {
			return apierrors.NewConflict(anyKind, fmt.Sprint(n),
				errors.New("not yet"))
		},
		"an error of the server": func(n int) error { return apierrors.NewInternalError(fmt.Errorf("not yet, try %d", n)) },
		"a missing permission": func(n int) error {
			return apierrors.NewForbidden(anyKind, "it",
				fmt.Errorf("not yet, try %d", n))
		},
		"a name that already exists": func(n int) error { return apierrors.NewAlreadyExists(anyKind, fmt.Sprint(n)) },
		"a missing kind":             func(n int) error { return apierrors.NewNotFound(anyKind, fmt.Sprint(n)) },
	} {
		t.Run(name, func(t *testing.T) {
			g, a := NewWithT(t), newAbroad(t)
			made := 0
			a.fails = func(verb string) error {
				if verb != "create" {
					return nil
				}
				made++
				return answer(made)
			}
			for i, wait := range growing {
				for range 10 {
					first, _ := a.KeepImage(t.Context(), a.here, keepingPool(elsewhere(), ""))
					second, _ := a.KeepImage(t.Context(), a.here, keepingPool(elsewhere(), ""))
					g.Expect(second.Condition).To(Equal(first.Condition), "a condition that changes has the pool reconciled again")
				}
				g.Expect(made).To(Equal(i + 1))
				a.clock.SetTime(a.clock.Now().Add(wait))
			}
			a.fails = nil
			kept, err := a.KeepImage(t.Context(), a.here, keepingPool(elsewhere(), ""))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(kept.Missing).To(BeFalse())
		})
	}
	t.Run("When a name is not valid in Kubernetes, it should be reported and not be tried again", func(t *testing.T) {
		g, a := NewWithT(t), newAbroad(t)
		a.there = otherCluster(t)
		cluster, err := a.infra.cluster(infraTarget(testCluster(elsewhere())), []byte(goodKubeconfig))
		g.Expect(err).NotTo(HaveOccurred())
		cluster.place.Client = a.watched(interceptor.NewClient(a.there, interceptor.Funcs{
			Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
				obj.SetName(strings.Repeat("x", 1<<20))
				return nil
			},
		}))
		for range 10 {
			kept, err := a.KeepImage(t.Context(), a.here, keepingPool(elsewhere(), ""))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(kept.Condition.Reason).To(Equal("InfraClusterRequestFailed"))
			g.Expect(len(kept.Condition.Message)).To(BeNumerically("<", 1000))
		}
		g.Expect(a.calls["create"]).To(Equal(1))
	})
	t.Run("When a kubeconfig changes on every reconcile, it should wait before it connects again", func(t *testing.T) {
		g, a := NewWithT(t), newAbroad(t)
		at := infraTarget(testCluster(elsewhere()))
		_, err := a.infra.cluster(at, []byte(strings.Replace(goodKubeconfig, "SECRET", "first", 1)))
		var busy *infraError
		g.Expect(errors.As(err, &busy)).To(BeTrue())
		g.Expect(busy.reason).To(Equal(reasonBusy))
		g.Expect(busy.again).To(Equal(renewWait))
		a.clock.SetTime(a.clock.Now().Add(renewWait))
		_, err = a.infra.cluster(at, []byte(strings.Replace(goodKubeconfig, "SECRET", "second", 1)))
		g.Expect(err).NotTo(HaveOccurred())
	})
}

// TestUnusedConnections checks that connections to clusters that are gone are not kept.
func TestUnusedConnections(t *testing.T) {
	g, a := NewWithT(t), newAbroad(t)
	a.clock.SetTime(a.clock.Now().Add(unusedFor + time.Second))
	_, err := a.infra.cluster(target{hosted: "clusters-other", user: "clusters", credentials: elsewhere()},
		[]byte(goodKubeconfig))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(a.infra.known).To(HaveLen(1))
}

// TestRecall checks that findings about an external cluster are cached for some minutes, as long as it is the same
// cluster.
func TestRecall(t *testing.T) {
	g, clock := NewWithT(t), clocktesting.NewFakePassiveClock(time.Now())
	clusters, there := &infraClusters{clock: clock}, target{hosted: "clusters-demo", user: "clusters", credentials: elsewhere()}
	recalled := func(at target) any {
		value, fresh := clusters.recall(at, "versions")
		if !fresh {
			return nil
		}
		return value
	}
	clusters.remember(there, "versions", "old")
	g.Expect(recalled(there)).To(BeNil(), "nobody has called it yet")
	connected, err := clusters.cluster(there, []byte(goodKubeconfig))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(recalled(there)).To(BeNil())
	clusters.remember(there, "versions", "new")
	g.Expect(recalled(there)).To(Equal("new"))
	g.Expect(recalled(target{hosted: "clusters-demo"})).To(BeNil(), "of the management cluster its watches tell")
	g.Expect(recalled(target{hosted: "clusters-other", credentials: elsewhere()})).To(BeNil())

	g.Expect(clusters.cluster(there, []byte(goodKubeconfig))).To(BeIdenticalTo(connected))
	g.Expect(recalled(there)).To(Equal("new"))
	clock.SetTime(clock.Now().Add(goodFor))
	g.Expect(recalled(there)).To(BeNil(), "it may have been upgraded meanwhile")

	clusters.remember(there, "versions", "new")
	g.Expect(clusters.cluster(there, []byte(strings.Replace(goodKubeconfig, "infra.example.com", "other.example.com", 1)))).NotTo(BeIdenticalTo(connected))
	g.Expect(recalled(there)).To(BeNil(), "another kubeconfig may lead to another cluster")
	clusters.remember(there, "versions", "new")
	clusters.forget("clusters-demo")
	g.Expect(recalled(there)).To(BeNil())
}

// TestKubeconfig checks which kubeconfig the operator uses.
func TestKubeconfig(t *testing.T) {
	copied := func(content string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: infraCredentials}, Data: map[string][]byte{kubeconfigKey: []byte(content)}}
	}
	unnamed := elsewhere()
	unnamed.InfraKubeConfigSecret = nil
	for _, tc := range []struct {
		name        string
		credentials *hyperv1.KubevirtPlatformCredentials
		objects     []client.Object
		want, says  string
	}{
		{"When the provider has a copy, it should use the copy", elsewhere(), []client.Object{copied("the copy"), userSecret("config", goodKubeconfig)}, "the copy", ""},
		{"When there is no copy yet, it should use the user's kubeconfig", elsewhere(), []client.Object{userSecret("config", goodKubeconfig)}, "infra.example.com", ""},
		{"When the copy is empty, it should use the user's kubeconfig", elsewhere(), []client.Object{copied(""), userSecret("config", goodKubeconfig)}, "infra.example.com", ""},
		{"When the cluster references no kubeconfig, it should report it", unnamed, nil, "", "no kubeconfig is named"},
		{"When the user's Secret does not exist, it should name the Secret", elsewhere(), nil, "", "Secret clusters/infra has no kubeconfig under config"},
		{"When the Secret has another key, it should name the expected key", elsewhere(), []client.Object{userSecret("kubeconfig", goodKubeconfig)}, "", "under config"},
		{"When the kubeconfig runs a program, it should reject the kubeconfig", elsewhere(), []client.Object{
			userSecret("config", strings.Replace(goodKubeconfig, "{token: SECRET}",
				"{exec: {apiVersion: client.authentication.k8s.io/v1, command: sh}}", 1))}, "", "users[].user.exec runs a program"},
		{"When the server's URL is not HTTPS, it should reject the kubeconfig", elsewhere(), []client.Object{
			userSecret("config", strings.Replace(goodKubeconfig, "https://", "http://", 1))}, "",
			"clusters[].cluster.server must be a URL of https://"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			at := target{hosted: "clusters-demo", user: "clusters", credentials: tc.credentials}
			got, err := at.kubeconfig(t.Context(), testClient(t, tc.objects...))
			if tc.says != "" {
				var told *infraError
				g.Expect(errors.As(err, &told)).To(BeTrue(), "%v", err)
				g.Expect(told.reason).To(Equal(reasonNoCredentials))
				g.Expect(told.message).To(And(ContainSubstring(tc.says), Not(ContainSubstring("SECRET"))))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(got)).To(ContainSubstring(tc.want))
		})
	}
	for _, secret := range []string{infraCredentials, "infra"} {
		t.Run("When the management cluster cannot read Secret "+secret+", the Secret should not count as missing", func(t *testing.T) {
			g := NewWithT(t)
			_, err := target{hosted: "clusters-demo", user: "clusters", credentials: elsewhere()}.kubeconfig(t.Context(), failingGet(testClient(t).(client.WithWatch), secret))
			g.Expect(err).To(MatchError(And(ContainSubstring("/"+secret), ContainSubstring("timed out"))))
		})
	}
}
