// SPDX-License-Identifier: Apache-2.0

package look

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/openshift/hypershift/support/terminal"
)

// gap separates columns.
const gap = 2

// Table prints rows in aligned columns. Rows that are added later keep the widths of the first ones.
type Table struct {
	out    io.Writer
	widths []int
}

// NewTable returns a Table that prints to a writer.
func NewTable(out io.Writer) *Table { return &Table{out: out} }

// Print prints rows. Text from a cluster cannot start another line.
func (t *Table) Print(rows ...[]string) error {
	var text strings.Builder
	for i := range rows {
		for column, cell := range rows[i] {
			rows[i][column] = terminal.Line(cell)
		}
	}
	if t.widths == nil && len(rows) > 0 {
		t.widths = make([]int, len(rows[0]))
		for _, row := range rows {
			for column, cell := range row {
				t.widths[column] = max(t.widths[column], utf8.RuneCountInString(cell))
			}
		}
	}
	for _, row := range rows {
		line := ""
		for column, cell := range row {
			line += cell + strings.Repeat(" ", max(0, t.widths[column]-utf8.RuneCountInString(cell))+gap)
		}
		text.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	_, err := fmt.Fprint(t.out, text.String())
	return err
}
