// SPDX-License-Identifier: Apache-2.0

package maas_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

const key = "consumerkey:tokenkey01:tokensecret"

// quick retries without a noticeable delay.
var quick = maas.RetryPolicy{BaseDelay: time.Microsecond, MaxDelay: time.Millisecond}

func newClient(t *testing.T, cfg maas.Config) *maas.Client {
	t.Helper()
	if cfg.APIKey == "" {
		cfg.APIKey = key
	}
	if cfg.Retry == (maas.RetryPolicy{}) {
		cfg.Retry = quick
	}
	c, err := maas.NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWhatIsSentArrives(t *testing.T) {
	g := NewWithT(t)
	s, err := simulator.New(simulator.Options{Seed: []byte(simtest.Seed(simtest.Machine{ID: "wq4h8c"})), Version: "3.4", RandomSeed: 1})
	g.Expect(err).NotTo(HaveOccurred())
	c, ctx := newClient(t, maas.Config{Endpoint: simtest.Listen(t, s), APIKey: s.Key("alice")}), t.Context()
	_, err = c.AllocateMachine(ctx, maas.AllocateRequest{Comment: "a b"})
	g.Expect(err).NotTo(HaveOccurred())
	log, err := c.ListEvents(ctx, maas.EventFilter{SystemIDs: []string{"wq4h8c"}, Level: "DEBUG"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(log.Events[0].Description).To(Equal("(alice) - a b"))
	_, err = c.DeployMachine(ctx, "wq4h8c", maas.DeployRequest{DistroSeries: "custom/node-image", UserData: []byte("#cloud-config\n+/=")})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.Machine("wq4h8c").UserData).To(BeEquivalentTo("#cloud-config\n+/="))
	s.Life.Tick(ctx)
	m, err := c.ReleaseMachine(ctx, "wq4h8c", maas.ReleaseRequest{QuickErase: true})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.Status).To(Equal(maas.StatusDiskErasing), "before MAAS 3.5 only erase itself erases")
}

// TestDecoding decodes a machine as a real MAAS prints it. The simulator of this repository did not produce the text.
func TestDecoding(t *testing.T) {
	g := NewWithT(t)
	var calls atomic.Int32
	printed, err := os.ReadFile(filepath.Join("testdata", "machine.json"))
	g.Expect(err).NotTo(HaveOccurred())
	got, err := newClient(t, maas.Config{Endpoint: answers(t, &calls, body(string(printed)))}).GetMachine(t.Context(), "wq4h8c")
	g.Expect(err).NotTo(HaveOccurred())
	type summary struct {
		ID, FQDN, Zone, Pool, Arch, PowerType, MAC, VLAN, Tag string
		CPU, Memory, ZoneID                                   int
		Storage                                               float64
		Disk                                                  int64
		Status                                                maas.Status
		StatusName, Discovered                                string
	}
	want := summary{"wq4h8c", "loved-mole.maas", "default", "default", "amd64/generic", "ipmi", "52:54:00:12:34:56", "untagged", "ssd",
		4, 8192, 1, 80000, 80_000_000_000, maas.StatusReady, "Ready", "10.0.0.9"}
	have := summary{got.SystemID, got.FQDN, got.Zone.Name, got.Pool.Name, got.Architecture, got.PowerType, got.Interfaces[0].MACAddress,
		got.Interfaces[0].VLAN.Name, got.PhysicalBlockDevices[0].Tags[0], got.CPUCount, got.MemoryMiB, got.Zone.ID, got.StorageMB,
		got.PhysicalBlockDevices[0].Size, got.Status, got.StatusName, got.Interfaces[0].Discovered[0].IPAddress}
	g.Expect(cmp.Diff(want, have)).To(BeEmpty())
	g.Expect(got.Owner).To(BeEmpty(), "null is nobody")
	g.Expect(got.Pod).To(BeNil())
	g.Expect(string(got.Interfaces[0].Params)).To(MatchJSON(`{"mtu": 1500}`))
	g.Expect(string(got.BootInterface.Params)).To(Equal(`""`))
}

func TestStatusesAreThoseOfMAAS(t *testing.T) {
	g := NewWithT(t)
	g.Expect(maas.Statuses()).To(HaveLen(23))
	for number, want := range map[maas.Status][2]string{
		0: {"New", "new"}, 4: {"Ready", "ready"}, 6: {"Deployed", "deployed"}, 11: {"Failed deployment", "failed_deployment"},
		13: {"Releasing failed", "failed_releasing"}, 15: {"Failed disk erasing", "failed_disk_erasing"},
		18: {"Failed to enter rescue mode", "failed_entering_rescue_mode"}, 22: {"Failed testing", "failed_testing"},
		42: {"Status 42", "42"}, -1: {"Status -1", "-1"},
	} {
		g.Expect([2]string{number.String(), number.Word()}).To(Equal(want))
	}
	for _, unknown := range []maas.Status{-1, 23, 42} {
		g.Expect(unknown.Known()).To(BeFalse())
	}
	g.Expect(maas.Status(23).String()+maas.Status(23).Word()).To(Equal("Status 2323"), "the first that a newer MAAS may add")
	// For these states, the word in filters is not the name in lower case.
	odd := []maas.Status{maas.StatusReleasingFailed, maas.StatusFailedToEnterRescueMode, maas.StatusFailedToExitRescueMode}
	for _, known := range maas.Statuses() {
		g.Expect(known.Known()).To(BeTrue())
		if !slices.Contains(odd, known) {
			g.Expect(known.Word()).To(Equal(strings.ReplaceAll(strings.ToLower(known.String()), " ", "_")))
		}
	}
}

func TestFilters(t *testing.T) {
	g := NewWithT(t)
	c := region(t, "3.4", "alice")
	for _, tc := range []struct {
		filter maas.MachineFilter
		want   int
	}{
		{maas.MachineFilter{Zones: []string{"north"}, Statuses: []maas.Status{maas.StatusReady, maas.StatusBroken}}, 2},
		{maas.MachineFilter{Statuses: []maas.Status{maas.StatusBroken}}, 0},
		{maas.MachineFilter{SystemIDs: []string{"aaaaa1", "aaaaa2"}}, 2},
		{maas.MachineFilter{MACAddresses: []string{"52:54:00:00:00:13"}}, 1},
	} {
		list, err := c.ListMachines(t.Context(), tc.filter)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(list).To(HaveLen(tc.want), "%+v", tc.filter)
	}
}

// TestDNSNameWithoutAddresses checks that an empty value is sent, which clears the addresses. An omitted value would
// not.
func TestDNSNameWithoutAddresses(t *testing.T) {
	g := NewWithT(t)
	c, ctx := region(t, "3.4", "admin"), t.Context()
	resource, err := c.CreateDNSResource(ctx, "api.maas", 10, []string{"10.9.0.60"})
	g.Expect(err).NotTo(HaveOccurred())
	resource, err = c.SetDNSResourceIPs(ctx, resource.ID, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(resource.IPs()).To(BeEmpty())
	g.Expect(c.DeleteDNSResource(ctx, resource.ID)).To(Succeed())
	g.Expect(maas.IsNotFound(c.DeleteDNSResource(ctx, resource.ID))).To(BeTrue())
	_, err = region(t, "3.4", "alice").CreateDNSResource(ctx, "api.maas", 10, nil)
	g.Expect(err).To(MatchError(ContainSubstring("reserved for admin users")))
}

func TestWrongKeyIsNotPrinted(t *testing.T) {
	s, err := simulator.New(simulator.Options{Users: []simulator.User{{Name: "alice", Key: key}}})
	if err != nil {
		t.Fatal(err)
	}
	endpoint := simtest.Listen(t, s)
	for name, tc := range map[string]struct{ key, want string }{
		"When the consumer is unknown, it should report that the API key is unknown": {"otherconsumer:tokenkey01:tokensecret", "does not know the API key"},
		"When the token is unknown, it should report that":                           {"consumerkey:othertoken:tokensecret", "does not know the token"},
		"When the secret is wrong, it should not print the secret that MAAS expects": {"consumerkey:tokenkey01:othersecret", "secret part of the API key is wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := newClient(t, maas.Config{Endpoint: endpoint, APIKey: tc.key}).WhoAmI(t.Context())
			g.Expect(maas.IsUnauthorized(err)).To(BeTrue())
			g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
			for _, secret := range append(strings.Split(tc.key, ":"), strings.Split(key, ":")...) {
				g.Expect(err.Error()).NotTo(ContainSubstring(secret))
			}
		})
	}
}
