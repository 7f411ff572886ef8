package terminal

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

// Columns are a table of rows of cells. In the form Wide it has all columns, in the others those that are not wide. On
// a terminal that is narrower than the table, the forms but Wide shorten its longest cells in the middle.
type Columns struct {
	w     io.Writer
	width int    // of the terminal; 0: any
	hide  []bool // by column
	rows  [][]string
}

// WideOnly begins the title of a column that only Wide shows.
const WideOnly = "+"

// NewColumns begins a table on w.
func NewColumns(w io.Writer, f Form, titles ...string) *Columns {
	c := &Columns{w: w, hide: make([]bool, len(titles))}
	if file, ok := w.(*os.File); ok && f != Wide && IsTerminal(file) {
		c.width = Width(file)()
	}
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
	c.rows = append(c.rows, shown)
}

// Flush writes the table, its columns as wide as their widest cells.
func (c *Columns) Flush() error {
	c.narrow()
	w := tabwriter.NewWriter(c.w, 0, 0, gap, ' ', 0)
	for _, row := range c.rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

const (
	gap       = 2 // spaces between two columns
	narrowest = 9 // that a cell is shortened to: less says nothing
)

// narrow shortens the widest columns until the table fits, or no column can be shortened any more.
func (c *Columns) narrow() {
	var widths []int
	for _, row := range c.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	total := gap * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for c.width > 0 && total > c.width {
		widest := 0
		for i, w := range widths {
			if w > widths[widest] {
				widest = i
			}
		}
		if len(widths) == 0 || widths[widest] <= narrowest {
			break
		}
		widths[widest]--
		total--
	}
	for _, row := range c.rows {
		for i, cell := range row {
			row[i] = shorten(cell, widths[i])
		}
	}
}

// shorten leaves out the middle of a text that is longer than width.
func shorten(text string, width int) string {
	all := []rune(text)
	if len(all) <= width {
		return text
	}
	end := (width - 1) / 3
	return string(all[:width-1-end]) + "…" + string(all[len(all)-end:])
}

// PrintList prints a list in any form: to programs as an object with the list under a key, to people as a table.
func PrintList[T any](f Form, key string, all []T, name func(T) string, titles []string,
	row func(T) []any) error {
	if f.Machine() {
		return f.Print(os.Stdout, Items(key, all, name))
	}
	w := NewColumns(os.Stdout, f, titles...)
	for _, x := range all {
		w.Row(row(x)...)
	}
	return w.Flush()
}
