package bench

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/bench/figure"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/compat"
	"github.com/starling-network/starling/node/compat/payer"
)

func compatCommand(c *terminal.Console) *cobra.Command {
	o := compat.Options{Chain: payer.Start}
	cmd := &cobra.Command{
		Use:   "compat",
		Short: "Hold models and tokenizers against the libraries that made them",
		Long: `Load a folder of every published configuration in the list of docs/models.md, with smaller sizes and random
weights. Compare its logits and a greedy text of 40 tokens with those of plain PyTorch, and a folder that is exported
from it with the original. Encode 1,000 lines of mixed scripts with tokenizers of every kind, and compare the ids with
those of Hugging Face tokenizers. The program holds the expected figures; the tests of node/compat compute them again.

Then let every version of CosmJS read a new account of a chain and sign for it, and let axe-core check every page of the
dashboard in Chromium, in both themes and at two widths. Both need npm packages of the source tree (--tree): run npm ci
in chain/testdata/cosmjs and web/browser. A bar whose package is missing names it and does not hold; --quick skips both.

With -o json: {"bars":[{"name","value","bar","holds","missing"}],"folders","tokenizers","wallets","findings"}; what was
not measured has the value null.`,
		Example: `  starling bench compat --quick -o json`,
		Args:    usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := compat.Run(cmd.Context(), o)
			if err != nil {
				return cause.Measurement(cmd, err)
			}
			if c.Form.Machine() {
				return figure.Judge(r.Bars, c.Form.Print(os.Stdout, terminal.Figures(r)))
			}
			return figure.Judge(r.Bars, r.Print(os.Stdout))
		},
	}
	usage.ThreadsFlag(cmd, &o.Threads)
	figure.QuickFlag(cmd, &o.Quick)
	cmd.Flags().StringVar(&o.Tree, "tree", ".", "source tree whose npm packages are asked")
	return cmd
}
