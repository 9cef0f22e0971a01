// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/node-agent/host"
)

// TestTakeoverCommand runs the command with a stream, a config and network files. It checks the commands that are
// printed for the user.
func TestTakeoverCommand(t *testing.T) {
	const artifact = "a file of the live system"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, artifact) }))
	t.Cleanup(server.Close)
	sum := sha256.Sum256([]byte(artifact))
	published := fmt.Sprintf(`{"location": "%s/f", "sha256": "%s"}`, server.URL, hex.EncodeToString(sum[:]))
	metal := `{"artifacts": {"metal": {"release": "42.1", "formats": {"pxe": {"kernel": ` + published + `, "initramfs": ` + published + `, "rootfs": ` + published + `}}}}}`
	inputs := t.TempDir()
	for name, content := range map[string]string{
		"stream.json": `{"architectures": {"x86_64": ` + metal + `, "aarch64": ` + metal + `}}`, "node.ign": `{"ignition":{"version":"3.2.0"}}`,
		"network/eth0.nmconnection": "[connection]\n", "empty.json": "{}", "bad/notes.txt": "",
	} {
		g := NewWithT(t)
		g.Expect(os.MkdirAll(filepath.Dir(filepath.Join(inputs, name)), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(inputs, name), []byte(content), 0o600)).To(Succeed())
	}
	NewWithT(t).Expect(os.Mkdir(filepath.Join(inputs, "none-in-it"), 0o755)).To(Succeed())
	in := func(name string) string { return filepath.Join(inputs, name) }
	tests := map[string]struct {
		args []string
		// want is a part of the output. at is the directory that then has the initramfs.
		want, at, wantErr string
	}{
		"When all flags are set, it should print the commands that overwrite the disk": {
			args: []string{"--stream", in("stream.json"), "--ignition", in("node.ign"), "--network", in("network"), "--disk", "/dev/disk/by-id/wwn-1", "--karg", "nosmt", "--to", "/srv/t"},
			want: "Ready to install CoreOS 42.1 on /dev/disk/by-id/wwn-1. Nothing is changed yet; these overwrite that disk (kexec is of the package kexec-tools):\n\n" +
				"  kexec --load --kexec-file-syscall '/srv/t/kernel' --initrd='/srv/t/initramfs' --command-line='ignition.firstboot ignition.platform.id=metal'\n  systemctl kexec\n\n" +
				"If you do not go on, remove '/srv/t': the initramfs holds the config's token.\n",
			at: "/srv/t",
		},
		"When the directory has a space and a quote, it should quote the printed path for a shell": {
			args: []string{"--stream", in("stream.json"), "--ignition", in("node.ign"), "--disk", "/dev/disk/by-id/wwn-1", "--to", "/srv/my disk's"},
			want: `  kexec --load --kexec-file-syscall '/srv/my disk'\''s/kernel' --initrd='/srv/my disk'\''s/initramfs' --command-line=`,
			at:   "/srv/my disk's",
		},
		"When the directory is relative, it should be resolved against the working directory": {
			args: []string{"--stream", in("stream.json"), "--ignition", in("node.ign"), "--disk", "/dev/disk/by-id/wwn-1", "--to", "t"},
			want: "--initrd='" + filepath.Join(inputs, "t/initramfs") + "'",
			at:   filepath.Join(inputs, "t"),
		},
		"When the network directory is empty, it should return an error": {args: []string{"--stream", in("stream.json"), "--ignition", in("node.ign"), "--network", in("none-in-it")},
			wantErr: "--network: " + in("none-in-it") + " is empty: leave the flag out for DHCP"},
		"When no stream is given, it should name the required flag":          {args: []string{"--ignition", in("node.ign")}, wantErr: `required flag(s) "stream" not set`},
		"When the stream does not exist, it should name the flag":            {args: []string{"--stream", in("none"), "--ignition", in("node.ign")}, wantErr: "--stream: open "},
		"When the stream is empty, it should name the flag":                  {args: []string{"--stream", in("empty.json"), "--ignition", in("node.ign")}, wantErr: "--stream: the stream has nothing for the architecture"},
		"When the config does not exist, it should name the flag":            {args: []string{"--stream", in("stream.json"), "--ignition", in("none")}, wantErr: "--ignition: open "},
		"When the network directory does not exist, it should name the flag": {args: []string{"--stream", in("stream.json"), "--ignition", in("node.ign"), "--network", in("none")}, wantErr: "--network: open "},
		"When the network directory has other files, it should name them":    {args: []string{"--stream", in("stream.json"), "--ignition", in("node.ign"), "--network", in("bad"), "--disk", "/dev/disk/by-id/wwn-1"}, wantErr: `"notes.txt" is not the name of a NetworkManager keyfile`},
		"When the disk name is not persistent, it should return an error": {args: []string{"--stream", in("stream.json"), "--ignition", in("node.ign"), "--disk", "/dev/sda"},
			wantErr: `the disk "/dev/sda" is not named by a path below /dev/disk/by-id`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			h := &host.Host{Root: t.TempDir(), Log: io.Discard}
			_, err := h.Write("/proc/meminfo", []byte("MemTotal: 8000000 kB\n"), 0o600)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(h.Link("/dev/disk/by-id/wwn-1", "../../sda")).To(Succeed())
			t.Chdir(inputs)
			var out bytes.Buffer
			cmd := takeoverCommand(h)
			cmd.SilenceUsage, cmd.SilenceErrors = true, true
			cmd.SetOut(&out)
			cmd.SetArgs(tt.args)
			err = cmd.ExecuteContext(t.Context())
			if tt.wantErr != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tt.wantErr)))
				g.Expect(out.String()).To(BeEmpty(), "nothing is printed that could be typed")
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(out.String()).To(ContainSubstring(tt.want))
			g.Expect(h.Exists(tt.at + "/initramfs")).To(BeTrue())
		})
	}
}
