// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/machine/control"
	"github.com/openshift/hypershift/test/machine/units"
)

// ungrouped is a Group that tracks no processes.
type ungrouped struct{}

func (ungrouped) Enter(string, *exec.Cmd)             {}
func (ungrouped) Signal(string, syscall.Signal) error { return nil }

// machine is a folder as root file system, with a manager that answers requests.
type machine struct {
	System
	out   bytes.Buffer
	power chan control.Verb
}

func write(t *testing.T, path, content string) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
	g.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
}

func newMachine(t *testing.T, files map[string]string) *machine {
	t.Helper()
	m := &machine{power: make(chan control.Verb, 1)}
	root := t.TempDir()
	for path, content := range files {
		write(t, filepath.Join(root, path), content)
	}
	m.System = System{
		Root: root, Socket: filepath.Join(root, "control.sock"), Out: &m.out, ErrOut: &m.out,
		UnitDirs: []string{filepath.Join(root, "etc/systemd/system")},
	}
	manager := &units.Manager{Dirs: m.UnitDirs, LogDir: filepath.Join(root, "log"), Group: ungrouped{}, Env: []string{"PATH=/usr/bin:/bin"}}
	ctx, cancel := context.WithCancel(context.Background())
	server := &control.Server{Manager: manager, Power: func(verb control.Verb) { m.power <- verb }}
	NewWithT(t).Expect(server.Serve(ctx, m.Socket)).To(Succeed())
	ended := make(chan error, 1)
	go func() { ended <- manager.Run(ctx, []string{"boot.service"}) }()
	t.Cleanup(func() { cancel(); NewWithT(t).Expect(<-ended).To(Succeed()) })
	NewWithT(t).Eventually(func() units.State { return manager.Status()["boot.service"].State }).Should(Equal(units.Active))
	return m
}

// run runs a command line, and returns its exit status and output.
func (m *machine) run(line string) (code int, out string) {
	m.out.Reset()
	words := strings.Fields(line)
	code = Commands[words[0]](m.System, words[1:])
	return code, strings.TrimSpace(m.out.String())
}

const nap = "[Service]\nExecStart=sleep infinity\n[Install]\nWantedBy=multi-user.target\n"

func TestSystemctl(t *testing.T) {
	m := newMachine(t, map[string]string{
		"etc/systemd/system/boot.service": "[Service]\nExecStart=sleep infinity\n",
		"etc/systemd/system/nap.service":  nap,
		"etc/systemd/system/bad.service":  "[Service]\nType=oneshot\nExecStart=false\n",
	})
	// Each line depends on the lines before it.
	for _, test := range []struct {
		line string
		code int
		says string
	}{
		{"systemctl is-active boot nap.service", 0, "active\ninactive"},
		{"systemctl is-active nap", 3, "inactive"},
		{"systemctl --quiet is-active nap", 3, ""},
		{"systemctl is-enabled nap", 1, "disabled"},
		{"systemctl is-enabled boot", 0, "static"},
		{"systemctl enable boot", 0, "boot.service has no [Install] section: nothing starts it at boot"},
		{"systemctl enable --now nap", 0, ""},
		{"systemctl is-active nap", 0, "active"},
		{"systemctl is-enabled nap", 0, "enabled"},
		{"systemctl restart nap", 0, ""},
		{"systemctl try-restart nap bad", 0, ""},
		{"systemctl kill -s SIGHUP nap", 0, ""},
		{"systemctl kill --signal=NOVEL nap", 1, `systemctl: unknown signal "NOVEL"`},
		{"systemctl show -p ActiveState,UnitFileState nap", 0, "ActiveState=active\nUnitFileState=enabled"},
		{"systemctl show --property=LoadState --value nap missing", 0, "loaded\nnot-found"},
		{"systemctl start --no-block nap", 0, ""},
		{"systemctl start bad", 1, "systemctl start: starting bad.service: ExecStart: false: exit status 1"},
		{"systemctl is-failed bad", 0, "failed"},
		{"systemctl is-failed nap", 3, "active"},
		{"systemctl show --value -p Result bad", 0, "exit-code"},
		{"systemctl start missing", 1, "systemctl start: starting missing.service: missing.service: unit not found"},
		{"systemctl status missing", 4, "missing.service\n     Active: failed\n     Restarts: 0\n     missing.service: unit not found"},
		{"systemctl disable --now nap", 0, ""},
		{"systemctl is-active nap", 3, "inactive"},
		{"systemctl mask nap", 1, "systemctl: FOLDER/nap.service is a file"},
		{"systemctl mask --now other", 0, ""},
		{"systemctl is-enabled other", 1, "masked"},
		{"systemctl unmask other", 0, ""},
		{"systemctl is-enabled other", 1, "Failed to get unit file state for other.service: other.service: unit not found"},
		{"systemctl stop nap other", 0, ""},
		{"systemctl daemon-reload", 0, ""},
		{"systemctl is-system-running", 0, "running"},
		{"systemctl reset-failed", 0, ""},
	} {
		code, out := m.run(test.line)
		out = strings.ReplaceAll(out, m.UnitDirs[0], "FOLDER")
		if code != test.code || out != test.says {
			t.Errorf("%s: %d %q, want %d %q", test.line, code, out, test.code, test.says)
		}
	}
	for _, line := range []string{"systemctl", "systemctl dance nap"} {
		code, out := m.run(line)
		NewWithT(t).Expect(code).To(Equal(1))
		NewWithT(t).Expect(out).To(ContainSubstring("daemon-reexec, daemon-reload"), "it says what it knows")
	}
}

func TestPower(t *testing.T) {
	m := newMachine(t, map[string]string{"etc/systemd/system/boot.service": nap})
	for line, want := range map[string]control.Verb{
		"reboot": control.Reboot, "systemctl reboot": control.Reboot, "shutdown -r now": control.Reboot, "shutdown --reboot": control.Reboot,
		"poweroff": control.PowerOff, "systemctl poweroff": control.PowerOff, "shutdown -h now": control.PowerOff,
	} {
		code, out := m.run(line)
		NewWithT(t).Expect(code).To(BeZero(), out)
		NewWithT(t).Eventually(m.power).WithTimeout(2*time.Minute).Should(Receive(Equal(want)), line)
	}
	code, _ := m.run("shutdown -c")
	NewWithT(t).Expect(code).To(Equal(1))
	m.Socket += ".none"
	for _, line := range []string{"reboot", "systemctl is-active x", "systemctl start x", "systemctl show x", "systemctl status x", "systemctl try-restart x", "systemctl unmask x"} {
		code, out := m.run(line)
		NewWithT(t).Expect(code).To(Equal(1), line)
		NewWithT(t).Expect(out).To(ContainSubstring("connecting to PID 1"))
	}
}

func TestModprobe(t *testing.T) {
	m := newMachine(t, map[string]string{
		"etc/systemd/system/boot.service": nap,
		"sys/module/nf_conntrack/x":       "", "proc/filesystems": "nodev\tsysfs\nnodev\toverlay\n", "proc/sys/net/bridge/x": "",
	})
	for line, want := range map[string]int{
		"modprobe overlay": 0, "modprobe -a nf-conntrack br_netfilter": 0, "modprobe zfs": 1, "modprobe overlay zfs": 1, "swapoff -a": 0, "udevadm settle": 0,
	} {
		code, out := m.run(line)
		NewWithT(t).Expect(code).To(Equal(want), line+": "+out)
	}
}

func TestUpdateGrub(t *testing.T) {
	files := map[string]string{
		"etc/systemd/system/boot.service": nap,
		"etc/default/grub":                "# the distribution's\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet splash\"\nGRUB_CMDLINE_LINUX=\"\"\n",
		"etc/default/grub.d/50-cloud.cfg": "GRUB_CMDLINE_LINUX_DEFAULT=\"console=ttyS0\"\n",
		"etc/default/grub.d/90-node.cfg":  "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX hugepages=4\"\nGRUB_X='$HOME'\n",
	}
	m := newMachine(t, files)
	before := CommandLine(m.Root)
	if diff := cmp.Diff("BOOT_IMAGE=/boot/vmlinuz root=LABEL=cloudimg-rootfs ro\n", before); diff != "" {
		t.Error(diff)
	}
	code, out := m.run("update-grub")
	NewWithT(t).Expect(code).To(BeZero(), out)
	if diff := cmp.Diff("BOOT_IMAGE=/boot/vmlinuz root=LABEL=cloudimg-rootfs ro hugepages=4 console=ttyS0\n", CommandLine(m.Root)); diff != "" {
		t.Error(diff)
	}
	NewWithT(t).Expect(os.RemoveAll(filepath.Join(m.Root, "boot"))).To(Succeed())
	write(t, filepath.Join(m.Root, "boot"), "a file")
	code, _ = m.run("update-grub")
	NewWithT(t).Expect(code).To(Equal(1))
}
