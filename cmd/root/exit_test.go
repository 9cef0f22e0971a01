// SPDX-License-Identifier: Apache-2.0

package root_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"

	"github.com/openshift/hypershift/cmd/root"
)

// TestEachCommandRefuses passes an invalid argument to each command. The command reports a usage error in one line. It
// prints nothing on standard output, which a pipe would take for a result.
func TestEachCommandRefuses(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for _, program := range []func() *cobra.Command{root.Hypershift, root.HCP} {
		var paths [][]string
		var walk func(cmd *cobra.Command, path []string)
		walk = func(cmd *cobra.Command, path []string) {
			if cmd.Runnable() {
				paths = append(paths, path)
			}
			for _, sub := range cmd.Commands() {
				walk(sub, append(append([]string{}, path...), sub.Name()))
			}
		}
		name := program().Name()
		walk(program(), nil)
		NewWithT(t).Expect(len(paths)).To(BeNumerically(">", 8))
		for _, path := range paths {
			for _, wrong := range []string{"--no-such-flag", "--no-such-flag=sesame"} {
				t.Run("When "+wrong+" is typed to "+name+" "+strings.Join(path, " ")+" it should exit with 2", func(t *testing.T) {
					g, cmd := NewWithT(t), program()
					var stdout, stderr bytes.Buffer
					cmd.SetOut(&stdout)
					cmd.SetErr(&stderr)
					cmd.SetArgs(append(append([]string{}, path...), wrong))
					g.Expect(root.Run(t.Context(), cmd, &stderr)).To(Equal(2))
					g.Expect(stdout.String()).To(BeEmpty())
					g.Expect(stderr.String()).To(And(HavePrefix("Error: "), ContainSubstring("--no-such-flag")))
					g.Expect(strings.Count(stderr.String(), "\n")).To(Equal(1), stderr.String())
				})
			}
		}
	}
}

// TestNegativeDurations checks that negative durations are rejected: a wait of negative length would never end.
func TestNegativeDurations(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for flag, command := range map[string]string{
		"--cluster-grace-period": "destroy cluster maas --name demo", "--timeout": "create nodepool maas --cluster-name demo --name a --wait",
	} {
		t.Run("When "+flag+" is below zero it should exit with 2", func(t *testing.T) {
			o := hypershift(t.Context(), "", append(strings.Fields(command), flag, "-1s")...)
			g := NewWithT(t)
			g.Expect(o.code).To(Equal(2))
			g.Expect(o.stderr).To(Equal("Error: " + flag + " -1s: use 0 or more\n"))
		})
	}
}

// TestGroups checks that a group without a subcommand prints its help, and that a mistyped subcommand is an error.
func TestGroups(t *testing.T) {
	for _, args := range []string{"create", "create cluster", "destroy --help", "dump -h", "restore"} {
		t.Run("When it is "+args+" it should print help", func(t *testing.T) {
			o := hypershift(t.Context(), "", strings.Fields(args)...)
			g := NewWithT(t)
			g.Expect(o.code).To(BeZero())
			g.Expect(o.stdout).To(ContainSubstring("Available Commands:"))
			g.Expect(o.stderr).To(BeEmpty())
		})
	}
	for args, says := range map[string]string{
		"restore cluster":      "--from and --key-file are required",
		"drain lxd-hosts":      `unknown command "lxd-hosts" for "hypershift drain"`,
		"drain lxd-host":       "accepts 1 arg(s), received 0",
		"create lxd-host":      "set one of --machine and --pool",
		"create kubeconfig a":  `unknown command "a"`,
		"create etcd-backup":   "--name is required",
		"dump cluster":         "--name and --artifact-dir are required",
		"release mirror":       "--to or --to-dir is required",
		"install render stray": `unknown command "stray"`,
		"doctor stray":         `unknown command "stray" for "hypershift doctor"`,
		"doctor cluster":       "accepts 1 arg(s), received 0",
	} {
		t.Run("When it is "+args+" it should say what is wrong and exit with 2", func(t *testing.T) {
			g, o := NewWithT(t), hypershift(t.Context(), "", strings.Fields(args)...)
			g.Expect(o.stderr).To(ContainSubstring(says))
			g.Expect(o.code).To(Equal(2))
			g.Expect(o.stdout).To(BeEmpty())
		})
	}
	t.Run("When a platform is for developers only, the hcp command should not offer it", func(t *testing.T) {
		g, cmd := NewWithT(t), root.HCP()
		var stderr bytes.Buffer
		cmd.SetErr(&stderr)
		cmd.SetArgs([]string{"create", "cluster", "none", "--name=demo"})
		g.Expect(root.Run(t.Context(), cmd, &stderr)).To(Equal(2))
		g.Expect(stderr.String()).To(ContainSubstring(`unknown command "none" for "hcp create cluster"`))
	})
}

// TestRunCleansOutput checks that a cluster that a tenant controls cannot control the terminal of an administrator.
func TestRunCleansOutput(t *testing.T) {
	g := NewWithT(t)
	var stdout, stderr strings.Builder
	cmd := &cobra.Command{Use: "x", SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.Println("name \x1b]0;out\x07")
			cmd.PrintErrln("name \x1b]0;err\x07")
			return errors.New("condition \x1b[2J\rok")
		}}
	cmd.SetArgs([]string{})
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	g.Expect(root.Run(t.Context(), cmd, &stderr)).To(Equal(1))
	g.Expect(stdout.String() + stderr.String()).To(And(
		ContainSubstring(`\x1b]0;out\x07`), ContainSubstring(`\x1b]0;err\x07`),
		ContainSubstring(`Error: condition \x1b[2J\rok`), Not(ContainSubstring("\x1b"))))
}
