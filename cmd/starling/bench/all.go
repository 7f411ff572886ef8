package bench

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/bench/figure"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/benchmark"
)

// allCommand runs the benches of a list.
func allCommand(c *terminal.Console, benches []*cobra.Command) *cobra.Command {
	var quick bool
	var only []string
	cmd := &cobra.Command{
		Use:   "all",
		Short: "Run every bench",
		Long: `Run every bench that needs no file, one after the other, each in a process of its own so that its peak memory
is its own. A bench that fails does not stop the others; the exit code is then 1, or 12 if all have run and bars do not
hold.

With -o json: {"benches":[{"name","seconds","report","bars":[{"name","value","bar","holds"}],"error"}]}; report is what
starling bench NAME -o json prints.`,
		Example: `  starling bench all --quick
  starling bench all --only matmul,train -o json`,
		Args: usage.Exactly(), Annotations: terminal.FiguresOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			chosen, err := chosenBenches(cmd, benches, only)
			if err != nil {
				return err
			}
			var all []benchmark.Done
			failed := 0
			for _, bench := range chosen {
				c.Say("bench " + bench.Name())
				done, err := benchmark.Run(cmd.Context(), bench.Name(), quick && bench.Flags().Lookup("quick") != nil)
				if err != nil {
					return cause.Measurement(cmd, err)
				}
				if all = append(all, done); done.Error != "" {
					failed++
				}
			}
			printed := PrintBenches(os.Stdout, c.Form, all)
			if printed != nil || failed == 0 {
				var bars []benchmark.OptionalBar
				for _, done := range all {
					bars = append(bars, done.Bars...)
				}
				return figure.Judge(bars, printed)
			}
			return terminal.WithExit(&terminal.Problem{
				Code: "BENCH_FAILED", What: fmt.Sprintf("%d of %s failed", failed, terminal.Counted(len(all), "bench")),
				Fix: "run the ones with an error by themselves: starling bench NAME",
			}, terminal.ExitFailure)
		},
	}
	figure.QuickFlag(cmd, &quick)
	cmd.Flags().StringSliceVar(&only, "only", nil, "names of the benches to run, separated by commas (default: all)")
	return cmd
}

// chosenBenches are those of benches that --only names, without it those that need no file.
func chosenBenches(cmd *cobra.Command, benches []*cobra.Command, only []string) (chosen []*cobra.Command, err error) {
	names := make([]string, len(benches))
	files := []string{"losses", "precision", "experts"} // benches that need one
	for i, bench := range benches {
		names[i] = bench.Name()
		if slices.Contains(only, names[i]) || len(only) == 0 && !slices.Contains(files, names[i]) {
			chosen = append(chosen, bench)
		}
	}
	for _, name := range only {
		if !slices.Contains(names, name) {
			return nil, usage.Error(cmd, fmt.Errorf("there is no bench %q; there are %s", name, strings.Join(names, ", ")))
		}
	}
	return chosen, nil
}

func PrintBenches(to io.Writer, form terminal.Form, all []benchmark.Done) error {
	if form.Machine() {
		return form.Print(to, terminal.Figures(map[string]any{"benches": all}))
	}
	w := terminal.NewColumns(to, form, "BENCH", "SECONDS", "FIGURE", "VALUE", "BAR", "HOLDS")
	for _, done := range all {
		if len(done.Bars) == 0 {
			state := cmp.Or(done.Error, "measured; see starling bench "+done.Name)
			w.Row(done.Name, fmt.Sprintf("%.1f", done.Seconds), state, "", "", "")
		}
		for _, b := range done.Bars {
			w.Row(done.Name, fmt.Sprintf("%.1f", done.Seconds), b.Name, b.Measured(terminal.Number), terminal.Number(b.Bar),
				b.Holds)
		}
	}
	return w.Flush()
}
