// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"

	"github.com/openshift/hypershift/test/maas-simulator/boot/netns"
)

func TestNetnsBackend(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("--boot=netns needs root")
	}
	built := t.TempDir()
	for _, file := range []string{"os/usr/bin/containerd", "ignition"} {
		path := filepath.Join(built, file)
		NewWithT(t).Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
		NewWithT(t).Expect(os.WriteFile(path, nil, 0o600)).To(Succeed())
	}
	tests := []struct {
		name    string
		args    []string
		want    *netns.Backend
		wantErr string
	}{
		{
			name: "When everything is present, it should return a backend with absolute paths",
			args: []string{"--boot-dir=/machines", "--boot-os=" + built + "/os", "--boot-ignition=" + built + "/ignition", "--boot-cloud-os=" + built + "/cloud", "--boot-bridge=br7"},
			want: &netns.Backend{Dir: "/machines", OS: built + "/os", Ignition: built + "/ignition", CloudOS: built + "/cloud", Bridge: "br7"},
		},
		{name: "When the folder for the machines is missing, the error should name the flag", wantErr: "--boot-dir"},
		{
			name:    "When containerd is missing, the error should say how to get it",
			args:    []string{"--boot-dir=/machines", "--boot-os=" + built, "--boot-ignition=" + built + "/ignition"},
			wantErr: "make os-binaries",
		},
		{
			name:    "When Ignition is missing, the error should name the flag",
			args:    []string{"--boot-dir=/machines", "--boot-os=" + built + "/os", "--boot-ignition=" + built + "/none"},
			wantErr: "--boot-ignition",
		},
		{
			name:    "When only the folder is given, it should look next to the program",
			args:    []string{"--boot-dir=/machines"},
			wantErr: "/os/usr/bin/containerd",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			var options netnsOptions
			flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
			options.addFlags(flags)
			g.Expect(flags.Parse(tt.args)).To(Succeed())
			backend, err := options.backend()
			if tt.wantErr != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tt.wantErr)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(backend).To(Equal(tt.want))
		})
	}
}
