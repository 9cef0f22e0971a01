package machine_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machine"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// TestEvidence is about what may be concluded of a machine, and from whose word.
func TestEvidence(t *testing.T) {
	cfg := testenv.Start(t, crds.Infrastructure, crds.ClusterAPI)
	for name, test := range map[string]func(*testing.T, *rest.Config){
		"When the key is of another user, it should conclude and release nothing until it is restored": anotherKey,
		"When the key is of another administrator, it should conclude nothing either":                  anotherAdministrator,
		"When the key changes while an allocation is in doubt, it should wait for the first user":      anotherKeyInDoubt,
		"When the user was never written down, it should write him down, and else ask":                 unrecorded,
		"When something answers in MAAS's place, it should conclude nothing":                           hearsay,
		"When an allocation is answered with what can't be read, it should find the machine":           garbled,
		"When a machine carries an old mark, it should be its own and be given back":                   oldMark,
		"When the process dies over a machine with an old mark, the next should finish":                diesOverOldMarks,
		"When a machine was marked broken and fixed, it should be lost and given back":                 brokenAndFixed,
		"When it was taken while its mark stayed, it should not release what is another's":             markStayed,
		"When an address is refused without naming it, it should take the next of the range":           refusedUnnamed,
		"When a machine has more addresses than the list takes, it should be Ready":                    manyAddresses,
	} {
		t.Run(name, func(t *testing.T) { test(t, cfg) })
	}
}

// addPlain makes a MaasMachine that any machine of the rack suits.
func (k *rack) addPlain(name string) {
	k.t.Helper()
	k.add(name, infrav1.MaasMachineSpec{Image: "custom/node", MinCPU: ptr.To(1), MinMemory: ptr.To(1024)})
}

// later runs passes, each of which reads MAAS anew though nothing moves.
func (k *rack) later(name string, n int) {
	for range n {
		k.clock.SetTime(k.clock.Now().Add(3 * time.Minute))
		k.pass(name)
	}
}

// unharmed checks that a MaasMachine that ran is not called ill.
func (k *rack) unharmed(name string, because ...any) {
	k.t.Helper()
	k.expect(name, "Ready True Ready", "")
	k.Expect(k.machine(name).Status.FailureReason).To(BeNil(), because...)
	k.Expect(k.machine(name).Status.Ready).To(BeTrue(), because...)
}

// expectAllFree checks that nothing is left in MAAS.
func (k *rack) expectAllFree(because ...any) {
	k.t.Helper()
	for _, m := range k.Machines() {
		k.Expect(m.Status).To(Equal(status.Ready), because...)
		k.Expect(m.Owner).To(BeEmpty(), because...)
	}
}

func anotherKey(t *testing.T, cfg *rest.Config) {
	k := newRack(t, cfg, "alice")
	k.addPlain("runs")
	k.addPlain("goes")
	k.until("Ready True Ready", "runs", "goes")
	k.Expect(k.machine("runs").Annotations).To(HaveKeyWithValue(infrav1.OwnerAnnotation, "alice"))
	k.credentials(k.Key("admin2"))
	for range 2 {
		k.later("runs", 2)
		k.unharmed("runs")
		k.expect("runs", "MAASCredentialsUsable False CredentialsOfAnotherUser", "belongs to the MAAS user alice")
		k.expect("runs", "MAASCredentialsUsable False CredentialsOfAnotherUser", "is of the user admin2")
		k.restart()
	}
	k.remove("goes")
	k.wrote()
	k.later("goes", 3)
	k.Expect(k.gone("goes")).To(BeFalse(), "a machine that is still allocated must not be forgotten")
	k.expect("goes", "Deleting True CredentialsOfAnotherUser", "put a key of alice there")
	k.Expect(k.wrote()).To(BeEmpty())
	k.credentials(k.Key("alice"))
	k.later("runs", 1)
	k.unharmed("runs")
	k.expect("runs", "MAASCredentialsUsable True AsExpected", "")
	k.leave("goes", "runs")
	k.expectAllFree()
}

func anotherAdministrator(t *testing.T, cfg *rest.Config) {
	k := newRack(t, cfg, "alice")
	k.addPlain("m")
	k.until("Ready True Ready", "m")
	k.credentials(k.Key("admin"))
	k.later("m", 1)
	k.expect("m", "MAASCredentialsUsable False CredentialsOfAnotherUser", "is of the user admin")
	k.credentials(k.Key("alice"))
	k.leave("m")
	k.expectAllFree()
}

func anotherKeyInDoubt(t *testing.T, cfg *rest.Config) {
	k := newRack(t, cfg, "alice")
	k.addPlain("m")
	k.after = func(op string) error {
		if op == "allocate" {
			return errCut
		}
		return nil
	}
	k.pass("m")
	k.after = nil
	k.credentials(k.Key("admin2"))
	k.later("m", 3)
	k.expect("m", "Ready False CredentialsOfAnotherUser", "the allocation that is under way belongs to the MAAS user alice")
	k.Expect(k.held()).To(HaveLen(1), "no second machine is taken")
	k.credentials(k.Key("alice"))
	k.until("Ready True Ready", "m")
	k.Expect(k.held()).To(HaveLen(1))
	k.leave("m")
	k.expectAllFree()
}

// held are the machines that somebody has.
func (k *rack) held() []*inventory.Machine {
	return slices.DeleteFunc(k.Machines(), func(m *inventory.Machine) bool { return m.Owner == "" })
}

func unrecorded(t *testing.T, cfg *rest.Config) {
	k := newRack(t, cfg, "alice")
	k.addPlain("m")
	k.until("Ready True Ready", "m")
	forget := func() {
		m := k.machine("m")
		delete(m.Annotations, infrav1.OwnerAnnotation)
		k.Expect(k.client.Update(t.Context(), m)).To(Succeed())
	}
	forget()
	k.later("m", 1)
	k.Expect(k.machine("m").Annotations).To(HaveKeyWithValue(infrav1.OwnerAnnotation, "alice"))
	forget()
	k.credentials(k.Key("bob"))
	k.later("m", 2)
	k.unharmed("m")
	k.remove("m")
	k.later("m", 2)
	k.expect("m", "Deleting True MAASForbidden", "under which MAAS user it was allocated is not known")
	k.credentials(k.Key("alice"))
	k.leave("m")
	k.expectAllFree()
}

func hearsay(t *testing.T, cfg *rest.Config) {
	k := newRack(t, cfg, "alice")
	k.addPlain("m")
	k.until("Ready True Ready", "m")
	goes, turns := "", 0
	toGo := func() {
		turns++
		goes = fmt.Sprintf("goes-%d", turns)
		k.addPlain(goes)
		k.until("Ready True Ready", goes)
		k.remove(goes)
	}
	toGo()
	lies := map[string]func() func(){}
	for _, code := range []int{403, 404} {
		for _, operation := range []string{"", "machine.read", "machines.read", "users.whoami"} {
			lies[fmt.Sprintf("a page with %d for %q", code, operation)] = func() func() { return simtest.Behind(t, k.Simulator, code, operation) }
			lies[fmt.Sprintf("a text with %d for %q", code, operation)] = func() func() {
				return simtest.Fault(t, k.Simulator, faults.Rule{Kind: faults.Error, Operation: operation, Status: code, Message: "access denied by policy"})
			}
		}
	}
	lies["MAAS's own words for one path only"] = func() func() {
		return simtest.Fault(t, k.Simulator, faults.Rule{Kind: faults.Error, Operation: "machine.*", Status: 404, Message: "No Machine matches the given query."})
	}
	for name, lie := range lies {
		mend := lie()
		k.restart()
		k.later("m", 2)
		k.unharmed("m", name)
		k.later(goes, 2)
		mend()
		if k.gone(goes) { // MAAS itself was asked, on another path.
			k.Expect(k.held()).To(HaveLen(1), name)
			toGo()
		}
	}
	k.leave(goes, "m")
	k.expectAllFree()
}

func garbled(t *testing.T, cfg *rest.Config) {
	for _, body := range []string{"<html>welcome</html>", "{}", "null", "[]", `{"system_id": 7}`} {
		k := newRack(t, cfg, "alice")
		k.addPlain("m")
		var once sync.Once
		k.transport = swapped(func(r *http.Request) (*http.Response, error) {
			answer, err := k.RoundTrip(r)
			if err == nil && r.URL.Query().Get("op") == "allocate" {
				once.Do(func() { answer.Body, answer.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body)) })
			}
			return answer, err
		})
		k.restart()
		k.pass("m")
		k.Expect(k.machine("m").Annotations).To(HaveKey(machine.AttemptAnnotation), body)
		k.until("Ready True Ready", "m")
		k.Expect(k.held()).To(HaveLen(1), body)
		k.leave("m")
		k.expectAllFree(body)
	}
}

type swapped func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f swapped) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func refusedUnnamed(t *testing.T, cfg *rest.Config) {
	k := newRack(t, cfg, "admin")
	k.addStatic("m", infrav1.StaticIPConfig{Range: &infrav1.IPRange{Start: "10.9.0.10", End: "10.9.0.13"}})
	simtest.Fault(t, k.Simulator, faults.Rule{Kind: faults.Error, Operation: "interface.link_subnet", Status: 404, Message: "IP address is already in use.", Count: 1})
	k.until("Ready True Ready", "m")
	k.Expect(k.addresses("m")).To(Equal([]string{"10.9.0.11"}))
}

func manyAddresses(t *testing.T, cfg *rest.Config) {
	k := newRack(t, cfg, "alice")
	k.Change("aaaaa1", func(m *inventory.Machine) {
		for n := range 200 {
			m.Interfaces[0].Links = append(m.Interfaces[0].Links, inventory.Link{ID: 1000 + n, Mode: "static", SubnetID: ptr.To(1), IP: fmt.Sprintf("10.9.0.%d", 10+n)})
		}
	})
	k.add("m", infrav1.MaasMachineSpec{Image: "custom/node", MinCPU: ptr.To(1), MinMemory: ptr.To(1024), FailureDomain: ptr.To("default")})
	k.until("Ready True Ready", "m")
	m := k.machine("m")
	k.Expect(m.Spec.SystemID).To(HaveValue(Equal("aaaaa1")))
	for _, kind := range []infrav1.MachineAddressType{"Hostname", "InternalIP", "ExternalIP", "InternalDNS", "ExternalDNS"} {
		k.Expect(slices.ContainsFunc(m.Status.Addresses, func(a infrav1.MachineAddress) bool { return a.Type == kind })).To(BeTrue(), "%s", kind)
	}
	k.Expect(meta.IsStatusConditionTrue(m.Status.Conditions, "MachineDeployed")).To(BeTrue())
}
