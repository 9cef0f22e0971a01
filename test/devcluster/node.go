// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/openshift/hypershift/test/devcluster/lifecycle"
)

// nodeCommand returns the command that simulates failures of management cluster nodes.
func nodeCommand(o *options) *cobra.Command {
	cmd := &cobra.Command{Use: "node", Short: "Stop and start nodes of the management cluster, or cut them off"}
	for _, what := range []struct {
		use, short string
		do         func(ctx context.Context, e *lifecycle.Environment, node string) error
	}{
		{"stop NODE", "End a node at once, as if its power were cut", func(ctx context.Context, e *lifecycle.Environment, node string) error { return e.StopNode(ctx, node) }},
		{"start NODE", "Start a node that was stopped", func(ctx context.Context, e *lifecycle.Environment, node string) error { return e.StartNode(ctx, node) }},
		{"wipe NODE", "Delete what is in the volumes of a node that was stopped", func(_ context.Context, e *lifecycle.Environment, node string) error { return e.WipeNode(node) }},
		{"cut NODE", "Take a node off the network; its pods go on", func(_ context.Context, e *lifecycle.Environment, node string) error { return e.CutNode(node, true) }},
		{"mend NODE", "Plug in a node that was cut off", func(_ context.Context, e *lifecycle.Environment, node string) error { return e.CutNode(node, false) }},
	} {
		cmd.AddCommand(&cobra.Command{
			Use: what.use, Short: what.short, Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				environment, err := o.environment(cmd)
				if err != nil {
					return err
				}
				return what.do(cmd.Context(), environment, args[0])
			},
		})
	}
	return cmd
}
