// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/openshift/hypershift/cmd/root"
)

// programs are the commands whose lines are checked.
var programs = map[string]func() *cobra.Command{"hypershift": root.Hypershift, "hcp": root.HCP}

// inlineCommand finds command lines between backticks in prose.
var inlineCommand = regexp.MustCompile("`((?:hypershift|hcp)\\s[^`]+)`")

// TestCommands checks that each command line of the pages has commands, flags and values that the programs accept.
func TestCommands(t *testing.T) {
	found := 0
	for _, p := range readPages(t) {
		t.Run(p.path, func(t *testing.T) {
			for _, b := range p.blocksOf("console", "shell", "sh", "bash", "text", "") {
				for _, line := range commandLines(b.text) {
					found++
					if err := checkCommand(line); err != nil {
						t.Errorf("the block at line %d: %s: %v", b.line, line, err)
					}
				}
			}
			for _, match := range inlineCommand.FindAllStringSubmatch(p.prose, -1) {
				line := strings.Join(strings.Fields(match[1]), " ")
				found++
				if err := checkMention(line); err != nil {
					t.Errorf("`%s`: %v", line, err)
				}
			}
		})
	}
	NewWithT(t).Expect(found).To(BeNumerically(">", 100), "command lines in all pages")
}

// TestCheckCommand checks that mistakes are found, and that what readers replace is accepted.
func TestCheckCommand(t *testing.T) {
	tests := []struct{ name, line, fault string }{
		{"accepts a command with flags", "hypershift create nodepool maas --name x --cluster-name y --replicas 2", ""},
		{"accepts elided flags", "hypershift create cluster maas --name demo ...", ""},
		{"accepts placeholders and a pipe", "hypershift release diff <from image> <to> | less", ""},
		{"accepts a redirection and a comment", "bin/hypershift create kubeconfig --name demo > file # of demo", ""},
		{"refuses an unknown flag", "hypershift install --no-such-flag", "no-such-flag"},
		{"refuses an unknown command", "hypershift create pool maas", "unknown command"},
		{"refuses an unknown program command", "hcp install", "unknown command"},
		{"refuses a flag without its value", "hypershift create kubeconfig --name", "needs an argument"},
		{"refuses a value of the wrong type", "hypershift create nodepool maas --replicas many", "replicas"},
		{"refuses an argument too many", "hypershift version now", "unknown command"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			err := checkCommand(tt.line)
			if tt.fault == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(tt.fault)))
			}
		})
	}
}

// commandLines returns the lines of a block that call one of the programs.
func commandLines(text string) []string {
	var lines []string
	for _, line := range strings.Split(strings.ReplaceAll(text, "\\\n", " "), "\n") {
		line = strings.TrimPrefix(strings.TrimSpace(line), "$ ")
		line = strings.TrimPrefix(line, "sudo ")
		name, rest, _ := strings.Cut(line, " ")
		if programs[path.Base(name)] != nil && rest != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// checkCommand returns an error if a program does not accept a command line.
func checkCommand(line string) error {
	cmd, err := parseCommand(line)
	if err != nil {
		return err
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

// checkMention is checkCommand for prose, which may name a flag without its value and a command without its arguments.
func checkMention(line string) error {
	cmd, err := parseCommand(line)
	var omitted *pflag.ValueRequiredError
	if errors.As(err, &omitted) {
		return nil
	}
	if err != nil || cmd.Flags().NArg() == 0 {
		return err
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

// parseCommand returns the command of a line, with parsed flags.
func parseCommand(line string) (*cobra.Command, error) {
	words := shellWords(line)
	program := programs[path.Base(words[0])]()
	program.InitDefaultCompletionCmd() // Cobra adds it only when it executes.
	cmd, rest, err := program.Find(words[1:])
	switch {
	case err != nil:
		return nil, err
	case cmd.DisableFlagParsing && len(rest) > 0 && rest[0] != "--help":
		return nil, fmt.Errorf("unknown command %q for %q", rest[0], cmd.CommandPath())
	case cmd.DisableFlagParsing:
		return cmd, nil
	}
	cmd.InitDefaultHelpFlag()
	return cmd, cmd.ParseFlags(rest)
}

// wordReader splits a command line as a shell does. It knows what the pages use: quotes, command substitutions,
// placeholders such as <name>, and the ends of a command.
type wordReader struct {
	words []string
	word  strings.Builder
	begun bool
}

// shellWords returns the words of the first command of a line. It leaves out "...", which stands for further arguments.
func shellWords(line string) []string {
	r := &wordReader{}
	for rest := line; rest != ""; {
		size := r.next(rest)
		if size == 0 {
			break
		}
		rest = rest[size:]
	}
	r.end()
	return r.words
}

// next reads one unit of a line and returns its length, 0 where the command ends.
func (r *wordReader) next(rest string) int {
	closing := map[byte]string{'\'': "'", '"': `"`, '<': ">"}[rest[0]]
	switch c := rest[0]; {
	case c == ' ' || c == '\t':
		r.end()
	case c == '|' || c == ';' || c == '&' || c == '>' || c == '#' && !r.begun:
		return 0
	case strings.HasPrefix(rest, "$("):
		return r.until(rest, ")")
	case closing != "":
		return r.until(rest, closing)
	default:
		r.word.WriteByte(c)
		r.begun = true
	}
	return 1
}

// until adds what a quote, a substitution or a placeholder encloses to the current word.
func (r *wordReader) until(rest, closing string) int {
	r.begun = true
	text, _, found := strings.Cut(rest[1:], closing)
	r.word.WriteString(text)
	if !found {
		return len(rest)
	}
	return 1 + len(text) + len(closing)
}

// end ends the current word.
func (r *wordReader) end() {
	if word := r.word.String(); r.begun && word != "..." {
		r.words = append(r.words, word)
	}
	r.word.Reset()
	r.begun = false
}
