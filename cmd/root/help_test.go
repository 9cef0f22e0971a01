// SPDX-License-Identifier: Apache-2.0

package root_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"

	"github.com/openshift/hypershift/cmd/root"
)

var flagOfHelp = regexp.MustCompile(`(?m)^(?: {6}|  -[a-zA-Z], )--([a-zA-Z0-9-]+)(?: |$)`)

// TestHelpOfCreate compares the help of the commands with many flags, and checks that it lists each flag once.
func TestHelpOfCreate(t *testing.T) {
	for _, path := range []string{"create cluster maas", "create nodepool maas"} {
		t.Run(path, func(t *testing.T) {
			g, words := NewWithT(t), strings.Fields(path)
			o := hypershift(t.Context(), "", append(words, "--help")...)
			g.Expect(o.code).To(Equal(0), o.stderr)
			golden := filepath.Join("testdata", "help-"+strings.Join(words, "-")+".txt")
			if *update {
				g.Expect(os.WriteFile(golden, []byte(o.stdout), 0o644)).To(Succeed())
			}
			want, err := os.ReadFile(golden)
			g.Expect(err).NotTo(HaveOccurred())
			if diff := cmp.Diff(string(want), o.stdout); diff != "" {
				t.Errorf("run the test with -update when this is meant (-want +got):\n%s", diff)
			}
			listed := map[string]int{}
			for _, match := range flagOfHelp.FindAllStringSubmatch(o.stdout, -1) {
				listed[match[1]]++
			}
			cmd, _, err := root.Hypershift().Find(words)
			g.Expect(err).NotTo(HaveOccurred())
			cmd.Flags().VisitAll(func(f *pflag.Flag) {
				if !f.Hidden && f.Deprecated == "" && listed[f.Name] != 1 {
					t.Errorf("--%s is listed %d times", f.Name, listed[f.Name])
				}
			})
		})
	}
}

// TestHelpGroups checks the order of the groups for all platforms.
func TestHelpGroups(t *testing.T) {
	heading := regexp.MustCompile(`(?m)^([A-Z][A-Za-z ]*):$`)
	for path, want := range map[string]string{
		"create cluster maas": "Usage, Examples, Cluster, Release, Platform MAAS, Network, First NodePool, Machines of the NodePool, " +
			"Virtual machines on LXD hosts, Static addresses, Installation of machines, Advanced, Command",
		"create cluster none": "Usage, Examples, Cluster, Release, Network, First NodePool, Advanced, Command",
		"create cluster aws":  "Usage, Examples, Cluster, Release, Platform AWS, Network, First NodePool, Advanced, Command",
		"create nodepool maas": "Usage, Examples, NodePool, Platform MAAS, Machines of the NodePool, Virtual machines on LXD hosts, " +
			"Static addresses, Installation of machines, Command",
		"create nodepool kubevirt": "Usage, Examples, NodePool, Platform KubeVirt, Command",
	} {
		t.Run(path, func(t *testing.T) {
			o := hypershift(t.Context(), "", append(strings.Fields(path), "--help")...)
			var got []string
			for _, match := range heading.FindAllStringSubmatch(o.stdout, -1) {
				got = append(got, match[1])
			}
			NewWithT(t).Expect(strings.Join(got, ", ")).To(Equal(want), o.stdout)
		})
	}
}
