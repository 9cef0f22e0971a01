// SPDX-License-Identifier: Apache-2.0

// Command devcluster runs the embedded environment: a management cluster, an image registry and a simulated MAAS. All
// of them run on this machine, in separate namespaces and a separate folder.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/devcluster/lifecycle"
	"github.com/openshift/hypershift/test/devcluster/supervise"
	"github.com/openshift/hypershift/test/machine"
)

func main() {
	machine.Init(nil)
	ctrllog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	if supervise.Requested() {
		return supervise.Run(ctx)
	}
	return command().ExecuteContext(ctx)
}

// options are the flags of all commands.
type options struct {
	dir, bin string
}

func (o *options) env() (env.Env, error) { return env.New(o.dir, o.bin) }

func (o *options) environment(cmd *cobra.Command) (*lifecycle.Environment, error) {
	e, err := o.env()
	return &lifecycle.Environment{Env: e, Out: cmd.OutOrStdout()}, err
}

func command() *cobra.Command {
	o := &options{}
	root := &cobra.Command{
		Use:           "devcluster",
		Short:         "Run a management cluster, a registry and a MAAS on this machine",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentFlags().StringVar(&o.dir, "dir", "", "folder of the environment (default $"+env.DirVariable+" or "+env.DefaultDir+")")
	root.PersistentFlags().StringVar(&o.bin, "bin", "", "folder of the built programs and images (default that of this program)")
	root.AddCommand(preflightCommand(o), upCommand(o), statusCommand(o), downCommand(o), imagesCommand(o), maasCommand(o), nodeCommand(o), serveCommand(o))
	return root
}

func preflightCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "preflight",
		Short: "Check whether this machine can run the environment",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			environment, err := o.environment(cmd)
			if err != nil {
				return err
			}
			return environment.Preflight(cmd.Context())
		},
	}
}

func upCommand(o *options) *cobra.Command {
	var maasArguments []string
	var withoutMAAS bool
	var nodes int
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Bring up what is not up yet",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			environment, err := o.environment(cmd)
			if err != nil {
				return err
			}
			environment.MAASArguments, environment.WithoutMAAS, environment.Nodes = maasArguments, withoutMAAS, nodes
			return environment.Up(cmd.Context())
		},
	}
	cmd.Flags().StringArrayVar(&maasArguments, "maas-argument", nil, "argument to add to the MAAS simulator's command line (repeatable)")
	cmd.Flags().IntVar(&nodes, "nodes", 0, "nodes of the management cluster, each in a zone of its own when there are several (default those that it has, or 1)")
	cmd.Flags().BoolVar(&withoutMAAS, "without-maas", false, "start no MAAS simulator")
	return cmd
}

func statusCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Say what runs, where, and how much memory it uses; fails if a part does not run",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			environment, err := o.environment(cmd)
			if err != nil {
				return err
			}
			return environment.Status(cmd.Context())
		},
	}
}

func downCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Remove every trace: processes, namespaces, network interfaces, control groups, files",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			environment, err := o.environment(cmd)
			if err != nil {
				return err
			}
			return environment.Down(cmd.Context())
		},
	}
}
