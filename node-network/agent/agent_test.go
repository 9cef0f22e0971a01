// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/openshift/hypershift/node-network/host"
)

// machine is a fake of the node's kernel and files. It counts the writes.
type machine struct {
	mutex    sync.Mutex
	routes   []host.Route
	writes   int
	pods     []netip.Prefix
	config   *host.CNI
	failures map[string]error
}

func (m *machine) fail(what string) error { return m.failures[what] }

func (m *machine) List() ([]host.Route, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return slices.Clone(m.routes), m.fail("list")
}

func (m *machine) Replace(r host.Route) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if err := m.fail("replace " + r.To.String()); err != nil {
		return err
	}
	m.writes++
	m.routes = slices.DeleteFunc(m.routes, func(existing host.Route) bool { return existing.To == r.To })
	m.routes = append(m.routes, r)
	return nil
}

func (m *machine) Delete(r host.Route) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.writes++
	m.routes = slices.DeleteFunc(m.routes, func(existing host.Route) bool { return existing == r })
	return nil
}

func (m *machine) MTU(address netip.Addr) (int, error) {
	if address.Is6() {
		return 1400, m.fail("mtu")
	}
	return 1500, m.fail("mtu")
}

// masquerade and config implement the agent's other two interfaces with the same machine.
type masquerade struct{ *machine }

func (m masquerade) Ensure(pods, _ []netip.Prefix) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if err := m.fail("masquerade"); err != nil {
		return err
	}
	m.pods = pods
	return nil
}

type config struct{ *machine }

func (c config) Ensure(cni host.CNI) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.machine.config = &cni
	return c.fail("config")
}

func (m *machine) agent() *Agent {
	return &Agent{
		NodeName: "a", ClusterNetworks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")},
		Config: config{m}, Routes: m, Masquerade: masquerade{m},
	}
}

func lister(t *testing.T, nodes ...*corev1.Node) corelisters.NodeLister {
	t.Helper()
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
	for _, n := range nodes {
		NewWithT(t).Expect(indexer.Add(n)).To(Succeed())
	}
	return corelisters.NewNodeLister(indexer)
}

func TestReconcile(t *testing.T) {
	own := node("a", []string{"10.0.1.0/24"}, "192.0.2.1")
	other := node("b", []string{"10.0.2.0/24"}, "192.0.2.2")

	t.Run("When nothing exists, it should create routes, rules and the configuration", func(t *testing.T) {
		g := NewWithT(t)
		m := &machine{}
		g.Expect(m.agent().reconcile(lister(t, own, other))).To(Succeed())
		g.Expect(m.routes).To(Equal([]host.Route{route("10.0.2.0/24", "192.0.2.2")}))
		g.Expect(m.pods).To(Equal([]netip.Prefix{netip.MustParsePrefix("10.0.1.0/24")}))
		g.Expect(m.config).To(Equal(&host.CNI{PodNetworks: []netip.Prefix{netip.MustParsePrefix("10.0.1.0/24")}, MTU: 1500}))
	})
	t.Run("When all routes exist, it should write none", func(t *testing.T) {
		g := NewWithT(t)
		m := &machine{routes: []host.Route{route("10.0.2.0/24", "192.0.2.2")}}
		g.Expect(m.agent().reconcile(lister(t, own, other))).To(Succeed())
		g.Expect(m.writes).To(BeZero())
	})
	t.Run("When a node is deleted, it should remove the route to it", func(t *testing.T) {
		g := NewWithT(t)
		m := &machine{routes: []host.Route{route("10.0.2.0/24", "192.0.2.2")}}
		g.Expect(m.agent().reconcile(lister(t, own))).To(Succeed())
		g.Expect(m.routes).To(BeEmpty())
	})
	t.Run("When the address of a node changes, it should replace the route without a gap", func(t *testing.T) {
		g := NewWithT(t)
		m := &machine{routes: []host.Route{route("10.0.2.0/24", "192.0.2.9")}}
		g.Expect(m.agent().reconcile(lister(t, own, other))).To(Succeed())
		g.Expect(m.routes).To(Equal([]host.Route{route("10.0.2.0/24", "192.0.2.2")}))
		g.Expect(m.writes).To(Equal(1))
	})
	t.Run("When a route cannot be created, it should create the others and the configuration", func(t *testing.T) {
		g := NewWithT(t)
		m := &machine{failures: map[string]error{"replace 10.0.2.0/24": errors.New("unreachable")}}
		third := node("c", []string{"10.0.3.0/24"}, "192.0.2.3")
		err := m.agent().reconcile(lister(t, own, other, third))
		g.Expect(err).To(MatchError(ContainSubstring("unreachable")))
		g.Expect(m.routes).To(Equal([]host.Route{route("10.0.3.0/24", "192.0.2.3")}))
		g.Expect(m.config).NotTo(BeNil())
	})
	t.Run("When the node has no pod CIDR yet, it should return an error and write no configuration", func(t *testing.T) {
		g := NewWithT(t)
		m := &machine{}
		err := m.agent().reconcile(lister(t, node("a", nil, "192.0.2.1"), other))
		g.Expect(err).To(MatchError(ContainSubstring("node a has no pod CIDR yet")))
		g.Expect(m.config).To(BeNil())
		g.Expect(m.routes).To(HaveLen(1))
	})
	t.Run("When the masquerade rules cannot be written, it should write no CNI configuration", func(t *testing.T) {
		g := NewWithT(t)
		m := &machine{failures: map[string]error{"masquerade": errors.New("no nft")}}
		g.Expect(m.agent().reconcile(lister(t, own))).To(MatchError(ContainSubstring("no nft")))
		g.Expect(m.config).To(BeNil())
	})
	t.Run("When the node has two addresses, it should use the smaller MTU", func(t *testing.T) {
		g := NewWithT(t)
		m := &machine{}
		dual := node("a", []string{"10.0.1.0/24", "fd00:1::/64"}, "192.0.2.1", "2001:db8::1")
		g.Expect(m.agent().reconcile(lister(t, dual))).To(Succeed())
		g.Expect(m.config.MTU).To(Equal(1400))
	})
	t.Run("When the routes cannot be listed, it should write the configuration and return the error", func(t *testing.T) {
		g := NewWithT(t)
		m := &machine{failures: map[string]error{"list": errors.New("netlink")}}
		g.Expect(m.agent().reconcile(lister(t, own))).To(MatchError(ContainSubstring("netlink")))
		g.Expect(m.config).NotTo(BeNil())
	})
}

func TestRun(t *testing.T) {
	t.Run("When nodes are created and deleted, it should update the routes and end with the context", func(t *testing.T) {
		g := NewWithT(t)
		ctx, cancel := context.WithCancel(t.Context())
		client := fake.NewClientset(node("a", []string{"10.0.1.0/24"}, "192.0.2.1"))
		m := &machine{}
		ended := make(chan error, 1)
		go func() { ended <- m.agent().Run(ctx, client) }()

		routes := func() []host.Route { found, _ := m.List(); return found }
		g.Eventually(func() *host.CNI { m.mutex.Lock(); defer m.mutex.Unlock(); return m.config }).ShouldNot(BeNil())
		g.Expect(routes()).To(BeEmpty())
		// The fake API server does not report changes between the list and the watch.
		g.Eventually(client.Actions).Should(ContainElement(HaveField("GetVerb()", "watch")))

		_, err := client.CoreV1().Nodes().Create(ctx, node("b", []string{"10.0.2.0/24"}, "192.0.2.2"), metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Eventually(routes).Should(Equal([]host.Route{route("10.0.2.0/24", "192.0.2.2")}))

		g.Expect(client.CoreV1().Nodes().Delete(ctx, "b", metav1.DeleteOptions{})).To(Succeed())
		g.Eventually(routes).Should(BeEmpty())

		cancel()
		g.Eventually(ended, 2*time.Minute).Should(Receive(BeNil()))
	})
}

func TestNotify(t *testing.T) {
	full := node("b", []string{"10.0.2.0/24"}, "192.0.2.2")
	full.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, LastHeartbeatTime: metav1.NewTime(time.Unix(1, 0))}}
	trimmedObject, err := trim(full)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	t.Run("When only the heartbeat of a node changes, it should not trigger a reconcile", func(t *testing.T) {
		g := NewWithT(t)
		changed := make(chan struct{}, 1)
		later := full.DeepCopy()
		later.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(time.Unix(2, 0))
		after, err := trim(later)
		g.Expect(err).NotTo(HaveOccurred())
		notify(changed).UpdateFunc(trimmedObject, after)
		g.Expect(changed).To(BeEmpty())
	})
	t.Run("When the address of a node changes repeatedly, it should trigger one reconcile", func(t *testing.T) {
		g := NewWithT(t)
		changed := make(chan struct{}, 1)
		moved, err := trim(node("b", []string{"10.0.2.0/24"}, "192.0.2.9"))
		g.Expect(err).NotTo(HaveOccurred())
		notify(changed).UpdateFunc(trimmedObject, moved)
		notify(changed).UpdateFunc(trimmedObject, moved)
		g.Expect(changed).To(HaveLen(1))
	})
	t.Run("When the previous state of a node is unknown, it should trigger a reconcile", func(t *testing.T) {
		for _, update := range [][2]any{{cache.DeletedFinalStateUnknown{Key: "b"}, trimmedObject}, {trimmedObject, cache.DeletedFinalStateUnknown{Key: "b"}}} {
			changed := make(chan struct{}, 1)
			notify(changed).UpdateFunc(update[0], update[1])
			NewWithT(t).Expect(changed).To(HaveLen(1))
		}
	})
	t.Run("When a cached object is not a node, it should not change it", func(t *testing.T) {
		g := NewWithT(t)
		tombstone := cache.DeletedFinalStateUnknown{Key: "b"}
		kept, err := trim(tombstone)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(kept).To(Equal(tombstone))
	})
}
