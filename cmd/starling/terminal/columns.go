package terminal

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Columns are a table of rows of cells. In the form Wide it has all columns, in the others those that are not wide.
type Columns struct {
	w    *tabwriter.Writer
	hide []bool // by column
}

// WideOnly begins the title of a column that only Wide shows.
const WideOnly = "+"

// NewColumns begins a table on w.
func NewColumns(w io.Writer, f Form, titles ...string) *Columns {
	c := &Columns{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0), make([]bool, len(titles))}
	cells := make([]any, len(titles))
	for i, t := range titles {
		name, wide := strings.CutPrefix(t, WideOnly)
		cells[i], c.hide[i] = name, wide && f != Wide
	}
	c.Row(cells...)
	return c
}

// Row adds a row, with a cell for each column. An empty cell is a dash.
func (c *Columns) Row(cells ...any) {
	var shown []string
	for i, cell := range cells {
		if !c.hide[i] {
			shown = append(shown, cmp.Or(Printable(fmt.Sprint(cell)), "-"))
		}
	}
	fmt.Fprintln(c.w, strings.Join(shown, "\t"))
}

// Flush writes the table, its columns as wide as their widest cells.
func (c *Columns) Flush() error { return c.w.Flush() }
