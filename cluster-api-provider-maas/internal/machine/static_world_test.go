package machine_test

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

var errCut = errors.New("the wire is cut")

// rack is a simulated MAAS with networks, seen through a wire that a test may cut.
type rack struct {
	*simulator.Simulator
	*world
	mu     sync.Mutex
	writes []string
	// before may keep a call from being sent, after its answer from being seen; the call is named by its op.
	before, after func(op string) error
	direct        http.RoundTripper
	cfg           *rest.Config
}

// newRack is a world whose MAAS is a simulator with the machines of simtest.Rack, as the given user.
func newRack(t *testing.T, cfg *rest.Config, user string) *rack {
	t.Helper()
	return newRackOf(t, cfg, user, simtest.Rack)
}

func newRackOf(t *testing.T, cfg *rest.Config, user, seed string) *rack {
	t.Helper()
	s, err := simulator.New(simulator.Options{Seed: []byte(seed), RandomSeed: 1, Users: []simulator.User{
		{Name: "admin", Admin: true}, {Name: "alice"}, {Name: "bob"}, {Name: "admin2"}}})
	if err != nil {
		t.Fatal(err)
	}
	endpoint := simtest.Serve(t, s)
	direct := http.DefaultTransport.(*http.Transport).Clone()
	direct.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	t.Cleanup(direct.CloseIdleConnections)
	k := &rack{Simulator: s, direct: direct, cfg: cfg, world: newWorldAt(t, cfg, func() string { return endpoint }, s.Key(user))}
	k.transport = k
	k.restart()
	return k
}

// RoundTrip implements http.RoundTripper.
func (k *rack) RoundTrip(r *http.Request) (*http.Response, error) {
	op := r.URL.Query().Get("op")
	k.mu.Lock()
	before, after := k.before, k.after
	if r.Method != http.MethodGet {
		k.writes = append(k.writes, op)
	}
	k.mu.Unlock()
	if before != nil && r.Method != http.MethodGet {
		if err := before(op); err != nil {
			return nil, err
		}
	}
	response, err := k.direct.RoundTrip(r)
	if after != nil && err == nil && r.Method != http.MethodGet {
		if cut := after(op); cut != nil {
			_ = response.Body.Close()
			return nil, cut
		}
	}
	return response, err
}

// wrote returns the calls that changed something since it was last called.
func (k *rack) wrote() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	writes := k.writes
	k.writes = nil
	return writes
}

// once does something before the first call of an op.
func (k *rack) once(op string, do func()) {
	var first sync.Once
	k.before = func(called string) error {
		if called == op {
			first.Do(do)
		}
		return nil
	}
}

// addStatic makes a MaasMachine with a static address.
func (k *rack) addStatic(name string, static infrav1.StaticIPConfig) {
	k.t.Helper()
	k.add(name, infrav1.MaasMachineSpec{Image: "custom/node", MinCPU: ptr.To(1), MinMemory: ptr.To(1024), StaticIP: &static})
}

// pass runs one pass and ignores how it ends.
func (k *rack) pass(name string) {
	k.clock.SetTime(k.clock.Now().Add(11 * time.Second))
	_, _ = k.reconciler.Reconcile(k.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: k.namespace, Name: name}})
}

// until runs passes of some MaasMachines until all have a condition: "Ready True Ready".
func (k *rack) until(want string, names ...string) {
	k.t.Helper()
	k.Eventually(func() []string {
		var not []string
		for _, name := range names {
			k.pass(name)
			c := meta.FindStatusCondition(k.machine(name).Status.Conditions, strings.Fields(want)[0])
			if c == nil || want != strings.Join([]string{c.Type, string(c.Status), c.Reason}, " ") {
				not = append(not, name+": "+describe(c))
			}
		}
		return not
	}, "20s", "20ms").Should(BeEmpty())
}

func describe(c *metav1.Condition) string {
	if c == nil {
		return "no condition"
	}
	return c.Type + " " + string(c.Status) + " " + c.Reason + ": " + c.Message
}

// leave deletes MaasMachines and runs passes until they are gone.
func (k *rack) leave(names ...string) {
	k.t.Helper()
	for _, name := range names {
		if !k.gone(name) {
			k.remove(name)
		}
	}
	k.Eventually(func() []string {
		return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			k.pass(name)
			return k.gone(name)
		})
	}, "20s", "20ms").Should(BeEmpty())
}

// modes are those of the links of a machine's interface, with the address where there is one.
func (k *rack) modes(systemID string, nic int) []string {
	var modes []string
	for _, link := range k.Machine(systemID).Interfaces[nic].Links {
		modes = append(modes, strings.TrimSpace(link.Mode+" "+link.IP))
	}
	return modes
}

// hold gives a static address to the machine that no test uses.
func (k *rack) hold(ip string) {
	k.Change("aaaaa5", func(m *inventory.Machine) {
		nic := inventory.Interface{ID: 500, Name: "eth0", Type: "physical", Enabled: true, VLANID: ptr.To(1)}
		nic.Links = []inventory.Link{{ID: 900, Mode: "static", SubnetID: ptr.To(1), IP: ip}}
		m.Interfaces, m.Status, m.Owner = []inventory.Interface{nic}, status.Deployed, "bob"
	})
}
