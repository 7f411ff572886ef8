// Package figure is what the commands of starling bench share: the flag --quick, and the table of bars. It measures
// nothing.
package figure

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/node/benchmark"
)

// QuickFlag adds --quick, for a short run that shows the form of the results.
func QuickFlag(cmd *cobra.Command, quick *bool) {
	cmd.Flags().BoolVar(quick, "quick", false, "take less than a minute")
}

// Few sets the count of a quick measurement to fewer, unless a flag gives the count.
func Few(cmd *cobra.Command, flag string, value *int, quick bool, fewer int) {
	if quick && !cmd.Flags().Changed(flag) {
		*value = min(*value, fewer)
	}
}

// PrintBars prints a table of bars.
func PrintBars(w io.Writer, bars []benchmark.Bar) {
	fmt.Fprintln(w, "FIGURE\tVALUE\tBAR\tHOLDS")
	for _, b := range bars {
		fmt.Fprintf(w, "%s\t%.3f\t%.3g\t%v\n", b.Name, b.Value, b.Bar, b.Holds)
	}
}
