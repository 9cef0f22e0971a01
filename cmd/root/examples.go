// SPDX-License-Identifier: Apache-2.0

package root

import (
	"regexp"

	"github.com/spf13/cobra"
)

// programInExample matches the program at the beginning of an example. The commands write examples of hypershift.
var programInExample = regexp.MustCompile(`(?m)^  hypershift `)

// completeExamples adds examples to the commands of Cobra, and makes all examples those of the program.
func completeExamples(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Example = "  hypershift help create cluster maas"
		case "completion":
			cmd.Example = "  hypershift completion bash > /etc/bash_completion.d/" + root.Name()
			for _, shell := range cmd.Commands() {
				shell.Example = "  hypershift completion " + shell.Name() + " > " + root.Name() + "." + shell.Name()
			}
		}
	}
	nameProgram(root, root.Name())
}

func nameProgram(cmd *cobra.Command, program string) {
	cmd.Example = programInExample.ReplaceAllString(cmd.Example, "  "+program+" ")
	for _, child := range cmd.Commands() {
		nameProgram(child, program)
	}
}
