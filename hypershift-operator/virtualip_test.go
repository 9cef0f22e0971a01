// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/hypershift-operator/virtualip/segment"
	"github.com/openshift/hypershift/support/testenv"
)

func TestVirtualIPFlags(t *testing.T) {
	for _, tt := range []struct {
		name, says string
		args       []string
	}{
		{"When no flags are set, it should name the required flags", "--address, --node-name and --namespace are required", nil},
		{"When the address is a host name, it should return an error that names the flag", "--address", []string{"--address=vip.example", "--node-name=a", "--namespace=default"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := newVirtualIPCommand()
			cmd.SetArgs(append([]string{}, tt.args...)) // Without arguments, cobra would parse os.Args.
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			NewWithT(t).Expect(cmd.ExecuteContext(t.Context())).To(MatchError(ContainSubstring(tt.says)))
		})
	}
}

// TestVirtualIPCommand runs the program as its pods do: on a node, with an API server.
func TestVirtualIPCommand(t *testing.T) {
	g, node := NewWithT(t), segment.New(t).Node()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	g.Expect(os.WriteFile(kubeconfig, testenv.Kubeconfig(t, testenv.Start(t)), 0o600)).To(Succeed())
	t.Setenv("KUBECONFIG", kubeconfig)
	cmd := newVirtualIPCommand()
	cmd.SetArgs([]string{"--address=192.0.2.100", "--node-name=a", "--namespace=default", "--metrics-addr=:0", "--health-probe-addr=:0"})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go node.Do(func() { done <- cmd.ExecuteContext(ctx) })
	address := netip.MustParseAddr("192.0.2.100")
	g.Eventually(func() bool { return node.Has(address) }, patience, tick).Should(BeTrue())
	cancel()
	g.Eventually(done, patience, tick).Should(Receive(BeNil()))
	g.Expect(node.Has(address)).To(BeFalse())
}
