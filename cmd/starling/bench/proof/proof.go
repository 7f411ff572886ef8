// Package proof is starling bench proof: it shows the figures of node/benchmark/adapter, and measures nothing.
package proof

import (
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/bench/figure"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/benchmark/adapter"
)

// Command is starling bench proof.
func Command(c *terminal.Console) *cobra.Command {
	o, quick := adapter.Options{Rank: 16, In: 768, Out: 768, Tokens: 2, Times: 5}, false
	cmd := &cobra.Command{
		Use:   "proof",
		Short: "Measure proofs about adapters, networks and sums",
		Long: `Make keys for adapters of one shape with one contributor, and a proof about drawn weights: the time and the
memory of the prover, the time of the verifier, and the sizes. The bars are those of 24,576 weights, the shape without
flags, on two processors; the load of the machine in the minute before is printed with them. The fastest of --times
counts. With --widths they are about answers of a network of these widths, with --updates and --length about a sum, with
the same bars.

With -o json: {"weights","constraints","processors","load","setup_seconds","prove_seconds","prove_cpu_seconds",
"prove_mib","verify_ms",
"read_key_ms","proof_bytes","key_bytes","file_bytes","bars":[{"name","value","bar","holds"}]}.`,
		Example: `  starling bench proof --quick
  starling bench proof --rank 16 --in 4096 --out 1024 -o json
  starling bench proof --widths 784,128,10
  starling bench proof --updates 8 --length 4097`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			figure.Few(cmd, "rank", &o.Rank, quick, 4)
			figure.Few(cmd, "in", &o.In, quick, 128)
			figure.Few(cmd, "out", &o.Out, quick, 128)
			figure.Few(cmd, "times", &o.Times, quick, 2)
			o.Progress = c.Say
			r, err := adapter.Measure(cmd.Context(), o)
			if err != nil {
				return cause.Measurement(cmd, err)
			}
			if c.Form.Machine() {
				return figure.Judge(r.Bars, c.Form.Print(os.Stdout, terminal.Figures(r)))
			}
			fmt.Printf("%d weights, %d constraints; %d processors at load %.1f\n"+
				"setup %.1f s; key of %d bytes, read in %.1f ms; "+
				"file of the proof with its statement %d bytes; a proof took %.2f s of processors\n\n", r.Weights, r.Constraints,
				r.Processors, r.Load, r.Setup, r.KeyBytes, r.ReadKey, r.FileBytes, r.ProveCPU)
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			figure.PrintBars(w, r.Bars)
			return figure.Judge(r.Bars, w.Flush())
		},
	}
	figure.QuickFlag(cmd, &quick)
	f := cmd.Flags()
	f.IntVar(&o.Rank, "rank", o.Rank, "rank of the adapter")
	f.IntVar(&o.In, "in", o.In, "inputs of the layer")
	f.IntVar(&o.Out, "out", o.Out, "outputs of the layer")
	f.IntVar(&o.Tokens, "tokens", o.Tokens, "tokens of the text")
	f.UintSliceVar(&o.Widths, "widths", nil, "inputs, values of each hidden layer, and classes of a network")
	f.IntVar(&o.Updates, "updates", 0, "updates of a sum")
	f.IntVar(&o.Length, "length", 0, "elements of each update")
	f.IntVar(&o.Times, "times", o.Times, "proofs, of which the fastest counts")
	return cmd
}
