// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
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
)

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

	t.Run("When a machine runs, it should have its own processes, host name and environment", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(sh(t, m, "cat /proc/1/cmdline | tr -d '\\0'")).To(Equal("machine-pid1"))
		g.Expect(sh(t, m, "ls -d /proc/[0-9]* | wc -l")).To(MatchRegexp(`^\d$`), "the host's processes are not seen")
		g.Expect(sh(t, m, "hostname")).To(Equal("renamed"), "what the root file system says counts")
		g.Expect(sh(t, m, "echo $COLOUR")).To(Equal("green"))
		g.Expect(os.Hostname()).To(Equal(hostHostname))
	})
	t.Run("When a machine looks up programs, it should find the host's programs and the folders that Pods mount", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(sh(t, m, "ls -d /lib/modules /usr/bin/env /usr/local/bin")).To(Equal("/lib/modules\n/usr/bin/env\n/usr/local/bin"))
		g.Expect(sh(t, m, "echo mine > /usr/local/bin/x && cat /var/usrlocal/bin/x")).To(Equal("mine"))
		g.Expect("/usr/local/bin/x").NotTo(BeAnExistingFile())
	})
	t.Run("When a machine has bind mounts, it should see them and write only where allowed", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(sh(t, m, "cat /opt/deep/shared")).To(Equal("from the host"))
		g.Expect(sh(t, m, "touch /data/mine && ls /data")).To(Equal("mine"))
		for _, path := range []string{"/opt/deep/shared", "/usr/x", "/proc/sys/vm/swappiness", "/sys/kernel/x"} {
			_, err := m.Exec(t.Context(), "sh", "-c", "echo 1 > "+path)
			g.Expect(err).To(MatchError(ContainSubstring("Read-only file system")), path)
		}
		g.Expect(config.Binds[1].Source + "/mine").To(BeAnExistingFile())
	})
	t.Run("When a machine sets kernel parameters, it should change only those of its own network", func(t *testing.T) {
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
	t.Run("When a machine reads its cgroups, it should see itself at the root", func(t *testing.T) {
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
	t.Run("When a machine mounts a file system, the host should not see it and Pods can propagate it", func(t *testing.T) {
		g := NewWithT(t)
		sh(t, m, "mount -t tmpfs none /mnt")
		mounts, err := os.ReadFile("/proc/self/mountinfo")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(mounts)).NotTo(ContainSubstring(config.Dir))
		g.Expect(sh(t, m, "awk '$5 == \"/\" {print $7}' /proc/1/mountinfo")).To(HavePrefix("shared:"))
	})
	t.Run("When a command fails, the error should include its output", func(t *testing.T) {
		_, err := m.Exec(t.Context(), "sh", "-c", "echo nonsense >&2; exit 3")
		NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("exit status 3"), ContainSubstring("nonsense"))))
	})
	t.Run("When processes are orphaned, the machine should reap them", func(t *testing.T) {
		sh(t, m, "(sleep 0.01 &) ; (true &)")
		NewWithT(t).Eventually(func() string { return sh(t, m, "grep -l '^State:.Z' /proc/[0-9]*/status || true") }).
			WithTimeout(2 * time.Minute).Should(BeEmpty())
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
	g.Expect(syscall.Kill(m.PID(), syscall.SIGSTOP)).To(Succeed()) // This simulates a machine that hangs.
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
	g.Eventually(func() string { return loopFiles(g) }).WithTimeout(2 * time.Minute).ShouldNot(ContainSubstring(image))
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

// TestStarterKilledAtAnyPoint checks that an interrupted start leaves nothing that a later start or removal cannot
// handle.
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
		_ = cmd.Run() // The process is killed.
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
