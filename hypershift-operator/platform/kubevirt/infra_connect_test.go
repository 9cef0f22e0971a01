// SPDX-License-Identifier: Apache-2.0

package kubevirt

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spf13/pflag"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/maas"
)

// heard is an API server that records its requests and responds as the test specifies.
type heard struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

func hear(t *testing.T, answer http.HandlerFunc) *heard {
	t.Helper()
	h := &heard{}
	h.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		h.asked = append(h.asked, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
		h.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *heard) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string{}, h.asked...)
}

// status responds with a Status of the Kubernetes API.
func status(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":%q}`, code, reason, message)
}

// calling returns a plugin that may call servers of this test.
func calling() *Platform { return &Platform{infra: infraClusters{guard: local(), timeout: patient}} }

// TestCalls checks the operator's requests to an external API server, and their credentials.
func TestCalls(t *testing.T) {
	g := NewWithT(t)
	server := hear(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodPost:
			w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
			w.WriteHeader(http.StatusCreated)
			body, _ := io.ReadAll(r.Body)
			_, _ = w.Write(bytes.Replace(body, []byte(`"generateName":"kv-boot-image-cache-"`),
				[]byte(`"name":"kv-boot-image-cache-1"`), 1))
		case strings.HasSuffix(r.URL.Path, "/datavolumes"):
			_, _ = w.Write([]byte(`{"apiVersion":"cdi.kubevirt.io/v1beta1","kind":"DataVolumeList","items":[]}`))
		case strings.HasSuffix(r.URL.Path, "/networks/cluster"):
			_, _ = w.Write([]byte(`{"apiVersion":"config.openshift.io/v1","kind":"Network","metadata":{"name":"cluster"},"spec":{"serviceNetwork":["172.30.0.0/16"]}}`))
		default:
			status(w, http.StatusNotFound, metav1.StatusReasonNotFound, "not found")
		}
	})
	p, c := calling(), testClient(t, userSecret("config", kubeconfigOf(server.Server)))
	kept, err := p.KeepImage(t.Context(), c, keepingPool(elsewhere(), ""))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(kept.Condition.Status).To(Equal(metav1.ConditionTrue), kept.Condition.Message)
	connection, err := p.Connect(t.Context(), c, testCluster(elsewhere()))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(connection.Conditions).To(ConsistOf(HaveField("Status", metav1.ConditionTrue)))
	const token = " Bearer SECRET"
	g.Expect(server.all()).To(Equal([]string{
		"GET /apis/cdi.kubevirt.io/v1beta1/namespaces/vms/datavolumes" + token,
		"POST /apis/cdi.kubevirt.io/v1beta1/namespaces/vms/datavolumes" + token,
		"GET /apis/config.openshift.io/v1/networks/cluster" + token,
		"GET /apis/networking.k8s.io/v1/namespaces/vms/networkpolicies/virt-launcher-demo-abcde" + token,
		"POST /apis/networking.k8s.io/v1/namespaces/vms/networkpolicies" + token,
	}))
}

// TestRedirects checks that the kubeconfig decides which server is called, not the server's response.
func TestRedirects(t *testing.T) {
	g := NewWithT(t)
	other := hear(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(versions("v1.31.0", "v1.2.0")[r.URL.Path]))
	})
	server := hear(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", other.URL+r.URL.Path)
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	c := testClient(t, userSecret("config", kubeconfigOf(server.Server)))
	p := calling()
	credentials, err := p.ReconcileCredentials(t.Context(), c, testCluster(elsewhere()))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(credentials.Condition.Status).To(Equal(metav1.ConditionFalse))
	_, err = p.KeepImage(t.Context(), c, keepingPool(elsewhere(), ""))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(server.all())).To(BeNumerically(">=", 2), "both ways to call were tried")
	g.Expect(other.all()).To(BeEmpty())
}

// TestAnswers checks that errors of an external API server are reported in a condition, with a message that a user can
// act on.
func TestAnswers(t *testing.T) {
	const private = "dial tcp 10.1.2.3:6443"
	for _, tc := range []struct {
		name       string
		code       int
		reason     metav1.StatusReason
		message    string
		want, says string
		again      time.Duration
	}{
		{"When the token is rejected, it should ask for a valid kubeconfig and wait", http.StatusUnauthorized, metav1.StatusReasonUnauthorized, private,
			"InfraClusterUnauthorized", "replace it with a valid one", firstWait},
		{"When a permission is missing, it should report which one", http.StatusForbidden, metav1.StatusReasonForbidden, `User "vms" cannot get path "/version"`,
			"InfraClusterForbidden", `its kubeconfig lacks a right: User "vms" cannot get path "/version"`, lastWait},
		{"When the server is unavailable, it should report it without the server's message and wait", http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, private,
			"InfraClusterUnreachable", "it is not available", firstWait},
		{"When the server returns an internal error, it should repeat its message", http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcdserver: no space",
			"InfraClusterRequestFailed", "etcdserver: no space", lastWait},
		{"When the server's message is too long, it should truncate the message", http.StatusForbidden, metav1.StatusReasonForbidden, strings.Repeat("x", 5*mostWords),
			"InfraClusterForbidden", strings.Repeat("x", mostWords-3) + "...", lastWait},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			server := hear(t, func(w http.ResponseWriter, _ *http.Request) { status(w, tc.code, tc.reason, tc.message) })
			p, c := calling(), testClient(t, userSecret("config", kubeconfigOf(server.Server)))
			p.infra.clock = clocktesting.NewFakePassiveClock(time.Now())
			credentials, err := p.ReconcileCredentials(t.Context(), c, testCluster(elsewhere()))
			g.Expect(err).NotTo(HaveOccurred())
			said := credentials.Condition
			g.Expect(said).To(And(HaveField("Type", "PlatformCredentialsFound"), HaveField("Status", metav1.ConditionFalse), HaveField("Reason", tc.want)))
			g.Expect(said.Message).To(And(HavePrefix("With the kubeconfig in Secret clusters/infra, the cluster for virtual machines cannot be used: "), ContainSubstring(tc.says),
				Not(ContainSubstring(private)), Not(ContainSubstring(strings.Repeat("x", mostWords)))))
			g.Expect(credentials.CheckAgain).To(Equal(tc.again))
			before := len(server.all())
			again, err := p.ReconcileCredentials(t.Context(), c, testCluster(elsewhere()))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(again.Condition).To(Equal(said), "a pass that asks nobody tells the same")
			g.Expect(server.all()).To(HaveLen(before))
		})
	}
}

// TestStrangers checks that a server that cannot prove its identity gets no token, and is not called again at once.
func TestStrangers(t *testing.T) {
	g := NewWithT(t)
	server := hear(t, func(http.ResponseWriter, *http.Request) {})
	another := strings.Replace(goodKubeconfig, "https://infra.example.com:6443", server.URL, 1)
	p, c := calling(), testClient(t, userSecret("config", another))
	credentials, err := p.ReconcileCredentials(t.Context(), c, testCluster(elsewhere()))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(credentials.Condition.Reason).To(Equal("InfraClusterUnreachable"))
	g.Expect(credentials.CheckAgain).To(Equal(firstWait))
	g.Expect(server.all()).To(BeEmpty())
}

// TestBusy checks that a kubeconfig is not reported as invalid while other clusters are called.
func TestBusy(t *testing.T) {
	g, p := NewWithT(t), calling()
	server := hear(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(versions("v1.31.0", "v1.2.0")[r.URL.Path]))
	})
	c := testClient(t, userSecret("config", kubeconfigOf(server.Server)))
	p.infra.calls = callsOfOthers(parallelCalls)
	credentials, err := p.ReconcileCredentials(t.Context(), c, testCluster(elsewhere()))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(credentials.Condition).To(And(HaveField("Status", metav1.ConditionUnknown), HaveField("Reason", "WaitingForInfraCluster")))
	g.Expect(credentials.CheckAgain).To(Equal(busyWait))
	g.Expect(credentials.Hash).NotTo(BeEmpty(), "the provider goes on")
	g.Expect(server.all()).To(BeEmpty())
	p.infra.calls = callsOfOthers(parallelCalls - 1)
	credentials, err = p.ReconcileCredentials(t.Context(), c, testCluster(elsewhere()))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(credentials.Condition.Status).To(Equal(metav1.ConditionTrue))
	g.Expect(p.infra.calls).To(HaveLen(parallelCalls-1), "the call was given back")
}

// TestUntold checks that errors that callers check, and errors of the management cluster, are returned unchanged.
func TestUntold(t *testing.T) {
	odd := errors.New("odd")
	told := &infraError{reason: reasonBusy}
	for name, err := range map[string]error{
		"nothing": nil, "what was told before": told, "absence": fmt.Errorf("reading: %w", absent), "presence": apierrors.NewAlreadyExists(anyKind, "it"), "an unexpected error": odd,
	} {
		t.Run(name, func(t *testing.T) {
			if got := tell(err); !errors.Is(got, err) || fmt.Sprint(got) != fmt.Sprint(err) {
				t.Errorf("got %v, want %v", got, err)
			}
		})
	}
	for name, tc := range map[string]struct {
		err    error
		reason string
	}{
		"another name in the certificate": {x509.HostnameError{Certificate: &x509.Certificate{}, Host: "a"}, reasonUnreachable},
		"a refused address":               {fmt.Errorf("dialing: %w", &maas.RefusedAddressError{}), reasonRefused},
		"a conflict":                      {apierrors.NewConflict(anyKind, "it", odd), reasonFailed},
	} {
		t.Run(name, func(t *testing.T) {
			var failure *infraError
			if !errors.As(tell(tc.err), &failure) || failure.reason != tc.reason {
				t.Errorf("got %v, want reason %s", tell(tc.err), tc.reason)
			}
		})
	}
}

// TestOptions checks that flags determine the allowed addresses of clusters for virtual machines.
func TestOptions(t *testing.T) {
	server := hear(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(versions("v1.31.0", "v1.2.0")[r.URL.Path]))
	})
	for _, tc := range []struct {
		name   string
		flags  []string
		reason string
		says   string
	}{
		{"When no range is allowed, it should not call a server on the loopback address", nil, "InfraClusterAddressRefused", ""},
		{"When the server's range is allowed, it should call the server", []string{"--kubevirt-allow-cidrs=127.0.0.0/8"}, "AsExpected", ""},
		{"When the server's range is both allowed and refused, it should call the server", []string{"--kubevirt-allow-cidrs=127.0.0.0/8", "--kubevirt-refuse-cidrs=127.0.0.0/8"}, "AsExpected", ""},
		{"When an allowed range is invalid, it should name the flags", []string{"--kubevirt-allow-cidrs=nonsense"}, "", "--kubevirt-allow-cidrs or --kubevirt-refuse-cidrs"},
		{"When a refused range is invalid, it should name the flags", []string{"--kubevirt-refuse-cidrs=nonsense"}, "", "--kubevirt-allow-cidrs or --kubevirt-refuse-cidrs"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, clock := NewWithT(t), clocktesting.NewFakePassiveClock(time.Now())
			options, flags := &Options{Clock: clock, Timeout: patient}, pflag.NewFlagSet("operator", pflag.ContinueOnError)
			options.AddFlags(flags)
			g.Expect(flags.Parse(tc.flags)).To(Succeed())
			plugin, err := options.New(platform.Environment{})
			if tc.says != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.says)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			c, before := testClient(t, userSecret("config", kubeconfigOf(server.Server))), len(server.all())
			credentials, err := plugin.ReconcileCredentials(t.Context(), c, testCluster(elsewhere()))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(credentials.Condition.Reason).To(Equal(tc.reason))
			called := len(server.all()) > before
			g.Expect(called).To(Equal(tc.reason == hyperv1.AsExpectedReason))

			before = len(server.all())
			clock.SetTime(clock.Now().Add(goodFor))
			_, err = plugin.ReconcileCredentials(t.Context(), c, testCluster(elsewhere()))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(len(server.all()) > before).To(Equal(called), "it is the clock of the options that tells how old an answer is")
		})
	}
}

// TestManagementClusterFails checks that a failure to read or write a Secret is an error for the next reconcile. It is
// not reported as a user's mistake.
func TestManagementClusterFails(t *testing.T) {
	slow := errors.New("etcd is slow")
	for _, tc := range []struct {
		name string
		c    func(t *testing.T) client.Client
		says string
	}{
		{"When the user's Secret cannot be read, it should name the Secret", func(t *testing.T) client.Client {
			return failingGet(testClient(t).(client.WithWatch), "infra")
		}, "the kubeconfig in Secret clusters/infra"},
		{"When the last copy cannot be read, it should name the Secret", func(t *testing.T) client.Client {
			return failingGet(testClient(t).(client.WithWatch), infraCredentials)
		}, "Secret clusters-demo/kubevirt-infra-credentials"},
		{"When the copy cannot be written, it should name the Secret", func(t *testing.T) client.Client {
			return failingClient(testClient(t, userSecret("config", goodKubeconfig)).(client.WithWatch), "create", slow)
		}, "kubevirt-infra-credentials"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := calling().ReconcileCredentials(t.Context(), tc.c(t), testCluster(elsewhere()))
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.says)))
		})
	}
	t.Run("When the management cluster fails, Connect should return an error and report Unknown", func(t *testing.T) {
		g, p := NewWithT(t), calling()
		c := failingClient(testClient(t, userSecret("config", goodKubeconfig)).(client.WithWatch), "get", slow)
		connection, err := p.Connect(t.Context(), c, testCluster(elsewhere()))
		g.Expect(err).To(MatchError(slow))
		g.Expect(connection.Conditions).To(ConsistOf(HaveField("Status", metav1.ConditionUnknown)))
		g.Expect(connection.CheckAgain).To(BeZero(), "the controller knows when to try again")
		said, again, err := p.checkCluster(t.Context(), c, infraTarget(testCluster(elsewhere())), metav1.Condition{})
		g.Expect(err).To(MatchError(slow))
		g.Expect(said.Status).To(Equal(metav1.ConditionUnknown))
		g.Expect(again).To(BeZero())
	})
}
