// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/node-agent/apply"
	"github.com/openshift/hypershift/node-agent/host/hosttest"
	"github.com/openshift/hypershift/support/nodeplan"
)

const (
	dropIn      = "/etc/default/grub.d/90-hypershift.cfg"
	rebootedFor = "/var/lib/hypershift/rebooted-for"
	cmdline     = "/proc/cmdline"
	bootID      = "/proc/sys/kernel/random/boot_id"
	restart     = "systemctl reboot"
)

// booted returns a machine that was booted with these kernel arguments, and on which cloud-init has finished.
func booted(t *testing.T, arguments string) (*GomegaWithT, *hosttest.Machine) {
	t.Helper()
	g, m := newMachine(t)
	m.Put(cmdline, "BOOT_IMAGE=/vmlinuz "+arguments+"\n")
	m.Put(bootID, "first\n")
	m.Put("/var/lib/cloud/instance/boot-finished", "")
	return g, m
}

// arguments applies the kernel arguments. A reboot ends the machine.
func arguments(t *testing.T, m *hosttest.Machine, wanted ...string) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m.Commands = nil
	answer := m.Program
	m.Program = func(command string, stdin io.Reader) ([]byte, error) {
		if answer != nil {
			return answer(command, stdin)
		}
		if command == restart {
			cancel()
		}
		return nil, nil
	}
	defer func() { m.Program = answer }()
	return apply.KernelArguments(ctx, m.Host, &nodeplan.Plan{KernelArguments: wanted})
}

// reboots simulates a boot with the arguments that the boot loader currently has.
func reboots(m *hosttest.Machine, id, with string) {
	m.Put(bootID, id+"\n")
	m.Put(cmdline, "BOOT_IMAGE=/vmlinuz "+with+"\n")
}

func TestKernelArguments(t *testing.T) {
	t.Parallel()
	both := []string{"update-grub", restart}
	for name, tt := range map[string]struct {
		has    string
		grub   string
		wanted []string
		ran    []string
		want   string
	}{
		"When no arguments are desired, it should do nothing":                                            {"quiet", "", nil, nil, ""},
		"When the kernel already has the arguments, it should not change the boot loader":                {"quiet nosmt", "", []string{"nosmt"}, nil, ""},
		"When one of two arguments is missing, it should reboot with both":                               {"quiet nosmt", "", []string{"nosmt", "hugepages=8"}, both, `"$GRUB_CMDLINE_LINUX nosmt hugepages=8"`},
		"When an argument is only a prefix of an existing one, it should be missing":                     {"quiet nosmt=force", "", []string{"nosmt"}, both, `"$GRUB_CMDLINE_LINUX nosmt"`},
		"When the boot loader has other arguments that never ran, it should write only the desired ones": {"quiet nosmt", "other", []string{"nosmt"}, []string{"update-grub"}, `"$GRUB_CMDLINE_LINUX nosmt"`},
		"When the boot loader has arguments that never ran and none are desired, it should remove them":  {"quiet", "other", nil, []string{"update-grub"}, ""},
		"When both the boot loader and the kernel have the arguments, it should do nothing":              {"quiet nosmt", "nosmt", []string{"nosmt"}, nil, `"$GRUB_CMDLINE_LINUX nosmt"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, m := booted(t, tt.has)
			if tt.grub != "" {
				m.Put(dropIn, "# From the MachineConfigs of the NodePool.\nGRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX "+tt.grub+"\"\n")
			}
			err := arguments(t, m, tt.wanted...)
			if slices.Contains(tt.ran, restart) {
				g.Expect(err).To(MatchError(context.Canceled), "it waits for its end")
			} else {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(m.Exists(rebootedFor)).To(BeFalse())
			}
			g.Expect(m.Commands).To(HaveExactElements(tt.ran))
			if tt.want == "" {
				g.Expect(m.Exists(dropIn)).To(BeFalse())
				return
			}
			g.Expect(m.Text(dropIn)).To(ContainSubstring("\nGRUB_CMDLINE_LINUX=" + tt.want + "\n"))
			g.Expect(m.Mode(dropIn).Perm()).To(BeEquivalentTo(0o644))
		})
	}
}

// TestKernelArgumentsOverBoots follows a machine across its reboots.
func TestKernelArgumentsOverBoots(t *testing.T) {
	t.Parallel()
	started := func(t *testing.T) (*GomegaWithT, *hosttest.Machine) {
		t.Helper()
		g, m := booted(t, "quiet")
		g.Expect(arguments(t, m, "nosmt")).To(MatchError(context.Canceled))
		return g, m
	}
	t.Run("When power is lost before the reboot, it should request the reboot again", func(t *testing.T) {
		g, m := started(t)
		g.Expect(arguments(t, m, "nosmt")).To(MatchError(context.Canceled))
		g.Expect(m.Commands).To(ContainElement(restart))
	})
	t.Run("When a reboot is in progress, it should wait for the reboot", func(t *testing.T) {
		g, m := booted(t, "quiet")
		ctx, cancel := context.WithCancel(t.Context())
		m.Program = func(command string, _ io.Reader) ([]byte, error) {
			if command == restart {
				time.AfterFunc(20*time.Millisecond, cancel)
			}
			return nil, nil
		}
		g.Expect(apply.KernelArguments(ctx, m.Host, &nodeplan.Plan{KernelArguments: []string{"nosmt"}})).To(MatchError(context.Canceled))
	})
	t.Run("When the next boot lacks the arguments, it should return an error and not reboot again", func(t *testing.T) {
		g, m := started(t)
		reboots(m, "second", "quiet")
		g.Expect(arguments(t, m, "nosmt")).To(MatchError(And(ContainSubstring("its kernel still lacks nosmt"), ContainSubstring(dropIn))))
		g.Expect(m.Commands).To(BeEmpty())
	})
	t.Run("When other arguments are desired after the reboot, it should reboot with those", func(t *testing.T) {
		g, m := started(t)
		reboots(m, "second", "quiet")
		g.Expect(arguments(t, m, "hugepages=8")).To(MatchError(context.Canceled))
		g.Expect(m.Text(dropIn)).To(ContainSubstring("LINUX hugepages=8\""))
	})
	t.Run("When running arguments are no longer desired, it should reboot once without them", func(t *testing.T) {
		g, m := started(t)
		reboots(m, "second", "quiet nosmt")
		g.Expect(arguments(t, m, "nosmt")).To(Succeed())
		g.Expect(arguments(t, m)).To(MatchError(context.Canceled))
		g.Expect(m.Exists(dropIn)).To(BeFalse())
		g.Expect(m.Commands).To(Equal([]string{"update-grub", restart}))
		reboots(m, "third", "quiet")
		g.Expect(arguments(t, m)).To(Succeed())
		g.Expect(m.Commands).To(BeEmpty())
	})
	t.Run("When arguments are removed before they ran, it should not reboot", func(t *testing.T) {
		g, m := started(t)
		g.Expect(arguments(t, m)).To(Succeed())
		g.Expect(m.Commands).To(Equal([]string{"update-grub"}))
		g.Expect(m.Exists(dropIn)).To(BeFalse())
	})
	t.Run("When one of two arguments is removed, it should keep the other", func(t *testing.T) {
		g, m := booted(t, "quiet")
		g.Expect(arguments(t, m, "nosmt", "hugepages=8")).To(MatchError(context.Canceled))
		reboots(m, "second", "quiet nosmt hugepages=8")
		g.Expect(arguments(t, m, "nosmt")).To(MatchError(context.Canceled))
		g.Expect(m.Text(dropIn)).To(ContainSubstring("LINUX nosmt\""))
	})
	t.Run("When an argument of the image is no longer desired, it should stay", func(t *testing.T) {
		g, m := booted(t, "quiet nosmt")
		g.Expect(arguments(t, m, "nosmt")).To(Succeed())
		g.Expect(arguments(t, m)).To(Succeed())
		g.Expect(m.Commands).To(BeEmpty())
	})
}

// TestKernelArgumentsFail checks that the machine does not reboot if the boot loader did not get the arguments.
func TestKernelArgumentsFail(t *testing.T) {
	t.Parallel()
	fails := errors.New("no space left on device")
	for _, program := range []string{"update-grub", restart} {
		t.Run("When "+program+" fails, it should return an error and retry", func(t *testing.T) {
			t.Parallel()
			g, m := booted(t, "quiet")
			m.Program = func(command string, _ io.Reader) ([]byte, error) {
				if command == program {
					return nil, fails
				}
				return nil, nil
			}
			g.Expect(arguments(t, m, "nosmt")).To(MatchError(fails))
			g.Expect(m.Commands[len(m.Commands)-1]).To(Equal(program))
			g.Expect(m.Exists(rebootedFor)).To(Equal(program == restart), "it was not asked for yet")
			m.Program = nil
			g.Expect(arguments(t, m, "nosmt")).To(MatchError(context.Canceled))
			g.Expect(m.Commands).To(Equal([]string{"update-grub", restart}))
		})
	}
	for path, why := range map[string]string{
		cmdline: "the running kernel arguments are unknown", bootID: "the boot ID is unknown", rebootedFor: "the requested arguments are unknown",
		dropIn: "the boot loader cannot be configured",
	} {
		t.Run("When "+why+", the machine should not reboot", func(t *testing.T) {
			t.Parallel()
			g, m := booted(t, "quiet")
			g.Expect(m.Remove(path)).To(Succeed())
			m.Put(path+"/x", "in the way")
			g.Expect(arguments(t, m, "nosmt")).To(MatchError(ContainSubstring(path)))
			g.Expect(m.Commands).NotTo(ContainElement(restart))
		})
	}
	t.Run("When the boot loader configuration cannot be removed, it should return an error", func(t *testing.T) {
		g, m := booted(t, "quiet")
		m.Put(dropIn+"/x", "in the way")
		g.Expect(arguments(t, m)).To(MatchError(ContainSubstring(dropIn)))
		g.Expect(m.Commands).To(BeEmpty())
	})
	t.Run("When cloud-init has not finished, it should not reboot the machine", func(t *testing.T) {
		g, m := booted(t, "quiet")
		g.Expect(m.Remove("/var/lib/cloud/instance/boot-finished")).To(Succeed())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		g.Expect(apply.KernelArguments(ctx, m.Host, &nodeplan.Plan{KernelArguments: []string{"nosmt"}})).To(MatchError(context.Canceled))
		g.Expect(m.Commands).NotTo(ContainElement(restart))
		g.Expect(m.Exists(rebootedFor)).To(BeFalse())
		g.Expect(m.Log()).To(ContainSubstring(`"nosmt"`), "who waits is told for what")
	})
}

func TestSwapOff(t *testing.T) {
	t.Parallel()
	const header, used = "Filename Type Size Used Priority\n", "/swap.img file 1 0 -2\n"
	for name, tt := range map[string]struct {
		fstab, swaps, want string
		ran                []string
	}{
		"When a swap file is in use, it should be turned off and removed from fstab": {"/dev/sda2 / ext4 defaults 0 1\n/swap.img none swap sw 0 0\n", header + used,
			"/dev/sda2 / ext4 defaults 0 1\n# Turned off for Kubernetes: /swap.img none swap sw 0 0\n", []string{"swapoff /swap.img"}},
		"When no swap is in use, it should only be removed from fstab":                {"/swap.img none swap sw 0 0\n", header, "# Turned off for Kubernetes: /swap.img none swap sw 0 0\n", nil},
		"When the kernel does not support swap, it should only be removed from fstab": {"/swap.img none swap sw 0 0\n", "", "# Turned off for Kubernetes: /swap.img none swap sw 0 0\n", nil},
		"When there are two swap entries, both should be turned off in order": {"/a none swap\n# between\nUUID=1\tnone\tswap\tsw\n", header + used,
			"# Turned off for Kubernetes: /a none swap\n# between\n# Turned off for Kubernetes: UUID=1\tnone\tswap\tsw\n", []string{"swapoff /a", "swapoff UUID=1"}},
		"When swap is already commented out, it should do nothing":            {"# Turned off for Kubernetes: /swap.img none swap sw 0 0\n", header + used, "# Turned off for Kubernetes: /swap.img none swap sw 0 0\n", nil},
		"When a directory is named swap, it should stay mounted":              {"/dev/sdb1 /swap ext4 defaults 0 2\nswap swap ext4\n", header + used, "/dev/sdb1 /swap ext4 defaults 0 2\nswap swap ext4\n", nil},
		"When a line is truncated, it should not be changed":                  {"/swap.img swap\n\n/swap.img", header + used, "/swap.img swap\n\n/swap.img", nil},
		"When the last line has no newline, it should still be commented out": {"/swap.img none swap", header + used, "# Turned off for Kubernetes: /swap.img none swap", []string{"swapoff /swap.img"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, m := newMachine(t)
			m.Put("/etc/fstab", tt.fstab)
			if tt.swaps != "" {
				m.Put("/proc/swaps", tt.swaps)
			}
			for range 2 {
				g.Expect(apply.SwapOff(t.Context(), m.Host, nil)).To(Succeed())
				g.Expect(m.Text("/etc/fstab")).To(Equal(tt.want))
				g.Expect(m.Commands).To(HaveExactElements(tt.ran), "once")
			}
			g.Expect(strings.Count(m.Log(), "turned swap off")).To(Equal(min(1, strings.Count(tt.want, "Turned off")-strings.Count(tt.fstab, "Turned off"))))
		})
	}
	t.Run("When there is no fstab, it should not create one", func(t *testing.T) {
		g, m := newMachine(t)
		g.Expect(apply.SwapOff(t.Context(), m.Host, nil)).To(Succeed())
		g.Expect(m.Exists("/etc/fstab")).To(BeFalse())
	})
	t.Run("When swap cannot be turned off now, it should continue and disable swap for the next boot", func(t *testing.T) {
		g, m := newMachine(t)
		m.Put("/etc/fstab", "/swap.img none swap\n")
		m.Put("/proc/swaps", header+used)
		m.Program = func(string, io.Reader) ([]byte, error) { return nil, errors.New("cannot allocate memory") }
		g.Expect(apply.SwapOff(t.Context(), m.Host, nil)).To(Succeed())
		g.Expect(m.Text("/etc/fstab")).To(HavePrefix("# Turned off"))
		g.Expect(m.Log()).To(ContainSubstring("swap on /swap.img stays for now: cannot allocate memory"))
	})
	for _, path := range []string{"/etc/fstab", "/proc/swaps"} {
		t.Run("When "+path+" cannot be read, it should return an error and turn nothing off", func(t *testing.T) {
			g, m := newMachine(t)
			m.Put("/etc/fstab", "/swap.img none swap\n")
			g.Expect(m.Remove(path)).To(Succeed())
			m.Put(path+"/x", "")
			g.Expect(apply.SwapOff(t.Context(), m.Host, nil)).To(MatchError(ContainSubstring(path)))
			g.Expect(m.Commands).To(BeEmpty())
		})
	}
}

func TestKernelSettings(t *testing.T) {
	t.Parallel()
	const modules, sysctl = "/etc/modules-load.d/90-hypershift-node.conf", "sysctl -e -q -p /etc/sysctl.d/90-hypershift-node.conf"
	t.Run("When the plan has modules, it should load them before it applies the settings", func(t *testing.T) {
		g, m := newMachine(t)
		m.Put(modules, "overlay\n\n br_netfilter \n")
		g.Expect(apply.KernelSettings(t.Context(), m.Host, nil)).To(Succeed())
		g.Expect(m.Commands).To(Equal([]string{"modprobe overlay", "modprobe br_netfilter", sysctl}))
		g.Expect(m.Log()).To(BeEmpty())
	})
	t.Run("When loading a module fails, it should try the others and continue", func(t *testing.T) {
		g, m := newMachine(t)
		m.Put(modules, "overlay\nbr_netfilter\n")
		m.Program = func(string, io.Reader) ([]byte, error) { return nil, errors.New("not permitted") }
		g.Expect(apply.KernelSettings(t.Context(), m.Host, nil)).To(Succeed())
		g.Expect(m.Commands).To(HaveLen(3))
		g.Expect(m.Log()).To(And(ContainSubstring("kernel module overlay is not loadable"), ContainSubstring("kernel module br_netfilter is not"), ContainSubstring("some kernel settings were refused")))
	})
	t.Run("When the plan has no modules, it should still apply the settings", func(t *testing.T) {
		g, m := newMachine(t)
		g.Expect(apply.KernelSettings(t.Context(), m.Host, nil)).To(Succeed())
		g.Expect(m.Commands).To(Equal([]string{sysctl}))
	})
	t.Run("When the list of modules cannot be read, it should return an error", func(t *testing.T) {
		g, m := newMachine(t)
		m.Put(modules+"/x", "")
		g.Expect(apply.KernelSettings(t.Context(), m.Host, nil)).To(MatchError(ContainSubstring(modules)))
	})
}
