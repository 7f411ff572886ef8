package account

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/inspect"
)

func delegateCommand(c *terminal.Console) *cobra.Command {
	return usage.Group("delegate", "Put stake behind the work of another account, for a share of its pay",
		`Delegate ZEN to a worker or verifier. It shares its pay for work and audits with its delegators, in each coin
that it is paid in, less its commission; a conviction of it takes the same part of their stake as of its own. Delegated
stake gives it more chances of the seats of orders, and no more work than its own stake covers. docs/market.md has the
rules.`,
		delegateAdd(c), delegateRemove(c), delegateClaim(c), delegateList(c), delegatePools(c), delegateAccept(c))
}

func delegateAdd(c *terminal.Console) *cobra.Command {
	var t target.Target
	cmd := &cobra.Command{
		Use:   "add PARTICIPANT AMOUNT --home DIR",
		Short: "Delegate ZEN to a worker or verifier",
		Long: `Delegate ZEN of the account of a folder to a participant that has a pool. They join the pool after as many
blocks as an epoch has (3,600, unless governance changed that); from then on they earn and can be slashed. If an account
adds to a delegation that has not joined yet, all of it waits again. If the participant takes no stake any more when the
delegation joins, the coins come back.

With -o json: what starling account delegate list prints of the account.`,
		Example: `  starling account delegate add starling1qx... 25 --home wallet --network http://127.0.0.1:26601`,
		Args:    usage.Exactly("PARTICIPANT", "AMOUNT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := target.WantAddress(args[0]); err != nil {
				return err
			}
			amount, err := target.WantAmount(cmd, args[1])
			if err != nil {
				return err
			}
			return redelegate(c, cmd, &t, func(ctx context.Context, cl *client.Client) (string, error) {
				height, err := cl.Delegation.Delegate(ctx, args[0], amount)
				if err != nil {
					return "", err
				}
				p, err := cl.Delegation.Pool(ctx, args[0])
				text := fmt.Sprintf("%s ZEN join the pool of %s after block %d; its commission is %s", terminal.Zen(amount),
					args[0], height, ofHundred(p.Commission))
				if p.From > 0 {
					text += fmt.Sprintf(", and %s from block %d on", ofHundred(p.Next), p.From)
				}
				return text, err
			})
		},
	}
	t.Flags(cmd)
	return cmd
}

func delegateRemove(c *terminal.Console) *cobra.Command {
	var t target.Target
	cmd := &cobra.Command{
		Use:   "remove PARTICIPANT AMOUNT|all --home DIR",
		Short: "Take delegated ZEN back",
		Long: `Take ZEN back that the account of a folder delegates. Those that have not joined the pool come back at once.
The others earn nothing from the next block on. They can be slashed for as many blocks as a stake takes to leave
(20,000, unless governance changed that), and are then paid out. Pay that was earned stays due.

With -o json: what starling account delegate list prints of the account.`,
		Example: `  starling account delegate remove starling1qx... all --home wallet --network http://127.0.0.1:26601`,
		Args:    usage.Exactly("PARTICIPANT", "AMOUNT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := target.WantAddress(args[0]); err != nil {
				return err
			}
			amount := uint64(0)
			if args[1] != "all" {
				var err error
				if amount, err = target.WantAmount(cmd, args[1]); err != nil {
					return err
				}
			}
			return redelegate(c, cmd, &t, func(ctx context.Context, cl *client.Client) (string, error) {
				back, height, err := cl.Delegation.Undelegate(ctx, args[0], amount)
				text := fmt.Sprintf("%s ZEN came back", terminal.Zen(back))
				if height > 0 {
					text += fmt.Sprintf("; what leaves the pool is paid out after block %d", height)
				}
				return text, err
			})
		},
	}
	t.Flags(cmd)
	return cmd
}

func delegateClaim(c *terminal.Console) *cobra.Command {
	var t target.Target
	cmd := &cobra.Command{
		Use:   "claim PARTICIPANT --home DIR",
		Short: "Claim the pay of a delegation",
		Long: `Claim what the account of a folder has earned by the stake that it delegates to a participant, in all coins.
A receipt says each amount: starling worker earnings --account ADDRESS.

With -o json: what starling account delegate list prints of the account.`,
		Example: `  starling account delegate claim starling1qx... --home wallet --network http://127.0.0.1:26601`,
		Args:    usage.Exactly("PARTICIPANT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := target.WantAddress(args[0]); err != nil {
				return err
			}
			return redelegate(c, cmd, &t, func(ctx context.Context, cl *client.Client) (string, error) {
				return "claimed from the pool of " + args[0], cl.Delegation.Claim(ctx, args[0])
			})
		},
	}
	t.Flags(cmd)
	return cmd
}

// redelegate changes the delegations of the account of a folder, and says what happened.
func redelegate(c *terminal.Console, cmd *cobra.Command, t *target.Target,
	change func(context.Context, *client.Client) (string, error)) error {
	var text string
	if err := t.Act(cmd, "the folder of the account", func(ctx context.Context, cl *client.Client) (err error) {
		text, err = change(ctx, cl)
		return err
	}); err != nil {
		return err
	}
	if !c.Form.Machine() {
		fmt.Println(text)
		return nil
	}
	list, err := inspect.Delegations(cmd.Context(), t.Network, t.Account, false)
	if err != nil {
		return err
	}
	return terminal.PrintList(c.Form, "delegations", list, delegationName, delegationTitles, delegationRow)
}

var delegationTitles = []string{"PARTICIPANT", "DELEGATOR", "STAKE", "JOINING", "LEAVING", "DUE", "+JOINS AFTER",
	"+LEAVES AFTER"}

func delegationName(d inspect.Delegation) string { return d.Participant + "/" + d.Delegator }

func delegationRow(d inspect.Delegation) []any {
	var due []string
	for _, a := range d.Due {
		due = append(due, a.Coin.Text(a.Amount))
	}
	return []any{d.Participant, d.Delegator, terminal.Zen(d.Stake), terminal.Zen(d.Joining), terminal.Zen(d.Leaving),
		strings.Join(due, ", "), terminal.Whole(d.JoinsAt), terminal.Whole(d.LeavesAt)}
}

func delegateList(c *terminal.Console) *cobra.Command {
	var t target.Target
	var in bool
	cmd := &cobra.Command{
		Use:   "list [ADDRESS]",
		Short: "List what an account delegates, or what is delegated to it",
		Long: `List the stake that an account delegates, of an address or of the key of a folder, with the pay that is due;
or, with --in, the stake that others delegate to it.

With -o json: {"delegations":[{"participant","delegator","stake_uzen","joining_uzen","joins_at","leaving_uzen",
"leaves_at","due":[{"coin":{"denom","symbol","decimals"},"amount"}]}]}. Amounts of coins are in grains.`,
		Example: `  starling account delegate list --home wallet --network http://127.0.0.1:26601
  starling account delegate list --in --home net/worker-0`,
		Args: mostOne("ADDRESS"),
		RunE: func(cmd *cobra.Command, args []string) error {
			address, err := t.About(cmd, args)
			if err != nil {
				return err
			}
			list, err := inspect.Delegations(cmd.Context(), t.Network, address, in)
			if err != nil {
				return err
			}
			return terminal.PrintList(c.Form, "delegations", list, delegationName, delegationTitles, delegationRow)
		},
	}
	t.Flags(cmd)
	cmd.Flags().BoolVar(&in, "in", false, "what others delegate to the account")
	return cmd
}

func delegatePools(c *terminal.Console) *cobra.Command {
	return target.ListCommand(c, "pools", "List the workers and verifiers that take delegated stake",
		`List the pools of a network, the one with the most room first. ROOM is what may still be delegated: half of the
participant's own stake at most, in all. COUNTS is the part that counts where the seats of orders are drawn.

With -o json: {"pools":[{"account","commission_ppm","next_commission":{"ppm","from"},"closed","own_stake_uzen",
"delegated_uzen","backing_uzen","joining_uzen","leaving_uzen","room_uzen","slashed_uzen","delegators",
"pay":[{"coin":{"denom","symbol","decimals"},"paid","held"}]}]}. Amounts of coins are in grains.`,
		`  starling account delegate pools --network http://127.0.0.1:26601`,
		"pools", func(ctx context.Context, t *target.Target) ([]inspect.Pool, error) {
			return inspect.Pools(ctx, t.Network)
		},
		func(p inspect.Pool) string { return p.Account },
		[]string{"PARTICIPANT", "COMMISSION", "OWN STAKE", "DELEGATED", "COUNTS", "ROOM", "DELEGATORS", "PAID", "+SLASHED",
			"+NEXT COMMISSION"},
		func(p inspect.Pool) []any {
			var paid []string
			for _, u := range p.Pay {
				paid = append(paid, u.Coin.Text(u.Paid))
			}
			next := ""
			if p.Next != nil {
				next = fmt.Sprintf("%s, block %d", ofHundred(p.Next.PPM), p.Next.From)
			}
			return []any{p.Account, ofHundred(p.Commission), terminal.Zen(p.Own), terminal.Zen(p.Delegated),
				terminal.Zen(p.Backing), terminal.Zen(p.Room), p.Delegators, strings.Join(paid, ", "), terminal.Zen(p.Slashed),
				next}
		})
}

// ofHundred writes millionths as a percentage.
func ofHundred(ppm uint32) string { return strconv.FormatFloat(float64(ppm)/10_000, 'f', -1, 64) + "%" }

func delegateAccept(c *terminal.Console) *cobra.Command {
	var t target.Target
	var closed bool
	cmd := &cobra.Command{
		Use:   "accept COMMISSION --home DIR",
		Short: "Take delegated stake, for a commission",
		Long: `Let other accounts delegate stake to the worker or verifier of a folder, or change its commission: the
percentage that it keeps of the delegators' part of its pay. The first commission, and a lower one, hold at once; a
higher one after as many blocks as a stake takes to leave (20,000, unless governance changed that). With --closed the
pool takes no more stake.

With -o json: {"commission_ppm","closed","from"}: from is the height from which the commission holds.`,
		Example: `  starling account delegate accept 10% --home net/worker-0`,
		Args:    usage.Exactly("COMMISSION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			percent, err := strconv.ParseFloat(strings.TrimSuffix(args[0], "%"), 64)
			if err != nil || math.IsNaN(percent) || percent < 0 || percent > 100 {
				return usage.Error(cmd, errors.New(args[0]+": give a commission from 0% to 100%"))
			}
			a := accepted{PPM: uint32(math.Round(percent * 10_000)), Closed: closed}
			err = t.Act(cmd, "the folder of the worker or verifier",
				func(ctx context.Context, cl *client.Client) (err error) {
					a.From, err = cl.Delegation.Terms(ctx, a.PPM, closed)
					return err
				})
			if err != nil {
				return err
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(a, t.Account))
			}
			fmt.Printf("the commission is %s from block %d on\n", ofHundred(a.PPM), a.From)
			return nil
		},
	}
	t.Flags(cmd)
	cmd.Flags().BoolVar(&closed, "closed", false, "take no more stake")
	return cmd
}

// accepted are the terms of a pool.
type accepted struct {
	PPM    uint32 `json:"commission_ppm"`
	Closed bool   `json:"closed"`
	From   int64  `json:"from"`
}
