package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/node/benchmark"
)

func (c *cli) benchStrategies() *cobra.Command {
	var quick bool
	var text string
	var threads int
	cmd := &cobra.Command{
		Use:   "strategies",
		Short: "Compare strategies on one small model",
		Long: `Hold sizes of payloads, published utilisations and published speeds against what the formulas say; train a small GPT-2 under
attack by two of eight workers, by five rules of aggregation; and compare the losses of strategies with that of data-parallel
training on as many tokens, with the codecs, rules, optimizers and units of jobs. Without --quick that takes hours: three seeds of
4,000 steps. With --quick the losses are of so few steps that no bar is claimed for them.

With -o json: {"bars":[{"name","value","bar","holds"}],"losses":[{"name","loss":[NUMBER],"mean","spread","gap","bytes","less"}],
"sieges":[{"attack","gaps":{RULE:NUMBER}}],"note","seconds"}.`,
		Example: `  starling bench strategies --quick
  starling bench strategies --data shakespeare.txt -o json`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := benchmark.ThoroughStrategies
			if quick {
				o = benchmark.QuickStrategies
			}
			o.Data, o.Threads = text, threads
			r, err := benchmark.Strategies(cmd.Context(), o)
			if err != nil {
				return benchError(cmd, err)
			}
			if c.form.Machine() {
				return c.form.Print(os.Stdout, figuresAnswer(r))
			}
			return printStrategies(r)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&quick, "quick", false, "take less than a minute")
	f.StringVar(&text, "data", "", "file of text to train on; empty: sentences that are made")
	threadsFlag(cmd, &threads)
	return cmd
}

func printStrategies(r *benchmark.StrategiesResult) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	printBars(w, r.Bars)
	fmt.Fprintln(w, "\nSTRATEGY\tLOSS\tSPREAD\tGAP\tFEWER BYTES")
	for _, l := range r.Losses {
		fmt.Fprintf(w, "%s\t%.4f\t%.4f\t%+.2f %%\t%.1f\n", l.Name, l.Mean, l.Spread, 100*l.Gap, l.Less)
	}
	fmt.Fprintln(w, r.Note)
	fmt.Fprint(w, "\nATTACK")
	rules := slices.Sorted(maps.Keys(r.Sieges[0].Gaps))
	for _, rule := range rules {
		fmt.Fprintf(w, "\t%s", rule)
	}
	for _, s := range r.Sieges {
		fmt.Fprintf(w, "\n%s", s.Attack)
		for _, rule := range rules {
			if g := s.Gaps[rule]; g != nil {
				fmt.Fprintf(w, "\t%+.2f %%", 100**g)
			} else {
				fmt.Fprint(w, "\tdiverged")
			}
		}
	}
	fmt.Fprintln(w)
	return w.Flush()
}
