// SPDX-License-Identifier: Apache-2.0

// Package capacity holds the command that shows how many machines a site has left.
package capacity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/doctor"
	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/cmd/look"
)

// Part is what a platform with machines adds to `capacity`.
type Part interface {
	// Type is the platform's type.
	Type() hyperv1.PlatformType
	// AddFlags adds the platform's flags, which are those of `create cluster`.
	AddFlags(flags *pflag.FlagSet)
	// Constrained reports whether flags that choose machines are set, and Connected whether flags that connect are.
	Constrained() bool
	Connected() bool
	// FromFlags returns the site of the flags. An error is a usage error.
	FromFlags(site doctor.Site) (*Site, error)
	// OfCluster returns the site of a cluster, for its NodePools. If there are none, the constraints are those of the
	// flags.
	OfCluster(ctx context.Context, c client.Client, hc *hyperv1.HostedCluster, pools []hyperv1.NodePool) (*Site, error)
}

// Site is a MAAS, and what is required of its machines.
type Site struct {
	// MAAS connects to the site.
	MAAS *doctor.MAAS
	// Demands are the requirements, in the order of the report.
	Demands []Demand
	// Clusters maps hosted namespaces to the names of their clusters.
	Clusters map[string]string
	// Quarantined has the system IDs of machines that the cluster has quarantined without the tag in MAAS.
	Quarantined map[string]bool
}

// Demand is what a NodePool, or the flags, require of a machine.
type Demand struct {
	// NodePool is the namespace and name of the NodePool; empty for the flags. Nodes has the number of its nodes.
	NodePool, Nodes string
	// MAAS has the constraints.
	MAAS *doctor.MAAS
}

// command holds the flags of `capacity`.
type command struct {
	look.Flags
	part                         Part
	name, nodePool, arch, output string
}

// NewCommand returns the command `capacity`.
func NewCommand(part Part) *cobra.Command {
	c := &command{part: part}
	cmd := &cobra.Command{
		Use:   "capacity",
		Short: "Show how many machines a site has left",
		Long: "Show how many more machines each NodePool of a cluster can get. A table shows the machines of the site by " +
			"zone, resource pool and tag: those that fit, those that clusters have, and those that are quarantined or " +
			"broken. With --name, the command reads MAAS with the credentials of the cluster. Without it, " +
			"the flags are those of `create cluster`. Nothing is changed.",
		Example: "  # How many more nodes can the NodePools of a cluster get?\n" +
			"  hypershift capacity --name demo\n" +
			"  # How many machines with a GPU are left in the MAAS of a cluster?\n" +
			"  hypershift capacity --name demo --tags gpu --min-cpu 16\n" +
			"  # Before there is a cluster\n" +
			"  hypershift capacity --maas-endpoint https://maas.example.com:5443/MAAS --maas-api-key-file maas.key",
		Args: cobra.NoArgs,
		RunE: c.run,
	}
	flags := cmd.Flags()
	c.AddFlags(flags)
	flags.StringVar(&c.name, "name", "", "name of the cluster whose MAAS is read")
	flags.StringVar(&c.nodePool, "nodepool", "", "only this NodePool of the cluster (default: all)")
	flags.StringVar(&c.arch, "arch", hyperv1.ArchitectureAMD64, "CPU architecture of the machines")
	flags.StringVarP(&c.output, "output", "o", "", "json (default: a table)")
	part.AddFlags(flags)
	_ = cmd.RegisterFlagCompletionFunc("name", c.CompleteClusters(0))
	_ = cmd.RegisterFlagCompletionFunc("nodepool", c.CompleteNodePools(0))
	return cmd
}

func (c *command) run(cmd *cobra.Command, _ []string) error {
	if err := c.check(cmd.Flags()); err != nil {
		return exit.UsageError(err)
	}
	site, err := c.site(cmd)
	if err != nil {
		return err
	}
	inventory, err := site.MAAS.Inventory(cmd.Context())
	if err := errors.Join(cmd.Context().Err(), err); err != nil {
		return err
	}
	report := NewReport(inventory, site)
	if c.output != "" {
		encoder := json.NewEncoder(cmd.OutOrStdout())
		encoder.SetIndent("", "  ")
		return encoder.Encode(report)
	}
	return report.print(cmd.OutOrStdout())
}

func (c *command) check(flags *pflag.FlagSet) error {
	constrained := c.part.Constrained() || flags.Changed("arch")
	switch {
	case c.output != "" && c.output != "json":
		return fmt.Errorf("--output %q: use json", c.output)
	case c.name != "" && c.part.Connected():
		return errors.New("--name reads MAAS with the credentials of the cluster: leave out --name, or the flags that " +
			"connect")
	case c.name == "" && !c.part.Connected():
		return errors.New("name a cluster by --name, or set --maas-endpoint and --maas-api-key-file, or --credentials-secret")
	case c.nodePool != "" && c.name == "":
		return errors.New("--nodepool is a NodePool of the cluster in --name: set --name, too")
	case c.nodePool != "" && constrained:
		return errors.New("--nodepool has the constraints of the NodePool: leave out --nodepool, or the other constraints")
	}
	return nil
}

// site returns the site of the cluster, or of the flags.
func (c *command) site(cmd *cobra.Command) (*Site, error) {
	if c.name == "" {
		site, err := c.part.FromFlags(doctor.Site{
			Namespace: c.Namespace, Architecture: c.arch, Client: c.Connection.Client,
			Stdin: cmd.InOrStdin(), Stderr: cmd.ErrOrStderr(),
		})
		return site, exit.UsageError(err)
	}
	cl, err := c.Connection.Client()
	if err != nil {
		return nil, err
	}
	reader := look.New(cl, nil)
	hc, err := reader.HostedCluster(cmd.Context(), c.Key(c.name))
	if err != nil {
		return nil, err
	}
	if hc.Spec.Platform.Type != c.part.Type() {
		return nil, fmt.Errorf("HostedCluster %s is of platform %s; only sites of platform %s can be read",
			c.Key(c.name), hc.Spec.Platform.Type, c.part.Type())
	}
	var pools []hyperv1.NodePool
	if !c.part.Constrained() && !cmd.Flags().Changed("arch") {
		if pools, err = c.nodePools(cmd.Context(), reader); err != nil {
			return nil, err
		}
	}
	site, err := c.part.OfCluster(cmd.Context(), cl, hc, pools)
	if err != nil {
		return nil, err
	}
	for _, demand := range site.Demands {
		if demand.NodePool == "" {
			demand.MAAS.Architecture = c.arch
		}
	}
	site.Clusters = clusterNames(cmd.Context(), reader, hc)
	return site, nil
}

// nodePools returns the NodePools of the cluster, or the one of --nodepool.
func (c *command) nodePools(ctx context.Context, reader *look.Reader) ([]hyperv1.NodePool, error) {
	pools, err := reader.NodePools(ctx, c.Namespace, c.name)
	if err != nil || c.nodePool == "" {
		return pools, err
	}
	var names []string
	for i := range pools {
		if pools[i].Name == c.nodePool {
			return pools[i : i+1], nil
		}
		names = append(names, pools[i].Name)
	}
	return nil, fmt.Errorf("HostedCluster %s has no NodePool %q; it has: %s",
		c.Key(c.name), c.nodePool, look.Or(strings.Join(names, ", ")))
}

// clusterNames returns the names of all clusters that the user may list, by hosted namespace, and at least of one.
func clusterNames(ctx context.Context, reader *look.Reader, one *hyperv1.HostedCluster) map[string]string {
	clusters, err := reader.HostedClusters(ctx, "")
	if err != nil {
		clusters = []hyperv1.HostedCluster{*one}
	}
	names := map[string]string{}
	for i := range clusters {
		key := client.ObjectKeyFromObject(&clusters[i])
		names[kube.HostedNamespace(key.Namespace, key.Name)] = key.String()
	}
	return names
}

// print prints how many machines are left, and then the places.
func (r *Report) print(out io.Writer) error {
	rows := [][]string{{"NODEPOOL", "NODES", "CAN GET", "REASON"}}
	for _, need := range r.Needs {
		rows = append(rows, []string{look.Or(need.NodePool), look.Or(need.Nodes), strconv.Itoa(need.Fit), need.Reason})
	}
	if len(r.Needs) == 0 {
		rows = [][]string{{"The cluster has no NodePools; set constraints such as --tags to count machines that fit."}}
	}
	if err := look.NewTable(out).Print(rows...); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "\nMachines of %s: %d\n\n", r.Endpoint, len(r.Machines)); err != nil {
		return err
	}
	states := []State{Fit, Unfit, Taken, Quarantined, Broken, Other}
	header := []string{"PLACE"}
	for _, state := range states {
		header = append(header, strings.ToUpper(string(state)))
	}
	rows = [][]string{append(header, "TAKEN BY")}
	for _, place := range r.Places {
		row := []string{place.Kind + " " + place.Name}
		for _, state := range states {
			row = append(row, strconv.Itoa(place.States[state]))
		}
		var takers []string
		for _, taker := range slices.Sorted(maps.Keys(place.TakenBy)) {
			takers = append(takers, fmt.Sprintf("%s: %d", taker, place.TakenBy[taker]))
		}
		rows = append(rows, append(row, look.Or(strings.Join(takers, ", "))))
	}
	return look.NewTable(out).Print(rows...)
}
