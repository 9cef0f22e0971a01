// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
)

func TestParseMountinfo(t *testing.T) {
	tests := []struct {
		name, mountinfo string
		want            []Hierarchy
	}{
		{
			name:      "When only version 2 is mounted, it should be the only hierarchy",
			mountinfo: "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
			want:      []Hierarchy{{MountPoint: "/sys/fs/cgroup", V2: true}},
		},
		{
			name: "When both versions are mounted, it should list each hierarchy once",
			mountinfo: "30 23 0:25 / /sys/fs/cgroup rw shared:4 - tmpfs tmpfs rw,mode=755\n" +
				"31 30 0:26 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n" +
				"32 30 0:27 / /sys/fs/cgroup/systemd rw - cgroup systemd rw,xattr,release_agent=/lib/x,name=systemd\n" +
				"33 30 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n" +
				"90 30 0:26 /sub /var/lib/other/cpu rw - cgroup cgroup rw,cpu,cpuacct\n",
			want: []Hierarchy{
				{MountPoint: "/sys/fs/cgroup/cpu,cpuacct", Controllers: []string{"cpu", "cpuacct"}},
				{MountPoint: "/sys/fs/cgroup/systemd", Controllers: []string{"name=systemd"}},
				{MountPoint: "/sys/fs/cgroup/unified", V2: true},
			},
		},
		{name: "When no hierarchy is mounted, it should return none", mountinfo: "30 23 0:25 / / rw - ext4 /dev/sda rw\n\nshort\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, parseMountinfo(tt.mountinfo)); diff != "" {
				t.Errorf("hierarchies (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAliases(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	for range 2 {
		g.Expect(aliases(dir, "cpu,cpuacct", []string{"cpu", "cpuacct"})).To(Succeed())
		g.Expect(aliases(dir, "systemd", []string{"name=systemd"})).To(Succeed())
	}
	links, err := filepath.Glob(filepath.Join(dir, "*"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(links).To(Equal([]string{filepath.Join(dir, "cpu"), filepath.Join(dir, "cpuacct")}))
	target, err := os.Readlink(links[0])
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(target).To(Equal("cpu,cpuacct"))
}

func TestInheritCPUSet(t *testing.T) {
	g := NewWithT(t)
	parent, child := t.TempDir(), t.TempDir()
	for name, content := range map[string][2]string{"cpuset.cpus": {"0-3\n", "\n"}, "cpuset.mems": {"0-1\n", "1\n"}} {
		g.Expect(os.WriteFile(filepath.Join(parent, name), []byte(content[0]), 0o600)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(child, name), []byte(content[1]), 0o600)).To(Succeed())
	}
	g.Expect(inheritCPUSet(parent, child)).To(Succeed())
	for name, want := range map[string]string{"cpuset.cpus": "0-3\n", "cpuset.mems": "1\n"} {
		got, err := os.ReadFile(filepath.Join(child, name))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(got)).To(Equal(want), name)
	}
}

func TestDelegate(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	g.Expect(os.WriteFile(filepath.Join(dir, "cgroup.controllers"), []byte("memory misc\n"), 0o600)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), nil, 0o600)).To(Succeed())
	g.Expect(delegate(dir)).To(Succeed())
	got, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(got)).To(Equal("+memory"), "controllers that a machine does not need stay where they are")
}

func TestLifeOfACgroup(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("making cgroups needs root")
	}
	g := NewWithT(t)
	const parent, name = "machine-test-cgroup", "machine-test-cgroup/a/b"
	t.Cleanup(func() { g.Expect(Remove(t.Context(), parent)).To(Succeed()) })
	hierarchies, err := Hierarchies()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Create(name)).To(Succeed())
	g.Expect(Create(name)).To(Succeed(), "what is there is left alone")

	sleep := exec.CommandContext(t.Context(), "sleep", "infinity")
	g.Expect(sleep.Start()).To(Succeed())
	ended := make(chan error, 1)
	go func() { ended <- sleep.Wait() }()
	g.Expect(Join(name, sleep.Process.Pid)).To(Succeed())
	g.Expect(Processes("machine-test-cgroup/a")).To(Equal([]int{sleep.Process.Pid}), "those below count")
	g.Expect(ended).NotTo(Receive())

	g.Expect(Remove(t.Context(), "machine-test-cgroup/a")).To(Succeed())
	g.Eventually(ended).WithTimeout(2 * time.Minute).Should(Receive(HaveOccurred()))
	for _, h := range hierarchies {
		g.Expect(filepath.Join(h.MountPoint, parent)).NotTo(BeADirectory(), "parents that are left empty go too")
	}
	g.Expect(Remove(t.Context(), name)).To(Succeed(), "what is not there is no error")
	g.Expect(Processes(name)).To(BeEmpty())
}
