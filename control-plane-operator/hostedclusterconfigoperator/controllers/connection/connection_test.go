// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
)

var now = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

// world is a real API server that is both management cluster and guest.
type world struct {
	t      *testing.T
	client client.WithWatch
	writes *testenv.Writes
	clock  *clocktesting.FakePassiveClock
	// deaf are the nodes whose kubelets do not answer.
	deaf map[string]bool
	r    *Reconciler
	hcp  *hyperv1.HostedControlPlane
}

func newWorld(t *testing.T) *world {
	t.Helper()
	c, err := client.NewWithWatch(testenv.Start(t, crds.HyperShift), client.Options{Scheme: fixture.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		t: t, client: c, writes: &testenv.Writes{}, clock: clocktesting.NewFakePassiveClock(now), deaf: map[string]bool{}, hcp: fixture.ControlPlane(),
	}
	for _, obj := range append(fixture.HostedNamespace(), w.hcp) {
		w.must(c.Create(t.Context(), obj))
	}
	w.must(client.IgnoreAlreadyExists(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: corev1.NamespaceNodeLease}})))
	w.r = &Reconciler{
		Guest: c, Live: c, Management: w.writes.Client(c), Clock: w.clock,
		Kubelet: func(_ context.Context, node string) error {
			if w.deaf[node] {
				return errors.New("dial tcp: i/o timeout")
			}
			return nil
		},
	}
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// node creates a Ready node with a Lease.
func (w *world) node(name string) {
	w.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	w.must(w.client.Create(w.t.Context(), node))
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	w.must(w.client.Status().Update(w.t.Context(), node))
	w.must(w.client.Create(w.t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: name}}))
}

// renew renews the Leases of nodes whose clock is wrong.
func (w *world) renew(names ...string) {
	w.t.Helper()
	for _, name := range names {
		lease := &coordinationv1.Lease{}
		w.must(w.client.Get(w.t.Context(), client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: name}, lease))
		lease.Spec.RenewTime = &metav1.MicroTime{Time: w.clock.Now().AddDate(-20, 0, 0)}
		w.must(w.client.Update(w.t.Context(), lease))
	}
}

// after lets time pass and runs another check.
func (w *world) after(d time.Duration) time.Duration {
	w.t.Helper()
	w.clock.SetTime(w.clock.Now().Add(d))
	result, err := w.r.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.hcp)})
	w.must(err)
	return result.RequeueAfter
}

// told returns a condition as status/reason, and its message.
func (w *world) told(t hyperv1.ConditionType) (state, message string) {
	w.t.Helper()
	w.must(w.client.Get(w.t.Context(), client.ObjectKeyFromObject(w.hcp), w.hcp))
	c := meta.FindStatusCondition(w.hcp.Status.Conditions, string(t))
	if c == nil {
		return "absent", ""
	}
	return string(c.Status) + "/" + c.Reason, c.Message
}

func TestConnections(t *testing.T) {
	w := newWorld(t)
	towardsNodes, towardsAPI := hyperv1.DataPlaneConnectionAvailable, hyperv1.ControlPlaneConnectionAvailable
	step := func(name string, do func(g Gomega)) {
		t.Helper()
		if !t.Run(name, func(t *testing.T) { w.t = t; do(NewWithT(t)) }) {
			t.FailNow()
		}
	}
	state := func(c hyperv1.ConditionType) string { s, _ := w.told(c); return s }
	message := func(c hyperv1.ConditionType) string { _, m := w.told(c); return m }

	step("When there is no node it should report Unknown with a reason", func(g Gomega) {
		w.after(0)
		g.Expect(state(towardsNodes)).To(Equal("Unknown/NoWorkerNodesAvailable"))
		g.Expect(state(towardsAPI)).To(Equal("Unknown/NoWorkerNodesAvailable"))
	})
	step("When nodes renew their Leases and answer it should report True, whatever their clocks show", func(g Gomega) {
		w.node("a")
		w.node("b")
		w.after(10 * time.Second)
		w.renew("a", "b")
		w.after(20 * time.Second)
		g.Expect(state(towardsNodes)).To(Equal("True/AsExpected"))
		g.Expect(state(towardsAPI)).To(Equal("True/AsExpected"))
	})
	step("When nothing changes it should write nothing", func(g Gomega) {
		before := w.writes.Count
		for range 3 {
			w.renew("a", "b")
			w.after(time.Minute)
		}
		g.Expect(w.writes.Count).To(Equal(before))
	})
	step("When one kubelet does not answer it should name the node", func(g Gomega) {
		w.deaf["a"] = true
		w.renew("a", "b")
		w.after(time.Minute)
		g.Expect(state(towardsNodes)).To(Equal("True/AsExpected"))
		g.Expect(message(towardsNodes)).To(ContainSubstring("a: dial tcp: i/o timeout"))
	})
	step("When no kubelet answers it should name the port to open", func(g Gomega) {
		w.deaf["b"] = true
		w.renew("a", "b")
		w.after(time.Minute)
		g.Expect(state(towardsNodes)).To(Equal("False/LogsAccessFailed"))
		g.Expect(message(towardsNodes)).To(ContainSubstring("TCP 10250"))
		w.deaf = map[string]bool{}
	})
	step("When one node stops renewing its Lease it should name the node", func(g Gomega) {
		for range 3 {
			w.renew("a")
			w.after(time.Minute)
		}
		g.Expect(state(towardsAPI)).To(Equal("True/AsExpected"))
		g.Expect(message(towardsAPI)).To(Equal("1 of 2 nodes have not renewed their leases for 2m0s: b"))
	})
	step("When all nodes stop renewing it should report that they do not reach the API", func(g Gomega) {
		for range 3 {
			w.after(time.Minute)
		}
		g.Expect(state(towardsAPI)).To(Equal("False/ConnectionCheckStale"))
		g.Expect(message(towardsAPI)).To(ContainSubstring("a, b"))
	})
	step("When the operator restarts it should report nothing new before the second check", func(g Gomega) {
		w.renew("a", "b")
		w.r.renewals, w.r.turn = renewals{}, 0
		before := w.writes.Count
		g.Expect(w.after(time.Minute)).To(Equal(secondLook))
		g.Expect(state(towardsAPI)).To(Equal("False/ConnectionCheckStale"), "what was said stays")
		g.Expect(w.writes.Count).To(BeNumerically("<=", before+1))
		w.renew("a", "b")
		g.Expect(w.after(secondLook)).To(Equal(interval))
		g.Expect(state(towardsAPI)).To(Equal("True/AsExpected"))
	})
	step("When there are many nodes it should ask all of them in turn", func(g Gomega) {
		asked := map[string]int{}
		w.r.Kubelet = func(_ context.Context, node string) error { asked[node]++; return nil }
		for i := range 5 {
			w.node(fmt.Sprintf("n-%d", i))
		}
		for range 3 {
			w.after(time.Minute)
		}
		g.Expect(asked).To(HaveLen(7))
	})
}

// TestAskKubelet uses the path of logs and exec: through a real API server to a server that acts as a kubelet.
func TestAskKubelet(t *testing.T) {
	g := NewWithT(t)
	guest := kubernetes.NewForConfigOrDie(testenv.Start(t))
	asked := make(chan string, 100)
	kubelet := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.Path }))
	address := hostAddress(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(address, "0"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(kubelet.Listener.Close()).To(Succeed())
	kubelet.Listener = listener
	kubelet.StartTLS()
	defer kubelet.Close()
	_, text, err := net.SplitHostPort(listener.Addr().String())
	g.Expect(err).NotTo(HaveOccurred())
	port, err := strconv.Atoi(text)
	g.Expect(err).NotTo(HaveOccurred())

	node, err := guest.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(port)
	_, err = guest.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())

	ask := AskKubelet(guest)
	// The request times out after ten seconds, also on a busy machine.
	g.Eventually(func() error { return ask(t.Context(), "worker-1") }).Should(Succeed())
	g.Expect(asked).To(Receive(Equal("/healthz")))
	kubelet.Close()
	g.Eventually(func() error { return ask(t.Context(), "worker-1") }).Should(MatchError(ContainSubstring(text)))
}

// hostAddress returns an address of this machine that the API server proxies to; it does not proxy to the loopback.
func hostAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && ip.IP.IsGlobalUnicast() {
			return ip.IP.String()
		}
	}
	t.Skip("this machine has no address but the loopback's")
	return ""
}
