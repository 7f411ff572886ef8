// Package reinforce is starling bench rl: it shows the figures of node/benchmark/reinforce, and measures nothing.
package reinforce

import (
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/bench/figure"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/benchmark/reinforce"
)

// Command is starling bench rl.
func Command(c *terminal.Console) *cobra.Command {
	o, quick := reinforce.Options{Seeds: 3, Steps: 1000, Rounds: 250}, false
	cmd := &cobra.Command{
		Use:   "rl",
		Short: "Measure how a small model learns from rewards",
		Long: `Train small models to add numbers below 500. Each learns from right answers until 20 % of its answers are
right, then draws 16 answers to each of 32 prompts a step and learns from their rewards (GRPO). The reward is the share
of 512 held-out sums whose most likely answer is right. No network takes part: the programs are those of units. Make
patches between versions of the weights at a rate of 1e-6, and send one to eight hosts over loopback. Then compare jobs
like examples/grpo-async.yaml, whose answers other units draw: with the model of the round, where tokens count clipped
and tapered, and with that of two rounds before, tapered. The throughput is that of the same machines, which first draw
and then learn, under virtual time with the real rules: two learn in 10 s and eight in 35 s, all draw a unit in 10 s,
with 20 Mbit/s and 100 ms. The reward of older answers is compared with the better of the others after as many rounds,
and after as many as it does in their time.

All of it takes hours on two cores. --parts keeps each number in a file when it is measured; a bench that was ended
continues with the others, also for more seeds.

With -o json: {"parameters","prompts","group","runs":[{"seed","shown_steps","reward_shown","steps","reward","seconds"}],
"first_preference_loss","asynchronous":[{"staleness","correction","round_seconds","throughput","reward",
"rounds_in_its_time","reward_in_its_time"}],"patches":[{"precision","whole_bytes","patch_bytes","smaller"}],
"spread":{"receivers","patch_bytes","origin_bytes","times","seconds"},"bars":[{"name","value","bar","holds"}]}.`,
		Example: `  starling bench rl --quick
  starling bench rl --seeds 1 --steps 500 -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			figure.Few(cmd, "seeds", &o.Seeds, quick, 1)
			figure.Few(cmd, "steps", &o.Steps, quick, 40)
			figure.Few(cmd, "rounds", &o.Rounds, quick, 8)
			o.Progress = c.Say
			r, err := reinforce.Measure(cmd.Context(), o)
			if err != nil {
				return cause.Measurement(cmd, err)
			}
			if c.Form.Machine() {
				return figure.Judge(r.Bars, c.Form.Print(os.Stdout, terminal.Figures(r)))
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "SEED\tSTEPS SHOWN\tREWARD\tSTEPS OF REWARDS\tREWARD\tSECONDS")
			for _, run := range r.Runs {
				fmt.Fprintf(w, "%d\t%d\t%.3f\t%d\t%.3f\t%.0f\n", run.Seed, run.Shown, run.Before, run.Steps, run.After,
					run.Seconds)
			}
			figure.PrintBars(w, r.Bars)
			return figure.Judge(r.Bars, w.Flush())
		},
	}
	figure.QuickFlag(cmd, &quick)
	cmd.Flags().IntVar(&o.Seeds, "seeds", o.Seeds, "models that learn, each from other weights and examples")
	cmd.Flags().IntVar(&o.Steps, "steps", o.Steps, "steps of learning from rewards")
	cmd.Flags().IntVar(&o.Rounds, "rounds", o.Rounds, "rounds of the jobs whose answers other units draw")
	cmd.Flags().StringVar(&o.Parts, "parts", "", "file that keeps what is measured; started again, it measures the rest")
	usage.ThreadsFlag(cmd, &o.Threads)
	return cmd
}
