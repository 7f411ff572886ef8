// Package pipeline is starling bench pipeline: it shows the figures of node/benchmark/pipeline, and measures nothing.
package pipeline

import (
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/bench/figure"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/benchmark/pipeline"
)

// Command is starling bench pipeline.
func Command(c *terminal.Console) *cobra.Command {
	o, quick := pipeline.Options{Steps: 50, Sequences: 32, Repeats: 2, Boundaries: 400}, false
	cmd := &cobra.Command{
		Use:   "pipeline",
		Short: "Measure models that are cut into stages",
		Long: `Cut the training step of small models into 2, 4 and 8 stages, each of which holds a part of the layers, and
compute a unit with all of them in this process: each stage sends activations and gradients to the others, hashes and
signs them, and commits to a state root after every step. Compare the weights with those of the whole model. Measure
the processor time of hashing and signing, the memory of the stages of a model four times as large as the largest of
them, and the loss of a model whose stages exchange codes of 4 bits, or a part of the columns. Then attack: one stage
after the other computes something else, forward, backward or in the update, denies what it sent or received, or stops
in the middle of a step, and begins it again. No network takes part.

With -o json: {"cuts":[{"model","stages","microbatches","steps","differ","bytes","idle","in_flight",
"memory_largest"}],"cost":{"stages","plain_ms","signed_ms","percent"},"six":{...},"boundaries":[{"scheme","forward",
"back","steps","loss","gap","differ","excess"}],"attacks":{"liars","convicted","denials","shown","withheld","named",
"wrong","restarts","resumed"},"bars":[{"name","value","bar","holds"}]}.`,
		Example: `  starling bench pipeline --quick
  starling bench pipeline --steps 50 -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			figure.Few(cmd, "steps", &o.Steps, quick, 4)
			if quick {
				o.Sequences, o.Repeats, o.Boundaries = 8, 1, 20
			}
			o.Progress = c.Say
			r, err := pipeline.Measure(cmd.Context(), o)
			if err != nil {
				return cause.Measurement(cmd, err)
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.Figures(r))
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "MODEL\tSTAGES\tMICROBATCHES\tSTEPS\tDIFFER\tBYTES A STEP\tIDLE\tMEMORY")
			for _, x := range append(r.Cuts, r.Six) {
				fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%.3f\t%.3f\n", x.Model, x.Stages, x.Microbatches, x.Steps, x.Differ,
					x.Bytes, x.Idle, x.LargestShare)
			}
			if err := w.Flush(); err != nil {
				return err
			}
			fmt.Printf("\na step in %d stages takes %.1f ms of processor time, %.1f ms with hashes and signatures\n\n",
				r.Cost.Stages, r.Cost.Plain, r.Cost.Signed)
			fmt.Fprintln(w, "BETWEEN STAGES\tBYTES FORWARD\tBYTES BACK\tSTEPS\tLOSS\tGAP")
			for _, b := range r.Boundaries {
				fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%d\t%.4f\t%.4f\n", b.Scheme, b.Forward, b.Back, b.Steps, b.Loss, b.Gap)
			}
			fmt.Fprintln(w)
			figure.PrintBars(w, r.Bars)
			return w.Flush()
		},
	}
	figure.QuickFlag(cmd, &quick)
	cmd.Flags().IntVar(&o.Steps, "steps", o.Steps, "steps of a unit, at most 64")
	usage.ThreadsFlag(cmd, &o.Threads)
	return cmd
}
