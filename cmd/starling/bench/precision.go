package bench

import (
	"errors"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/bench/figure"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/benchmark/precision"
)

func precisionCommand(c *terminal.Console) *cobra.Command {
	o, quick := precision.Options{Seeds: 3, Steps: 4000}, false
	cmd := &cobra.Command{
		Use:   "precision",
		Short: "Compare the losses of training in float32 and with products of integers",
		Long: `Train a GPT-2 of 4 layers of width 64 on the bytes of a text, 2,048 a step, with training.precision fp32,
exact15 and exact8, and compare the losses on 256 sequences of the last tenth of the text, which is not trained on.
Models of one seed begin with the same weights and see the same sequences.

With -o json: {"parameters","steps","runs":[{"precision","seed","loss","seconds"}],"mean":{PRECISION:NUMBER},
"bars":[{"name","value","bar","holds"}]}.`,
		Example: `  starling bench precision --data shakespeare.txt
  starling bench precision --data shakespeare.txt --quick -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Data == "" {
				return usage.Error(cmd, errors.New("--data is needed"))
			}
			figure.Few(cmd, "seeds", &o.Seeds, quick, 1)
			figure.Few(cmd, "steps", &o.Steps, quick, 20)
			o.Progress = c.Say
			r, err := precision.Measure(cmd.Context(), o)
			if err != nil {
				return cause.Measurement(cmd, err)
			}
			if c.Form.Machine() {
				return figure.Judge(r.Bars, c.Form.Print(os.Stdout, terminal.Figures(r)))
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "SEED\tPRECISION\tLOSS\tSECONDS")
			for _, run := range r.Runs {
				fmt.Fprintf(w, "%d\t%s\t%.5f\t%.0f\n", run.Seed, run.Precision, run.Loss, run.Seconds)
			}
			figure.PrintBars(w, r.Bars)
			return figure.Judge(r.Bars, w.Flush())
		},
	}
	figure.QuickFlag(cmd, &quick)
	cmd.Flags().StringVar(&o.Data, "data", "", "file of text")
	cmd.Flags().IntVar(&o.Seeds, "seeds", o.Seeds, "models of each precision")
	cmd.Flags().IntVar(&o.Steps, "steps", o.Steps, "steps of a model")
	usage.ThreadsFlag(cmd, &o.Threads)
	return cmd
}
