package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/home"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/node/keystore"
)

// target is the network and the account that a question is about.
type target struct {
	home, network, account string
}

func (t *target) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.home, "home", "", "folder of a party: its account is looked at, on its network")
	cmd.Flags().StringVar(&t.network, "network", "", "HTTP interface of a validator (default: that of the folder's "+
		"last worker up)")
}

// settle fills in what the folder says.
func (t *target) settle(cmd *cobra.Command) error {
	if t.home != "" {
		h, err := home.Read(t.home)
		if err != nil {
			return homeError(err)
		}
		f, err := keystore.ReadParty(t.home)
		if err != nil {
			return err
		}
		t.account = h.Account().Address()
		if t.network == "" {
			t.network = f.Network
		}
	}
	if t.network == "" {
		return usage(cmd, errors.New("--network is needed: the HTTP interface of a validator, such as "+
			"http://127.0.0.1:26601"))
	}
	return nil
}

// askPatience is how long a validator may take for its answers.
const askPatience = 20 * time.Second

func (t *target) ask(ctx context.Context) (*inspect.NetworkStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	return inspect.AskNetwork(ctx, t.network, t.account)
}

func (c *cli) status() *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use:   "status --network URL",
		Short: "Show a network: validators, runs, workers, and an account",
		Long: `Show a network as one of its validators sees it: the height, the validators, the open orders and why they
wait, the runs that are not over, who works. With --home, also the account of that folder, and what it
does and waits for. -o wide also lists the validators and who takes part.

With -o json: {"network","chain_id","height","block_time","catching_up","validators":[{"address","power",
"signed"}],"participants":[{"id","roles","price","offers","stake_uzen","jailed","jobs","device","class","rate"}],
"orders":[{"job","why","budget_uzen"}],"runs":[{"job","phase","round","rounds","open_rounds","workers",
"verifiers","budget_uzen","paid_uzen"}],"account":{"address","balance_uzen","stake_uzen","slashed_uzen",
"jailed","reasons":[{"code","kind","job","round","text","until","do"}]}}.`,
		Example: `  starling network status --network http://127.0.0.1:26601
  starling network status --home net/worker-0
  starling network status --network http://127.0.0.1:26601 -o json`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := t.settle(cmd); err != nil {
				return err
			}
			s, err := t.ask(cmd.Context())
			if err != nil {
				return err
			}
			if c.form.Machine() {
				return c.form.Print(os.Stdout, terminal.One(s, s.ChainID))
			}
			return printNetwork(s, c.form)
		},
	}
	t.flags(cmd)
	return cmd
}

func printNetwork(s *inspect.NetworkStatus, f terminal.Form) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	signed := 0
	for _, v := range s.Validators {
		if v.Signed {
			signed++
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
	fmt.Fprintf(w, "validators\t%d, of which %d signed that block\n", len(s.Validators), signed)
	fmt.Fprintf(w, "registered\t%s, %s; %d jailed\n", terminal.Counted(working["worker"], "worker"),
		terminal.Counted(working["verifier"], "verifier"), jailed)
	if a := s.Account; a != nil {
		fmt.Fprintf(w, "account\t%s: %s ZEN, %s staked, %s slashed\n", a.Address, terminal.Zen(a.Balance),
			terminal.Zen(a.Stake), terminal.Zen(a.Slashed))
	}
	if len(s.Orders) > 0 {
		fmt.Fprintln(w, "\nORDER\tWAITS FOR\tBUDGET")
		for _, o := range s.Orders {
			fmt.Fprintf(w, "%s\t%s\t%s\n", o.Job, strings.ReplaceAll(o.Why, "_", " "), terminal.Zen(o.Budget))
		}
	}
	if len(s.Runs) > 0 {
		fmt.Fprintln(w, "\nRUN\tPHASE\tROUND\tNOT FINAL\tWORKERS\tVERIFIERS\tPAID")
		for _, r := range s.Runs {
			fmt.Fprintf(w, "%s\t%s\t%d/%d\t%d\t%d\t%d\t%s/%s\n", r.Job, r.Phase, r.Round, r.Rounds, r.Open, r.Workers,
				r.Verifiers, terminal.Zen(r.Paid), terminal.Zen(r.Budget))
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
		return printReasons(s.Account.Reasons, s.Height)
	}
	return nil
}

// printPeople lists who votes and who works.
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
	w = terminal.NewColumns(os.Stdout, terminal.Wide, "PARTICIPANT", "ROLES", "PRICE", "OFFERS", "STAKE", "JAILED",
		"CLASS", "DEVICE", "GFLOP/S", "WORKS FOR")
	for _, p := range s.Participants {
		w.Row(p.ID, strings.Join(p.Roles, ", "), p.Price, p.Offers, terminal.Zen(p.Stake), p.Jailed, p.Class, p.Device,
			gigaflops(p.Rate), strings.Join(p.Jobs, ", "))
	}
	return w.Flush()
}

func (c *cli) validatorStatus() *cobra.Command {
	return &cobra.Command{
		Use:   "status --home DIR",
		Short: "Show the validator of a folder, and how it keeps up with its duty",
		Long: `Ask the validator that runs over a folder where it stands, and the chain how it votes.

With -o json: {"home","network","chain_id","node_id","address","height","block_time","catching_up","power",
"of_power","signed","missed_blocks","window_blocks","jailed_until","tombstoned","peers","of_peers"}.`,
		Example: `  starling validator status --home net/validator-0`,
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), askPatience)
			defer cancel()
			s, err := inspect.AskValidator(ctx, args[0])
			stopped := (*client.Stopped)(nil)
			switch {
			case errors.Is(err, keystore.ErrNoValidator), errors.As(err, &stopped):
				return networkError(err)
			case err != nil:
				return terminal.WithExit(&terminal.Problem{
					Code: "VALIDATOR_NOT_RUNNING", What: "the validator of " + args[0] + " does not answer", Why: err.Error(),
					Fix: "start it with starling validator up --home " + args[0] + "; validator.log there says why it ended",
				}, terminal.ExitUnreachable)
			case c.form.Machine():
				return c.form.Print(os.Stdout, terminal.One(s, s.Home))
			}
			return printValidator(s)
		},
	}
}

func printValidator(s *inspect.ValidatorStatus) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	duty := "it signed the latest block"
	switch {
	case s.Tombstoned:
		duty = "it signed two votes for one step and never votes again"
	case s.Power == 0:
		duty = "it does not vote"
	case s.CatchingUp:
		duty = "it is catching up with the others"
	case !s.Signed:
		duty = "its vote is not in the latest block"
	}
	fmt.Fprintf(w, "validator\t%s of %s: %s\n", s.Address, s.ChainID, duty)
	fmt.Fprintf(w, "height\t%d, block of %s\n", s.Height, s.Time.Local().Format(time.DateTime))
	fmt.Fprintf(w, "power\t%d of %d\n", s.Power, s.OfPower)
	fmt.Fprintf(w, "missed\t%d of the latest %d blocks\n", s.Missed, s.Window)
	if !s.JailedUntil.IsZero() {
		fmt.Fprintf(w, "jailed\tuntil %s\n", s.JailedUntil.Local().Format(time.DateTime))
	}
	fmt.Fprintf(w, "peers\t%d of %d\n", s.Peers, s.OfPeers)
	fmt.Fprintf(w, "interface\t%s\n", s.Network)
	return w.Flush()
}

func printBooks(b *inspect.Books) error {
	fmt.Printf("%s at height %d\n\n", b.ChainID, b.Height)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "MODULE\tACCOUNTS FOR, ZEN\tHOLDS, ZEN\t")
	for _, book := range b.Books {
		fmt.Fprintf(w, "%s\t%s\t%s\t\n", book.Module, terminal.Zen(book.Owed), terminal.Zen(book.Held))
	}
	return w.Flush()
}

func (c *cli) netCheck() *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use:   "check --network URL",
		Short: "Count the coins of a network twice",
		Long: `Compare what every module of the chain has written down with the coins in its account: stakes of
participants, budgets of jobs, revenue of models, stakes of validators, the community pool, deposits of
proposals; and all accounts together with the supply. A difference gives exit code 12.

With -o json: {"chain_id","height","books":[{"module","held_uzen","owed_uzen","spare"}],"wrong":[TEXT]}.`,
		Example: `  starling network check --network http://127.0.0.1:26601`,
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := t.settle(cmd); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), time.Minute)
			defer cancel()
			b, err := inspect.CheckBooks(ctx, t.network)
			if err != nil {
				return err
			}
			if c.form.Machine() {
				err = c.form.Print(os.Stdout, terminal.List(b, b.Books, func(book client.Book) string { return book.Module }))
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
	t.flags(cmd)
	return cmd
}
