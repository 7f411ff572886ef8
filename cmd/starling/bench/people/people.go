// Package people is starling bench people: it shows the figures of node/benchmark/people, and measures nothing.
package people

import (
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/bench/figure"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/benchmark/people"
)

// Command is starling bench people.
func Command(c *terminal.Console) *cobra.Command {
	o, quick := people.Options{Days: 7, Seeds: 2, Machines: 3}, false
	cmd := &cobra.Command{
		Use:   "people",
		Short: "Measure what owners of machines and programs that order are promised",
		Long: `Play networks of four workers for a week of virtual time, with the real rules and a small model. A machine
joins each after a third of it: the estimate of starling worker estimate just before is compared with its pay in the
rest. Then the pay of a machine is compared with that of two of half its speed in its place, and the share of the time
in which workers compute is measured, in rounds of twelve units and of 48. Blocks take two minutes; of twelve units a
worker has one to six, each of which takes it half an hour to two hours. An order for eight workers is played on
a network of 50 in five regions: the bytes that its members receive from other regions are compared with those where no
machine declares its region. Then a release reaches twenty nodes while they train: each is killed at its turn in a
rollout of ten minutes, and back 30 seconds later. Machines of three classes join a network of these. The busy share is
also that of a verifier which executes all units of four workers again, and of machines that draw answers for others,
both once the first rounds are over. In rounds of twelve units, that share is compared with the most that a round of
whole units allows: the machines wait for the last of them.

Last, processes of this program run on this machine, on networks with blocks of 200 ms. A machine without coins, which
knows the address of the network alone, joins while a job is under way, and is paid for a unit. Its owner pauses it in
the middle of units. Ten clients queue 50 jobs at a gateway, which is killed twice meanwhile, and ask for their states.
--quick plays twelve hours of each simulated network, or eight, and fewer rounds of the others, several networks at the
same time, compares no estimates, pauses the machine twice, and does not wait for the 50 models. It says what it left
out.

With -o json: {"income":[{"class","rate","join_day","days","estimate":{"low_uzen","median_uzen","high_uzen"},
"earned_day","since_first_pay":{"days","earned_day","off"},"off"}],
"split":[{"days","whole","parts","off","busy_whole","busy_parts"}],"busy":[{"class","units","share","most"}],
"place":[{"regions","seats","bytes","far","undeclared","ratio"}],"upgrade":[{"nodes","down_seconds","rollout_seconds",
"rounds","missed","slashed_uzen","whole"}],"journeys":{"join":{"commands","seconds","paid_uzen"},
"pauses":[{"stopped_seconds","returned_seconds","before_bytes","after_bytes","idle_bytes","slashed_uzen","missed",
"convicted"}],"orders":{"clients","jobs","kills","lost","twice","done","statuses","p50_ms","p99_ms"}},
"left_out":[TEXT],"bars":[{"name","value","bar","holds"}]}.`,
		Example: `  starling bench people --quick
  starling bench people --days 14 -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			figure.Few(cmd, "seeds", &o.Seeds, quick, 1)
			o.Quick, o.Progress = quick, c.Say
			r, err := people.Measure(cmd.Context(), o)
			if err != nil {
				return cause.Measurement(cmd, err)
			}
			if c.Form.Machine() {
				return figure.Judge(r.Bars, c.Form.Print(os.Stdout, terminal.Figures(r)))
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "CLASS\tRATE\tESTIMATE A DAY\tLOW\tHIGH\tEARNED A DAY\tOFF\tOFF FROM THE FIRST PAY ON")
			for _, in := range r.Income {
				fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%+.1f %%\t%+.1f %%\n", in.Class, in.Rate,
					terminal.Zen(in.Estimate.Median), terminal.Zen(in.Estimate.Low), terminal.Zen(in.Estimate.High),
					terminal.Zen(in.Earned), 100*in.Off, 100*in.Since.Off)
			}
			figure.PrintBars(w, r.Bars)
			for _, text := range r.LeftOut {
				fmt.Fprintf(w, "left out: %s\n", text)
			}
			return figure.Judge(r.Bars, w.Flush())
		},
	}
	figure.QuickFlag(cmd, &quick)
	cmd.Flags().IntVar(&o.Days, "days", o.Days, "days of virtual time")
	cmd.Flags().IntVar(&o.Machines, "machines", o.Machines, "machines that join, one to a network, of 1 to 3 speeds")
	cmd.Flags().IntVar(&o.Seeds, "seeds", o.Seeds, "networks of each kind")
	return cmd
}
