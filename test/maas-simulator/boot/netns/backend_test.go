// SPDX-License-Identifier: Apache-2.0

package netns_test

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/boot"
	"github.com/openshift/hypershift/test/maas-simulator/boot/netns"
	"github.com/openshift/hypershift/test/machine"
	"github.com/openshift/hypershift/test/machine/cgroup"
	"github.com/openshift/hypershift/test/machine/gpt"
	"github.com/openshift/hypershift/test/machine/network/networktest"
	"github.com/openshift/hypershift/test/machine/units"
)

const bootTimeout = 5 * time.Minute

// bridge is the bridge of the machines of all tests.
var bridge = networktest.Bridge{Namespace: "machine-test-switch", Address: "172.31.98.1"}

func TestMain(m *testing.M) {
	machine.Init(netns.Boots)
	os.Exit(m.Run())
}

// newMachine returns a backend and the spec of a machine that is erased at the end of the test.
func newMachine(t *testing.T, fake *fakeMAAS) (*netns.Backend, boot.Spec) {
	t.Helper()
	backend, spec := newBackend(t), newSpec(fake)
	t.Cleanup(func() {
		g := NewWithT(t)
		g.Expect(backend.Erase(context.Background(), spec.SystemID)).To(Succeed())
		nothingLeft(g, backend, spec)
	})
	return backend, spec
}

func nothingLeft(g *WithT, backend *netns.Backend, spec boot.Spec) {
	g.Expect(filepath.Join(backend.Dir, spec.SystemID)).NotTo(BeAnExistingFile())
	g.Expect("/run/netns/mt-" + spec.SystemID).NotTo(BeAnExistingFile())
	g.Expect(cgroup.Processes("machine-test/mt-" + spec.SystemID)).To(BeEmpty())
}

// up waits until the machine's services run, and returns the machine.
func up(t *testing.T, backend *netns.Backend, spec boot.Spec) *machine.Machine {
	t.Helper()
	g := NewWithT(t)
	m, err := machine.Lookup(filepath.Join(backend.Dir, spec.SystemID))
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(m.Units).WithTimeout(bootTimeout).Should(And(
		HaveKeyWithValue("containerd.service", units.Status{State: units.Active}),
		HaveKeyWithValue("greet.service", units.Status{State: units.Active}),
	), func() string { data, _ := os.ReadFile(m.Config().Console()); return string(data) })
	return m
}

func power(t *testing.T, backend *netns.Backend, spec boot.Spec) boot.State {
	t.Helper()
	state, err := backend.Power(t.Context(), spec.SystemID)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return state
}

func TestDeployment(t *testing.T) {
	g := NewWithT(t)
	fake := startMAAS(t, nodeConfig())
	backend, spec := newMachine(t, fake)
	ctx := t.Context()

	g.Expect(power(t, backend, spec)).To(Equal(boot.Off), "an unknown machine is off")
	g.Expect(backend.PowerOff(ctx, spec.SystemID)).To(Succeed())
	g.Expect(backend.Erase(ctx, spec.SystemID)).To(Succeed())
	g.Expect(backend.Install(ctx, spec)).To(Succeed())
	g.Expect(partitions(t, backend, spec)).To(Equal([]int{1, 2, 3, 4, 5}))
	g.Expect(power(t, backend, spec)).To(Equal(boot.Off))

	g.Expect(backend.PowerOn(ctx, spec)).To(Succeed())
	g.Expect(backend.PowerOn(ctx, spec)).To(Succeed(), "a machine that is on is left alone")
	g.Expect(power(t, backend, spec)).To(Equal(boot.On))
	m := up(t, backend, spec)

	g.Expect(fake.seen()).To(Equal([]string{
		"GET /metadata/2012-03-01/meta-data/local-hostname",
		"POST /metadata/status/tst001",
		"GET /metadata/2012-03-01/user-data",
		"POST /metadata/2012-03-01/?op=signal",
		"GET /config", // rejected, because the server is not ready
		"GET /config",
		"POST /metadata/status/tst001",
	}))
	g.Expect(partitions(t, backend, spec)).To(Equal([]int{1, 2, 3, 4}), "the node configuration removes the helper partition")
	g.Expect(m.Exec(ctx, "cat", "/etc/greeting")).To(Equal("hello\n"))
	g.Expect(m.Exec(ctx, "stat", "-c", "%U", "/home/core/.ssh/authorized_keys.d/ignition")).To(Equal("core\n"))
	g.Expect(m.Exec(ctx, "hostname")).To(Equal("swift-otter\n"))
	g.Expect(m.Exec(ctx, "cat", "/etc/resolv.conf")).To(Equal("search maas\nnameserver 172.31.98.1\n"))
	g.Expect(m.Exec(ctx, "cat", "/sys/class/net/eth0/address")).To(Equal(spec.MAC + "\n"))

	// Another process with its own backend can find the machine. A power cycle keeps its state.
	other := *backend
	g.Expect(other.PowerOff(ctx, spec.SystemID)).To(Succeed())
	g.Expect(power(t, backend, spec)).To(Equal(boot.Off))
	before := len(fake.seen())
	g.Expect(other.PowerOn(ctx, spec)).To(Succeed())
	m = up(t, backend, spec)
	g.Expect(m.Exec(ctx, "cat", "/var/greeted")).To(Equal("hello\nhello\n"), "its services run again")
	g.Expect(m.Exec(ctx, "hostname")).To(Equal("swift-otter\n"))
	g.Expect(fake.seen()).To(HaveLen(before), "a machine that is configured needs no MAAS to come up")

	// A new deployment deletes the previous state.
	g.Expect(backend.Install(ctx, spec)).To(Succeed())
	g.Expect(power(t, backend, spec)).To(Equal(boot.Off))
	g.Expect(partitions(t, backend, spec)).To(Equal([]int{1, 2, 3, 4, 5}))
	g.Expect(m.Path("/etc/greeting")).NotTo(BeAnExistingFile())
}

// TestContainer verifies that the image's containerd can run containers in a machine of this backend.
func TestContainer(t *testing.T) {
	g := NewWithT(t)
	backend, spec := newMachine(t, startMAAS(t, nodeConfig()))
	ctx := t.Context()
	g.Expect(backend.Install(ctx, spec)).To(Succeed())
	g.Expect(backend.PowerOn(ctx, spec)).To(Succeed())
	m := up(t, backend, spec)
	writeImage(t, "example.com/hello:1", m.Path("/var/tmp/hello.tar"))

	_, err := m.Exec(ctx, "ctr", "images", "import", "/var/tmp/hello.tar")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = m.Exec(ctx, "ctr", "run", "--detach", "--log-uri", "file:///var/tmp/hello.log", "--net-host", "example.com/hello:1", "c1", "/hello", "wait")
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() (string, error) { return m.Exec(ctx, "cat", "/var/tmp/hello.log") }, bootTimeout).Should(Equal("hello from pid 1\n"))
	g.Expect(m.Exec(ctx, "ctr", "tasks", "ls")).To(MatchRegexp(`c1\s+\d+\s+RUNNING`))

	g.Expect(backend.PowerOff(ctx, spec.SystemID)).To(Succeed(), "with a container running")
	g.Expect(cgroup.Processes("machine-test/mt-" + spec.SystemID)).To(BeEmpty())
}

func TestEphemeral(t *testing.T) {
	g := NewWithT(t)
	fake := startMAAS(t, nodeConfig())
	backend, spec := newMachine(t, fake)
	spec.Ephemeral = true
	ctx := t.Context()
	for range 2 {
		g.Expect(backend.PowerOn(ctx, spec)).To(Succeed())
		m := up(t, backend, spec)
		g.Expect(m.Exec(ctx, "cat", "/var/greeted")).To(Equal("hello\n"), "every boot is the first")
		g.Expect(backend.PowerOff(ctx, spec.SystemID)).To(Succeed())
	}
}

func TestUserDataThatIsNotIgnition(t *testing.T) {
	for name, userData := range map[string]string{"none": "", "cloud-config": "#cloud-config\npackages: [vim]\n", "other JSON": `{"a": 1}`} {
		t.Run("When the user-data is "+name+", the machine should boot without a configuration", func(t *testing.T) {
			g := NewWithT(t)
			fake := startMAAS(t, nodeConfig())
			fake.userData = userData
			backend, spec := newMachine(t, fake)
			g.Expect(backend.Install(t.Context(), spec)).To(Succeed())
			g.Expect(backend.PowerOn(t.Context(), spec)).To(Succeed())
			m, err := machine.Lookup(filepath.Join(backend.Dir, spec.SystemID))
			g.Expect(err).NotTo(HaveOccurred())
			g.Eventually(m.Units).WithTimeout(bootTimeout).Should(HaveKeyWithValue("containerd.service", units.Status{State: units.Active}))
			g.Expect(fake.seen()).NotTo(ContainElement("GET /config"))
		})
	}
}

// TestServerDown verifies that a machine waits for servers that are not up, and can be powered off while it waits.
func TestServerDown(t *testing.T) {
	g := NewWithT(t)
	fake := startMAAS(t, nodeConfig())
	backend, spec := newMachine(t, fake)
	spec.MetadataURL = "http://" + bridge.Address + ":1/metadata/"
	g.Expect(backend.Install(t.Context(), spec)).To(Succeed())
	g.Expect(backend.PowerOn(t.Context(), spec)).To(Succeed())
	console := filepath.Join(backend.Dir, spec.SystemID, "console.log")
	g.Eventually(func() (string, error) { data, err := os.ReadFile(console); return string(data), err }).
		WithTimeout(bootTimeout).Should(And(ContainSubstring("trying again"), ContainSubstring("connection refused")))
	g.Expect(power(t, backend, spec)).To(Equal(boot.On))
	g.Expect(backend.PowerOff(t.Context(), spec.SystemID)).To(Succeed())
}

func TestInstall(t *testing.T) {
	for _, tt := range []struct {
		name, osystem string
		bytes         int64
		want          []int
		wantErr       string
	}{
		{name: "When the image is custom, the disk should have the helper partition", osystem: "custom", bytes: 8 << 30, want: []int{1, 2, 3, 4, 5}},
		{name: "When the image is MAAS's own, the disk should not have the helper partition", osystem: "ubuntu", bytes: 8 << 30, want: []int{1, 2}},
		{name: "When the disk is too small, the error should say so", osystem: "custom", bytes: 100 << 20, wantErr: "disk sda: a disk of 104857600 bytes is too small"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			backend := &netns.Backend{Dir: t.TempDir(), CloudOS: t.TempDir()}
			for _, path := range []string{"usr/bin/cloud-init", "etc/os-release", "var/lib/x"} {
				g.Expect(os.MkdirAll(filepath.Dir(filepath.Join(backend.CloudOS, path)), 0o755)).To(Succeed())
				g.Expect(os.WriteFile(filepath.Join(backend.CloudOS, path), nil, 0o600)).To(Succeed())
			}
			spec := newSpec(&fakeMAAS{})
			spec.OSystem, spec.Disks[0].Bytes = tt.osystem, tt.bytes
			err := backend.Install(t.Context(), spec)
			if tt.wantErr != "" {
				g.Expect(err).To(MatchError(And(ContainSubstring(tt.wantErr), ContainSubstring("tst001"))))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(partitions(t, backend, spec)).To(Equal(tt.want))
			info, err := os.Stat(filepath.Join(backend.Dir, spec.SystemID, "sda.img"))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(info.Size()).To(Equal(tt.bytes))
			g.Expect(info.Sys().(*syscall.Stat_t).Blocks*512).To(BeNumerically("<", 1<<20), "the image is sparse")
			g.Expect(filepath.Join(backend.Dir, spec.SystemID, "sdb.img")).To(BeAnExistingFile())
			g.Expect(backend.Erase(t.Context(), spec.SystemID)).To(Succeed())
			g.Expect(filepath.Join(backend.Dir, spec.SystemID)).NotTo(BeAnExistingFile())
		})
	}
}

func partitions(t *testing.T, backend *netns.Backend, spec boot.Spec) []int {
	t.Helper()
	g := NewWithT(t)
	disk, err := os.Open(filepath.Join(backend.Dir, spec.SystemID, "sda.img"))
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
