// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openshift/hypershift/node-agent/host"
	"github.com/openshift/hypershift/node-agent/takeover"
)

// takeoverOptions holds the flags of takeover.
type takeoverOptions struct {
	stream, ignition, network, folder string
	installation                      takeover.Installation
}

func takeoverCommand(h *host.Host) *cobra.Command {
	var o takeoverOptions
	cmd := &cobra.Command{
		Use:   "takeover",
		Short: "Prepare the replacement of this Ubuntu by CoreOS",
		Long: "Checks whether this machine can start another kernel, finds the disk that it starts from, fetches CoreOS's live system, and makes an initramfs that\n" +
			"installs CoreOS on that disk. It starts nothing and writes only to --to; the commands that it prints at its end overwrite the disk.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), h, cmd.OutOrStdout()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.stream, "stream", "", "File with CoreOS's stream metadata, which names the live system (required)")
	flags.StringVar(&o.ignition, "ignition", "", "File with the Ignition config of the installed system (required)")
	flags.StringVar(&o.installation.Disk, "disk", "", "Disk to write, below /dev/disk/by-id; the default is the one that this machine starts from")
	flags.StringVar(&o.network, "network", "", "Folder of NetworkManager keyfiles for the live and the installed system; without it there is DHCP")
	flags.StringArrayVar(&o.installation.KernelArguments, "karg", nil, "Kernel argument of the installed system; may be repeated")
	flags.StringVar(&o.folder, "to", "/var/lib/hypershift/takeover", "Folder for the live system")
	for _, name := range []string{"stream", "ignition"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // The flag is defined above.
		}
	}
	return cmd
}

func (o *takeoverOptions) run(ctx context.Context, h *host.Host, out io.Writer) error {
	stream, err := os.ReadFile(o.stream)
	if err != nil {
		return fmt.Errorf("--stream: %w", err)
	}
	live, err := takeover.FromStream(stream, architecture)
	if err != nil {
		return fmt.Errorf("--stream: %w", err)
	}
	if o.installation.Ignition, err = os.ReadFile(o.ignition); err != nil {
		return fmt.Errorf("--ignition: %w", err)
	}
	if o.installation.Keyfiles, err = keyfiles(o.network); err != nil {
		return fmt.Errorf("--network: %w", err)
	}
	folder, err := filepath.Abs(o.folder)
	if err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	prepared, err := takeover.Prepare(ctx, h, http.DefaultClient, live, o.installation, folder)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "Ready to install CoreOS %s on %s. Nothing is changed yet; these overwrite that disk (kexec is of the package kexec-tools):\n\n"+
		"  kexec --load --kexec-file-syscall %s --initrd=%s --command-line=%s\n  systemctl kexec\n\nIf you do not go on, remove %s: the initramfs holds the config's token.\n",
		prepared.Release, prepared.Disk, quoted(prepared.Kernel), quoted(prepared.Initramfs), quoted(prepared.CommandLine), quoted(folder))
	return err
}

// quoted quotes text for a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// keyfiles reads the files of a folder; none if no folder is given.
func keyfiles(folder string) (map[string][]byte, error) {
	if folder == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("%s is empty: leave the flag out for DHCP", folder)
	}
	files := map[string][]byte{}
	for _, entry := range entries {
		if files[entry.Name()], err = os.ReadFile(filepath.Join(folder, entry.Name())); err != nil {
			return nil, err
		}
	}
	return files, nil
}
