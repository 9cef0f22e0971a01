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
	// childEnv makes this test binary run as a holder in its own process, which a test can kill. Its value is the
	// identity.
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

// child runs a holder in the network namespace that it inherited as file descriptor 3.
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

// world is a network segment with two nodes that compete for one Lease.
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
	// away disconnects the node from the API.
	away atomic.Bool
	// sick makes the node's health check fail.
	sick atomic.Bool
}

// newWorld returns a fixture. It continuously checks that the two nodes never have an address at the same time.
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

// look counts an address as duplicate only if the first node still has it after the second was seen with it. An address
// needs a second to move back, so slower checks are discarded.
func (w *world) look() {
	for _, address := range addresses {
		began := time.Now()
		if w.nodes[0].Has(address) && w.nodes[1].Has(address) && w.nodes[0].Has(address) && time.Since(began) < time.Second {
			w.twice.Add(1)
		}
	}
}

// start runs a holder on a node; the returned function ends it as SIGTERM does.
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

// spawn runs a holder on a node in a separate process.
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

// lacks waits until a node has no address.
func (w *world) lacks(n *node) {
	w.t.Helper()
	w.Eventually(func() bool { return n.Has(addresses[0]) || n.Has(addresses[1]) }, patience, pace).Should(BeFalse(), "node %s should lack the addresses", n.name)
}

// usurps reports whether a node has an address while the Lease names another holder. It does not assume that the other
// holder always renews in time. The API server of a busy machine may answer too late, and then the address moves
// correctly.
func (w *world) usurps(n *node) bool {
	if !n.Has(addresses[0]) {
		return false
	}
	holder, err := w.holder()
	return err == nil && holder != n.name && n.Has(addresses[0])
}

// holder returns the identity that the Lease names.
func (w *world) holder() (string, error) {
	lease, err := kubernetes.NewForConfigOrDie(w.config).CoordinationV1().Leases(namespace).Get(context.Background(), w.lease, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	return ptr.Deref(lease.Spec.HolderIdentity, ""), nil
}

// gate blocks requests while the API is unreachable.
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
