package machine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/machine"
	"github.com/openshift/hypershift/test/machine/cgroup"
	"github.com/openshift/hypershift/test/machine/gpt"
	"github.com/openshift/hypershift/test/machine/network"
	"github.com/openshift/hypershift/test/machine/units"
)

const (
	bootTimeout = 30 * time.Second
	testParent  = "machine-test"
	// starterDir, in the environment, makes the test program start a machine in that folder and wait to be killed.
	starterDir = "MACHINE_TEST_START"
)

func TestMain(m *testing.M) {
	machine.Init(map[string]machine.Boot{"write-unit": writeUnit, "fail": failToBoot})
	if dir := os.Getenv(starterDir); dir != "" {
		starter(dir)
	}
	os.Exit(m.Run())
}

// starter starts a machine, says so, and waits to be killed.
func starter(dir string) {
	if _, err := machine.Start(context.Background(), newConfig(filepath.Base(dir), dir)); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("started")
	select {}
}

// writeUnit is a boot that leaves the machine a service, which notes each of its starts.
func writeUnit(_ context.Context, system *machine.System) error {
	unit := "[Service]\nExecStart=/bin/sh -c 'echo " + string(system.Config.BootData) + " >> /var/starts; exec sleep infinity'\n" +
		"[Install]\nWantedBy=multi-user.target\n"
	return errors.Join(
		os.WriteFile("/etc/systemd/system/nap.service", []byte(unit), 0o644),
		os.MkdirAll("/etc/systemd/system-preset", 0o755),
		os.WriteFile("/etc/systemd/system-preset/20-test.preset", []byte("enable nap.service\n"), 0o644),
		os.MkdirAll("/etc/sysctl.d", 0o755),
		os.WriteFile("/etc/sysctl.d/test.conf", []byte("# forward\nnet.ipv4.ip_forward = 1\n-kernel.nonsense=1\nvm.swappiness=1\n"), 0o644),
		os.WriteFile("/etc/hostname", []byte("renamed\n"), 0o644),
	)
}

func failToBoot(context.Context, *machine.System) error {
	return errors.New("the disk is made of cheese")
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("machines made of namespaces need root")
	}
}

func newConfig(name, dir string) machine.Config {
	return machine.Config{Name: name, Dir: dir, CgroupParent: testParent, Boot: "write-unit", BootData: []byte("hello")}
}

// begin starts a machine that is removed at the end of the test, with a check that nothing of it is left.
func begin(t *testing.T, config machine.Config) *machine.Machine {
	t.Helper()
	g := NewWithT(t)
	t.Cleanup(func() { removeAll(t, config) })
	m, err := machine.Start(t.Context(), config)
	g.Expect(err).NotTo(HaveOccurred())
	return m
}

func removeAll(t *testing.T, config machine.Config) {
	t.Helper()
	g := NewWithT(t)
	if m, err := machine.Lookup(config.Dir); err == nil {
		g.Expect(m.Remove(context.Background())).To(Succeed())
	}
	nothingLeft(t, config)
	g.Expect(config.Dir).NotTo(BeAnExistingFile())
}

// nothingLeft asserts that the host has no process, mount, network namespace, cgroup or loop device of the machine.
func nothingLeft(t *testing.T, config machine.Config) {
	t.Helper()
	g := NewWithT(t)
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(mounts)).NotTo(ContainSubstring(config.Dir))
	g.Expect("/run/netns/" + config.Name).NotTo(BeAnExistingFile())
	hierarchies, err := cgroup.Hierarchies()
	g.Expect(err).NotTo(HaveOccurred())
	for _, h := range hierarchies {
		g.Expect(filepath.Join(h.MountPoint, testParent, config.Name)).NotTo(BeADirectory())
	}
	g.Eventually(func() string { return loopFiles(g) }).WithTimeout(5 * time.Second).ShouldNot(ContainSubstring(config.Dir))
}

// loopFiles lists the files behind the loop devices of the host.
func loopFiles(g *WithT) string {
	paths, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	g.Expect(err).NotTo(HaveOccurred())
	var all bytes.Buffer
	for _, path := range paths {
		data, _ := os.ReadFile(path) // it may be detached this very moment
		all.Write(data)
	}
	return all.String()
}

func booted(t *testing.T, m *machine.Machine) {
	t.Helper()
	NewWithT(t).Eventually(m.Units).WithTimeout(bootTimeout).Should(
		HaveKeyWithValue("nap.service", units.Status{State: units.Active}), func() string { return console(m) })
}

func console(m *machine.Machine) string {
	data, _ := os.ReadFile(m.Config().Console())
	return string(data)
}

// starts reads what the machine's service notes at each of its starts.
func starts(m *machine.Machine) func() string {
	return func() string {
		data, _ := os.ReadFile(m.Path("/var/starts"))
		return string(data)
	}
}

// sh runs a shell command in the machine and returns what it prints.
func sh(t *testing.T, m *machine.Machine, command string) string {
	t.Helper()
	out, err := m.Exec(t.Context(), "sh", "-c", command)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return strings.TrimSpace(out)
}

func TestIsolation(t *testing.T) {
	needRoot(t)
	g := NewWithT(t)
	hostHostname, err := os.Hostname()
	g.Expect(err).NotTo(HaveOccurred())
	hostFile := filepath.Join(t.TempDir(), "shared")
	g.Expect(os.WriteFile(hostFile, []byte("from the host"), 0o600)).To(Succeed())
	config := newConfig("machine-test-a", filepath.Join(t.TempDir(), "m"))
	config.Hostname = "first-name"
	config.Env = []string{"COLOUR=green"}
	config.Binds = []machine.Bind{
		{Source: hostFile, Target: "/opt/deep/shared"},
		{Source: t.TempDir(), Target: "/data", Writable: true},
	}
	m := begin(t, config)
	booted(t, m)

	t.Run("When it runs it should have processes, host name and environment of its own", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(sh(t, m, "cat /proc/1/cmdline | tr -d '\\0'")).To(Equal("machine-pid1"))
		g.Expect(sh(t, m, "ls -d /proc/[0-9]* | wc -l")).To(MatchRegexp(`^\d$`), "the host's processes are not seen")
		g.Expect(sh(t, m, "hostname")).To(Equal("renamed"), "what the root file system says counts")
		g.Expect(sh(t, m, "echo $COLOUR")).To(Equal("green"))
		g.Expect(os.Hostname()).To(Equal(hostHostname))
	})
	t.Run("When it has binds it should see them and write only where it may", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(sh(t, m, "cat /opt/deep/shared")).To(Equal("from the host"))
		g.Expect(sh(t, m, "touch /data/mine && ls /data")).To(Equal("mine"))
		for _, path := range []string{"/opt/deep/shared", "/usr/x", "/proc/sys/vm/swappiness", "/sys/kernel/x"} {
			_, err := m.Exec(t.Context(), "sh", "-c", "echo 1 > "+path)
			g.Expect(err).To(MatchError(ContainSubstring("Read-only file system")), path)
		}
		g.Expect(config.Binds[1].Source + "/mine").To(BeAnExistingFile())
	})
	t.Run("When it sets what is its network's it should, and the kernel's own it should not", func(t *testing.T) {
		g := NewWithT(t)
		before, err := os.ReadFile("/proc/sys/vm/overcommit_memory")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(sh(t, m, "cat /proc/sys/net/ipv4/ip_forward")).To(Equal("1"), "set by /etc/sysctl.d")
		g.Expect(sh(t, m, "echo 2 > /proc/sys/vm/overcommit_memory; cat /proc/sys/vm/overcommit_memory")).To(Equal("2"))
		after, err := os.ReadFile("/proc/sys/vm/overcommit_memory")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(after).To(Equal(before), "a kubelet in the machine must not change the host")
		g.Expect(console(m)).To(ContainSubstring("vm.swappiness stays as it is"))
	})
	t.Run("When it looks at its cgroups it should see itself at the root", func(t *testing.T) {
		g := NewWithT(t)
		for line := range strings.Lines(sh(t, m, "cat /proc/1/cgroup")) {
			g.Expect(strings.TrimSpace(line)).To(HaveSuffix(":/init.scope"))
		}
		g.Expect(cgroup.Processes(testParent + "/" + config.Name)).To(ContainElement(m.PID()))
		g.Eventually(func() ([]int, error) {
			return cgroup.Processes(testParent + "/" + config.Name + "/system.slice/nap.service")
		}).
			WithTimeout(bootTimeout).Should(HaveLen(1))
	})
	t.Run("When it mounts it should not be seen on the host, and pods could pass it on", func(t *testing.T) {
		g := NewWithT(t)
		sh(t, m, "mount -t tmpfs none /mnt")
		mounts, err := os.ReadFile("/proc/self/mountinfo")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(mounts)).NotTo(ContainSubstring(config.Dir))
		g.Expect(sh(t, m, "awk '$5 == \"/\" {print $7}' /proc/1/mountinfo")).To(HavePrefix("shared:"))
	})
	t.Run("When a command fails it should say what it printed", func(t *testing.T) {
		_, err := m.Exec(t.Context(), "sh", "-c", "echo nonsense >&2; exit 3")
		NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("exit status 3"), ContainSubstring("nonsense"))))
	})
	t.Run("When processes are orphaned it should reap them", func(t *testing.T) {
		sh(t, m, "(sleep 0.01 &) ; (true &)")
		NewWithT(t).Eventually(func() string { return sh(t, m, "grep -l '^State:.Z' /proc/[0-9]*/status || true") }).
			WithTimeout(5 * time.Second).Should(BeEmpty())
	})
}

func TestPowerCycle(t *testing.T) {
	needRoot(t)
	g := NewWithT(t)
	config := newConfig("machine-test-b", filepath.Join(t.TempDir(), "m"))
	_, err := machine.Lookup(config.Dir)
	g.Expect(err).To(MatchError(fs.ErrNotExist))
	m := begin(t, config)
	booted(t, m)
	g.Eventually(starts(m)).WithTimeout(bootTimeout).Should(Equal("hello\n"))
	identity := sh(t, m, "cat /etc/machine-id")
	g.Expect(identity).To(MatchRegexp(`^[0-9a-f]{32}$`))

	again, err := machine.Start(t.Context(), config)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again.PID()).To(Equal(m.PID()), "a machine that runs is left alone")

	g.Expect(m.Stop(t.Context())).To(Succeed())
	g.Expect(m.Running()).To(BeFalse())
	nothingLeft(t, config)
	g.Expect(m.Stop(t.Context())).To(Succeed(), "a machine that is off is no error")
	_, err = m.Exec(t.Context(), "true")
	g.Expect(err).To(HaveOccurred())

	again, err = machine.Start(t.Context(), config)
	g.Expect(err).NotTo(HaveOccurred())
	booted(t, again)
	g.Expect(sh(t, again, "cat /etc/machine-id")).To(Equal(identity))
	g.Eventually(starts(again)).WithTimeout(bootTimeout).Should(Equal("hello\nhello\n"), "what it wrote is still there")
	found, err := machine.Lookup(config.Dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.PID()).To(Equal(again.PID()))
	g.Expect(found.Config()).To(Equal(again.Config()))
}

func TestStopWhenUnitsDoNotHeed(t *testing.T) {
	needRoot(t)
	g := NewWithT(t)
	config := newConfig("machine-test-c", filepath.Join(t.TempDir(), "m"))
	m := begin(t, config)
	booted(t, m)
	g.Expect(syscall.Kill(m.PID(), syscall.SIGSTOP)).To(Succeed()) // a machine that hangs
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	g.Expect(m.Stop(ctx)).To(Succeed(), "the context bounds the shutdown; the power is cut all the same")
	g.Expect(m.Running()).To(BeFalse())
	nothingLeft(t, config)
}

func TestFailedBoot(t *testing.T) {
	needRoot(t)
	g := NewWithT(t)
	config := newConfig("machine-test-d", filepath.Join(t.TempDir(), "m"))
	config.Boot = "fail"
	m := begin(t, config)
	ctx, cancel := context.WithTimeout(t.Context(), bootTimeout)
	defer cancel()
	g.Expect(m.Wait(ctx)).To(Succeed(), "a machine that cannot boot goes off")
	g.Expect(console(m)).To(ContainSubstring("boot fail: the disk is made of cheese"))
}

func TestStartErrors(t *testing.T) {
	valid := newConfig("machine-test-e", filepath.Join(t.TempDir(), "m"))
	for want, change := range map[string]func(*machine.Config){
		"name":                  func(c *machine.Config) { c.Name = "Not A Name" },
		"dir":                   func(c *machine.Config) { c.Dir = "relative" },
		"both must be absolute": func(c *machine.Config) { c.Binds = []machine.Bind{{Source: "relative", Target: "/x"}} },
	} {
		config := valid
		change(&config)
		_, err := machine.Start(t.Context(), config)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(want)))
	}
	needRoot(t)
	for want, change := range map[string]func(*machine.Config){
		"/does/not/exist": func(c *machine.Config) { c.Binds = []machine.Bind{{Source: "/does/not/exist", Target: "/x"}} },
		"disk sda":        func(c *machine.Config) { c.Disks = []machine.Disk{{Name: "sda", Image: "/does/not/exist"}} },
		"br9": func(c *machine.Config) {
			c.Network.Links = []network.Link{{Inside: network.End{Name: "eth0", Bridge: "br9"}, Outside: network.End{Name: "mt-out"}}}
		},
	} {
		config := valid
		config.Dir = filepath.Join(t.TempDir(), "m")
		change(&config)
		_, err := machine.Start(t.Context(), config)
		NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring(want), ContainSubstring("machine-test-e"))))
		nothingLeft(t, config)
	}
}

func TestDisk(t *testing.T) {
	needRoot(t)
	g := NewWithT(t)
	config := newConfig("machine-test-f", filepath.Join(t.TempDir(), "m"))
	image := newImage(t)
	config.Disks = []machine.Disk{{Name: "sda", Image: image}}
	m := begin(t, config)
	booted(t, m)
	if loopFiles(g) == "" {
		t.Skip("this host has no loop devices: the disk is a plain file")
	}
	g.Expect(sh(t, m, "test -b /dev/sda && dd if=/dev/sda bs=1M skip=3 count=1 2>/dev/null | head -c 7")).To(Equal("content"))
	sh(t, m, "printf changed | dd of=/dev/sda bs=1M seek=3 conv=notrunc 2>/dev/null && sync")
	g.Expect(m.Stop(t.Context())).To(Succeed())

	disk, err := os.Open(image)
	g.Expect(err).NotTo(HaveOccurred())
	defer disk.Close()
	table, err := gpt.Read(disk)
	g.Expect(err).NotTo(HaveOccurred())
	got := make([]byte, 7)
	_, err = disk.ReadAt(got, table[1].Offset())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(got)).To(Equal("changed"))
	g.Eventually(func() string { return loopFiles(g) }).WithTimeout(5 * time.Second).ShouldNot(ContainSubstring(image))
}

// newImage makes a disk image with two partitions, the second of which, at 3 MiB, has content.
func newImage(t *testing.T) string {
	t.Helper()
	g := NewWithT(t)
	disk, err := os.Create(filepath.Join(t.TempDir(), "sda.img"))
	g.Expect(err).NotTo(HaveOccurred())
	defer disk.Close()
	g.Expect(disk.Truncate(16 << 20)).To(Succeed())
	table, err := gpt.Layout(16<<20, []gpt.Part{{Name: "a", Type: gpt.EFI, MiB: 2}, {Name: "b", Type: gpt.Linux}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(gpt.Write(disk, table)).To(Succeed())
	_, err = disk.WriteAt([]byte("content"), table[1].Offset())
	g.Expect(err).NotTo(HaveOccurred())
	return disk.Name()
}

func TestMachineOutlivesItsStarter(t *testing.T) {
	needRoot(t)
	g := NewWithT(t)
	config := newConfig("machine-test-g", filepath.Join(t.TempDir(), "machine-test-g"))
	t.Cleanup(func() { removeAll(t, config) })
	self, err := os.Executable()
	g.Expect(err).NotTo(HaveOccurred())
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), starterDir+"="+config.Dir)
	out, err := cmd.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cmd.Start()).To(Succeed())
	line := make([]byte, 8)
	_, err = out.Read(line)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(line)).To(Equal("started\n"))
	g.Expect(cmd.Process.Kill()).To(Succeed())
	g.Expect(cmd.Wait()).NotTo(Succeed())

	m, err := machine.Lookup(config.Dir)
	g.Expect(err).NotTo(HaveOccurred())
	booted(t, m)
	g.Expect(m.Stop(t.Context())).To(Succeed())
	nothingLeft(t, config)
}

// A start that is cut short anywhere leaves nothing that a later start or removal cannot deal with.
func TestStarterKilledAtAnyPoint(t *testing.T) {
	needRoot(t)
	g := NewWithT(t)
	self, err := os.Executable()
	g.Expect(err).NotTo(HaveOccurred())
	config := newConfig("machine-test-h", filepath.Join(t.TempDir(), "machine-test-h"))
	t.Cleanup(func() { removeAll(t, config) })
	for delay := time.Duration(0); delay < 100*time.Millisecond; delay += 5 * time.Millisecond {
		ctx, cancel := context.WithTimeout(t.Context(), delay)
		cmd := exec.CommandContext(ctx, self)
		cmd.Env = append(os.Environ(), starterDir+"="+config.Dir)
		_ = cmd.Run() // it is killed
		cancel()

		m, err := machine.Start(t.Context(), config)
		g.Expect(err).NotTo(HaveOccurred(), "killed after %s", delay)
		booted(t, m)
		g.Expect(m.Remove(t.Context())).To(Succeed())
		nothingLeft(t, config)
	}
}

func TestStateIsReadable(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	g.Expect(os.WriteFile(filepath.Join(dir, "machine.json"), []byte("{"), 0o600)).To(Succeed())
	_, err := machine.Lookup(dir)
	var syntax *json.SyntaxError
	g.Expect(errors.As(err, &syntax)).To(BeTrue())
	g.Expect(err).To(MatchError(ContainSubstring(dir)))
}

func TestRunningIsNotFooledByAReusedProcessID(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	state := fmt.Sprintf(`{"config":{"name":"x","dir":%q},"pid":%d,"startTime":1,"ready":true}`, dir, os.Getpid())
	g.Expect(os.WriteFile(filepath.Join(dir, "machine.json"), []byte(state), 0o600)).To(Succeed())
	m, err := machine.Lookup(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.Running()).To(BeFalse())
}
