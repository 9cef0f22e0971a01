// SPDX-License-Identifier: Apache-2.0

// Package flaggroup prints the flags of a command in groups. Commands with few flags do not need it.
package flaggroup

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// annotation is the annotation of a flag that names its group.
const annotation = "hypershift-group"

// width is the number of columns of the help.
const width = 110

// The groups of flags that several commands have.
const (
	// Command has the flags that change how a command runs, and not what it creates.
	Command = "Command"
	// Network has the flags about networks and addresses.
	Network = "Network"
)

// Set puts flags into a group. It ignores names that the flags do not have.
func Set(flags *pflag.FlagSet, group string, names ...string) {
	for _, name := range names {
		if f := flags.Lookup(name); f != nil {
			put(f, group)
		}
	}
}

// SetRest puts all flags that have no group into one.
func SetRest(flags *pflag.FlagSet, group string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if Of(f) == "" {
			put(f, group)
		}
	})
}

func put(f *pflag.Flag, group string) {
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[annotation] = []string{group}
}

// Of returns the group of a flag; empty if it has none.
func Of(f *pflag.Flag) string {
	if groups := f.Annotations[annotation]; len(groups) > 0 {
		return groups[0]
	}
	return ""
}

// Show makes the help of a command print its flags in groups, in the order in which the groups and the flags are given.
// Flags without a group are printed in the group Command, which is the last one.
func Show(cmd *cobra.Command, groups ...string) {
	cmd.Annotations = map[string]string{annotation: strings.Join(append(groups, Command), "\n")}
	cmd.SetUsageFunc(func(cmd *cobra.Command) error {
		text := "Usage:\n  " + cmd.UseLine() + "\n"
		if cmd.HasExample() {
			text += "\nExamples:\n" + cmd.Example + "\n"
		}
		_, err := fmt.Fprint(cmd.OutOrStderr(), text+"\n"+Usages(cmd, width))
		return err
	})
}

// Shown reports whether the flags of a command are printed in groups.
func Shown(cmd *cobra.Command) bool { return cmd.Annotations[annotation] != "" }

// Usages returns the flags of a command in groups. Descriptions are wrapped at a number of columns; 0 means never.
func Usages(cmd *cobra.Command, columns int) string {
	flags := cmd.Flags()
	sorted := flags.SortFlags
	flags.SortFlags = false
	defer func() { flags.SortFlags = sorted }()
	order := strings.Split(cmd.Annotations[annotation], "\n")
	groups := map[string]*pflag.FlagSet{}
	for _, name := range order {
		groups[name] = pflag.NewFlagSet("", pflag.ContinueOnError)
		groups[name].SortFlags = false
	}
	flags.VisitAll(func(f *pflag.Flag) {
		group := groups[Of(f)]
		if group == nil {
			group = groups[Command]
		}
		group.AddFlag(f)
	})
	var parts []string
	for _, name := range order {
		if groups[name].HasAvailableFlags() {
			parts = append(parts, name+":\n"+groups[name].FlagUsagesWrapped(columns))
		}
	}
	return strings.Join(parts, "\n")
}
