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
	"github.com/starling-network/starling/node/benchmark/chain"
)

func chainCommand(c *terminal.Console) *cobra.Command {
	var quick bool
	cmd := &cobra.Command{
		Use:   "chain",
		Short: "Measure what commitments cost the chain",
		Long: `Measure the application of one validator over a database on disk, driven as CometBFT drives it and without
its network: commitments of a thousand workers to one run are checked, executed in one block and committed,
where a hundred to a hundred thousand workers are registered. Match 1,000 orders with 10,000 offers. Let a new
validator fetch the state of another one over the loopback. And play random operations (see bench operations), each seed
twice here and once in another process.

With -o json: {"bars":[{"name","value","bar","holds"}],"table":[{"registered","per_second","slowest","cpu_us"}],
"repeats","random":[{"seed","blocks","executed","refused","application_hash","repeats","fault"}]}.`,
		Example: `  starling bench chain --quick
  starling bench chain -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := chain.Thorough
			if quick {
				o = chain.Quick
			}
			o.Random.Again = playElsewhere
			r, err := chain.Measure(cmd.Context(), o)
			if err != nil {
				return cause.Measurement(cmd, err)
			}
			if c.Form.Machine() {
				return figure.Judge(r.Bars, c.Form.Print(os.Stdout, terminal.Figures(r)))
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "REGISTERED\tCOMMITMENTS/S\tSLOWEST BLOCK\tCPU US EACH")
			for _, t := range r.Table {
				fmt.Fprintf(w, "%d\t%.0f\t%.0f\t%.1f\n", t.Registered, t.PerSecond, t.Slowest, t.CPU)
			}
			fmt.Fprintln(w, "\nSEED\tBLOCKS\tEXECUTED\tREFUSED\tREPEATS\tFAULT")
			for _, p := range r.Random {
				fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%v\t%s\n", p.Seed, p.Blocks, p.Executed, p.Refused, p.Repeats, p.Fault)
			}
			fmt.Fprintln(w, "\nFIGURE\tVALUE\tBAR\tHOLDS")
			for _, b := range r.Bars {
				fmt.Fprintf(w, "%s\t%.3f\t%.4g\t%v\n", b.Name, b.Value, b.Bar, b.Holds)
			}
			return figure.Judge(r.Bars, w.Flush())
		},
	}
	figure.QuickFlag(cmd, &quick)
	return cmd
}
