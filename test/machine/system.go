// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/openshift/hypershift/test/machine/tools"
)

// own lists the kernel files of which a machine with an operating system has its own copies. Keys are the names of
// the copies in ownDir.
var own = map[string]string{"boot-id": "proc/sys/kernel/random/boot_id", "cmdline": "proc/cmdline", "swaps": "proc/swaps"}

const ownDir = "run/machine/kernel"

// mountOwn mounts the machine's copies over the files of the host's kernel.
func mountOwn(root string) error {
	if err := writeOwn(root); err != nil {
		return err
	}
	for name, path := range own {
		if err := bind(filepath.Join(root, ownDir, name), filepath.Join(root, path), false); err != nil {
			return err
		}
	}
	return nil
}

// writeOwn writes what is new at each boot: a boot ID, and the command line that the boot loader passes to the kernel.
func writeOwn(root string) error {
	if err := os.MkdirAll(filepath.Join(root, ownDir), 0o755); err != nil {
		return err
	}
	for name, content := range map[string]string{
		"boot-id": uuid() + "\n", "cmdline": tools.CommandLine(root), "swaps": "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n",
	} {
		if err := os.WriteFile(filepath.Join(root, ownDir, name), []byte(content), 0o444); err != nil {
			return err
		}
	}
	return nil
}

// uuid returns a random UUID, version 4.
func uuid() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// prepareSystem links the tools, which are for machines with their folder in PATH. It then does what systemd does
// before it starts units: it creates the folders that show that systemd runs, and runs the generators.
func prepareSystem(ctx context.Context, config Config) error {
	if err := linkTools(); err != nil || config.System == "" {
		return err
	}
	if err := os.MkdirAll("/run/systemd/system", 0o755); err != nil {
		return err
	}
	return generate(ctx, config.Env)
}

func linkTools() error {
	if err := os.MkdirAll(tools.Dir, 0o755); err != nil {
		return err
	}
	for name := range tools.Commands {
		if err := os.Symlink("/proc/1/exe", filepath.Join(tools.Dir, name)); err != nil && !os.IsExist(err) {
			return err
		}
	}
	return nil
}

const generatorDir = "/usr/lib/systemd/system-generators"

// generate runs the programs that generate units. It reports failed programs on the console, as systemd does.
func generate(ctx context.Context, env []string) error {
	args := []string{"/run/systemd/generator", "/run/systemd/generator.early", "/run/systemd/generator.late"}
	for _, dir := range args {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	generators, err := filepath.Glob(filepath.Join(generatorDir, "*"))
	if err != nil {
		return err
	}
	for _, generator := range generators {
		cmd := exec.CommandContext(ctx, generator, args...)
		cmd.Env, cmd.Stdout, cmd.Stderr = env, os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", generator, err)
		}
	}
	return nil
}
