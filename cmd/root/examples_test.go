// SPDX-License-Identifier: Apache-2.0

package root_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"

	"github.com/openshift/hypershift/cmd/root"
)

// TestExamples checks that each command of both programs has an example of itself, and that the command lines of all
// examples have commands, flags and arguments that the program accepts.
func TestExamples(t *testing.T) {
	for _, program := range []func() *cobra.Command{root.Hypershift, root.HCP} {
		for _, cmd := range commandsBelow(program()) {
			t.Run(cmd.CommandPath(), func(t *testing.T) {
				lines := exampleLines(cmd.Example)
				if len(lines) == 0 {
					t.Fatal("the command has no example")
				}
				own := false
				for _, line := range lines {
					// Each line has a program of its own: flags keep their values.
					called, err := parseLine(program(), line)
					if err != nil {
						t.Errorf("%s: %v", line, err)
						continue
					}
					own = own || strings.HasPrefix(called.CommandPath()+" ", cmd.CommandPath()+" ")
				}
				if !own {
					t.Errorf("no example calls the command: %q", lines)
				}
			})
		}
	}
}

func commandsBelow(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, child := range cmd.Commands() {
		all = append(all, commandsBelow(child)...)
	}
	return all
}

// exampleLines returns the command lines of an example, without comments, and without "..." for further flags.
func exampleLines(example string) []string {
	var lines []string
	for line := range strings.Lines(strings.ReplaceAll(example, "\\\n", " ")) {
		if line = strings.Join(strings.Fields(line), " "); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, strings.TrimSuffix(line, " ..."))
		}
	}
	return lines
}

// parseLine returns the command of a line, or an error if the program does not accept the line.
func parseLine(program *cobra.Command, line string) (*cobra.Command, error) {
	line, _, _ = strings.Cut(line, " > ")
	if strings.ContainsAny(line, `"'|;&<$`) {
		return nil, fmt.Errorf("the test splits lines at spaces: leave out quotes, pipes and variables")
	}
	words := strings.Fields(line)
	if words[0] != program.Name() {
		return nil, fmt.Errorf("the line does not call %s", program.Name())
	}
	cmd, rest, err := program.Find(words[1:])
	if err != nil {
		return nil, err
	}
	if cmd.DisableFlagParsing && len(rest) > 0 {
		return nil, fmt.Errorf("unknown command %q for %q", rest[0], cmd.CommandPath())
	}
	cmd.InitDefaultHelpFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		return nil, err
	}
	return cmd, cmd.ValidateArgs(cmd.Flags().Args())
}

// TestParseLine checks that TestExamples finds mistakes.
func TestParseLine(t *testing.T) {
	for line, fault := range map[string]string{
		"hypershift scale nodepool demo --replicas 5":      "",
		"hypershift ssh machine demo -- ls -l":             "",
		"hypershift scale nodepool demo --replica 5":       "unknown flag: --replica",
		"hypershift scale nodepool demo --replicas many":   "invalid argument",
		"hypershift scale nodepool demo workers":           "name one NodePool",
		"hypershift scale pool demo":                       `unknown command "pool"`,
		"hypershift scal nodepool demo":                    "unknown command",
		"hcp scale nodepool demo":                          "does not call hypershift",
		"hypershift get clusters | less":                   "leave out quotes",
		"hypershift create kubeconfig --name demo > a.txt": "",
	} {
		t.Run(line, func(t *testing.T) {
			g := NewWithT(t)
			_, err := parseLine(root.Hypershift(), line)
			if fault == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(fault)))
		})
	}
}
