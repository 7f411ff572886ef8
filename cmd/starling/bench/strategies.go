package bench

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/bench/figure"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/benchmark/strategies"
)

func strategiesCommand(c *terminal.Console) *cobra.Command {
	var quick bool
	var text, keep string
	var limit time.Duration
	var threads int
	cmd := &cobra.Command{
		Use:   "strategies",
		Short: "Compare strategies on one small model",
		Long: `Hold sizes of payloads, published utilisations and published speeds against what the formulas say; train a
small GPT-2 under attack by two of eight workers, by five rules of aggregation; and compare the losses of strategies
with that of data-parallel training on as many tokens, with the codecs, rules, optimizers and units of jobs. Without
--quick that takes some six hours of processor time: three seeds of 4,000 steps. As many training runs are under way as
there are --threads, each on one of them. With --keep every run that is over becomes a line of a file, and none that is
there is done again; --for ends the command early, with a report of the runs so far. With --quick the losses are of few
steps, and have no bounds.

It also simulates 10,000 workers whose work is modelled (see docs/simulator.md), for 1,000 rounds, with --quick for 24,
and not at all with --for.

With -o json: {"bars":[{"name","value","bar","holds"}],"losses":[{"name","loss":[NUMBER],"mean",` +
			`"spread","gap","bytes","less",` +
			`"received","utilisation"}],
"sieges":[{"attack","rules":{RULE:{"loss":[NUMBER],"mean","spread","gap"} or
null}}],"crowd":{"workers","runs","rounds","seconds","processor_us","gib"} or null,"note","seconds"}.`,
		Example: `  starling bench strategies --quick
  starling bench strategies --data shakespeare.txt --keep runs.jsonl --for 2h
  starling bench strategies --data shakespeare.txt --keep runs.jsonl -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := strategies.Thorough
			if quick {
				o = strategies.Quick
			}
			o.Data, o.Keep, o.For, o.Threads = text, keep, limit, threads
			if !quick && !c.Quiet {
				o.Progress = sayRun
			}
			r, err := strategies.Compare(cmd.Context(), o)
			if err != nil {
				return cause.Measurement(cmd, err)
			}
			if c.Form.Machine() {
				return figure.Judge(r.Bars, c.Form.Print(os.Stdout, terminal.Figures(r)))
			}
			return figure.Judge(r.Bars, PrintStrategies(os.Stdout, r))
		},
	}
	f := cmd.Flags()
	figure.QuickFlag(cmd, &quick)
	f.StringVar(&text, "data", "", "file of text to train on; empty: sentences that are made")
	f.StringVar(&keep, "keep", "", "file of training runs that are over, one a line: they are not done again; empty: none")
	f.DurationVar(&limit, "for", 0, "begin no training run later than this; 0: all are done")
	usage.ThreadsFlag(cmd, &threads)
	return cmd
}

// sayRun says on standard error that a training run is over.
func sayRun(r strategies.Run, over, all int) {
	loss := "diverged"
	if r.Loss != nil {
		loss = fmt.Sprintf("%.4f nats a token", *r.Loss)
	}
	fmt.Fprintf(os.Stderr, "%d of %d: %s, seed %d: %s, %.0f s\n", over, all, r.Name, r.Seed, loss, r.Seconds)
}

func PrintStrategies(out io.Writer, r *strategies.Result) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	figure.PrintBars(w, r.Bars)
	fmt.Fprintln(w, "\nSTRATEGY\tLOSS\tSPREAD\tGAP\tSENT MB\tRECEIVED MB\tFEWER BYTES\tBUSY")
	for _, l := range r.Losses {
		fmt.Fprintf(w, "%s\t%.4f\t%.4f\t%+.2f %%\t%.1f\t%.1f\t%.1f\t%.1f %%\n", l.Name, l.Mean, l.Spread, 100*l.Gap,
			float64(l.Bytes)/1e6, float64(l.Received)/1e6, l.Less, 100*l.Utilisation)
	}
	fmt.Fprintln(w, r.Note)
	if c := r.ScaleModel; c != nil {
		fmt.Fprintf(w, "\n%d modelled workers in %d runs, %d rounds: %.1f s, %.1f us of processor time for a worker and a "+
			"round, %.2f GiB\n", c.Workers, c.Runs, c.Rounds, c.Seconds, c.Processor, c.GiB)
	}
	if len(r.Attacks) == 0 {
		return w.Flush()
	}
	fmt.Fprint(w, "\nATTACK")
	rules := slices.Sorted(maps.Keys(r.Attacks[0].Rules))
	for _, rule := range rules {
		fmt.Fprintf(w, "\t%s", rule)
	}
	for _, s := range r.Attacks {
		fmt.Fprintf(w, "\n%s", s.Attack)
		for _, rule := range rules {
			switch x := s.Rules[rule]; {
			case x == nil:
				fmt.Fprint(w, "\tdiverged")
			case x.Gap > 1:
				fmt.Fprintf(w, "\t%.0f times as high", 1+x.Gap)
			default:
				fmt.Fprintf(w, "\t%+.2f %%, %.4f (%.4f)", 100*x.Gap, x.Mean, x.Spread)
			}
		}
	}
	fmt.Fprintln(w)
	return w.Flush()
}
