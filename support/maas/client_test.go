package maas_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/maas/maastest"
)

const key = "consumerkey:tokenkey01:tokensecret"

// quick repeats at once.
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

func fake(t *testing.T, machines ...*maastest.Machine) (*maastest.Server, *maas.Client) {
	t.Helper()
	server := maastest.New(t, machines...)
	return server, newClient(t, maas.Config{Endpoint: server.URL})
}

func TestMachineLife(t *testing.T) {
	g := NewWithT(t)
	server, c := fake(t, &maastest.Machine{ID: "wq4h8c", Zone: "az1", Tags: []string{"ssd", "gpu"}}, &maastest.Machine{ID: "big444", CPU: 64})
	m, err := c.AllocateMachine(t.Context(), maas.AllocateRequest{
		CPUCount: 4, MemoryMiB: 4096, Zone: "az1", Pool: "default", Tags: []string{"ssd", "gpu"}, NotTags: []string{"old"},
		Architecture: "amd64", Storage: "root:60", AgentName: "key-1", Comment: "a b",
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.SystemID).To(Equal("wq4h8c"))
	g.Expect(m.Status).To(Equal(maas.StatusAllocated))
	call, _ := server.Last("POST machines allocate")
	g.Expect(call.Params["tags"]).To(Equal([]string{"ssd", "gpu"}), "every value of a repeated parameter must be sent")
	g.Expect(call.Params.Get("comment")).To(Equal("a b"))

	held, err := c.ListMachines(t.Context(), maas.MachineFilter{AgentNames: []string{"key-1"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(held).To(HaveLen(1))

	m, err = c.SetWorkloadAnnotations(t.Context(), "wq4h8c", map[string]string{"uid": "1"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.Annotations).To(Equal(maas.StringMap{"uid": "1"}))

	m, err = c.DeployMachine(t.Context(), "wq4h8c", maas.DeployRequest{DistroSeries: "custom/node-image", UserData: []byte("#cloud-config\n+/=")})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.Status).To(Equal(maas.StatusDeploying))
	g.Expect(server.Get("wq4h8c").UserData).To(Equal("#cloud-config\n+/="))

	m, err = c.GetMachine(t.Context(), "wq4h8c")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.Status).To(Equal(maas.StatusDeployed))
	g.Expect(m.IPAddresses).NotTo(BeEmpty())
	g.Expect(m.PowerState).To(Equal(maas.PowerOn))

	m, err = c.ReleaseMachine(t.Context(), "wq4h8c", maas.ReleaseRequest{Comment: "done", QuickErase: true})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.Status).To(Equal(maas.StatusReleasing))
	call, _ = server.Last("POST machines/* release")
	g.Expect(call.Params.Get("erase")).To(Equal("true"), "before MAAS 3.5 only erase itself erases")
	g.Expect(server.Held()).To(BeEmpty())
}

func TestDecoding(t *testing.T) {
	g := NewWithT(t)
	_, c := fake(t, &maastest.Machine{ID: "wq4h8c", Zone: "az1", Pool: "workers", Tags: []string{"ssd"}, CPU: 8, Memory: 16384, DiskGB: 700})
	got, err := c.GetMachine(t.Context(), "wq4h8c")
	g.Expect(err).NotTo(HaveOccurred())
	type summary struct {
		ID, FQDN, Zone, Pool, Arch, PowerType, MAC, VLAN, Tag string
		CPU, Memory, ZoneID                                   int
		Storage                                               float64
		Disk                                                  int64
		Status                                                maas.Status
		StatusName, Discovered                                string
	}
	want := summary{"wq4h8c", "host-wq4h8c.maas", "az1", "workers", "amd64/generic", "ipmi", "52:54:00:12:34:56", "untagged", "ssd",
		8, 16384, 1, 700000, 700_000_000_000, maas.StatusReady, "Ready", "10.0.0.9"}
	have := summary{got.SystemID, got.FQDN, got.Zone.Name, got.Pool.Name, got.Architecture, got.PowerType, got.Interfaces[0].MACAddress,
		got.Interfaces[0].VLAN.Name, got.TagNames[0], got.CPUCount, got.MemoryMiB, got.Zone.ID, got.StorageMB,
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
	g.Expect(maas.Status(42).Known()).To(BeFalse())
}

func TestFilters(t *testing.T) {
	g := NewWithT(t)
	_, c := fake(t, &maastest.Machine{ID: "aaaaaa", Zone: "az1"}, &maastest.Machine{ID: "bbbbbb", Zone: "az2"}, &maastest.Machine{ID: "cccccc", Zone: "az1", Status: maastest.Broken})
	list, err := c.ListMachines(t.Context(), maas.MachineFilter{Zones: []string{"az1"}, Statuses: []maas.Status{maas.StatusReady, maas.StatusBroken}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(list).To(HaveLen(2))
	list, err = c.ListMachines(t.Context(), maas.MachineFilter{SystemIDs: []string{"aaaaaa", "bbbbbb"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(list).To(HaveLen(2))
	_, err = c.ListMachines(t.Context(), maas.MachineFilter{MACAddresses: []string{"x"}})
	g.Expect(maas.IsInvalid(err)).To(BeTrue())
	g.Expect(maas.FieldMessages(err, "mac_address")).To(Equal([]string{"No such constraint."}))
}

func TestSmallEndpoints(t *testing.T) {
	g := NewWithT(t)
	server, c := fake(t, &maastest.Machine{ID: "wq4h8c", Zone: "az1", Pool: "p", Tags: []string{"ssd"}, Message: "boom"})
	server.Superuser = true
	ctx := t.Context()
	version, err := c.GetVersion(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(version.Version).To(Equal("3.4.10"))
	user, err := c.WhoAmI(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(user.IsSuperuser).To(BeTrue())
	zones, err := c.ListZones(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(zones).To(HaveLen(2))
	pools, err := c.ListPools(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pools).To(HaveLen(2))
	tags, err := c.ListTags(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(tags[0].Name).To(Equal("ssd"))
	images, err := c.ListBootResources(ctx, maas.ImagesAll)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(images).To(HaveLen(2))
	events, err := c.ListEvents(ctx, maas.EventFilter{SystemIDs: []string{"wq4h8c"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(events.Events[0].Description).To(Equal("curtin said no"))
}

func TestDNS(t *testing.T) {
	g := NewWithT(t)
	server, c := fake(t)
	ctx := t.Context()
	_, err := c.CreateDNSResource(ctx, "api.maas", 10, nil)
	g.Expect(maas.IsForbidden(err)).To(BeTrue())
	g.Expect(err).To(MatchError(ContainSubstring("reserved for admin users")))
	server.Superuser = true
	resource, err := c.CreateDNSResource(ctx, "api.maas", 10, []string{"10.0.0.1", "10.0.0.2"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(resource.IPs()).To(Equal([]string{"10.0.0.1", "10.0.0.2"}))
	_, err = c.SetDNSResourceIPs(ctx, resource.ID, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(server.DNS()).To(HaveKeyWithValue("api.maas", BeEmpty()), "an empty value clears, an absent one would not")
	list, err := c.ListDNSResources(ctx, "api.maas")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(list).To(HaveLen(1))
	g.Expect(c.DeleteDNSResource(ctx, resource.ID)).To(Succeed())
	g.Expect(maas.IsNotFound(c.DeleteDNSResource(ctx, resource.ID))).To(BeTrue())
}

func TestWrongKeyIsNotPrinted(t *testing.T) {
	server := maastest.New(t)
	for name, tc := range map[string]struct{ key, want string }{
		"When the consumer is unknown, it should say that the key is":         {"otherconsumer:tokenkey01:tokensecret", "does not know the API key"},
		"When the token is unknown, it should say so":                         {"consumerkey:othertoken:tokensecret", "does not know the token"},
		"When the secret is wrong, it should not repeat the one MAAS expects": {"consumerkey:tokenkey01:othersecret", "secret part of the API key is wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := newClient(t, maas.Config{Endpoint: server.URL, APIKey: tc.key}).WhoAmI(t.Context())
			g.Expect(maas.IsUnauthorized(err)).To(BeTrue())
			g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
			for _, secret := range append(strings.Split(tc.key, ":"), strings.Split(key, ":")...) {
				g.Expect(err.Error()).NotTo(ContainSubstring(secret))
			}
		})
	}
}
