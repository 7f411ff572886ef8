// Package fleet is starling fleet: commands of an account about its machines, and of a host with several workers. The
// work is in node/fleet, the rules in protocol/registry/fleet.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/fleet"
	"github.com/starling-network/starling/node/session"
	"github.com/starling-network/starling/protocol/registry"
)

// Command is starling fleet.
func Command(c *terminal.Console) *cobra.Command {
	return usage.Group("fleet", "Let many machines work for one account",
		`Let machines work for one account. Each machine has a key of its own, which signs work and moves no money; the
account is paid, stakes for every machine, and ends the work of one with a single command. Its own key stays
elsewhere. A fleet counts as one owner: its machines never audit each other, and have no more votes than one.`,
		addCommand(c), listCommand(c), drainCommand(c), revokeCommand(c), upCommand(c), statusCommand(c), upgradeCommand(c),
		serveCommand(c), headCommand(c))
}

const dayOfFees = 100_000

func addCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	o := fleet.Offer{}
	var stake, fees, dir string
	cmd := &cobra.Command{
		Use:   "add --home DIR [--machines N] [--out DIR]",
		Short: "Invite machines to the fleet of an account",
		Long: `Invite machines to the fleet of the account of a folder. Each gets an invitation, which is one line: starling
worker up --enrol takes it. The machine makes its own key, which never leaves it.

The account stakes for each machine at once. The stake is at risk by the work of that machine alone; it
returns after starling fleet revoke, at once if no machine used the invitation. Besides, the account pays fees of the
machine, up to --daily-fees a day.

An invitation serves once, for the time of --valid. Keep it like the stake: the machine that uses it first works with
that. With --out each invitation becomes a file that only you can read.

With -o json: {"invitations":[{"invitation","file","until","stake_uzen"}]}; with --out "invitation" is missing.`,
		Example: `  starling fleet add --home wallet --network http://127.0.0.1:26601
  starling fleet add --home wallet --network http://10.0.0.7:26601 --machines 8 --out invitations --stake 50`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Machines < 1 || o.Machines > 64 {
				return usage.Error(cmd, errors.New("--machines is at least 1 and at most 64"))
			}
			if o.Valid < time.Minute || o.Valid > 30*24*time.Hour {
				return usage.Error(cmd, errors.New("--valid is at least 1m and at most 720h"))
			}
			if o.Stake, err = target.WantAmount(cmd, stake); err != nil {
				return err
			}
			if fees != "0" {
				if o.DailyFees, err = target.WantAmount(cmd, fees); err != nil {
					return err
				}
			}
			var made []fleet.Invitation
			err = t.Act(cmd, "the folder of the account that pays and is paid",
				func(ctx context.Context, cl *client.Client) error {
					head, err := cl.Ledger.Head(ctx)
					if err != nil {
						return err
					}
					o.Network = t.Network
					made, err = fleet.Add(ctx, cl, o, session.BlockTime(ctx, cl, head))
					return err
				})
			if err != nil && len(made) == 0 {
				return err
			}
			if err != nil {
				c.Say("the answer to the transaction was lost: starling fleet list shows whether these invitations are open")
			}
			return errors.Join(err, printInvitations(c, made, o.Stake, dir))
		},
	}
	t.Flags(cmd)
	f := cmd.Flags()
	f.IntVar(&o.Machines, "machines", 1, "machines to invite")
	f.StringVar(&stake, "stake", terminal.Zen(registry.DefaultStake), "ZEN staked for each machine")
	f.StringVar(&fees, "daily-fees", terminal.Zen(dayOfFees), "ZEN of fees that the account pays for each machine in a "+
		"day, at most; 0: none")
	f.DurationVar(&o.Valid, "valid", 24*time.Hour, "time in which an invitation may be used")
	f.StringVar(&dir, "out", "", "folder for a file with each invitation (default: they are printed)")
	return cmd
}

// issued is an invitation as it is printed.
type issued struct {
	Text  string `json:"invitation,omitempty"`
	File  string `json:"file,omitempty"`
	Until int64  `json:"until"`
	Stake uint64 `json:"stake_uzen"`
}

func printInvitations(c *terminal.Console, made []fleet.Invitation, stake uint64, dir string) error {
	var list []issued
	for n, i := range made {
		one := issued{Text: i.String(), Until: i.Until, Stake: stake}
		if dir != "" {
			file, err := writeInvitation(dir, i.String())
			if one.Text, one.File = "", file; err != nil { // printed: they would be lost, and hold stakes
				for _, i := range made[n:] {
					fmt.Println(i)
				}
				return err
			}
		}
		list = append(list, one)
	}
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.List(map[string]any{"invitations": list}, list,
			func(i issued) string { return i.File + i.Text }))
	}
	for _, i := range list {
		fmt.Println(i.Text + i.File)
	}
	c.Say(fmt.Sprintf("start each machine with: starling worker up --home FOLDER --enrol INVITATION (up to block %d)",
		made[0].Until))
	return nil
}

// writeInvitation writes the next file of a folder, machine-1 and so on, that only its owner can read. Files that are
// there stay.
func writeInvitation(dir, text string) (file string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	var f *os.File
	for n := 1; f == nil; n++ {
		file = filepath.Join(dir, fmt.Sprintf("machine-%d", n))
		f, err = os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil && !errors.Is(err, os.ErrExist) {
			return "", err
		}
	}
	_, err = f.WriteString(text + "\n")
	return file, errors.Join(err, f.Close())
}

func listCommand(c *terminal.Console) *cobra.Command {
	var owner string
	cmd := target.ListCommand(c, "list", "List the machines of an account",
		`List the machines and the open invitations of an account, of a folder (--home) or an address (--owner): the state
of each, its class, the units that it computes or audits now, the pay for its work, and its latest transaction.

States: invited and expired, an invitation; enrolled, a machine without a role; waiting, without a run; working;
draining and drained; convicted; answering, revoked with work that it answers for; revoked, with a stake that leaves;
gone, without one.

With -o json: {"machines":[{"machine","state","roles","class","rate","stake_uzen","slashed_uzen","leaves_at","until",
"duties":[{"job","round","unit","audit"}],"earned_uzen","seen_height","seen"}]}; "unit" -1: none now.`,
		`  starling fleet list --home wallet --network http://127.0.0.1:26601
  starling fleet list --owner starling1qx... --network http://127.0.0.1:26601 -o json`,
		"machines", func(ctx context.Context, t *target.Target) ([]fleet.Machine, error) {
			of := t.Account
			if owner != "" {
				if err := target.WantAddress(owner); err != nil {
					return nil, err
				}
				of = owner
			}
			if of == "" {
				return nil, terminal.WithExit(&terminal.Problem{Code: "USAGE", What: "whose machines?",
					Fix: "give --home or --owner"}, terminal.ExitUsage)
			}
			cl, _, err := session.DialReadOnly(ctx, t.Network)
			if err != nil {
				return nil, err
			}
			defer cl.Close()
			return fleet.Machines(ctx, cl, of)
		},
		func(m fleet.Machine) string { return m.ID },
		[]string{"MACHINE", "STATE", "CLASS", "NOW", "STAKE", "EARNED", "SEEN", "+ROLES", "+SLASHED"},
		func(m fleet.Machine) []any {
			var now []string
			for _, d := range m.Duties {
				now = append(now, d.String())
			}
			seen := ""
			if !m.SeenAt.IsZero() {
				seen = terminal.Span(time.Since(m.SeenAt)) + " ago"
			}
			return []any{m.ID, string(m.State), m.Class, strings.Join(now, ", "), terminal.Zen(m.Stake),
				terminal.Zen(m.Earned), seen, strings.Join(m.Roles, ", "), terminal.Zen(m.Slashed)}
		})
	cmd.Flags().StringVar(&owner, "owner", "", "account whose machines are listed, in place of that of --home")
	return cmd
}
