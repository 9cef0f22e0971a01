// SPDX-License-Identifier: Apache-2.0

// Package root assembles the commands into the programs hypershift and hcp.
package root

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/backup"
	"github.com/openshift/hypershift/cmd/capacity"
	"github.com/openshift/hypershift/cmd/cluster"
	"github.com/openshift/hypershift/cmd/console"
	"github.com/openshift/hypershift/cmd/describe"
	"github.com/openshift/hypershift/cmd/doctor"
	"github.com/openshift/hypershift/cmd/dump"
	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/get"
	"github.com/openshift/hypershift/cmd/install"
	"github.com/openshift/hypershift/cmd/kubeconfig"
	"github.com/openshift/hypershift/cmd/logs"
	"github.com/openshift/hypershift/cmd/lxdhost"
	"github.com/openshift/hypershift/cmd/nodepool"
	"github.com/openshift/hypershift/cmd/platform"
	"github.com/openshift/hypershift/cmd/release"
	"github.com/openshift/hypershift/cmd/restore"
	"github.com/openshift/hypershift/cmd/scale"
	"github.com/openshift/hypershift/cmd/ssh"
	"github.com/openshift/hypershift/cmd/status"
	"github.com/openshift/hypershift/cmd/uninstall"
	"github.com/openshift/hypershift/cmd/upgrade"
	"github.com/openshift/hypershift/cmd/version"
	"github.com/openshift/hypershift/cmd/wait"
	"github.com/openshift/hypershift/support/skew"
	"github.com/openshift/hypershift/support/terminal"
	revision "github.com/openshift/hypershift/support/version"
)

// Hypershift returns the program for administrators and developers of a management cluster.
func Hypershift() *cobra.Command {
	cmd := newRoot("hypershift", "Host control planes on a management cluster")
	defaults := cluster.Defaults{ControllerAvailability: hyperv1.SingleReplica, Developer: true}
	dumps := group("dump", "Collect data to troubleshoot a hosted cluster",
		"hypershift dump cluster --name demo --artifact-dir dump")
	dumps.AddCommand(dump.NewCommand())
	drains := group("drain", "Drain an LXD host",
		"hypershift drain lxd-host calm-ant --credentials-secret maas")
	drains.AddCommand(lxdhost.NewDrainCommand())
	restores := group("restore", "Restore a hosted cluster from a backup",
		"hypershift restore cluster --from demo.tar.gz.age --key-file key.txt --wait")
	restores.AddCommand(restore.NewCommand())
	cmd.AddCommand(doctor.NewCommand(platform.DoctorParts()...), install.NewCommand(platform.InstallParts), release.NewCommand(),
		dumps, drains, restores, status.NewCommand(platform.Hardware()), uninstall.NewCommand())
	addShared(cmd, defaults).AddCommand(lxdhost.NewCreateCommand())
	completeExamples(cmd)
	return cmd
}

// HCP returns the program for users of hosted clusters.
func HCP() *cobra.Command {
	cmd := newRoot("hcp", "Create and destroy hosted clusters")
	addShared(cmd, cluster.Defaults{ControllerAvailability: hyperv1.HighlyAvailable})
	completeExamples(cmd)
	return cmd
}

func newRoot(name, short string) *cobra.Command {
	return &cobra.Command{
		Use:   name,
		Short: short,
		Example: "  hypershift get clusters -A\n  hypershift describe cluster demo\n" +
			"  hypershift create cluster maas --help",
		Version:           fmt.Sprintf("%s, revision %s", skew.Version, revision.Commit()),
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
	}
}

// addShared adds the commands that both programs have, for each platform. It returns the command create.
func addShared(root *cobra.Command, defaults cluster.Defaults) *cobra.Command {
	createCluster := group("cluster", "Create a hosted cluster",
		"hypershift create cluster maas --name demo --maas-endpoint https://maas.example.com:5443/MAAS --maas-api-key-file maas.key")
	createPool := group("nodepool", "Create a NodePool",
		"hypershift create nodepool maas --name big --cluster-name demo --replicas 3")
	destroyCluster := group("cluster", "Destroy a hosted cluster", "hypershift destroy cluster maas --name demo")
	for _, p := range platform.All() {
		if p.Developer && !defaults.Developer {
			continue
		}
		part := p.Cluster()
		createCluster.AddCommand(cluster.NewCreateCommand(part, defaults))
		createPool.AddCommand(nodepool.NewCreateCommand(p.NodePool()))
		destroyCluster.AddCommand(cluster.NewDestroyCommand(part.Type()))
	}
	create := group("create", "Create clusters, NodePools, kubeconfigs and backups",
		"hypershift create nodepool maas --name big --cluster-name demo --replicas 3",
		"hypershift create kubeconfig --name demo > demo.kubeconfig")
	create.AddCommand(createCluster, createPool, kubeconfig.NewCreateCommand(), backup.NewCreateCommand())
	destroy := group("destroy", "Destroy clusters and NodePools",
		"hypershift destroy cluster maas --name demo", "hypershift destroy nodepool --name big")
	destroy.AddCommand(destroyCluster, nodepool.NewDestroyCommand())
	root.AddCommand(create, destroy, version.NewCommand())
	addDaily(root)
	return create
}

// addDaily adds the commands for clusters that exist.
func addDaily(root *cobra.Command) {
	gets := group("get", "List clusters, NodePools, machines and releases",
		"hypershift get clusters -A", "hypershift get machines --cluster-name demo -o wide")
	gets.AddCommand(get.Commands(platform.Hardware())...)
	describes := group("describe", "Show a cluster, a NodePool or a machine as a tree",
		"hypershift describe cluster demo", "hypershift describe machine wq4h8c")
	describes.AddCommand(describe.Commands(platform.Hardware())...)
	scales := group("scale", "Change the number of nodes of a NodePool",
		"hypershift scale nodepool demo --replicas 5 --wait")
	scales.AddCommand(scale.NewCommand())
	waits := group("wait", "Wait until a cluster or a NodePool has a state",
		"hypershift wait cluster demo --for available --timeout 30m")
	waits.AddCommand(wait.Commands()...)
	upgrades := group("upgrade", "Change the release of a cluster or a NodePool",
		"hypershift upgrade cluster demo --release-image registry.example.com/release:1.36.3 --plan",
		"hypershift upgrade nodepool demo --wait")
	upgrades.AddCommand(upgrade.Commands()...)
	sshs := group("ssh", "Log in to a machine",
		"hypershift ssh machine calm-ant")
	sshs.AddCommand(ssh.NewCommand(platform.Hardware()))
	root.AddCommand(gets, describes, scales, sshs, waits, upgrades, logs.NewCommand(),
		capacity.NewCommand(platform.Capacity()), console.NewCommand(platform.Console(), platform.Hardware()))
}

// group returns a command that only contains others, with examples of these. By default, Cobra answers a mistyped
// subcommand with help and success, and one followed by flags with an error about the flags.
func group(use, short string, examples ...string) *cobra.Command {
	return &cobra.Command{
		Use:                use,
		Short:              short,
		Example:            "  " + strings.Join(examples, "\n  "),
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			path := cmd.CommandPath()
			switch {
			case len(args) == 0, args[0] == "-h", args[0] == "--help":
				return cmd.Help()
			case strings.HasPrefix(args[0], "-"):
				return exit.UsageError(fmt.Errorf("%s needs a command before %s; see %s --help", path, args[0], path))
			default:
				return exit.UsageError(fmt.Errorf("unknown command %q for %q; %ssee %s --help", args[0], path, meant(cmd, args[0]), path))
			}
		},
	}
}

// maxDistance is the number of typing mistakes up to which a command is suggested.
const maxDistance = 2

// meant suggests the commands that a mistyped one resembles, as the beginning of a remedy; empty if there are none.
func meant(cmd *cobra.Command, typed string) string {
	cmd.SuggestionsMinimumDistance = maxDistance
	names := cmd.SuggestionsFor(typed)
	if len(names) == 0 {
		return ""
	}
	return "use " + strings.Join(names, " or ") + ", or "
}

// Main runs a program and returns its exit code.
func Main(cmd *cobra.Command) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return Run(ctx, cmd, os.Stderr)
}

// Run runs a program with its arguments and returns its exit code. Errors that occur before a command's own code runs
// are usage errors. All output is cleaned: names, messages and errors of a cluster cannot control the terminal.
func Run(ctx context.Context, cmd *cobra.Command, stderr io.Writer) int {
	ctrllog.SetLogger(logr.Discard())
	stderr = terminal.NewWriter(stderr)
	cmd.SetOut(terminal.NewWriter(cmd.OutOrStdout()))
	cmd.SetErr(terminal.NewWriter(cmd.ErrOrStderr()))
	started := false
	cmd.PersistentPreRunE = func(called *cobra.Command, _ []string) error {
		err := refuseNegative(called.Flags())
		started = err == nil
		return err
	}
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return exit.OK
	}
	if errors.Is(err, context.Canceled) {
		err = fmt.Errorf("interrupted: %w; completed steps are kept; run the command again to continue", err)
	}
	fmt.Fprintln(stderr, "Error:", err)
	if !started {
		return exit.Usage
	}
	return exit.Code(err)
}

// refuseNegative rejects negative durations. No command gives them a meaning, and a wait of negative length would never
// end.
func refuseNegative(flags *pflag.FlagSet) error {
	var err error
	flags.Visit(func(f *pflag.Flag) {
		if given, none := flags.GetDuration(f.Name); none == nil && given < 0 {
			err = fmt.Errorf("--%s %s: use 0 or more", f.Name, f.Value)
		}
	})
	return err
}
