package worker

import (
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/benchmark/machine"
	"github.com/starling-network/starling/node/gpu"
	"github.com/starling-network/starling/protocol/market"
)

func benchCommand(c *terminal.Console) *cobra.Command {
	var o machine.OfferOptions
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure what this machine can offer", Annotations: terminal.FiguresOnly,
		Long: `Measure what a worker needs of a machine: matrix products, training steps of a GPT of 10 million parameters,
the disk, and blobs on their way from one peer to another over the loopback; and what it would earn if it
trained all the time, before the fee of 5 %. GPUs are named and not measured: exact
work is computed by processors. It takes about half a minute, and nothing is sent anywhere.

With -o json: {"matmul_gflops","train":{...},"disk_mb_per_second","sync_seconds","loopback_mb_per_second",
"uzen_per_hour","price","gpus":[{"name","memory_mib"}]}, train as starling bench train gives it.`,
		Example: `  starling worker bench
  starling worker bench --threads 1 --dir /data/starling --price 500000000`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := machine.Offer(cmd.Context(), o)
			if err != nil {
				return cause.Measurement(cmd, err)
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.Figures(r))
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintf(w, "products\t%.1f GFLOP/s\n", r.Matmul)
			fmt.Fprintf(w, "training\t%.1f GFLOP/s, %s tokens/s of %s, %d MiB at most\n", r.Train.GFLOPS,
				terminal.Number(r.Train.TokensPerSecond), r.Train.Preset, r.Train.PeakMiB)
			fmt.Fprintf(w, "disk\t%.0f MB/s written and synced, %.1f ms for a small write\n", r.DiskMBps, r.SyncSeconds*1e3)
			fmt.Fprintf(w, "loopback\t%.0f MB/s from peer to peer\n", r.LoopbackMBps)
			if len(r.GPUs) > 0 {
				fmt.Fprintf(w, "gpu\t%s: %s\n", gpu.Text(r.GPUs), gpu.Use)
			}
			fmt.Fprintf(w, "earns\t%s ZEN an hour at most, at %s ZEN per PFLOP (10^15 operations)\n",
				terminal.Zen(r.UzenPerHour), terminal.Zen(r.Price))
			return w.Flush()
		},
	}
	f := cmd.Flags()
	usage.ThreadsFlag(cmd, &o.Threads)
	f.StringVar(&o.Dir, "dir", ".", "folder whose disk is measured")
	f.IntVar(&o.Steps, "steps", 5, "training steps that count")
	f.Uint64Var(&o.Price, "price", market.DefaultPrice, "uzen for 10^15 floating-point operations")
	return cmd
}
