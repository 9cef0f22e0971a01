// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/openshift/hypershift/node-agent/host"
)

const (
	// secureBoot is the UEFI variable SecureBoot; four bytes of attributes precede its value (UEFI specification, 3.3).
	secureBoot = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
	lockdown   = "/sys/kernel/security/lockdown"
	disabled   = "/proc/sys/kernel/kexec_load_disabled"

	// memory is the required memory in KiB. A live system with its root file system in the initramfs needs 4 GiB,
	// according to the guide of Fedora CoreOS. The limit is lower, since the firmware and the kernel reserve a part.
	memory = 7 << 19
)

// Check returns an error if the machine cannot start a new kernel, or lacks memory.
func Check(h *host.Host) error {
	variable, err := h.Read(secureBoot)
	if err != nil {
		return fmt.Errorf("reading whether the machine was started by secure boot: %w", err)
	}
	if len(variable) > 4 && variable[4] == 1 {
		return errors.New("secure boot is on, and its kernel cannot start a kernel that Red Hat signed; turn secure boot off, or deploy an RHCOS image")
	}
	locked, err := h.Read(lockdown)
	if err != nil {
		return err
	}
	// kernel_lockdown(7): the active mode is in brackets.
	if strings.Contains(string(locked), "[") && !strings.Contains(string(locked), "[none]") {
		return fmt.Errorf("the kernel is locked down (%s) and cannot start another kernel; boot it without lockdown=", strings.TrimSpace(string(locked)))
	}
	off, err := h.Read(disabled)
	if err != nil {
		return err
	}
	if strings.TrimSpace(string(off)) == "1" {
		return errors.New("kernel.kexec_load_disabled is 1 until the next boot: have nothing set it, and restart the machine")
	}
	return enoughMemory(h)
}

func enoughMemory(h *host.Host) error {
	text, err := h.Read("/proc/meminfo")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "MemTotal:" {
			continue
		}
		total, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return fmt.Errorf("reading /proc/meminfo: %w", err)
		}
		if total < memory {
			return fmt.Errorf("the machine has %d MiB of memory, and the live system needs 4096", total>>10)
		}
		return nil
	}
	return errors.New("/proc/meminfo does not say how much memory there is")
}
