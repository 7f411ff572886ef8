package bench

import (
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/bench/figure"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/benchmark/attack"
)

func attackCommand(c *terminal.Console) *cobra.Command {
	o, quick := attack.Thorough, false
	cmd := &cobra.Command{
		Use:   "attack",
		Short: "Play attacks, and measure their gain and their cost",
		Long: `Play adversaries under virtual time on the real chain, with the real roles and on the terms of a job whose file
says nothing of verification: one that holds a quarter of all stake, of workers and of verifiers, at the lowest price,
with several plans, and random networks with faults and liars (mixes). Count the steps of verification and of work.
Measure a validator with CometBFT in this process under open orders, pools, moves of disputes, simulations and free
transactions all at once, compared with its blocks without, and the updates that a worker delivers to a member under
a hundred hostile peers. Each figure is printed with its bound.

With -o json: {"bars":[{"name","value","bar","holds"}],"plans":[{"plan","watched","runs","gain_zen","faked_zen",
"beside_zen","honest_units","wrong_units","convicted","attested","final"}],
"mixes":{"first_seed","played","adversaries","slashed","wronged","broken"}, "overhead":{"units","looked","watched"},
"flood":{"quiet_seconds","flooded_seconds","moves","free","asked","slowest"},"seconds"}.`,
		Example: `  starling bench attack --quick
  starling bench attack --mixes 100 --seed 2000
  starling bench attack -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if quick {
				given := o
				o = attack.Quick
				if cmd.Flags().Changed("mixes") {
					o.Mixes = given.Mixes
				}
				o.First = given.First
			}
			r, err := attack.Measure(cmd.Context(), o)
			if err != nil {
				return cause.Measurement(cmd, err)
			}
			if c.Form.Machine() {
				return figure.Judge(r.Bars, c.Form.Print(os.Stdout, terminal.Figures(r)))
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			figure.PrintBars(w, r.Bars)
			fmt.Fprintln(w, "\nACCOMPLICES WITH A QUARTER OF ALL STAKE\tWATCHED\tRUNS\tZEN A RUN\tBY FAKING\t"+
				"MORE THAN HONEST WORK\tHONEST UNITS\tWRONG\tCONVICTED")
			for _, p := range r.Plans {
				fmt.Fprintf(w, "%s\t%v\t%d\t%.2f\t%.2f\t%.2f\t%d\t%d\t%d\n",
					p.Plan, p.Watched, p.Runs, p.Gain, p.Faked, p.Beside, p.Honest, p.Wrong, p.Convicted)
			}
			m := r.Mixes
			fmt.Fprintf(w, "\n%d mixes from seed %d: %d adversaries, %d slashed\n", m.Played, m.First, m.Adversaries, m.Slashed)
			for _, line := range append(m.Wronged, m.Broken...) {
				fmt.Fprintln(w, line)
			}
			return figure.Judge(r.Bars, w.Flush())
		},
	}
	f := cmd.Flags()
	f.BoolVar(&quick, "quick", false, "take less than a minute")
	f.Uint64Var(&o.Mixes, "mixes", o.Mixes, "random networks to play")
	f.Uint64Var(&o.First, "seed", o.First, "the seed of the first of them")
	return cmd
}
