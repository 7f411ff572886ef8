package catalog

import (
	"context"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/module"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/coins"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/protocol/reward"
)

// Owned is who holds the shares of a model, for programs.
type Owned struct {
	Job     string   `json:"job"`
	Held    uint64   `json:"unclaimed_uzen"`
	Coins   []Amount `json:"unclaimed"` // in other coins
	Holders []Holder `json:"holders"`
}

// Holder has shares of a model.
type Holder struct {
	Account string   `json:"account"`
	Shares  uint64   `json:"shares"`
	Due     uint64   `json:"due_uzen"`
	Coins   []Amount `json:"due"` // in other coins
}

// Amount is an amount of a coin.
type Amount struct {
	Coin   string `json:"coin"`
	Amount string `json:"amount"` // in coins
}

// due are the amounts in other coins than the network's own that a holder may claim, and that all may.
func due(h module.Held) (due, held []Amount) {
	due, held = []Amount{}, []Amount{}
	for _, in := range h.Coins {
		held = append(held, Amount{in.Coin.Name(), in.Coin.Amount(in.Held)})
		if in.Due > 0 {
			due = append(due, Amount{in.Coin.Name(), in.Coin.Amount(in.Due)})
		}
	}
	return due, held
}

// text are amounts for people.
func text(uzen uint64, more []Amount) string {
	s := terminal.Zen(uzen) + " ZEN"
	for _, a := range more {
		s += ", " + a.Amount + " " + a.Coin
	}
	return s
}

func sharesCommand(c *terminal.Console) *cobra.Command {
	var network string
	cmd := &cobra.Command{
		Use:   "shares JOB --network URL",
		Short: "List who holds the shares of a model, and what they have earned",
		Long: `List who holds the shares of the model of a job on a network, of a million, and the revenue that each may
claim. A job grants them when its run ends, if its budget says so (contributor_part). A listed work that no job
trained has shares, too: JOB is listing/NUMBER. Shares that are offered for coins are their seller's until they are
bought.

With -o json: {"job","unclaimed_uzen","unclaimed":[{"coin","amount"}],"holders":[{"account","shares","due_uzen",
"due":[{"coin","amount"}]}]}.`,
		Example: `  starling model shares job-7f3a --network http://127.0.0.1:26601
  starling model shares listing/7 --network http://127.0.0.1:26601`,
		Args: usage.Exactly("JOB"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := target.WantNetwork(cmd, network); err != nil {
				return err
			}
			o, err := inspect.Query(cmd.Context(), network,
				func(ctx context.Context, cl *client.Client) (Owned, error) { return holders(ctx, cl, args[0]) })
			if err != nil {
				return err
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.List(o, o.Holders, func(h Holder) string { return h.Account }))
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			for _, h := range o.Holders {
				fmt.Fprintf(w, "%s\t%d of %d\t%s to claim\n", h.Account, h.Shares, reward.Shares, text(h.Due, h.Coins))
			}
			return w.Flush()
		},
	}
	target.NetworkFlag(cmd, &network)
	return cmd
}

func holders(ctx context.Context, cl *client.Client, job string) (Owned, error) {
	o := Owned{Job: job, Holders: []Holder{}}
	m, err := cl.Reward.Model(ctx, job, "")
	if err != nil {
		return o, err
	}
	o.Held = m.Held
	_, o.Coins = due(m)
	all, err := cl.Reward.Holders(ctx, job)
	if err != nil {
		return o, err
	}
	for _, h := range all {
		m, err := cl.Reward.Model(ctx, job, h.Who)
		if err != nil {
			return o, err
		}
		in, _ := due(m)
		o.Holders = append(o.Holders, Holder{h.Who, h.Shares, m.Due, in})
	}
	return o, nil
}

// wantShares reads a number of shares.
func wantShares(cmd *cobra.Command, text string) (n uint64, err error) {
	if _, err := fmt.Sscan(text, &n); err != nil || n == 0 || n > reward.Shares {
		return 0, usage.Error(cmd, fmt.Errorf("%q is no number of shares: 1 to %d", text, reward.Shares))
	}
	return n, nil
}

func transferCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	cmd := &cobra.Command{
		Use:   "transfer JOB SHARES ADDRESS --home DIR",
		Short: "Give shares of a model to another account",
		Long: `Give shares of the model of a job to another account, of those that the account of a folder holds. Their
earnings until then stay with the giver; later earnings go to the other account.

With -o json: {"height","hash"}.`,
		Example: `  starling model transfer job-7f3a 250000 starling1qx... --home net/worker-0`,
		Args:    usage.Exactly("JOB", "SHARES", "ADDRESS"),
		RunE: func(cmd *cobra.Command, args []string) error {
			shares, err := wantShares(cmd, args[1])
			if err != nil {
				return err
			}
			if err := target.WantAddress(args[2]); err != nil {
				return err
			}
			var r transaction.Result
			err = t.Act(cmd, "the folder of the account that holds them",
				func(ctx context.Context, cl *client.Client) (err error) {
					r, err = cl.Reward.SendShares(ctx, args[0], args[2], shares)
					return err
				})
			return target.Done(c, r, err, fmt.Sprintf("%d shares of %s went to %s", shares, args[0], args[2]))
		},
	}
	t.Flags(cmd)
	return cmd
}

func payCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	cmd := &cobra.Command{
		Use:   "pay JOB AMOUNT --home DIR",
		Short: "Pay revenue of a model to the holders of its shares",
		Long: `Pay revenue of the model of a job, or of listing/NUMBER, in ZEN, or in another coin with its symbol. It is
divided over all shares, and each holder takes its part with starling model claim. The works that the model was made
from get their royalties of it, two levels deep: starling model catalog lineage.

With -o json: what starling model shares prints.`,
		Example: `  starling model pay job-7f3a 12.5 --home net/consumer
  starling model pay job-7f3a 12.5usdc --home net/consumer`,
		Args: usage.Exactly("JOB", "AMOUNT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := target.WantCoins(cmd, args[1]); err != nil {
				return err
			}
			return revenue(c, cmd, &t, args[0], func(ctx context.Context, cl *client.Client) (string, error) {
				amount, err := coins.Parse(ctx, cl.Market, args[1])
				if err != nil {
					return "", err
				}
				return fmt.Sprintf("%s are paid to the shares of %s", amount, args[0]),
					cl.Reward.PayRevenue(ctx, args[0], amount.Denom, amount.Grains)
			})
		},
	}
	t.Flags(cmd)
	return cmd
}

func claimCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	cmd := &cobra.Command{
		Use:   "claim JOB --home DIR",
		Short: "Take what shares of a model have earned",
		Long: `Take the revenue that the shares of an account of the model of a job have earned, in all coins, with those
that it offers for sale. starling job explain --job model/JOB says how the amount comes about.

With -o json: what starling model shares prints.`,
		Example: `  starling model claim job-7f3a --home net/worker-0`,
		Args:    usage.Exactly("JOB"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return revenue(c, cmd, &t, args[0], func(ctx context.Context, cl *client.Client) (string, error) {
				m, err := cl.Reward.Model(ctx, args[0], cl.Address())
				if err != nil {
					return "", err
				}
				in, _ := due(m)
				if m.Due == 0 && len(in) == 0 {
					return "nothing is due: the revenue since the last claim is less than the smallest unit a share", nil
				}
				return fmt.Sprintf("%s are claimed, and what was paid in meanwhile", text(m.Due, in)),
					cl.Reward.ClaimRevenue(ctx, args[0])
			})
		},
	}
	t.Flags(cmd)
	return cmd
}

// revenue lets the account of a folder pay or claim revenue, and shows the shares after it.
func revenue(c *terminal.Console, cmd *cobra.Command, t *target.Target, job string,
	do func(context.Context, *client.Client) (string, error)) error {
	var said string
	var o Owned
	err := t.Act(cmd, "the folder of the account", func(ctx context.Context, cl *client.Client) (err error) {
		if said, err = do(ctx, cl); err == nil {
			o, err = holders(ctx, cl, job)
		}
		return err
	})
	if err != nil {
		return err
	}
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.List(o, o.Holders, func(h Holder) string { return h.Account }))
	}
	_, err = fmt.Println(said)
	return err
}
