// SPDX-License-Identifier: Apache-2.0

// Command hypershift-operator runs the controllers of HostedClusters and NodePools, one per management cluster.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	ctx := ctrl.SetupSignalHandler()
	root := &cobra.Command{
		Use:           "hypershift-operator",
		Short:         "Hosts the control planes of clusters, and makes their machines",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newRunCommand(), newInitCommand(), newVirtualIPCommand())
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
