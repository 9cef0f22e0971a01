package netns_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/boot"
	"github.com/openshift/hypershift/test/maas-simulator/boot/netns"
	"github.com/openshift/hypershift/test/machine"
	"github.com/openshift/hypershift/test/machine/gpt"
	"github.com/openshift/hypershift/test/machine/network"
	"github.com/openshift/hypershift/test/machine/units"
)

const (
	bootTimeout = 60 * time.Second
	switchNS    = "hs-test-switch"
	switchIP    = "172.31.98.1"
)

func TestMain(m *testing.M) {
	machine.Init(map[string]machine.Boot{netns.BootName: netns.Boot})
	os.Exit(m.Run())
}

// fakeMAAS is the metadata endpoint of MAAS and the server of Ignition configs, in the network of the machines.
type fakeMAAS struct {
	url      string
	mu       sync.Mutex
	requests []string
	// refusals is how often the Ignition config is answered with 511 before it is served.
	refusals int
	userData string
	config   string
}

func (f *fakeMAAS) seen() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.requests...)
}

func (f *fakeMAAS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, r.Method+" "+r.URL.RequestURI())
	if strings.HasPrefix(r.URL.Path, "/metadata/") && !strings.Contains(r.Header.Get("Authorization"), `oauth_signature="%26secret"`) {
		http.Error(w, "no OAuth", http.StatusUnauthorized)
		return
	}
	switch r.URL.Path {
	case "/metadata/2012-03-01/meta-data/local-hostname":
		fmt.Fprint(w, "swift-otter.maas")
	case "/metadata/2012-03-01/user-data":
		fmt.Fprint(w, f.userData)
	case "/config":
		if f.refusals > 0 {
			f.refusals--
			w.WriteHeader(http.StatusNetworkAuthenticationRequired)
			return
		}
		fmt.Fprint(w, f.config)
	}
}

// startMAAS serves in a network namespace of its own, which holds the bridge of the machines.
func startMAAS(t *testing.T, config map[string]any) *fakeMAAS {
	t.Helper()
	g := NewWithT(t)
	g.Expect(network.RemoveNamespace(switchNS)).To(Succeed())
	g.Expect(network.EnsureNamespace(switchNS)).To(Succeed())
	t.Cleanup(func() { g.Expect(network.RemoveNamespace(switchNS)).To(Succeed()) })
	g.Expect(network.Ensure(switchNS, network.Config{
		Bridges: []network.Bridge{{Name: "br0", Address: switchIP + "/24"}},
	})).To(Succeed())
	fake := &fakeMAAS{refusals: 1}
	server := httptest.NewUnstartedServer(fake)
	server.Listener.Close()
	g.Expect(network.Do(switchNS, func() (err error) {
		server.Listener, err = new(net.ListenConfig).Listen(t.Context(), "tcp", switchIP+":0")
		return err
	})).To(Succeed())
	server.Start()
	t.Cleanup(server.Close)
	fake.url = server.URL

	data, err := json.Marshal(config)
	g.Expect(err).NotTo(HaveOccurred())
	fake.config = string(data)
	fake.userData = fmt.Sprintf(`{"ignition":{"version":"3.4.0","config":{"merge":[{"source":"%s/config"}]}}}`, server.URL)
	return fake
}

func newBackend(t *testing.T) *netns.Backend {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("machines made of namespaces need root")
	}
	bin, err := filepath.Abs("../../../../bin")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	backend := &netns.Backend{
		Dir: t.TempDir(), OS: filepath.Join(bin, "os"), Ignition: filepath.Join(bin, "ignition"),
		Bridge: "br0", BridgeNamespace: switchNS,
	}
	for path, target := range map[string]string{backend.Ignition: "ignition-binary", filepath.Join(backend.OS, "usr/bin/containerd"): "os-binaries"} {
		if _, err := os.Stat(path); err != nil {
			t.Skipf("%s is missing: run make %s", path, target)
		}
	}
	return backend
}

func newSpec(fake *fakeMAAS) boot.Spec {
	return boot.Spec{
		SystemID: "tst001", Hostname: "swift-otter", Domain: "maas", MAC: "52:54:00:12:34:56",
		Addresses: []netip.Prefix{netip.MustParsePrefix("172.31.98.11/24")}, Gateway: netip.MustParseAddr(switchIP),
		MetadataURL: fake.url + "/metadata/", ConsumerKey: "consumer", TokenKey: "token", TokenSecret: "secret",
		OSystem: "custom", Series: "kubernetes-node", Disks: []boot.Disk{{Name: "sda", Bytes: 8 << 30}, {Name: "sdb", Bytes: 1 << 30}},
	}
}

// nodeConfig has a file, a unit and the removal of the helper partition.
func nodeConfig() map[string]any {
	unit := "[Unit]\nAfter=containerd.service\nRequires=containerd.service\n[Service]\nType=oneshot\nRemainAfterExit=yes\n" +
		"ExecStart=/bin/sh -c 'ctr version && cat /etc/greeting >> /var/greeted'\n[Install]\nWantedBy=multi-user.target\n"
	return map[string]any{
		"ignition": map[string]any{"version": "3.4.0"},
		"storage": map[string]any{
			"files": []any{map[string]any{"path": "/etc/greeting", "mode": 0o644, "contents": map[string]any{"source": "data:,hello%0A"}}},
			"disks": []any{map[string]any{"device": "/dev/sda", "partitions": []any{
				map[string]any{"number": 5, "shouldExist": false, "wipePartitionEntry": true},
			}}},
		},
		"systemd": map[string]any{"units": []any{map[string]any{"name": "greet.service", "enabled": true, "contents": unit}}},
	}
}

func TestBackend(t *testing.T) {
	g := NewWithT(t)
	backend := newBackend(t)
	fake := startMAAS(t, nodeConfig())
	spec := newSpec(fake)
	ctx := t.Context()
	dir := filepath.Join(backend.Dir, spec.SystemID)
	t.Cleanup(func() { g.Expect(backend.Erase(context.Background(), spec.SystemID)).To(Succeed()) })

	g.Expect(backend.Install(ctx, spec)).To(Succeed())
	g.Expect(partitions(g, dir)).To(Equal([]int{1, 2, 3, 4, 5}))
	g.Expect(backend.PowerOn(ctx, spec)).To(Succeed())
	g.Expect(backend.PowerOn(ctx, spec)).To(Succeed(), "a machine that is on stays on")
	m, err := machine.Lookup(dir)
	g.Expect(err).NotTo(HaveOccurred())
	console := func() string { data, _ := os.ReadFile(m.Config().Console()); return string(data) }
	start := time.Now()
	g.Eventually(m.Units).WithTimeout(bootTimeout).Should(And(
		HaveKeyWithValue("containerd.service", units.Status{State: units.Active}),
		HaveKeyWithValue("greet.service", units.Status{State: units.Active}),
	), console)
	t.Log("up in", time.Since(start))
	t.Log(strings.Join(fake.seen(), "\n"))
	t.Log(console())
	out, err := m.Exec(ctx, "sh", "-c", "cat /var/log/units/*; hostname; cat /etc/hosts; ip a; ps ax; lsblk; ctr version")
	t.Log(out, err)
}

func partitions(g *WithT, dir string) []int {
	disk, err := os.Open(filepath.Join(dir, "sda.img"))
	g.Expect(err).NotTo(HaveOccurred())
	defer disk.Close()
	table, err := gpt.Read(disk)
	g.Expect(err).NotTo(HaveOccurred())
	var numbers []int
	for _, p := range table {
		numbers = append(numbers, p.Number)
	}
	return numbers
}

func lookup(g *WithT, backend *netns.Backend, spec boot.Spec) *machine.Machine {
	m, err := machine.Lookup(filepath.Join(backend.Dir, spec.SystemID))
	g.Expect(err).NotTo(HaveOccurred())
	return m
}
