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
	"github.com/starling-network/starling/node/benchmark/memory"
)

func planCommand(c *terminal.Console) *cobra.Command {
	var o memory.Options
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Compare the plans of jobs with their runs",
		Long: `Plan eight jobs of 0.2 M to 300 M parameters, run each on an embedded network of two workers and a
verifier, and print the memory, the disk, the bytes that a worker receives, the cost and the time of both. With --quick
there are three jobs, of up to 2 M parameters. Jobs that do not fit on this machine are skipped. Each figure of a run is
to be within 20 % of the plan, whose time is that of a machine that does nothing else. Other processes on the machine
change the processor time little. A worker receives less than planned where another party of the same process has a
blob already, and the cost of a run depends on the draw of its audits.

With -o json: {"jobs":[{"name","parameters","plan":{"memory_bytes","disk_bytes","received_bytes","cost_uzen","seconds",
"processor_seconds"},"run":{...}}],"bars":[{"name","value","bar","holds"}],"skipped":[NAME]}.`,
		Example: `  starling bench plan --quick
  starling bench plan -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Progress = c.Say
			r, err := memory.Plans(cmd.Context(), o)
			if err != nil {
				return cause.Measurement(cmd, err)
			}
			if c.Form.Machine() {
				return figure.Judge(r.Bars, c.Form.Print(os.Stdout, terminal.Figures(r)))
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "JOB\t\tMEMORY\tDISK\tRECEIVED\tCOST\tSECONDS\tPROCESSOR")
			for _, j := range r.Jobs {
				for _, x := range []struct {
					name, what string
					memory.Figures
				}{{j.Name, "plan", j.Plan}, {"", "run", j.Run}} {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%.1f\t%.1f\n", x.name, x.what, terminal.Bytes(x.Memory),
						terminal.Bytes(uint64(x.Disk)), terminal.Bytes(uint64(x.Received)), terminal.Zen(x.Cost),
						x.Seconds, x.Processor)
				}
			}
			fmt.Fprintln(w)
			figure.PrintBars(w, r.Bars)
			return figure.Judge(r.Bars, w.Flush())
		},
	}
	figure.QuickFlag(cmd, &o.Quick)
	return cmd
}
