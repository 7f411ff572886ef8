// Package account is starling account: commands that show and move coins and stakes. The rules are those of the chain.
package account

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/ledger"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/coins"
	"github.com/starling-network/starling/node/session"
)

// Command is starling account.
func Command(c *terminal.Console) *cobra.Command {
	return usage.Group("account", "See and move coins and stakes",
		`See the coins of accounts on a network, and send some. An account is the key in a folder: starling worker
identity makes one. It exists on the chain once it has coins.`,
		showCommand(c), sendCommand(c), historyCommand(c), payeeCommand(c), requestCommand(c),
		StakeCommand(c), delegateCommand(c), bridgeCommand(c))
}

// mostOne takes an argument or none.
func mostOne(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return usage.Error(cmd, fmt.Errorf("%d arguments given, wanted: %s or none", len(args), name))
		}
		return nil
	}
}

func showCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	cmd := &cobra.Command{
		Use:   "show [ADDRESS]",
		Short: "Show the coins and the stake of an account",
		Long: `Show the coins and the stake of an account: of an address, or of the key of a folder.

With -o json: {"address","exists","balance_uzen","transactions","stake_uzen","slashed_uzen",
"leaving_uzen","leaves_at","leaves_in_seconds","jailed","earning","payee","next_payee","payee_at",
"coins":[{"coin":{"denom","symbol","decimals"},"balance","stake","leaving","leaves_at","slashed"}]}. Amounts of coins
are in grains.`,
		Example: `  starling account show --home net/worker-0
  starling account show starling1qx... --network http://127.0.0.1:26601 -o json`,
		Args: mostOne("ADDRESS"),
		RunE: func(cmd *cobra.Command, args []string) error {
			address, err := t.About(cmd, args)
			if err != nil {
				return err
			}
			a, err := session.ReadAccount(cmd.Context(), t.Network, address)
			if err != nil {
				return err
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(a, a.Address))
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintf(w, "account\t%s\n", a.Address)
			if !a.Exists {
				fmt.Fprintln(w, "state\tnot on the chain: it exists once it has coins")
				return w.Flush()
			}
			fmt.Fprintf(w, "coins\t%s ZEN\n", terminal.Zen(a.Balance))
			fmt.Fprintf(w, "stake\t%s ZEN, %s slashed\n", terminal.Zen(a.Stake), terminal.Zen(a.Slashed))
			if a.Leaving > 0 {
				fmt.Fprintf(w, "leaving\t%s ZEN of the stake, after block %d and when it has no part in a run\n",
					terminal.Zen(a.Leaving), a.LeavesAt)
			}
			for _, h := range a.Coins {
				fmt.Fprintf(w, "%s\t%s; %s\n", strings.ToLower(h.Coin.Name()), h.Coin.Text(h.Balance), stakeIn(h))
			}
			if a.Earning {
				fmt.Fprintln(w, "earning\tits stake: what it is paid becomes the stake")
			}
			printPayee(w, a)
			if a.Jailed {
				fmt.Fprintln(w, "state\tjailed: it is given no work")
			}
			fmt.Fprintf(w, "made\t%d transactions\n", a.Transactions)
			return w.Flush()
		},
	}
	t.Flags(cmd)
	return cmd
}

func sendCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	var memo string
	cmd := &cobra.Command{
		Use:   "send ADDRESS AMOUNT --home DIR --network URL",
		Short: "Send coins to another account",
		Long: `Send coins of the account of a folder to another account, which exists on the chain from then on. It returns
when the transfer is in a block, and shows the recipient, the amount, the fee and the memo, which everybody can read.
It costs nothing, unless validators ask for a price of gas. AMOUNT is in ZEN, or in another coin of the network with its
symbol, such as 5usdc.

With -o json: {"from","to","amount_uzen","fee_uzen","memo","height","hash"}, and "coin" if it is not ZEN: the amount is
then in grains of it.`,
		Example: `  starling account send starling1qx... 25 --home net/consumer --network http://127.0.0.1:26601
  starling account send starling1qx... 0.5 --home net/worker-0 --memo "invoice 17"`,
		Args: usage.Exactly("ADDRESS", "AMOUNT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := target.WantAddress(args[0]); err != nil {
				return err
			}
			if err := target.WantCoins(cmd, args[1]); err != nil {
				return err
			}
			var sent transaction.Result
			var amount coins.Amount
			err := t.Act(cmd, "the folder of the account that sends", func(ctx context.Context, cl *client.Client) (err error) {
				if amount, err = coins.Parse(ctx, cl.Market, args[1]); err != nil {
					return err
				}
				sent, err = cl.Coins.Send(ctx, args[0], amount.Coin, amount.Grains, memo)
				return err
			})
			if err != nil {
				return err
			}
			if c.Form.Machine() {
				answer := map[string]any{"from": t.Account, "to": args[0], "amount_uzen": amount.Grains,
					"fee_uzen": feeUzen(sent), "memo": memo, "height": sent.Height, "hash": sent.Hash}
				if !amount.Own() {
					answer["coin"] = amount.Coin
				}
				return c.Form.Print(os.Stdout, terminal.One(answer, sent.Hash))
			}
			return printSent(args[0], memo, amount, sent)
		},
	}
	t.Flags(cmd)
	cmd.Flags().StringVar(&memo, "memo", "", "note that everybody can read, such as the number that an exchange asks for")
	return cmd
}

func printSent(to, memo string, amount coins.Amount, r transaction.Result) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "sent\t%s\nto\t%s\nfee\t%s ZEN\n", amount, to, terminal.Zen(feeUzen(r)))
	if memo != "" {
		fmt.Fprintf(w, "memo\t%s\n", memo)
	}
	fmt.Fprintf(w, "block\t%d\ntransaction\t%s\n", r.Height, r.Hash)
	return w.Flush()
}

// feeUzen is the fee of a transaction.
func feeUzen(r transaction.Result) uint64 {
	n, _ := strconv.ParseUint(strings.TrimSuffix(r.Fee(), "uzen"), 10, 64) // "" is none
	return n
}

// movement is a client.AccountTx for programs.
type movement struct {
	Hash     string   `json:"hash"`
	Height   int64    `json:"height"`
	Messages []string `json:"messages"`
	Refused  string   `json:"refused,omitempty"`
	Received uint64   `json:"received_uzen"`
	Spent    uint64   `json:"spent_uzen"`
}

func historyCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	var limit int
	cmd := &cobra.Command{
		Use:   "history [ADDRESS]",
		Short: "List the transactions of an account",
		Long: `List the latest transactions that an account made or that moved its coins, the newest first, from the index of
the validator. starling worker earnings has the payments and slashes of the chain itself.

With -o json: {"address","transactions":[{"hash","height","messages","refused","received_uzen","spent_uzen"}]}.`,
		Example: `  starling account history --home net/worker-0
  starling account history starling1qx... --network http://127.0.0.1:26601 --limit 100 -o jsonl`,
		Args: mostOne("ADDRESS"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 || limit > ledger.MaxHistory {
				return usage.Error(cmd, fmt.Errorf("--limit is 1 to %d", ledger.MaxHistory))
			}
			address, err := t.About(cmd, args)
			if err != nil {
				return err
			}
			found, err := session.AccountHistory(cmd.Context(), t.Network, address, limit)
			if err != nil {
				return err
			}
			list := make([]movement, len(found))
			for i, m := range found {
				list[i] = movement{Hash: m.Hash, Height: m.Height, Messages: m.Messages, Received: m.Received, Spent: m.Spent}
				if m.Code != 0 {
					list[i].Refused = m.Log
				}
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.List(map[string]any{"address": address, "transactions": list}, list,
					func(m movement) string { return m.Hash }))
			}
			return printHistory(list, c.Form)
		},
	}
	t.Flags(cmd)
	cmd.Flags().IntVar(&limit, "limit", 20, fmt.Sprintf("most transactions that are listed, up to %d", ledger.MaxHistory))
	return cmd
}

func printHistory(list []movement, f terminal.Form) error {
	w := terminal.NewColumns(os.Stdout, f, "HEIGHT", "RECEIVED", "SPENT", "MESSAGES", "HASH", "+WHOLE HASH")
	for _, m := range list {
		names := make([]string, len(m.Messages))
		for i, full := range m.Messages {
			names[i] = terminal.Message(full)
		}
		what := strings.Join(names, ", ")
		if m.Refused != "" {
			what += " (refused: " + m.Refused + ")"
		}
		w.Row(m.Height, terminal.Zen(m.Received), terminal.Zen(m.Spent), what, m.Hash[:16], m.Hash)
	}
	return w.Flush()
}
