// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestValidate(t *testing.T) {
	t.Run("When all flags are set, it should parse the networks", func(t *testing.T) {
		g := NewWithT(t)
		networks, err := options{nodeName: "a", clusterNetworks: []string{"10.132.0.9/14", "fd01::/48"}}.validate()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(networks).To(Equal([]netip.Prefix{netip.MustParsePrefix("10.132.0.0/14"), netip.MustParsePrefix("fd01::/48")}))
	})
	t.Run("When no flags are set, it should name every missing flag", func(t *testing.T) {
		_, err := options{}.validate()
		NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("--node-name is required"), ContainSubstring("--cluster-network is required"))))
	})
	t.Run("When a network is not a CIDR, it should quote it and show an example", func(t *testing.T) {
		_, err := options{nodeName: "a", clusterNetworks: []string{"10.132.0.0"}}.validate()
		NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring(`"10.132.0.0"`), ContainSubstring("10.132.0.0/14"))))
	})
	t.Run("When it runs without flags, it should fail before it changes the node", func(t *testing.T) {
		t.Setenv("NODE_NAME", "")
		cmd := command()
		cmd.SetArgs(nil)
		NewWithT(t).Expect(cmd.ExecuteContext(t.Context())).To(MatchError(ContainSubstring("--node-name is required")))
	})
	t.Run("When the environment names the node, it should not require --node-name", func(t *testing.T) {
		t.Setenv("NODE_NAME", "a")
		cmd := command()
		cmd.SetArgs([]string{"--cluster-network=10.132.0.0"})
		err := cmd.ExecuteContext(t.Context())
		NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("is not a CIDR"), Not(ContainSubstring("--node-name")))))
	})
	t.Run("When some of the networks are invalid, it should return an error that names only those", func(t *testing.T) {
		_, err := options{nodeName: "a", clusterNetworks: []string{"10.132.0.0/14", "fd01::/480", "x"}}.validate()
		NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring(`"fd01::/480"`), ContainSubstring(`"x"`), Not(ContainSubstring(`"10.132.0.0/14"`)))))
	})
	for name, text := range map[string]string{"is missing": "", "is truncated": "{clusters: [{", "has no server": "{apiVersion: v1, kind: Config}"} {
		t.Run("When the kubeconfig "+name+", it should fail before it changes the node", func(t *testing.T) {
			g, root := NewWithT(t), t.TempDir()
			kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
			if text != "" {
				g.Expect(os.WriteFile(kubeconfig, []byte(text), 0o600)).To(Succeed())
			}
			cmd := command()
			cmd.SetArgs([]string{"--node-name=a", "--cluster-network=10.132.0.0/14", "--kubeconfig=" + kubeconfig, "--host-root=" + root})
			g.Expect(cmd.ExecuteContext(t.Context())).To(MatchError(HavePrefix("finding the cluster's API: ")))
			g.Expect(os.ReadDir(root)).To(BeEmpty())
		})
	}
	t.Run("When the image has no plugins, it should report that and write no configuration", func(t *testing.T) {
		if _, err := os.Stat(pluginSource); err == nil {
			t.Skip("this machine has plugins where the image has them")
		}
		g, root := NewWithT(t), t.TempDir()
		kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
		g.Expect(os.WriteFile(kubeconfig, []byte("{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], clusters: [{name: c, cluster: {server: \"https://127.0.0.1:1\"}}], users: [{name: u}]}"), 0o600)).To(Succeed())
		cmd := command()
		cmd.SetArgs([]string{"--node-name=a", "--cluster-network=10.132.0.0/14", "--kubeconfig=" + kubeconfig, "--host-root=" + root})
		g.Expect(cmd.ExecuteContext(t.Context())).To(MatchError(HavePrefix("reading the CNI plugins of the image: ")))
		g.Expect(os.ReadDir(root)).To(BeEmpty())
	})
}
