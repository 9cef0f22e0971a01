// SPDX-License-Identifier: Apache-2.0

// Package confirm asks the user before a command destroys something.
package confirm

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/openshift/hypershift/support/terminal"
)

// Question is what a command asks.
type Question struct {
	// Name is what the user types to confirm.
	Name string
	// What says what the command does, such as "destroy HostedCluster clusters/demo".
	What string
	// Goes lists what is destroyed.
	Goes []string
}

// AddFlag adds --yes.
func AddFlag(flags *pflag.FlagSet, yes *bool) {
	flags.BoolVar(yes, "yes", false, "do not ask on a terminal")
}

// Terminal reports whether a command can ask the user.
func Terminal(cmd *cobra.Command) bool {
	return terminal.Is(cmd.InOrStdin()) && terminal.Is(cmd.ErrOrStderr())
}

// Ask shows what is destroyed, and asks for the name. It returns an error unless the user types it. Without a terminal
// it asks nothing: a script must not wait for an answer.
func Ask(cmd *cobra.Command, q Question) error {
	if !Terminal(cmd) {
		return nil
	}
	stderr := cmd.ErrOrStderr()
	if err := terminal.Print(stderr, terminal.Bold, "This command will "+terminal.Line(q.What)+":"); err != nil {
		return err
	}
	text := "\n"
	for _, line := range q.Goes {
		text += "  " + terminal.Line(line) + "\n"
	}
	text += fmt.Sprintf("Type %s to continue: ", terminal.Line(q.Name))
	if err := terminal.Print(stderr, terminal.Plain, text); err != nil {
		return err
	}
	answer, err := readLine(cmd)
	if err != nil {
		return err
	}
	if answer != q.Name {
		return fmt.Errorf("nothing was changed: the answer is not %q", q.Name)
	}
	return nil
}

// readLine reads one line. It ends when the user interrupts the command, although the read continues.
func readLine(cmd *cobra.Command) (string, error) {
	type result struct {
		text string
		err  error
	}
	read := make(chan result, 1)
	in := cmd.InOrStdin()
	go func() {
		text, err := bufio.NewReader(in).ReadString('\n')
		read <- result{text, err}
	}()
	select {
	case <-cmd.Context().Done():
		return "", fmt.Errorf("nothing was changed: %w", context.Cause(cmd.Context()))
	case got := <-read:
		if got.err != nil {
			return "", fmt.Errorf("nothing was changed: the answer cannot be read: %w; use --yes in a script", got.err)
		}
		return strings.TrimSpace(got.text), nil
	}
}
