// SPDX-License-Identifier: Apache-2.0

package simulator_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

// TestUsersOverRestarts verifies that the same key at each start stays one key, and that a restart never removes rights
// or users of the seed.
func TestUsersOverRestarts(t *testing.T) {
	g := NewWithT(t)
	state := filepath.Join(t.TempDir(), "state")
	start := func(users ...simulator.User) *simtest.Site {
		return simtest.New(t, `{"users": [{"username": "carol", "is_superuser": true, "email": "c@lab.example"}]}`, func(o *simulator.Options) {
			o.StateFile, o.Users = state, users
		})
	}
	first := start(simulator.User{Name: "alice", Key: "a:b:c"}, simulator.User{Name: "carol"}, simulator.User{Name: "dan", Admin: true})
	made := first.Key("dan")
	g.Expect(first.Keys()).To(HaveLen(3))
	g.Expect(first.Do("carol", "GET", "users/?op=whoami").Object()).To(And(HaveKeyWithValue("is_superuser", true), HaveKeyWithValue("email", "c@lab.example")))
	g.Expect(first.Do("alice", "GET", "users/?op=whoami").Object()).To(And(HaveKeyWithValue("is_superuser", false), HaveKeyWithValue("email", "alice@example.com")))
	g.Expect(first.Close()).To(Succeed())

	second := start(simulator.User{Name: "alice", Key: "a:b:c", Admin: true}, simulator.User{Name: "dan"})
	g.Expect(second.Do("alice", "GET", "account/?op=list_authorisation_tokens").Each("token")).To(Equal([]string{"a:b:c"}))
	g.Expect(second.Do("alice", "GET", "users/?op=whoami").Object()).To(HaveKeyWithValue("is_superuser", true))
	g.Expect(second.Do("dan", "GET", "users/?op=whoami").Object()).To(HaveKeyWithValue("is_superuser", true))
	g.Expect(second.Key("dan")).To(Equal(made))
	g.Expect(second.Key("nobody")).To(BeEmpty())
	g.Expect(second.Close()).To(Succeed())

	third := start(simulator.User{Name: "alice", Key: "d:e:f"})
	g.Expect(third.Key("alice")).To(Equal("d:e:f"), "the newest")
	g.Expect(third.Keys()).To(HaveKeyWithValue("alice", "d:e:f"))
	g.Expect(third.Do("alice", "GET", "account/?op=list_authorisation_tokens").Each("token")).To(Equal([]string{"a:b:c", "d:e:f"}))
}

func TestZeroOptions(t *testing.T) {
	g := NewWithT(t)
	s, err := simulator.New(simulator.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	defer s.Close()
	g.Expect(s.Keys()).To(And(HaveLen(2), HaveKey("admin"), HaveKey("alice")))
	g.Expect(s.Machines()).To(BeEmpty())
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/MAAS/api/2.0/version/", nil))
	g.Expect(w.Body.String()).To(ContainSubstring(`"version":"3.4.10"`))
	other, err := simulator.New(simulator.Options{RandomSeed: 1})
	g.Expect(err).NotTo(HaveOccurred())
	defer other.Close()
	g.Expect(other.Key("admin")).NotTo(Equal(s.Key("admin")), "another seed makes up other keys")
}

// TestCopies verifies that the simulator returns copies: only Change changes the inventory.
func TestCopies(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.WithVMHost)
	site.Has("one").Interfaces[0].Name, site.Machines()[0].Tags = "changed", []string{"changed"}
	site.Has("one").Hostname = "changed"
	g.Expect(site.Has("one")).To(And(HaveField("Tags", BeEmpty()), HaveField("Interfaces", HaveExactElements(HaveField("Name", "eth0")))))
	g.Expect(site.Machine("aaaaa1").Hostname).To(Equal("one"), "by its id too")
	g.Expect(site.Change("one", func(*inventory.Machine) {})).To(BeFalse(), "a machine is changed by its id")
	g.Expect(site.ChangeVMHost("lxd-9", func(*inventory.VMHost) {})).To(BeFalse())
	g.Expect(site.ChangeVMHost("lxd-1", func(h *inventory.VMHost) { h.Version = "6" })).To(BeTrue())
	g.Expect(site.Do("admin", "GET", "vm-hosts/7/").Object()).To(HaveKeyWithValue("version", "6"))
}

// TestCountsAreCopies verifies that requests are counted by operation and status since the last reset, and that a
// caller cannot change the counters.
func TestCountsAreCopies(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	site.Do("alice", "GET", "zones/")
	counts := site.Requests()
	counts[simulator.Count{Operation: "zones.read", Status: 200}] = 99
	site.Do("", "GET", "zones/")
	site.Do("alice", "GET", "zones/")
	g.Expect(site.Requests()).To(Equal(map[simulator.Count]int{{Operation: "zones.read", Status: 200}: 2, {Operation: "zones.read", Status: 401}: 1}))
	site.ResetRequests()
	g.Expect(site.Requests()).To(BeEmpty())
	g.Expect(site.Load.Report().Total.Calls).To(BeZero())
}
