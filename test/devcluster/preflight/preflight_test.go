// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/devcluster/images"
	"github.com/openshift/hypershift/test/machine/cgroup"
)

func TestCommands(t *testing.T) {
	t.Run("When programs are missing, the error should name the packages", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		NewWithT(t).Expect(commands(t.Context(), env.Env{})).To(ConsistOf(MatchError(
			ContainSubstring("apt-get install iproute2 nftables iptables util-linux mount"))))
	})
	t.Run("When all programs are installed, it should report nothing", func(t *testing.T) {
		g := NewWithT(t)
		dir := t.TempDir()
		for _, needed := range hostCommands {
			g.Expect(os.WriteFile(filepath.Join(dir, needed.command), nil, 0o700)).To(Succeed())
		}
		t.Setenv("PATH", dir)
		g.Expect(commands(t.Context(), env.Env{})).To(BeEmpty())
	})
}

func TestBinaries(t *testing.T) {
	g := NewWithT(t)
	e := env.Env{Bin: t.TempDir()}
	for _, program := range builtPrograms {
		g.Expect(binaries(t.Context(), e)).To(ConsistOf(MatchError(And(ContainSubstring(program), ContainSubstring("run make environment")))))
		file := filepath.Join(e.Bin, program)
		g.Expect(os.MkdirAll(filepath.Dir(file), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(file, nil, 0o755)).To(Succeed())
	}
	g.Expect(binaries(t.Context(), e)).To(ConsistOf(MatchError(ContainSubstring("run make images"))))
	g.Expect(os.MkdirAll(filepath.Dir(e.Images()), 0o755)).To(Succeed())
	g.Expect(images.Build(e.Images(), nil)).To(Succeed())
	g.Expect(binaries(t.Context(), e)).To(BeEmpty())
}

func TestMachine(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("who is not root is told nothing else")
	}
	t.Run("When nothing is built yet, the machine checks should not complain, since they run before the build", func(t *testing.T) {
		e := env.Env{Dir: t.TempDir(), Bin: t.TempDir()}
		g := NewWithT(t)
		g.Expect(errors.Join(Run(t.Context(), e)...)).To(MatchError(ContainSubstring("is not built")))
		g.Expect(errors.Join(append(Machine(t.Context(), e), errors.New("end"))...)).NotTo(MatchError(ContainSubstring("is not built")))
	})
}

func TestControllersOf(t *testing.T) {
	t.Run("When cgroup version 2 is mounted, it should read the controllers that the kernel offers", func(t *testing.T) {
		g := NewWithT(t)
		dir := t.TempDir()
		g.Expect(os.WriteFile(filepath.Join(dir, "cgroup.controllers"), []byte("cpuset cpu memory pids\n"), 0o600)).To(Succeed())
		g.Expect(controllersOf(cgroup.Hierarchy{MountPoint: dir, V2: true})).To(Equal([]string{"cpuset", "cpu", "memory", "pids"}))
	})
	t.Run("When cgroup version 1 is mounted, it should return the mounted controllers", func(t *testing.T) {
		NewWithT(t).Expect(controllersOf(cgroup.Hierarchy{Controllers: []string{"cpu"}})).To(Equal([]string{"cpu"}))
	})
	t.Run("When the hierarchy cannot be read, it should return no controllers", func(t *testing.T) {
		NewWithT(t).Expect(controllersOf(cgroup.Hierarchy{MountPoint: t.TempDir(), V2: true})).To(BeEmpty())
	})
}

func TestDisk(t *testing.T) {
	t.Run("When the folder does not exist yet, it should check the parent folder", func(t *testing.T) {
		g := NewWithT(t)
		dir := t.TempDir()
		g.Expect(disk(t.Context(), env.Env{Dir: filepath.Join(dir, "a", "b")})).To(Equal(disk(t.Context(), env.Env{Dir: dir})))
	})
	t.Run("When the file system is in memory, the error should ask for another folder", func(t *testing.T) {
		var stat unix.Statfs_t
		if err := unix.Statfs("/dev/shm", &stat); err != nil || stat.Type != unix.TMPFS_MAGIC {
			t.Skip("there is no tmpfs on /dev/shm")
		}
		NewWithT(t).Expect(disk(t.Context(), env.Env{Dir: "/dev/shm/x"})).To(ConsistOf(MatchError(And(ContainSubstring("/dev/shm/x"), ContainSubstring("--dir")))))
	})
}

func TestMemoryAvailable(t *testing.T) {
	available, err := memoryAvailable()
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(available).To(BeNumerically(">", 1<<20))
}

// ownNetwork runs the test in its own network namespace, which ends with the test's thread.
func ownNetwork(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to make a network namespace")
	}
	runtime.LockOSThread()
	NewWithT(t).Expect(unix.Unshare(unix.CLONE_NEWNET)).To(Succeed())
}

func addInterface(t *testing.T, name, address string) {
	t.Helper()
	g := NewWithT(t)
	link := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: name}}
	g.Expect(netlink.LinkAdd(link)).To(Succeed())
	g.Expect(netlink.LinkSetUp(link)).To(Succeed())
	parsed, err := netlink.ParseAddr(address)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(netlink.AddrAdd(link, parsed)).To(Succeed())
}

func TestAddress(t *testing.T) {
	t.Run("When no network overlaps, it should report nothing", func(t *testing.T) {
		ownNetwork(t)
		addInterface(t, "lan0", "192.0.2.1/24")
		NewWithT(t).Expect(address(t.Context(), env.Env{})).To(BeEmpty())
	})
	t.Run("When an interface has the network, the error should name the interface", func(t *testing.T) {
		ownNetwork(t)
		addInterface(t, "lan0", "172.30.0.1/16")
		NewWithT(t).Expect(address(t.Context(), env.Env{})).To(ConsistOf(MatchError(And(ContainSubstring("lan0"), ContainSubstring(env.Network)))))
	})
	t.Run("When a route leads to the network, the error should name the route", func(t *testing.T) {
		ownNetwork(t)
		g := NewWithT(t)
		addInterface(t, "lan0", "192.0.2.1/24")
		link, err := netlink.LinkByName("lan0")
		g.Expect(err).NotTo(HaveOccurred())
		dst, err := netlink.ParseIPNet("172.30.240.128/25")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(netlink.RouteAdd(&netlink.Route{Dst: dst, LinkIndex: link.Attrs().Index})).To(Succeed())
		g.Expect(address(t.Context(), env.Env{})).To(ConsistOf(MatchError(ContainSubstring("172.30.240.128/25"))))
	})
	t.Run("When the interface is the environment's own, it should report nothing", func(t *testing.T) {
		ownNetwork(t)
		addInterface(t, env.HostLink, env.Host+"/24")
		NewWithT(t).Expect(address(t.Context(), env.Env{})).To(BeEmpty())
	})
}

func TestLeftovers(t *testing.T) {
	ownNetwork(t)
	g := NewWithT(t)
	addInterface(t, env.HostLink, env.Host+"/24")
	e := env.Env{Dir: t.TempDir()}
	g.Expect(leftovers(t.Context(), e)).To(ConsistOf(MatchError(And(ContainSubstring(env.HostLink), ContainSubstring("make demo-down")))))
	g.Expect(os.Mkdir(e.Management(), 0o755)).To(Succeed())
	g.Expect(leftovers(t.Context(), e)).To(BeEmpty(), "what is this environment's own is started again")
}

func TestRoutesOnlyMatchTheNetwork(t *testing.T) {
	ownNetwork(t)
	addInterface(t, "lan0", "192.0.2.1/24")
	NewWithT(t).Expect(routes(netip.MustParsePrefix("198.51.100.0/24"))).To(BeEmpty())
}

func TestRun(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("needs a user who is not root")
	}
	NewWithT(t).Expect(Run(t.Context(), env.Env{})).To(ConsistOf(MatchError(ContainSubstring("needs root"))))
}
