package network

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/gov"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/protocol/coin"
)

func govCoinCommand(c *terminal.Console) *cobra.Command {
	var r coin.Registered
	var waiting string
	cmd := &cobra.Command{
		Use:   "coin SYMBOL --denom DENOM --decimals N --waiting AMOUNT",
		Short: "Write a proposal that lets orders be placed in a coin",
		Long: `Write the file of a proposal that registers a coin in which orders may be placed, such as a stablecoin that
comes by IBC. Give it to starling network gov propose. The symbol and the decimals of a coin never change; --waiting,
which an order pays that ends without a run, and --closed, which lets no new orders come, may be proposed again.`,
		Example: `  starling network gov coin usdc --denom ibc/27394FB0... --decimals 6 --waiting 0.001 > usdc.json
  starling network gov propose usdc.json --home net/validator-0`,
		Args: usage.Exactly("SYMBOL"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			r.Symbol = args[0]
			if r.Waiting, err = r.Parse(waiting); err != nil {
				return usage.Error(cmd, fmt.Errorf("--waiting: %w", err))
			}
			text, err := gov.DraftCoin(r)
			if err != nil {
				return usage.Error(cmd, err)
			}
			return c.PrintDocument(append(text, '\n'), r.Symbol)
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.Denom, "denom", "", "denomination of the base unit, in the bank of the chain")
	f.Uint32Var(&r.Exponent, "decimals", 6, "decimals of the coin: 10^N base units are one")
	f.StringVar(&waiting, "waiting", "0.001", "coins that an order pays that ends without a run, in place of 0.001 ZEN")
	f.BoolVar(&r.Closed, "closed", false, "the coin takes no new orders; those under way end in it")
	return cmd
}
