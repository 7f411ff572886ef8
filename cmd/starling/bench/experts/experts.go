// Package experts is starling bench experts: it shows the figures of node/benchmark/experts, and measures nothing.
package experts

import (
	"errors"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/bench/figure"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/jobfile"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/node/benchmark/experts"
)

// Command is starling bench experts.
func Command(c *terminal.Console) *cobra.Command {
	var set []string
	var quick bool
	cmd := &cobra.Command{
		Use:   "experts JOB.yaml",
		Short: "Compare a mixture of experts with its experts, and with one model",
		Long: `Train the experts of a job file, and one model on the data of all of them, of which each domain has as many
bytes, in the steps of one expert; then measure the losses of each expert, of the mixture and of the one model on the
text that each expert's job holds out. The models are removed afterwards.

With -o json: {"domains":[{"name","tokens","expert","mixture","dense"}],"bars":[{"name","value","bar","holds"}]}.`,
		Example: `  starling bench experts examples/experts.yaml
  starling bench experts examples/experts.yaml --quick -o json`,
		Args: usage.Exactly("JOB.yaml"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if quick {
				set = append(set, "training.max_steps=40", "training.warmup_steps=2")
			}
			jobs, err := jobfile.LoadAll(cmd.Context(), c, args[0], set)
			if err != nil {
				return err
			}
			if len(jobs) < 2 {
				return usage.Error(cmd, errors.New("the file has one job, and no experts"))
			}
			r, err := experts.Measure(cmd.Context(), experts.Options{Jobs: jobs, Threads: kernel.Cores, Progress: c.Say})
			if err != nil {
				return cause.Measurement(cmd, err)
			}
			if c.Form.Machine() {
				return figure.Judge(r.Bars, c.Form.Print(os.Stdout, terminal.Figures(r)))
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "DOMAIN\tTOKENS\tEXPERT\tMIXTURE\tONE MODEL")
			for _, d := range r.Domains {
				fmt.Fprintf(w, "%s\t%d\t%.4f\t%.4f\t%.4f\n", d.Name, d.Tokens, d.Expert, d.Mixture, d.Dense)
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
	cmd.Flags().StringArrayVar(&set, "set", nil, "change a key of the job file: KEY=VALUE (repeatable)")
	return cmd
}
