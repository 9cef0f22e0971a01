// SPDX-License-Identifier: Apache-2.0

// Package describe holds the commands that show a cluster, a NodePool or a machine as a tree.
package describe

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/openshift/hypershift/cmd/look"
)

// describe holds the state of one `describe`.
type describe struct {
	look.Flags
	reader *look.Reader
	now    time.Time
}

// kind is what one command describes.
type kind struct {
	cmd      *cobra.Command
	what     string
	tree     func(d *describe) func(ctx context.Context, name string) (*look.Branch, error)
	complete func(d *describe) look.Completion
}

// Commands returns the commands below `describe`.
func Commands(hardware []look.HardwareReader) []*cobra.Command {
	var all []*cobra.Command
	for _, k := range []kind{cluster(), nodePool(), machine()} {
		all = append(all, newCommand(k, hardware))
	}
	return all
}

func cluster() kind {
	return kind{
		cmd: &cobra.Command{
			Use: "cluster NAME", Aliases: []string{"clusters", "hc", "hostedcluster"},
			Short: "Show a cluster with its NodePools and machines",
			Long: "Show a cluster as a tree: its NodePools, their Machines, and the host of each Machine. Each object has " +
				"the first condition that is not as it should be, with its age.",
			Example: "  hypershift describe cluster demo\n  hypershift describe cluster demo -n team-a",
		},
		what:     "cluster",
		tree:     func(d *describe) func(context.Context, string) (*look.Branch, error) { return d.clusterTree },
		complete: func(d *describe) look.Completion { return d.CompleteClusters(1) },
	}
}

func nodePool() kind {
	return kind{
		cmd: &cobra.Command{
			Use: "nodepool NAME", Aliases: []string{"nodepools", "np"},
			Short:   "Show a NodePool with its cluster and machines",
			Long:    "Show a NodePool as a tree, below its cluster: its Machines, and the host of each Machine.",
			Example: "  hypershift describe nodepool demo",
		},
		what:     "NodePool",
		tree:     func(d *describe) func(context.Context, string) (*look.Branch, error) { return d.nodePoolTree },
		complete: func(d *describe) look.Completion { return d.CompleteNodePools(1) },
	}
}

func machine() kind {
	return kind{
		cmd: &cobra.Command{
			Use: "machine NAME", Aliases: []string{"machines"},
			Short: "Show a machine with its cluster and NodePool",
			Long: "Show a machine as a tree, below its NodePool and cluster. NAME is the name of the Machine, of its Node " +
				"or of its host, the platform's id of the host, such as MAAS's system id, or its provider id.",
			Example: "  hypershift describe machine demo-x7k2p-abcde\n" +
				"  # By the system id in MAAS\n  hypershift describe machine wq4h8c",
		},
		what:     "machine",
		tree:     func(d *describe) func(context.Context, string) (*look.Branch, error) { return d.machineTree },
		complete: func(d *describe) look.Completion { return d.CompleteMachines(1) },
	}
}

func newCommand(k kind, hardware []look.HardwareReader) *cobra.Command {
	d, cmd := &describe{}, k.cmd
	cmd.Args = look.OneName(k.what, "hypershift describe "+cmd.Name()+" demo")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := d.Connection.Client()
		if err != nil {
			return err
		}
		d.reader, d.now = look.New(c, hardware), clock.RealClock{}.Now()
		root, err := k.tree(d)(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if err := root.Print(cmd.OutOrStdout()); err != nil {
			return err
		}
		if denied := d.reader.Denied(); denied != "" {
			fmt.Fprintln(cmd.ErrOrStderr(), denied)
		}
		return nil
	}
	cmd.ValidArgsFunction = k.complete(d)
	d.AddFlags(cmd.Flags())
	return cmd
}
