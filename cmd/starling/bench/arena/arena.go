// Package arena is starling bench arena: it shows the figures of node/benchmark/arena, and measures nothing.
package arena

import (
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/bench/figure"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/benchmark/arena"
)

// Command is starling bench arena.
func Command(c *terminal.Console) *cobra.Command {
	var quick bool
	cmd := &cobra.Command{
		Use:   "arena",
		Short: "Measure how often duels between models of contests err",
		Long: `Play duels between drawn losses of two models, as contests of models compare entries: of equal models, and of
models that differ by 0.01 nats on 2,000 examples or by 0.02 on 500. Both models have the difficulties of the examples
in common, which are skewed; their differences have heavy tails and a deviation of 0.12 nats. No model is computed.

With -o json: {"duels":[{"examples","difference","duels","right","wrong"}],"bars":[{"name","value","bar","holds"}]}.`,
		Example: `  starling bench arena
  starling bench arena --quick -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := arena.Options{Null: 10_000, Duels: 2_000, Progress: c.Say}
			if quick {
				o.Null, o.Duels = 1_000, 200
			}
			r, err := arena.Measure(cmd.Context(), o)
			if err != nil {
				return cause.Measurement(cmd, err)
			}
			if c.Form.Machine() {
				return figure.Judge(r.Bars, c.Form.Print(os.Stdout, terminal.Figures(r)))
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "EXAMPLES\tDIFFERENCE\tDUELS\tRIGHT\tWRONG")
			for _, d := range r.Rows {
				fmt.Fprintf(w, "%d\t%g\t%d\t%.1f %%\t%.1f %%\n", d.Examples, d.Difference, d.Duels, 100*d.Right, 100*d.Wrong)
			}
			fmt.Fprintln(w)
			figure.PrintBars(w, r.Bars)
			return figure.Judge(r.Bars, w.Flush())
		},
	}
	figure.QuickFlag(cmd, &quick)
	return cmd
}
