// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// modprobe succeeds for modules that the host's kernel has, built in or loaded. It never loads one: the kernel belongs
// to the host.
func modprobe(s System, args []string) int {
	code := 0
	for _, name := range args {
		if !strings.HasPrefix(name, "-") && !s.hasModule(name) {
			code = s.fail("modprobe: FATAL: Module %s not found: the host's kernel neither has it built in nor loaded", name)
		}
	}
	return code
}

// hasModule checks what the kernel exposes: modules with parameters, loaded modules, file systems, and modules that
// only have settings.
func (s System) hasModule(name string) bool {
	name = strings.ReplaceAll(name, "-", "_")
	for _, path := range append([]string{filepath.Join("sys/module", name)}, moduleTraces[name]...) {
		if _, err := os.Stat(filepath.Join(s.Root, path)); err == nil {
			return true
		}
	}
	filesystems, err := os.ReadFile(filepath.Join(s.Root, "proc/filesystems"))
	return err == nil && slices.Contains(strings.Fields(string(filesystems)), name)
}

// moduleTraces lists files that prove that a module without parameters is built in.
var moduleTraces = map[string][]string{
	"br_netfilter": {"proc/sys/net/bridge"},
	"ip_vs":        {"proc/net/ip_vs", "proc/sys/net/ipv4/vs"},
	"nf_tables":    {"proc/net/netfilter"},
	"ip_tables":    {"proc/net/ip_tables_names"},
	"tun":          {"dev/net/tun"},
}

// grubConfig is the file that update-grub writes and CommandLine reads.
const grubConfig = "boot/grub/grub.cfg"

// updateGrub writes the boot loader's configuration: the new kernel command line applies from the next boot on.
func updateGrub(s System, _ []string) int {
	files := []string{filepath.Join(s.Root, "etc/default/grub")}
	dropIns, _ := filepath.Glob(filepath.Join(s.Root, "etc/default/grub.d/*.cfg")) // The pattern is valid.
	words := map[string]string{}
	for _, file := range append(files, dropIns...) {
		data, err := os.ReadFile(file)
		if err != nil && !os.IsNotExist(err) {
			return s.fail("update-grub: %v", err)
		}
		assign(string(data), words)
	}
	line := strings.Join(strings.Fields("ro "+words["GRUB_CMDLINE_LINUX"]+" "+words["GRUB_CMDLINE_LINUX_DEFAULT"]), " ")
	target := filepath.Join(s.Root, grubConfig)
	err := os.MkdirAll(filepath.Dir(target), 0o755)
	if err == nil {
		err = os.WriteFile(target, []byte("linux /boot/vmlinuz root=LABEL=cloudimg-rootfs "+line+"\n"), 0o644)
	}
	if err != nil {
		return s.fail("update-grub: %v", err)
	}
	fmt.Fprintln(s.ErrOut, "Generating grub configuration file ...\ndone")
	return 0
}

// assign parses lines such as A="$A more" into words, as the shell does.
func assign(content string, words map[string]string) {
	for line := range strings.Lines(content) {
		name, value, found := strings.Cut(strings.TrimSpace(line), "=")
		if !found || strings.HasPrefix(name, "#") || strings.ContainsAny(name, " \t") {
			continue
		}
		quote := strings.HasPrefix(value, "'")
		value = strings.Trim(value, `"'`)
		if !quote {
			value = os.Expand(value, func(name string) string { return words[name] })
		}
		words[name] = value
	}
}

// CommandLine returns the kernel command line of a machine whose root file system is root, from its boot loader's
// configuration.
func CommandLine(root string) string {
	data, err := os.ReadFile(filepath.Join(root, grubConfig))
	if err != nil {
		return "BOOT_IMAGE=/boot/vmlinuz root=LABEL=cloudimg-rootfs ro\n"
	}
	_, line, _ := strings.Cut(string(data), "linux /boot/vmlinuz ")
	return "BOOT_IMAGE=/boot/vmlinuz " + line
}
