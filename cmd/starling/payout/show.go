package payout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/big"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/query"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/payout"
)

// shown is what a network pays out, and what an account has of it, for programs.
type shown struct {
	EpochBlocks uint64        `json:"epoch_blocks"`
	Set         uint64        `json:"set"`
	Bridges     []shownBridge `json:"bridges"`
	Account     string        `json:"account,omitempty"`
	Address     string        `json:"address,omitempty"`
	Automatic   uint64        `json:"automatic_chain,omitempty"`
	Keep        uint64        `json:"keep_uzen,omitempty"`
}

type shownBridge struct {
	EVM      uint64         `json:"evm_chain"`
	Contract payout.Address `json:"contract"`
	Signed   uint64         `json:"signed_epoch"`
	Credited uint64         `json:"credited_deposits"`
	Tokens   []shownToken   `json:"tokens"`
}

type shownToken struct {
	Token     payout.Address `json:"token"`
	Denom     string         `json:"denom"`
	Coin      string         `json:"coin"`
	Minimum   string         `json:"minimum"`
	Total     string         `json:"total"`     // withdrawn by the account, in coins
	Claimable string         `json:"claimable"` // of it, by the latest signed root
}

func showCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	cmd := &cobra.Command{
		Use:   "show [ACCOUNT] --network URL",
		Short: "Show the bridges of a network, and what an account withdrew",
		Long: `Show on which Ethereum-style chains a network pays out, with the least amount of a withdrawal, and the
address of an account with all that it withdrew there: TOTAL with the next root, SIGNED by the latest one. The
contract knows how much of it is paid: starling payout proof.

With -o json: {"epoch_blocks","set","bridges":[{"evm_chain","contract","signed_epoch","credited_deposits",
"tokens":[{"token","denom","coin","minimum","total","claimable"}]}],"account","address","automatic_chain",
"keep_uzen"}.`,
		Example: `  starling payout show --network http://127.0.0.1:26601
  starling payout show --home net/worker-0`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := t.Settle(cmd); err != nil {
				return err
			}
			account := t.Account
			if len(args) == 1 {
				if account = args[0]; target.WantAddress(account) != nil {
					return target.WantAddress(account)
				}
			}
			s, err := inspect.Query(cmd.Context(), t.Network, func(ctx context.Context, cl *client.Client) (shown, error) {
				return read(ctx, cl, account)
			})
			if err != nil {
				return err
			}
			return s.print(c)
		},
	}
	t.Flags(cmd)
	return cmd
}

func read(ctx context.Context, cl *client.Client, account string) (shown, error) {
	s := shown{Account: account, Bridges: []shownBridge{}}
	p, err := cl.Payout.Rules(ctx)
	if err != nil {
		return s, err
	}
	s.EpochBlocks = p.EpochBlocks
	set, err := cl.Payout.Set(ctx)
	if err != nil && !errors.Is(err, query.ErrNotFound) {
		return s, err
	}
	s.Set = set.Number
	var of *payout.Address // none: the account has named none
	if account != "" {
		payee, err := cl.Payout.Payee(ctx, account)
		if err != nil && !errors.Is(err, query.ErrNotFound) {
			return s, err
		}
		if err == nil {
			of = &payee.Address
			s.Address, s.Automatic, s.Keep = payee.String(), payee.EVM, payee.Keep
		}
	}
	coins, err := cl.Market.ByDenom(ctx)
	if err != nil {
		return s, err
	}
	for _, b := range p.Bridges {
		shown, err := readShown(ctx, cl, b, of, coins)
		if err != nil {
			return s, err
		}
		s.Bridges = append(s.Bridges, shown)
	}
	return s, nil
}

func readShown(ctx context.Context, cl *client.Client, b payout.Bridge, of *payout.Address,
	coins map[string]coin.Registered) (shownBridge, error) {
	out := shownBridge{EVM: b.EVM, Contract: b.Contract}
	state, err := cl.Payout.State(ctx, b.EVM)
	if err != nil && !errors.Is(err, query.ErrNotFound) {
		return out, err
	}
	out.Signed, out.Credited = state.Signed, state.Credited
	totals := map[payout.Address]*big.Int{}
	signed := map[payout.Address]*big.Int{}
	if of != nil {
		entries, err := cl.Payout.EntriesOf(ctx, b.EVM, *of)
		if err != nil {
			return out, err
		}
		for _, e := range entries {
			totals[e.Token] = new(big.Int).SetBytes(e.Total)
			if c, ok := e.At(state.Signed); ok {
				signed[e.Token] = c.Total
			}
		}
	}
	for _, token := range append([]payout.Token{{Address: b.Zen()}}, b.Tokens...) {
		denom, err := b.Denom(token.Address)
		if err != nil {
			return out, err
		}
		_, least, err := b.Find(denom)
		if err != nil {
			return out, err
		}
		text := func(n *big.Int) string {
			in, known := coins[denom]
			if denom == payout.Own {
				in, known = coin.Zen(), true
			}
			if n == nil {
				n = new(big.Int)
			}
			if !known {
				return n.String()
			}
			grains, _ := in.Grains(n)
			return in.Amount(grains)
		}
		name := coins[denom].Symbol
		if denom == payout.Own {
			name = coin.Zen().Name()
		}
		out.Tokens = append(out.Tokens, shownToken{Token: token.Address, Denom: denom, Coin: name, Minimum: text(least),
			Total: text(totals[token.Address]), Claimable: text(signed[token.Address])})
	}
	return out, nil
}

func (s shown) print(c *terminal.Console) error {
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.Figures(s))
	}
	if s.Account != "" {
		fmt.Printf("account   %s\naddress   %s\n", s.Account, cmp.Or(s.Address, "none: starling payout set"))
		if s.Automatic > 0 {
			printAutomatic(s.Automatic, s.Keep)
		}
	}
	if s.EpochBlocks == 0 {
		fmt.Println("this network pays nothing out on other chains")
		return nil
	}
	fmt.Printf("epoch     %d blocks, set %d\n", s.EpochBlocks, s.Set)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CHAIN\tCOIN\tMINIMUM\tTOTAL\tSIGNED\tTOKEN\tCONTRACT")
	for _, b := range s.Bridges {
		for _, t := range b.Tokens {
			fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", b.EVM, t.Coin, t.Minimum, t.Total, t.Claimable, t.Token,
				b.Contract)
		}
	}
	return w.Flush()
}
