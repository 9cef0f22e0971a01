// SPDX-License-Identifier: Apache-2.0

// Package get holds the commands that list clusters, NodePools, machines and releases.
package get

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/look"
)

// Values of --output.
const (
	outputTable = ""
	outputWide  = "wide"
	outputJSON  = "json"
	outputYAML  = "yaml"
	outputName  = "name"
)

// pollInterval is how often --watch reads.
const pollInterval = 2 * time.Second

// item is one line of the list.
type item struct {
	// key identifies the item in the list; name is what the user types.
	key, name string
	cells     []string
	// object is what -o json and -o yaml print.
	object any
}

// column is a column of the table.
type column struct {
	header string
	// wide columns are printed with -o wide only.
	wide bool
}

// kind is what one command lists.
type kind struct {
	use, short, long, example string
	aliases                   []string
	// resource is the prefix of -o name.
	resource string
	columns  []column
	// stateColumn is the column that says Deleted when --watch misses an item.
	stateColumn int
	// byCluster kinds have --cluster-name.
	byCluster bool
	read      func(ctx context.Context, g *get) ([]item, error)
	complete  func(f *look.Flags) look.Completion
}

// get holds the state of one `get`.
type get struct {
	look.Flags
	kind    kind
	reader  *look.Reader
	now     func() time.Time
	cluster string
	output  string
	watch   bool
}

// Commands returns the commands below `get`.
func Commands(hardware []look.HardwareReader) []*cobra.Command {
	var all []*cobra.Command
	for _, k := range []kind{clusters(), nodePools(), machines(), releases()} {
		all = append(all, newCommand(k, hardware))
	}
	return all
}

func newCommand(k kind, hardware []look.HardwareReader) *cobra.Command {
	g := &get{kind: k, now: clock.RealClock{}.Now}
	cmd := &cobra.Command{
		Use: k.use, Aliases: k.aliases, Short: k.short, Long: k.long, Example: k.example,
		RunE: func(cmd *cobra.Command, args []string) error { return g.run(cmd, args, hardware) },
	}
	flags := cmd.Flags()
	g.AddFlags(flags)
	g.AddAll(flags)
	flags.StringVarP(&g.output, "output", "o", outputTable, "wide, json, yaml or name (default: a table)")
	flags.BoolVarP(&g.watch, "watch", "w", false, "print each change until you interrupt the command")
	if k.byCluster {
		flags.StringVar(&g.cluster, "cluster-name", "", "only those of this cluster")
		_ = cmd.RegisterFlagCompletionFunc("cluster-name", g.CompleteClusters(0))
	}
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(
		[]string{outputWide, outputJSON, outputYAML, outputName}, cobra.ShellCompDirectiveNoFileComp))
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	if k.complete != nil {
		cmd.ValidArgsFunction = k.complete(&g.Flags)
	}
	return cmd
}

func (g *get) run(cmd *cobra.Command, names []string, hardware []look.HardwareReader) error {
	if err := g.check(names); err != nil {
		return exit.UsageError(err)
	}
	c, err := g.Connection.Client()
	if err != nil {
		return err
	}
	g.reader = look.New(c, hardware)
	items, err := g.list(cmd.Context(), names)
	if err != nil {
		return err
	}
	if denied := g.reader.Denied(); denied != "" {
		fmt.Fprintln(cmd.ErrOrStderr(), denied)
	}
	if g.output == outputJSON || g.output == outputYAML {
		return g.encode(cmd.OutOrStdout(), items, len(names) == 1)
	}
	if len(items) == 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), g.nothing())
	}
	if !g.watch {
		return g.print(cmd, items)
	}
	return g.follow(cmd, names, items)
}

func (g *get) check(names []string) error {
	known := []string{outputTable, outputWide, outputJSON, outputYAML, outputName}
	if !slices.Contains(known, g.output) {
		return fmt.Errorf("--output %q: use %s", g.output, strings.Join(known[1:], ", "))
	}
	if g.watch && (g.output == outputJSON || g.output == outputYAML) {
		return errors.New("--watch prints a table: leave it out, or use -o wide or -o name")
	}
	return g.CheckAll(names)
}

// list reads the items, and selects those with the names. A name that does not exist is an error.
func (g *get) list(ctx context.Context, names []string) ([]item, error) {
	items, err := g.kind.read(ctx, g)
	if err != nil || len(names) == 0 {
		return items, err
	}
	for _, name := range names {
		if !slices.ContainsFunc(items, func(i item) bool { return i.name == name }) {
			return nil, fmt.Errorf("namespace %s has no %s %q; check the name and --namespace",
				g.Namespace, g.kind.resource, name)
		}
	}
	return slices.DeleteFunc(items, func(i item) bool { return !slices.Contains(names, i.name) }), nil
}

// nothing says that the list is empty.
func (g *get) nothing() string {
	what := strings.Fields(g.kind.use)[0]
	if g.All {
		return "There are no " + what + "."
	}
	return fmt.Sprintf("There are no %s in namespace %s; use -A for all namespaces.", what, g.Namespace)
}

// print prints the items with a header.
func (g *get) print(cmd *cobra.Command, items []item) error {
	if len(items) == 0 {
		return nil
	}
	if g.output == outputName {
		return g.printNames(cmd, items)
	}
	rows := [][]string{g.header()}
	for _, i := range items {
		rows = append(rows, g.row(i))
	}
	return look.NewTable(cmd.OutOrStdout()).Print(rows...)
}

func (g *get) printNames(cmd *cobra.Command, items []item) error {
	for _, i := range items {
		line := g.kind.resource + "/" + i.name
		if g.kind.resource == "" {
			line = i.name
		}
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), line); err != nil {
			return err
		}
	}
	return nil
}

func (g *get) header() []string {
	var headers []string
	for _, c := range g.kind.columns {
		headers = append(headers, c.header)
	}
	return g.visible(headers)
}

func (g *get) row(i item) []string { return g.visible(i.cells) }

// visible selects the cells of the columns that are printed. The first column is the namespace.
func (g *get) visible(cells []string) []string {
	var shown []string
	for i, c := range g.kind.columns {
		if c.wide && g.output != outputWide || i == 0 && !g.All {
			continue
		}
		shown = append(shown, cells[i])
	}
	return shown
}
