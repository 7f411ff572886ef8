// Package money is starling bench money: it shows the figures of node/benchmark/money, and measures nothing.
package money

import (
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/bench/figure"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/node/benchmark/money"
)

// Command is starling bench money.
func Command(c *terminal.Console) *cobra.Command {
	var quick bool
	var threads int
	cmd := &cobra.Command{
		Use:   "money",
		Short: "Measure sales of files, hosted models and many adapters",
		Long: `Measure parts of the market of models, all in this process: the work of a fair exchange of 100 MB next to the
transfer, and of a proof about a MiB of drawn leaves; tokens a second through a gateway with three providers on a chain,
compared with a server of the same model, and the requests that are lost when a provider ends in the middle of a text;
and texts of 16 adapters at once over one base, compared with a server of one adapter after another, which has about the
same memory. Models have random weights.

With -o json: {"exchange":{"bytes","seal","check","unseal"},"proven":{"leaves","bytes","setup","seal","open","check"},
"hosting":{"tokens","local_per_second","gateway_per_second","requests","lost","failovers"},"adapters":{"adapters",
"parameters","tokens","together","in_turn"},"bars":[{"name","value","bar","holds"}]}; times are seconds.`,
		Example: `  starling bench money
  starling bench money --quick -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := money.Options{Threads: threads, Bytes: 100_000_000, Width: 512, Layers: 8, Tokens: 200,
				Leaves: 256, Requests: 20, Progress: c.Say}
			if quick {
				o.Bytes, o.Width, o.Layers, o.Tokens, o.Leaves, o.Requests = 10_000_000, 128, 4, 100, 32, 6
			}
			r, err := money.Measure(cmd.Context(), o)
			if err != nil {
				return cause.Measurement(cmd, err)
			}
			if c.Form.Machine() {
				return figure.Judge(r.Bars, c.Form.Print(os.Stdout, terminal.Figures(r)))
			}
			return show(r)
		},
	}
	figure.QuickFlag(cmd, &quick)
	cmd.Flags().IntVar(&threads, "threads", kernel.Cores, "number of threads of each server")
	return cmd
}

func show(r *money.Report) error {
	x, p, h, a := r.Exchange, r.Proven, r.Hosting, r.Adapters
	fmt.Printf("exchange  %d MB: %.2f s to seal, %.2f s to check, %.2f s to unseal\n", x.Bytes/1_000_000, x.Seal, x.Check,
		x.Unseal)
	fmt.Printf("proof     of %d leaves: %.2f s to open, %.3f s to check, %d bytes; %.1f s for the setup\n", p.Leaves,
		p.Open, p.Check, p.Bytes, p.Setup)
	fmt.Printf("hosting   %.0f tokens/s through the gateway, %.0f of the server; %d of %d requests lost, %d continued\n",
		h.Gateway, h.Local, h.Lost, h.Requests, h.Failovers)
	fmt.Printf("adapters  %d over %.1f M parameters, %d tokens each: %.2f s at once, %.2f s in turn\n\n", a.Adapters,
		float64(a.Parameters)/1e6, a.Tokens, a.Together, a.InTurn)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	figure.PrintBars(w, r.Bars)
	return figure.Judge(r.Bars, w.Flush())
}
