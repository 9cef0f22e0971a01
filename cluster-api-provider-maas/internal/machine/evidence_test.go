// SPDX-License-Identifier: Apache-2.0

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

// TestEvidence covers which conclusions about a machine the provider may draw, and from which answers.
func TestEvidence(t *testing.T) {
	cfg := testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI)
	for name, test := range map[string]func(*testing.T, *rest.Config){
		"When the key belongs to another user, it should neither report a loss nor release until the key is restored": anotherKey,
		"When the key belongs to another administrator, it should not report a loss either":                           anotherAdministrator,
		"When the key changes while an allocation has an unknown outcome, it should wait for the first user":          anotherKeyInDoubt,
		"When the MAAS user is not recorded, it should record the owner, or report that the owner is unknown":         unrecorded,
		"When another server answers in place of MAAS, it should not report a loss":                                   hearsay,
		"When the answer to an allocation is unreadable, it should find the allocated machine":                        garbled,
		"When a machine has old ownership annotations, it should recognize and release it":                            oldMark,
		"When the process dies while it updates old ownership annotations, the next process should finish":            diesOverOldMarks,
		"When a machine was marked broken and fixed, it should report the loss and release it":                        brokenAndFixed,
		"When another client allocated the machine and its annotations stayed, it should not release it":              markStayed,
		"When MAAS rejects an address without naming it, it should use the next address of the range":                 refusedUnnamed,
		"When a machine has more addresses than the status can hold, the MaasMachine should be Ready":                 manyAddresses,
	} {
		t.Run(name, func(t *testing.T) { test(t, cfg) })
	}
}

// addPlain creates a MaasMachine that matches any machine of the fixture.
func (w *world) addPlain(name string) {
	w.t.Helper()
	w.add(name, infrav1.MaasMachineSpec{Image: "custom/node", MinCPU: ptr.To(1), MinMemory: ptr.To(1024)})
}

// later runs reconciles, each of which reads MAAS again although nothing changes.
func (w *world) later(name string, n int) {
	for range n {
		w.clock.SetTime(w.clock.Now().Add(3 * time.Minute))
		w.pass(name)
	}
}

// unharmed checks that a running MaasMachine is still reported as healthy.
func (w *world) unharmed(name string, because ...any) {
	w.t.Helper()
	w.expect(name, "Ready True Ready", "")
	w.Expect(w.machine(name).Status.FailureReason).To(BeNil(), because...)
	w.Expect(w.machine(name).Status.Ready).To(BeTrue(), because...)
}

// expectAllFree checks that no allocation is left in MAAS.
func (w *world) expectAllFree(because ...any) {
	w.t.Helper()
	for _, m := range w.Machines() {
		w.Expect(m.Status).To(Equal(status.Ready), because...)
		w.Expect(m.Owner).To(BeEmpty(), because...)
	}
}

func anotherKey(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "alice")
	w.addPlain("runs")
	w.addPlain("goes")
	w.until("Ready True Ready", "runs", "goes")
	w.Expect(w.machine("runs").Annotations).To(HaveKeyWithValue(infrav1.OwnerAnnotation, "alice"))
	w.credentials(w.Key("admin2"))
	for range 2 {
		w.later("runs", 2)
		w.unharmed("runs")
		w.expect("runs", "MAASCredentialsUsable False CredentialsOfAnotherUser", "belongs to MAAS user alice")
		w.expect("runs", "MAASCredentialsUsable False CredentialsOfAnotherUser", "belongs to user admin2")
		w.restart()
	}
	w.remove("goes")
	w.wrote()
	w.later("goes", 3)
	w.Expect(w.gone("goes")).To(BeFalse(), "a machine that is still allocated must not be forgotten")
	w.expect("goes", "Deleting True CredentialsOfAnotherUser", "put an API key of user alice into that Secret")
	w.Expect(w.wrote()).To(BeEmpty())
	w.credentials(w.Key("alice"))
	w.later("runs", 1)
	w.unharmed("runs")
	w.expect("runs", "MAASCredentialsUsable True AsExpected", "")
	w.leave("goes", "runs")
	w.expectAllFree()
}

func anotherAdministrator(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "alice")
	w.addPlain("m")
	w.until("Ready True Ready", "m")
	w.credentials(w.Key("admin"))
	w.later("m", 1)
	w.expect("m", "MAASCredentialsUsable False CredentialsOfAnotherUser", "belongs to user admin")
	w.credentials(w.Key("alice"))
	w.leave("m")
	w.expectAllFree()
}

func anotherKeyInDoubt(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "alice")
	w.addPlain("m")
	w.after = func(op string) error {
		if op == "allocate" {
			return errCut
		}
		return nil
	}
	w.pass("m")
	w.after = nil
	w.credentials(w.Key("admin2"))
	w.later("m", 3)
	w.expect("m", "Ready False CredentialsOfAnotherUser", "the allocation in progress belongs to MAAS user alice")
	w.Expect(w.held()).To(HaveLen(1), "no second machine is taken")
	w.credentials(w.Key("alice"))
	w.until("Ready True Ready", "m")
	w.Expect(w.held()).To(HaveLen(1))
	w.leave("m")
	w.expectAllFree()
}

func unrecorded(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "alice")
	w.addPlain("m")
	w.until("Ready True Ready", "m")
	forget := func() {
		m := w.machine("m")
		delete(m.Annotations, infrav1.OwnerAnnotation)
		w.Expect(w.client.Update(t.Context(), m)).To(Succeed())
	}
	forget()
	w.later("m", 1)
	w.Expect(w.machine("m").Annotations).To(HaveKeyWithValue(infrav1.OwnerAnnotation, "alice"))
	forget()
	w.credentials(w.Key("bob"))
	w.later("m", 2)
	w.unharmed("m")
	w.remove("m")
	w.later("m", 2)
	w.expect("m", "Deleting True MAASForbidden", "the MAAS user that allocated it is unknown")
	w.credentials(w.Key("alice"))
	w.leave("m")
	w.expectAllFree()
}

func hearsay(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "alice")
	w.addPlain("m")
	w.until("Ready True Ready", "m")
	goes, turns := "", 0
	toGo := func() {
		turns++
		goes = fmt.Sprintf("goes-%d", turns)
		w.addPlain(goes)
		w.until("Ready True Ready", goes)
		w.remove(goes)
	}
	toGo()
	lies := map[string]func() func(){}
	for _, code := range []int{403, 404} {
		for _, operation := range []string{"", "machine.read", "machines.read", "users.whoami"} {
			lies[fmt.Sprintf("a page with %d for %q", code, operation)] = func() func() { return simtest.Behind(t, w.Simulator, code, operation) }
			lies[fmt.Sprintf("a text with %d for %q", code, operation)] = func() func() {
				return simtest.Fault(t, w.Simulator, faults.Rule{Kind: faults.Error, Operation: operation, Status: code, Message: "access denied by policy"})
			}
		}
	}
	lies["MAAS's own words for one path only"] = func() func() {
		return simtest.Fault(t, w.Simulator, faults.Rule{Kind: faults.Error, Operation: "machine.*", Status: 404, Message: "No Machine matches the given query."})
	}
	for name, lie := range lies {
		restore := lie()
		w.restart()
		w.later("m", 2)
		w.unharmed("m", name)
		w.later(goes, 2)
		restore()
		if w.gone(goes) { // This call took another path, so MAAS itself answered it.
			w.Expect(w.held()).To(HaveLen(1), name)
			toGo()
		}
	}
	w.leave(goes, "m")
	w.expectAllFree()
}

func garbled(t *testing.T, cfg *rest.Config) {
	for _, body := range []string{"<html>welcome</html>", "{}", "null", "[]", `{"system_id": 7}`} {
		w := newRack(t, cfg, "alice")
		w.addPlain("m")
		var once sync.Once
		w.transport = testenv.RoundTrip(func(r *http.Request) (*http.Response, error) {
			answer, err := w.RoundTrip(r)
			if err == nil && r.URL.Query().Get("op") == "allocate" {
				once.Do(func() { answer.Body, answer.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body)) })
			}
			return answer, err
		})
		w.restart()
		w.pass("m")
		w.Expect(w.machine("m").Annotations).To(HaveKey(machine.AttemptAnnotation), body)
		w.until("Ready True Ready", "m")
		w.Expect(w.held()).To(HaveLen(1), body)
		w.leave("m")
		w.expectAllFree(body)
	}
}

func refusedUnnamed(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "admin")
	w.addStatic("m", infrav1.StaticIPConfig{Range: &infrav1.IPRange{Start: "10.9.0.10", End: "10.9.0.13"}})
	simtest.Fault(t, w.Simulator, faults.Rule{Kind: faults.Error, Operation: "interface.link_subnet", Status: 404, Message: "IP address is already in use.", Count: 1})
	w.until("Ready True Ready", "m")
	w.Expect(w.addresses("m")).To(Equal([]string{"10.9.0.11"}))
}

func manyAddresses(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "alice")
	w.Change("aaaaa1", func(m *inventory.Machine) {
		for n := range 200 {
			m.Interfaces[0].Links = append(m.Interfaces[0].Links, inventory.Link{ID: 1000 + n, Mode: "static", SubnetID: ptr.To(1), IP: fmt.Sprintf("10.9.0.%d", 10+n)})
		}
	})
	w.add("m", infrav1.MaasMachineSpec{Image: "custom/node", MinCPU: ptr.To(1), MinMemory: ptr.To(1024), FailureDomain: ptr.To("default")})
	w.until("Ready True Ready", "m")
	m := w.machine("m")
	w.Expect(m.Spec.SystemID).To(HaveValue(Equal("aaaaa1")))
	for _, kind := range []infrav1.MachineAddressType{"Hostname", "InternalIP", "ExternalIP", "InternalDNS", "ExternalDNS"} {
		w.Expect(slices.ContainsFunc(m.Status.Addresses, func(a infrav1.MachineAddress) bool { return a.Type == kind })).To(BeTrue(), "%s", kind)
	}
	w.Expect(meta.IsStatusConditionTrue(m.Status.Conditions, "MachineDeployed")).To(BeTrue())
}
