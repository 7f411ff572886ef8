package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/fleet"
)

const changedShape = `With -o json: {"machines":[{"machine","state"}]}, the states of starling fleet list.`

// changed is a machine after a command.
type changed struct {
	ID    string      `json:"machine"`
	State fleet.State `json:"state"`
}

// over lets the account of a folder do something for each of the machines that a command names, or for all of them.
func over(cmd *cobra.Command, c *terminal.Console, t *target.Target, ids []string, all bool,
	do func(ctx context.Context, cl *client.Client, m fleet.Machine) error) error {
	if all == (len(ids) > 0) {
		return usage.Error(cmd, errors.New("name machines, or give --all"))
	}
	for _, id := range ids {
		if err := target.WantAddress(id); err != nil {
			return err
		}
	}
	var list []changed
	err := t.Act(cmd, "the folder of the account that the machines work for",
		func(ctx context.Context, cl *client.Client) error {
			machines, err := fleet.Machines(ctx, cl, cl.Address())
			if err != nil {
				return err
			}
			wanted, err := chosen(machines, ids, all)
			if err != nil {
				return err
			}
			for _, m := range machines {
				if wanted[m.ID] {
					if err := do(ctx, cl, m); err != nil {
						return err
					}
				}
			}
			if machines, err = fleet.Machines(ctx, cl, cl.Address()); err != nil {
				return err
			}
			for _, m := range machines {
				if wanted[m.ID] {
					list = append(list, changed{m.ID, m.State})
				}
			}
			return nil
		})
	if err != nil {
		return err
	}
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.List(map[string]any{"machines": list}, list,
			func(m changed) string { return m.ID }))
	}
	for _, m := range list {
		fmt.Printf("%s  %s\n", m.ID, m.State)
	}
	return nil
}

// chosen are the machines that a command names.
func chosen(machines []fleet.Machine, ids []string, all bool) (map[string]bool, error) {
	wanted := map[string]bool{}
	for _, m := range machines {
		wanted[m.ID] = all || slices.Contains(ids, m.ID)
	}
	for _, id := range ids {
		if !wanted[id] {
			return nil, terminal.WithExit(&terminal.Problem{Code: "MACHINE_NOT_FOUND",
				What: id + " is no machine of this account", Fix: "starling fleet list shows them"}, terminal.ExitNotFound)
		}
	}
	return wanted, nil
}

func drainCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	var all, undo bool
	cmd := &cobra.Command{
		Use:   "drain MACHINE...|--all --home DIR",
		Short: "Let machines finish their work and end",
		Long: `Let machines take no new work: they finish their units, leave their runs, and their processes end. Nothing is
slashed. A machine that is started again stays drained until --undo.

` + changedShape,
		Example: `  starling fleet drain --all --home wallet --network http://127.0.0.1:26601
  starling fleet drain starling1qx... --home wallet --network http://127.0.0.1:26601
  starling fleet drain --undo --all --home wallet --network http://127.0.0.1:26601`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return over(cmd, c, &t, args, all, func(ctx context.Context, cl *client.Client, m fleet.Machine) error {
				if m.Until > 0 || m.State == fleet.Gone || m.State == fleet.RevokedNow || m.State == fleet.Answering {
					return nil // there is nothing to drain
				}
				return cl.Registry.ChangeMachine(ctx, m.ID, !undo, 0)
			})
		},
	}
	t.Flags(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "all machines of the account")
	cmd.Flags().BoolVar(&undo, "undo", false, "let them take work again")
	return cmd
}

func revokeCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	var all bool
	cmd := &cobra.Command{
		Use:   "revoke MACHINE...|--all --home DIR",
		Short: "End what the keys of machines may do",
		Long: `End what the key of a machine may do, such as after a theft: from the same block on it signs only answers for
its work so far. Units that it has not committed go to other machines at once; its committed work is audited and
paid. All of its stake leaves, 20,000 blocks later unless governance changed that, to the account. Revocation is
final: a machine that returns has another key and another invitation.

An invitation that was not used is taken back in the same way, and its stake returns at once.

` + changedShape,
		Example: `  starling fleet revoke starling1qx... --home wallet --network http://127.0.0.1:26601
  starling fleet revoke --all --home wallet --network http://127.0.0.1:26601`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return over(cmd, c, &t, args, all, func(ctx context.Context, cl *client.Client, m fleet.Machine) error {
				if m.State == fleet.Gone || m.State == fleet.RevokedNow || m.State == fleet.Answering {
					return nil
				}
				return cl.Registry.Revoke(ctx, m.ID)
			})
		},
	}
	t.Flags(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "all machines and invitations of the account")
	return cmd
}
