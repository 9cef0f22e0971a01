// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openshift/hypershift/node-agent/host"
	"github.com/openshift/hypershift/support/nodeplan"
	"github.com/openshift/hypershift/support/syntax/shell"
)

const (
	grubDropIn = "/etc/default/grub.d/90-hypershift.cfg"
	// rebootedFor holds the arguments for which a reboot was requested, and the boot ID of the request.
	rebootedFor = "/var/lib/hypershift/rebooted-for"
	// bootFinished is created by cloud-init at the end of its last stage. By then, MAAS knows that the machine is
	// deployed.
	bootFinished = "/var/lib/cloud/instance/boot-finished"
	bootPoll     = time.Second
)

// KernelArguments sets the kernel arguments of the plan and removes those of an earlier plan. It uses a drop-in of the
// boot loader and one reboot.
func KernelArguments(ctx context.Context, h *host.Host, plan *nodeplan.Plan) error {
	running, err := h.Read("/proc/cmdline")
	if err != nil {
		return err
	}
	before, err := h.Read(rebootedFor)
	if err != nil {
		return err
	}
	has, wanted := strings.Fields(string(running)), strings.Join(plan.KernelArguments, " ")
	asked, _, _ := strings.Cut(string(before), "\n")
	missing := slices.DeleteFunc(slices.Clone(plan.KernelArguments), func(a string) bool { return slices.Contains(has, a) })
	dropped := slices.DeleteFunc(strings.Fields(asked), func(a string) bool {
		return slices.Contains(plan.KernelArguments, a) || !slices.Contains(has, a)
	})
	if len(missing)+len(dropped) == 0 && (!h.Exists(grubDropIn) || written(h, wanted)) {
		return nil
	}
	boot, err := h.Read("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return err
	}
	mark := wanted + "\n" + string(boot)
	if len(missing) > 0 && asked == wanted && string(before) != mark {
		return fmt.Errorf("the machine was restarted, but its kernel still lacks %s; check that it boots with the GRUB of its disk, which reads the arguments from %s",
			strings.Join(missing, " "), grubDropIn)
	}
	if err := writeArguments(h, wanted); err != nil {
		return err
	}
	if err := h.Do(ctx, "update-grub"); err != nil {
		return err
	}
	if len(missing)+len(dropped) == 0 {
		return nil // Other arguments were requested, but the kernel never booted with them.
	}
	return reboot(ctx, h, wanted, mark)
}

// dropIn returns the drop-in of the boot loader, which a shell reads.
func dropIn(arguments string) ([]byte, error) {
	quoted, err := shell.Quoted("kernelArguments", arguments)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "# From the MachineConfigs of the NodePool.\nGRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX %s\"\n", quoted), nil
}

func written(h *host.Host, wanted string) bool {
	present, err := h.Read(grubDropIn)
	expected, invalid := dropIn(wanted)
	return err == nil && invalid == nil && bytes.Equal(present, expected)
}

func writeArguments(h *host.Host, wanted string) error {
	if wanted == "" {
		return h.Remove(grubDropIn)
	}
	text, err := dropIn(wanted)
	if err != nil {
		return err
	}
	_, err = h.Write(grubDropIn, text, 0o644)
	return err
}

// reboot waits for cloud-init, then reboots. It returns only if that failed.
func reboot(ctx context.Context, h *host.Host, wanted, mark string) error {
	h.Say("the kernel needs the arguments \"%s\": restarting the machine when cloud-init has finished", wanted)
	for !h.Exists(bootFinished) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(bootPoll):
		}
	}
	if _, err := h.Write(rebootedFor, []byte(mark), 0o644); err != nil {
		return err
	}
	if err := h.Do(ctx, "systemctl", "reboot"); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// SwapOff disables the swap in /etc/fstab, now and for later boots. MAAS gives Ubuntu a swap file.
func SwapOff(ctx context.Context, h *host.Host, _ *nodeplan.Plan) error {
	const fstab = "/etc/fstab"
	text, err := h.Read(fstab)
	if err != nil {
		return err
	}
	if text == nil {
		return nil
	}
	active, err := h.Read("/proc/swaps")
	if err != nil {
		return err
	}
	var kept strings.Builder
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 3 || strings.HasPrefix(fields[0], "#") || fields[2] != "swap" {
			kept.WriteString(line)
			continue
		}
		if len(strings.Fields(string(active))) > swapHeader {
			if err := h.Do(ctx, "swapoff", fields[0]); err != nil {
				// Swap that is in use cannot always be turned off. The kubelet also starts with swap.
				h.Say("swap on %s stays for now: %v", fields[0], err)
			}
		}
		kept.WriteString("# Turned off for Kubernetes: " + line)
	}
	changed, err := h.Write(fstab, []byte(kept.String()), 0o644)
	if changed {
		h.Say("turned swap off")
	}
	return err
}

// swapHeader is the number of words in the header line of /proc/swaps.
const swapHeader = 5

// KernelSettings loads the modules and applies the sysctls in the files of the plan. It also raises low limits of the
// kernel. It only logs errors, since a module may be built into the kernel. The kubelet reports what is really missing.
func KernelSettings(ctx context.Context, h *host.Host, _ *nodeplan.Plan) error {
	modules, err := h.Read("/etc/modules-load.d/90-hypershift-node.conf")
	if err != nil {
		return err
	}
	for module := range strings.FieldsSeq(string(modules)) {
		if err := h.Do(ctx, "modprobe", module); err != nil {
			h.Say("kernel module %s is not loadable here: %v", module, err)
		}
	}
	if err := h.Do(ctx, "sysctl", "-e", "-q", "-p", h.Path("/etc/sysctl.d/90-hypershift-node.conf")); err != nil {
		h.Say("some kernel settings were refused: %v", err)
	}
	raiseLimits(ctx, h)
	return nil
}
