// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/machine"
	"github.com/openshift/hypershift/test/machine/cgroup"
	"github.com/openshift/hypershift/test/machine/gpt"
	"github.com/openshift/hypershift/test/machine/units"
)

const (
	bootTimeout = 2 * time.Minute
	testParent  = "machine-test"
	// starterDir is an environment variable. It makes the test program start a machine in that folder and wait to be
	// killed.
	starterDir = "MACHINE_TEST_START"
)

func TestMain(m *testing.M) {
	machine.Init(map[string]machine.Boot{"write-unit": writeUnit, "fail": failToBoot})
	if dir := os.Getenv(starterDir); dir != "" {
		starter(dir)
	}
	os.Exit(m.Run())
}

// starter starts a machine, prints that it has started, and waits to be killed.
func starter(dir string) {
	if _, err := machine.Start(context.Background(), newConfig(filepath.Base(dir), dir)); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("started")
	select {}
}

// writeUnit is a Boot that adds a service to the machine. The service records each of its starts.
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

// begin starts a machine, and removes it at the end of the test with a check that nothing of it is left.
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

// nothingLeft checks that the host has no process, mount, network namespace, cgroup or loop device of the machine.
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
	g.Eventually(func() string { return loopFiles(g) }).WithTimeout(2 * time.Minute).ShouldNot(ContainSubstring(config.Dir))
}

// loopFiles lists the files behind the loop devices of the host.
func loopFiles(g *WithT) string {
	paths, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	g.Expect(err).NotTo(HaveOccurred())
	var all bytes.Buffer
	for _, path := range paths {
		data, _ := os.ReadFile(path) // The device may be detached concurrently.
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

// starts returns a function that reads the recorded starts of the machine's service.
func starts(m *machine.Machine) func() string {
	return func() string {
		data, _ := os.ReadFile(m.Path("/var/starts"))
		return string(data)
	}
}

// sh runs a shell command in the machine and returns its output.
func sh(t *testing.T, m *machine.Machine, command string) string {
	t.Helper()
	out, err := m.Exec(t.Context(), "sh", "-c", command)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return strings.TrimSpace(out)
}

// newImage creates a disk image with two partitions. The second one, at 3 MiB, has content.
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
