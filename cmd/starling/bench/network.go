package bench

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/bench/figure"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/benchmark/transfer"
)

func networkCommand(c *terminal.Console) *cobra.Command {
	var quick bool
	cmd := &cobra.Command{
		Use:   "network",
		Short: "Measure transfers between two hosts, and training over slow links",
		Long: `Measure how fast blobs move between two hosts of this process over loopback, compared with a plain TCP
connection and a plain libp2p stream, and how long control messages take on an emulated link of 100 Mbit/s and 40 ms
while a blob moves over it. Then, for gpt2-10m in rounds of 50 steps on 8 workers with links of 100 Mbit/s and 100
ms: the share of time in inner steps, by a formula and played under virtual time with the real protocol, also while a
worker fails every third round; and the bytes that a worker receives in a round of 4 to 256 workers. How long a step
takes, and what is computed between rounds, is measured on this machine. Each figure is printed with its bound.

With -o json: {"bars":[{"name","value","bar","holds"}],"mb_per_second":{NAME:NUMBER},"mb_per_cpu_second":{NAME:NUMBER},
"control_ms":{NAME:NUMBER},"rounds":[{"batch","codec","block_seconds","inner_seconds","update_mb","formula","virtual"}],
"traffic":[{"workers","slices","mb","whole_mb","sliced_mb","played"}],"seconds"}.`,
		Example: `  starling bench network --quick
  starling bench network -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := transfer.Thorough
			if quick {
				o = transfer.Quick
			}
			r, err := transfer.Measure(cmd.Context(), o)
			if err != nil {
				return cause.Measurement(cmd, err)
			}
			if c.Form.Machine() {
				return figure.Judge(r.Bars, c.Form.Print(os.Stdout, terminal.Figures(r)))
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			figure.PrintBars(w, r.Bars)
			fmt.Fprintln(w, "\nTRANSFER\tMB/S\tMB/CPU S")
			for _, name := range slices.Sorted(maps.Keys(r.MBps)) {
				fmt.Fprintf(w, "%s\t%.1f\t%.1f\n", name, r.MBps[name], r.CPU[name])
			}
			fmt.Fprintln(w, "\nCONTROL MESSAGES\tMS")
			for _, name := range slices.Sorted(maps.Keys(r.Control)) {
				fmt.Fprintf(w, "%s\t%.1f\n", name, r.Control[name])
			}
			fmt.Fprintln(w, "\nSEQUENCES A STEP\tCODEC\tBLOCK S\tINNER STEPS S\tUPDATE MB\tFORMULA\tVIRTUAL TIME")
			for _, x := range r.Rounds {
				virtual := "-"
				if x.Virtual > 0 {
					virtual = fmt.Sprintf("%.3f", x.Virtual)
				}
				fmt.Fprintf(w, "%d\t%s\t%g\t%.1f\t%.1f\t%.3f\t%s\n", x.Batch, x.Codec, x.BlockSeconds, x.InnerSeconds, x.UpdateMB,
					x.Formula, virtual)
			}
			fmt.Fprintln(w, "\nWORKERS\tSLICES\tMB A ROUND\tWHOLE\tIN SLICES")
			for _, x := range r.Traffic {
				fmt.Fprintf(w, "%d\t%d\t%.1f\t%.1f\t%.1f\n", x.Workers, x.Slices, x.MB, x.Whole, x.Sliced)
			}
			return figure.Judge(r.Bars, w.Flush())
		},
	}
	figure.QuickFlag(cmd, &quick)
	return cmd
}
