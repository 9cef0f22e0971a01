package maas_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"

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

// answers makes a server that gives its answers one after the other, the last for ever.
func answers(t *testing.T, calls *atomic.Int32, handlers ...http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := int(calls.Add(1))
		handlers[min(n, len(handlers))-1](w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/MAAS/"
}

func status(code int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if len(header) == 2 {
			w.Header().Set(header[0], header[1])
		}
		w.WriteHeader(code)
	}
}

func body(s string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(s)) }
}

func drop(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

func breakOff(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Length", "1000")
	_, _ = w.Write([]byte(`{"version": "3.`))
	panic(http.ErrAbortHandler)
}

func TestRetries(t *testing.T) {
	read := func(ctx context.Context, c *maas.Client) error { _, err := c.GetVersion(ctx); return err }
	write := func(ctx context.Context, c *maas.Client) error {
		_, err := c.AllocateMachine(ctx, maas.AllocateRequest{})
		return err
	}
	remove := func(ctx context.Context, c *maas.Client) error { return c.DeleteMachine(ctx, "wq4h8c") }
	good := body(`{"version": "3.6.5"}`)
	for name, tc := range map[string]struct {
		call     func(context.Context, *maas.Client) error
		handlers []http.HandlerFunc
		calls    int32
		fails    bool
	}{
		"When a read meets 503 and 502, it should be repeated":           {read, []http.HandlerFunc{status(503), status(502), good}, 3, false},
		"When a read meets 429, it should be repeated":                   {read, []http.HandlerFunc{status(429, "Retry-After", "1"), good}, 2, false},
		"When a read loses its connection, it should be repeated":        {read, []http.HandlerFunc{drop, good}, 2, false},
		"When an answer breaks off, it should be repeated":               {read, []http.HandlerFunc{breakOff, good}, 2, false},
		"When a read meets 503 for ever, it should end after three":      {read, []http.HandlerFunc{status(503)}, 3, true},
		"When a read meets 500, it should not be repeated":               {read, []http.HandlerFunc{status(500), good}, 1, true},
		"When an allocation meets 503, it should not be repeated":        {write, []http.HandlerFunc{status(503), good}, 1, true},
		"When an allocation loses its answer, it should not be repeated": {write, []http.HandlerFunc{drop, good}, 1, true},
		"When a delete meets 504, it should be repeated":                 {remove, []http.HandlerFunc{status(504), status(204)}, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var calls atomic.Int32
			c := newClient(t, maas.Config{Endpoint: answers(t, &calls, tc.handlers...)})
			err := tc.call(t.Context(), c)
			g.Expect(err != nil).To(Equal(tc.fails), "%v", err)
			g.Expect(calls.Load()).To(Equal(tc.calls))
		})
	}
}

func TestUncertain(t *testing.T) {
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		want    bool
	}{
		"When the connection is lost, it should be uncertain":          {drop, true},
		"When a proxy gives up on MAAS, it should be uncertain":        {status(504), true},
		"When MAAS crashes, it should be uncertain":                    {status(500), true},
		"When MAAS is busy, it should be certain that nothing is done": {status(503), false},
		"When MAAS refuses, it should be certain":                      {status(409), false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var calls atomic.Int32
			c := newClient(t, maas.Config{Endpoint: answers(t, &calls, tc.handler)})
			_, err := c.AllocateMachine(t.Context(), maas.AllocateRequest{})
			g.Expect(maas.IsUncertain(err)).To(Equal(tc.want), "%v", err)
		})
	}
}

func TestUnreachable(t *testing.T) {
	g := NewWithT(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	address := listener.Addr().String()
	g.Expect(listener.Close()).To(Succeed())
	c := newClient(t, maas.Config{Endpoint: "http://" + address + "/MAAS"})
	_, err = c.AllocateMachine(t.Context(), maas.AllocateRequest{})
	g.Expect(maas.IsUnreachable(err)).To(BeTrue())
	g.Expect(maas.IsUncertain(err)).To(BeFalse(), "not one byte was sent")
	g.Expect(err).To(MatchError(ContainSubstring("cannot allocate a machine: MAAS at " + address + " does not answer")))
}

func TestTimeout(t *testing.T) {
	g := NewWithT(t)
	hold := make(chan struct{})
	var calls atomic.Int32
	endpoint := answers(t, &calls, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hold:
		case <-r.Context().Done():
		}
	})
	defer close(hold)
	c := newClient(t, maas.Config{Endpoint: endpoint, ReadTimeout: 20 * time.Millisecond, Retry: maas.RetryPolicy{Attempts: -1}})
	_, err := c.GetVersion(t.Context())
	g.Expect(maas.IsUnreachable(err)).To(BeTrue())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.GetVersion(ctx)
	g.Expect(err).To(MatchError(context.Canceled))
	g.Expect(calls.Load()).To(BeNumerically("<=", 2), "a cancelled call is not repeated")
}

func TestAnswersThatAreNotMAAS(t *testing.T) {
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"When a login page answers, it should tell to check the endpoint": {body("<html>sign in</html>"), "is not that of a MAAS API, check the endpoint"},
		"When it redirects, it should not follow and tell to check":       {status(302, "Location", "https://elsewhere.example.com/"), "check the endpoint"},
		"When the answer is too large, it should say so":                  {body(`{"version": "` + strings.Repeat("x", 5000) + `"}`), "larger than the client allows"},
		"When a proxy sends a page with an error, it should leave it out": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(500)
			_, _ = w.Write([]byte("<h1>oops</h1>"))
		}, "MAAS says Internal Server Error (HTTP 500)"},
		"When a 403 says nothing, it should say what is missing":      {status(403), "may not do this"},
		"When a validation fails as a list, it should join its texts": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(400); _, _ = w.Write([]byte(`["a", "b"]`)) }, "a b (HTTP 400)"},
		"When a validation names fields, it should print them in fixed order": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(400)
			_, _ = w.Write([]byte(`{"zone": ["no"], "__all__": ["bad", "worse"], "arch": "odd"}`))
		}, "arch: odd; bad worse; zone: no (HTTP 400)"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var calls atomic.Int32
			c := newClient(t, maas.Config{Endpoint: answers(t, &calls, tc.handler), MaxBody: 4000})
			_, err := c.GetVersion(t.Context())
			g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}

func TestRetryAfterIsTold(t *testing.T) {
	g := NewWithT(t)
	var calls atomic.Int32
	c := newClient(t, maas.Config{Endpoint: answers(t, &calls, status(503, "Retry-After", "10"))})
	_, err := c.DeployMachine(t.Context(), "wq4h8c", maas.DeployRequest{})
	var e *maas.Error
	g.Expect(err).To(BeAssignableToTypeOf(e))
	g.Expect(err.(*maas.Error).RetryAfter).To(Equal(10 * time.Second))
	g.Expect(maas.IsUnavailable(err)).To(BeTrue())
}

func TestMetrics(t *testing.T) {
	g := NewWithT(t)
	registry := prometheus.NewRegistry()
	var calls atomic.Int32
	c := newClient(t, maas.Config{Endpoint: answers(t, &calls, status(503), body("{}")), Metrics: maas.NewMetrics(registry)})
	_, err := c.GetVersion(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	families, err := registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	seen := map[string]uint64{}
	for _, family := range families {
		for _, metric := range family.Metric {
			name := family.GetName()
			for _, label := range metric.Label {
				name += " " + label.GetValue()
			}
			seen[name] = metric.GetHistogram().GetSampleCount() + uint64(metric.GetCounter().GetValue())
		}
	}
	g.Expect(seen).To(Equal(map[string]uint64{
		"maas_client_request_duration_seconds version 200": 1,
		"maas_client_request_duration_seconds version 503": 1,
		"maas_client_retries_total version":                1,
	}))
}

func TestConnectionsAreReused(t *testing.T) {
	g := NewWithT(t)
	var opened atomic.Int32
	server := httptest.NewUnstartedServer(status(503))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	c := newClient(t, maas.Config{Endpoint: server.URL})
	for range 10 {
		_, err := c.GetVersion(t.Context())
		g.Expect(err).To(HaveOccurred())
	}
	g.Expect(opened.Load()).To(BeNumerically("==", 1), "bodies of errors must be drained and closed")
}
