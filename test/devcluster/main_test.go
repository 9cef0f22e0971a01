// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/devcluster/env"
)

// execute runs the command line with the test's own folders.
func execute(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := command()
	var out strings.Builder
	cmd.SetOut(&out)
	cmd.SetArgs(append(args, "--dir", t.TempDir(), "--bin", t.TempDir()))
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestCommands(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		err  string
	}{
		"When nothing runs, status should say how to start the cluster": {args: []string{"status"}, err: "devcluster up"},
		"When nothing runs, starting the simulator should fail":         {args: []string{"maas", "start"}, err: "devcluster up"},
		"When nothing is built, listing the images should fail":         {args: []string{"images", "list"}, err: "make images"},
		"When nothing is built, building the images should fail":        {args: []string{"images", "build"}, err: "make images"},
		"When nothing runs, pushing images should fail":                 {args: []string{"images", "push"}, err: "devcluster up"},
		"When there is an extra argument, it should be rejected":        {args: []string{"up", "now"}, err: "unknown command"},
		"When a command is unknown, it should be rejected":              {args: []string{"dance"}, err: "unknown command"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := execute(t, test.args...)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.err)))
		})
	}
	t.Run("When the simulator was never started, stopping it should succeed", func(t *testing.T) {
		_, err := execute(t, "maas", "stop")
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	})
	t.Run("When help is requested, it should list the commands for users but not those for machines", func(t *testing.T) {
		g := NewWithT(t)
		out, err := execute(t, "help")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(And(ContainSubstring("preflight"), ContainSubstring("down"), ContainSubstring(env.DirVariable)))
		g.Expect(out).NotTo(ContainSubstring("serve"))
	})
}
