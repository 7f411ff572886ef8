// Package figure is what the commands of starling bench share: the flag --quick, the table of bars, and the exit code
// of those that do not hold. It measures nothing.
package figure

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/terminal"
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

// Judge ends a bench that has printed its figures: with the error of that, or else of the bars that do not hold.
func Judge[B interface{ Misses() string }](bars []B, printed error) error {
	var missed []string
	for _, b := range bars {
		if name := b.Misses(); name != "" {
			missed = append(missed, name)
		}
	}
	if printed != nil || len(missed) == 0 {
		return printed
	}
	return terminal.WithExit(&terminal.Problem{
		Code: "BARS_MISSED",
		What: fmt.Sprintf("%d of %s missed: %s", len(missed), terminal.Counted(len(bars), "bar"),
			strings.Join(missed, "; ")),
		Fix: "see docs/performance.md for the machine of each bar; bars on times want one without other work",
	}, terminal.ExitFindings)
}
