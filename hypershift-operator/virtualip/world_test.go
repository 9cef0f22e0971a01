// SPDX-License-Identifier: Apache-2.0

package virtualip_test

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/ptr"

	"github.com/openshift/hypershift/hypershift-operator/virtualip"
	"github.com/openshift/hypershift/hypershift-operator/virtualip/host"
	"github.com/openshift/hypershift/hypershift-operator/virtualip/segment"
	"github.com/openshift/hypershift/support/testenv"
)

const (
	namespace = "default"
	patience  = 3 * time.Minute
	pace      = 20 * time.Millisecond
	// childEnv has this program be a holder of its own, which a test can kill: its value is the identity.
	childEnv      = "VIRTUAL_IP_CHILD"
	childLeaseEnv = "VIRTUAL_IP_CHILD_LEASE"
)

var addresses = []netip.Addr{netip.MustParseAddr("192.0.2.100"), netip.MustParseAddr("2001:db8::100")}

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		if err := child(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// child holds in the network namespace that it inherited as file 3.
func child() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	own, err := netns.Get()
	if err != nil {
		return err
	}
	if err := netns.Set(netns.NsHandle(3)); err != nil {
		return err
	}
	network, err := host.Open("")
	if err != nil {
		return err
	}
	if err := netns.Set(own); err != nil {
		return err
	}
	return newHolder(config, os.Getenv(childLeaseEnv), os.Getenv(childEnv), network, logr.Discard()).Run(ctx)
}

func newHolder(config *rest.Config, lease, identity string, network *host.Network, log logr.Logger) *virtualip.Holder {
	config = rest.CopyConfig(config)
	config.Timeout = time.Second
	return &virtualip.Holder{
		Addresses: addresses, Network: network, Lease: virtualip.MinLease, Metrics: virtualip.NewMetrics(), Log: log,
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: lease}, Client: kubernetes.NewForConfigOrDie(config).CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
	}
}

// world is a segment with two nodes, which stand for one Lease.
type world struct {
	*WithT
	t       *testing.T
	config  *rest.Config
	lease   string
	segment *segment.Segment
	nodes   []*node
	twice   atomic.Int32
}

type node struct {
	*segment.Node
	name string
	// away cuts the node off from the API.
	away atomic.Bool
	// sick fails the node's health check.
	sick atomic.Bool
}

// newWorld looks on all the time whether both nodes have an address at once.
func newWorld(t *testing.T, config *rest.Config, lease string) *world {
	t.Helper()
	w := &world{WithT: NewWithT(t), t: t, config: config, lease: lease, segment: segment.New(t)}
	for _, name := range []string{"a", "b"} {
		w.nodes = append(w.nodes, &node{Node: w.segment.Node(), name: name})
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(pace):
				w.look()
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-stopped
		if n := w.twice.Load(); n > 0 {
			t.Errorf("both nodes held an address at once, seen %d times", n)
		}
	})
	return w
}

// look believes that both have it when the first still does after the second was seen with it: an address that moves back needs a second.
// A look that took longer saw nothing.
func (w *world) look() {
	for _, address := range addresses {
		began := time.Now()
		if w.nodes[0].Has(address) && w.nodes[1].Has(address) && w.nodes[0].Has(address) && time.Since(began) < time.Second {
			w.twice.Add(1)
		}
	}
}

// start has a node stand; what it returns ends it as SIGTERM does.
func (w *world) start(n *node) (stop func()) {
	w.t.Helper()
	var network *host.Network
	var err error
	n.Do(func() { network, err = host.Open("") })
	w.Expect(err).NotTo(HaveOccurred())
	config := rest.CopyConfig(w.config)
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper { return gate{inner, &n.away} })
	holder := newHolder(config, w.lease, n.name, network, logr.Discard())
	holder.Checks = []virtualip.Check{func(context.Context) error {
		if n.sick.Load() {
			return fmt.Errorf("node %s is sick", n.name)
		}
		return nil
	}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- holder.Run(ctx) }()
	ended := false
	stop = func() {
		if ended {
			return
		}
		ended = true
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("node %s: %v", n.name, err)
		}
		network.Close()
	}
	w.t.Cleanup(stop)
	return stop
}

// spawn has a node stand in a process of its own.
func (w *world) spawn(n *node) *exec.Cmd {
	w.t.Helper()
	file := filepath.Join(w.t.TempDir(), "kubeconfig")
	w.Expect(os.WriteFile(file, testenv.Kubeconfig(w.t, w.config), 0o600)).To(Succeed())
	space, err := unix.Dup(int(n.Space))
	w.Expect(err).NotTo(HaveOccurred())
	inherited := os.NewFile(uintptr(space), "netns")
	defer inherited.Close()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+n.name, childLeaseEnv+"="+w.lease, "KUBECONFIG="+file)
	cmd.ExtraFiles, cmd.Stderr = []*os.File{inherited}, os.Stderr
	w.Expect(cmd.Start()).To(Succeed())
	w.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// holds waits until a node has all addresses.
func (w *world) holds(n *node) {
	w.t.Helper()
	w.Eventually(func() bool { return n.Has(addresses[0]) && n.Has(addresses[1]) }, patience, pace).Should(BeTrue(), "node %s should hold the addresses", n.name)
}

// lacks waits until a node has none.
func (w *world) lacks(n *node) {
	w.t.Helper()
	w.Eventually(func() bool { return n.Has(addresses[0]) || n.Has(addresses[1]) }, patience, pace).Should(BeFalse(), "node %s should lack the addresses", n.name)
}

// usurps tells whether a node has an address while the Lease names another. That the other renews all the time is no promise: the API server of a
// busy machine may take longer to answer than a holder waits, and then the address moves by right.
func (w *world) usurps(n *node) bool {
	if !n.Has(addresses[0]) {
		return false
	}
	holder, err := w.holder()
	return err == nil && holder != n.name && n.Has(addresses[0])
}

// holder is who the Lease names.
func (w *world) holder() (string, error) {
	lease, err := kubernetes.NewForConfigOrDie(w.config).CoordinationV1().Leases(namespace).Get(context.Background(), w.lease, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	return ptr.Deref(lease.Spec.HolderIdentity, ""), nil
}

// gate lets no request through while the API is away.
type gate struct {
	inner http.RoundTripper
	away  *atomic.Bool
}

func (g gate) RoundTrip(request *http.Request) (*http.Response, error) {
	if g.away.Load() {
		<-request.Context().Done()
		return nil, request.Context().Err()
	}
	return g.inner.RoundTrip(request)
}
