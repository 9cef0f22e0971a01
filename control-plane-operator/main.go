// SPDX-License-Identifier: Apache-2.0

// Command control-plane-operator runs the control plane of one hosted cluster (run), and configures the guest through
// its API (hosted-cluster-config-operator). It also contains the small programs that its pods start with.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/openshift/hypershift/control-plane-operator/availabilityprober"
	"github.com/openshift/hypershift/control-plane-operator/backup"
	"github.com/openshift/hypershift/control-plane-operator/etcdrestore"
	"github.com/openshift/hypershift/control-plane-operator/guestbootstrap"
	"github.com/openshift/hypershift/control-plane-operator/hostedclusterconfigoperator"
	"github.com/openshift/hypershift/control-plane-operator/run"
	"github.com/openshift/hypershift/control-plane-operator/tokenminter"
)

func main() {
	if err := command().ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "control-plane-operator",
		Short:         "Runs the control plane of a hosted cluster",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(run.NewCommand(), hostedclusterconfigoperator.NewCommand(), availabilityprober.NewCommand(), guestbootstrap.NewCommand(), backup.NewCommand(),
		etcdrestore.NewCommand(), tokenminter.NewCommand())
	// Pods of other operators start a subcommand under its own program name.
	if name := filepath.Base(os.Args[0]); name != root.Name() {
		if sub, _, err := root.Find([]string{name}); err == nil && sub != root {
			root.SetArgs(append([]string{name}, os.Args[1:]...))
		}
	}
	return root
}
