// Package reasoning is starling bench reasoning: it shows the figures of node/benchmark/reasoning, and measures
// nothing.
package reasoning

import (
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/bench/figure"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/benchmark/reasoning"
)

// Command is starling bench reasoning.
func Command(c *terminal.Console) *cobra.Command {
	o, quick := reasoning.Options{Questions: 200, Steps: 1500}, false
	cmd := &cobra.Command{
		Use:   "reasoning",
		Short: "Measure answers by votes, by search and with tools",
		Long: `Train two small models to add four numbers step by step, and one to call a tool that adds numbers of
four digits; then ask each for sums that it was not trained on: with one answer at temperature 1, with a vote over
several, with a search over steps, and with and without the tool. The share of right answers counts.

With -o json: {"questions","rows":[{"task","name","right","tokens","seconds"}],
"bars":[{"name","value","bar","holds"}]}.`,
		Example: `  starling bench reasoning --quick
  starling bench reasoning --questions 500 -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			figure.Few(cmd, "questions", &o.Questions, quick, 8)
			figure.Few(cmd, "steps", &o.Steps, quick, 40)
			o.Progress = c.Say
			r, err := reasoning.Measure(cmd.Context(), o)
			if err != nil {
				return cause.Measurement(cmd, err)
			}
			if c.Form.Machine() {
				return figure.Judge(r.Bars, c.Form.Print(os.Stdout, terminal.Figures(r)))
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "TASK\tANSWERED BY\tRIGHT\tTOKENS\tSECONDS")
			for _, row := range r.Rows {
				fmt.Fprintf(w, "%s\t%s\t%.3f\t%.1f\t%.1f\n", row.Task, row.Name, row.Right, row.Tokens, row.Seconds)
			}
			if err := w.Flush(); err != nil {
				return err
			}
			fmt.Println()
			figure.PrintBars(w, r.Bars)
			return figure.Judge(r.Bars, w.Flush())
		},
	}
	figure.QuickFlag(cmd, &quick)
	cmd.Flags().IntVar(&o.Questions, "questions", o.Questions, "questions of each task")
	cmd.Flags().IntVar(&o.Steps, "steps", o.Steps, "steps of training of each model")
	usage.ThreadsFlag(cmd, &o.Threads)
	return cmd
}
