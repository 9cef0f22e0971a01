// SPDX-License-Identifier: Apache-2.0

package get

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openshift/hypershift/cmd/look"
)

// follow prints the items, and then each item that changes, until the user interrupts the command. It reads the lists
// again instead of watching them: a row combines objects of several kinds.
func (g *get) follow(cmd *cobra.Command, names []string, items []item) error {
	table, seen := look.NewTable(cmd.OutOrStdout()), map[string]item{}
	if err := g.update(cmd, table, seen, items, true); err != nil {
		return err
	}
	failed := ""
	for {
		select {
		case <-cmd.Context().Done():
			return nil
		case <-time.After(pollInterval):
		}
		now, err := g.kind.read(cmd.Context(), g)
		switch {
		case errors.Is(err, context.Canceled):
			return nil
		case err != nil:
			// Each error is printed once: the management cluster may be away for a while.
			if err.Error() != failed {
				failed = err.Error()
				fmt.Fprintln(cmd.ErrOrStderr(), "Warning:", failed)
			}
			continue
		}
		failed = ""
		if len(names) > 0 {
			now = slices.DeleteFunc(now, func(i item) bool { return !slices.Contains(names, i.name) })
		}
		if err := g.update(cmd, table, seen, now, false); err != nil {
			return err
		}
	}
}

// update prints the items that differ from those seen before, and those that are gone.
func (g *get) update(cmd *cobra.Command, table *look.Table, seen map[string]item, now []item, first bool) error {
	var changed []item
	present := map[string]bool{}
	for _, i := range now {
		present[i.key] = true
		if before, ok := seen[i.key]; !ok || g.signature(before) != g.signature(i) {
			changed = append(changed, i)
		}
		seen[i.key] = i
	}
	for key, i := range seen {
		if !present[key] {
			i.cells = slices.Clone(i.cells)
			i.cells[g.kind.stateColumn] = "Deleted"
			changed = append(changed, i)
			delete(seen, key)
		}
	}
	if g.output == outputName {
		return g.printNames(cmd, changed)
	}
	var rows [][]string
	if first {
		rows = append(rows, g.header())
	}
	for _, i := range changed {
		rows = append(rows, g.row(i))
	}
	return table.Print(rows...)
}

// signature contains the visible cells without ages, which change with the time.
func (g *get) signature(i item) string {
	var cells []string
	for n, c := range g.kind.columns {
		if c.header != ageHeader && (!c.wide || g.output == outputWide) {
			cells = append(cells, i.cells[n])
		}
	}
	return strings.Join(cells, "\x00")
}
