package network

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/books"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/inspect"
)

// StatusCommand is starling network status.
func StatusCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	cmd := &cobra.Command{
		Use:   "status --network URL",
		Short: "Show a network: validators, runs, workers, and an account",
		Long: `Show a network as one of its validators sees it: the height, the validators, the open orders and why they
wait, the runs that are not over, who works. With --home, also the account of that folder, and what it
does and waits for. -o wide also lists the validators and the parties.

With -o json: {"network","chain_id","height","block_time","catching_up","validators":[{"address","power",
"signed"}],"participants":[{"id","roles","price","offers","stake_uzen","jailed","jobs","device","class","rate",
"asks"}],"orders":[{"job","why","budget_uzen","coin"}],"runs":[{"job","phase","round","rounds","open_rounds","workers",
"verifiers","budget_uzen","paid_uzen","coin"}],"account":{"address","balance_uzen","stake_uzen","slashed_uzen",
"jailed","reasons":[{"code","kind","job","round","text","until","do"}]}}.`,
		Example: `  starling network status --network http://127.0.0.1:26601
  starling network status --home net/worker-0
  starling network status --network http://127.0.0.1:26601 -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := t.Settle(cmd); err != nil {
				return err
			}
			s, err := t.Ask(cmd.Context())
			if err != nil {
				return err
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(s, s.ChainID))
			}
			return printNetwork(s, c.Form)
		},
	}
	t.Flags(cmd)
	return cmd
}

func printNetwork(s *inspect.NetworkStatus, f terminal.Form) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	signed, power := int64(0), int64(0)
	for _, v := range s.Validators {
		power += v.Power
		if v.Signed {
			signed += v.Power
		}
	}
	working, jailed := map[string]int{}, 0
	for _, p := range s.Participants {
		if p.Jailed {
			jailed++
			continue
		}
		for _, r := range p.Roles {
			working[r]++
		}
	}
	behind := ""
	if s.CatchingUp {
		behind = ", catching up"
	}
	fmt.Fprintf(w, "network\t%s at height %d, block of %s%s\n", s.ChainID, s.Height, s.Time.Local().Format(time.DateTime),
		behind)
	fmt.Fprintf(w, "validators\t%d; %d of %d of the power signed the block (a block needs more than 2/3)\n",
		len(s.Validators), signed, power)
	fmt.Fprintf(w, "registered\t%s, %s; %d jailed\n", terminal.Counted(working["worker"], "worker"),
		terminal.Counted(working["verifier"], "verifier"), jailed)
	if a := s.Account; a != nil {
		fmt.Fprintf(w, "account\t%s: %s ZEN, %s staked, %s slashed\n", a.Address, terminal.Zen(a.Balance),
			terminal.Zen(a.Stake), terminal.Zen(a.Slashed))
	}
	if len(s.Orders) > 0 {
		fmt.Fprintln(w, "\nORDER\tWAITS FOR\tBUDGET")
		for _, o := range s.Orders {
			fmt.Fprintf(w, "%s\t%s\t%s\n", o.Job, strings.ReplaceAll(o.Why, "_", " "),
				terminal.Amount(api.CoinOf(o.Coin), o.Budget))
		}
	}
	if len(s.Runs) > 0 {
		fmt.Fprintln(w, "\nRUN\tPHASE\tROUND\tNOT FINAL\tWORKERS\tVERIFIERS\tPAID")
		for _, r := range s.Runs {
			fmt.Fprintf(w, "%s\t%s\t%d/%d\t%d\t%d\t%d\t%s/%s\n", r.Job, r.Phase, r.Round, r.Rounds, r.Open, r.Workers,
				r.Verifiers, api.CoinOf(r.Coin).Amount(r.Paid), terminal.Amount(api.CoinOf(r.Coin), r.Budget))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if f == terminal.Wide {
		if err := printPeople(s); err != nil {
			return err
		}
	}
	if s.Account != nil {
		fmt.Println()
		return target.PrintReasons(s.Account.Reasons, s.Height)
	}
	return nil
}

// printPeople lists validators and members.
func printPeople(s *inspect.NetworkStatus) error {
	fmt.Println()
	w := terminal.NewColumns(os.Stdout, terminal.Wide, "VALIDATOR", "POWER", "SIGNED")
	for _, v := range s.Validators {
		w.Row(v.Address, v.Power, v.Signed)
	}
	if err := w.Flush(); err != nil || len(s.Participants) == 0 {
		return err
	}
	fmt.Println()
	w = terminal.NewColumns(os.Stdout, terminal.Wide, "PARTICIPANT", "ROLES", "A PFLOP", "OFFERS", "STAKE", "JAILED",
		"CLASS", "DEVICE", "GFLOP/S", "WORKS FOR")
	for _, p := range s.Participants {
		w.Row(p.ID, strings.Join(p.Roles, ", "), target.Asks(p), p.Offers, terminal.Zen(p.Stake), p.Jailed, p.Class,
			p.Device, terminal.Gigaflops(p.Rate), strings.Join(p.Jobs, ", "))
	}
	return w.Flush()
}

func printBooks(b *inspect.Balances) error {
	fmt.Printf("%s at height %d\n\n", b.ChainID, b.Height)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "MODULE\tACCOUNTS FOR\tHOLDS\t")
	for _, book := range b.Books {
		fmt.Fprintf(w, "%s\t%s\t%s\t\n", book.Module, book.Coin.Text(book.Owed), book.Coin.Text(book.Held))
	}
	return w.Flush()
}

func checkCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	cmd := &cobra.Command{
		Use:   "check --network URL",
		Short: "Count the coins of a network twice",
		Long: `Compare what every module of the chain has written down with the coins in its account: stakes of
participants, budgets of jobs, revenue of models, stakes of validators, the community pool, deposits of
proposals; and all accounts together with the supply; in each coin in which orders may be placed. A difference gives
exit code 12.

With -o json: {"chain_id","height","books":[{"module","held_uzen","owed_uzen","spare","coin":{"denom","symbol",
"decimals"},"dust"}],"wrong":[TEXT]}. Of a coin they are in grains.`,
		Example: `  starling network check --network http://127.0.0.1:26601`,
		Args:    usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := t.Settle(cmd); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), time.Minute)
			defer cancel()
			b, err := inspect.CheckBooks(ctx, t.Network)
			if err != nil {
				return err
			}
			if c.Form.Machine() {
				err = c.Form.Print(
					os.Stdout,
					terminal.List(b, b.Books, func(book books.ModuleBalance) string { return book.Module }),
				)
			} else {
				err = printBooks(b)
			}
			if len(b.Wrong) > 0 {
				err = errors.Join(err, terminal.WithExit(&terminal.Problem{
					Code: "BOOKS_WRONG", What: "coins are missing, or too many", Why: strings.Join(b.Wrong, "; "),
					Fix: "stop taking part, and compare with another validator",
				}, terminal.ExitFindings))
			}
			return err
		},
	}
	t.Flags(cmd)
	return cmd
}
