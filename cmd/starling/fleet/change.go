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
	"github.com/starling-network/starling/protocol/registry"
)

const changedShape = `With -o json: {"machines":[{"machine","state"}]}, the states of starling fleet list.`

// changed is a machine after a command.
type changed struct {
	ID    string      `json:"machine"`
	State fleet.State `json:"state"`
}

// over lets the account of a folder do something for each of the machines that a command names, or for all of them,
// except those that it revoked. An error of one machine does not stop it: it joins the errors.
func over(cmd *cobra.Command, c *terminal.Console, t *target.Target, ids []string, all bool,
	do func(ctx context.Context, cl *client.Client, p registry.Participant) error) error {
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
			machines, err := cl.Registry.Fleet(ctx, cl.Address())
			if err != nil {
				return err
			}
			wanted, err := chosen(machines, ids, all)
			if err != nil {
				return err
			}
			for _, p := range machines {
				if wanted[p.ID] && p.Machine.Revoked == 0 {
					err = errors.Join(err, of(p.ID, do(ctx, cl, p)))
				}
			}
			var failed error
			list, failed = states(ctx, cl, wanted)
			return errors.Join(err, failed)
		})
	if len(list) == 0 {
		return err
	}
	if c.Form.Machine() {
		return errors.Join(err, c.Form.Print(os.Stdout, terminal.List(map[string]any{"machines": list}, list,
			func(m changed) string { return m.ID })))
	}
	for _, m := range list {
		fmt.Printf("%s  %s\n", m.ID, m.State)
	}
	return err
}

// of adds the name of a machine to an error.
func of(id string, err error) error {
	if err != nil {
		err = fmt.Errorf("%s: %w", id, err)
	}
	return err
}

// states are the states of machines of the account.
func states(ctx context.Context, cl *client.Client, wanted map[string]bool) (list []changed, err error) {
	machines, err := fleet.Machines(ctx, cl, cl.Address())
	for _, m := range machines {
		if wanted[m.ID] {
			list = append(list, changed{m.ID, m.State})
		}
	}
	return list, err
}

// chosen are the machines that a command names.
func chosen(machines []registry.Participant, ids []string, all bool) (map[string]bool, error) {
	wanted := map[string]bool{}
	for _, p := range machines {
		wanted[p.ID] = all || slices.Contains(ids, p.ID)
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
	var host string
	cmd := &cobra.Command{
		Use:   "drain MACHINE...|--all --home DIR | --host DIR",
		Short: "Let machines finish their work and end",
		Long: `Let machines take no new work: they finish their units, leave their runs, and their processes end. Nothing is
slashed. A machine that is started again stays drained until --undo.

--host drains the processes of the workers of a host, whose folder is that of starling fleet up, without the key of
the account: workers that are started again take work again.

` + changedShape + `
With --host: {"workers":[{"name","home","running",...}]}, as of starling fleet status.`,
		Example: `  starling fleet drain --all --home wallet --network http://127.0.0.1:26601
  starling fleet drain starling1qx... --home wallet --network http://127.0.0.1:26601
  starling fleet drain --undo --all --home wallet --network http://127.0.0.1:26601
  starling fleet drain --host fleet`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if host != "" {
				if all || undo || len(args) > 0 {
					return usage.Error(cmd, errors.New("--host drains all workers of a host: give it alone"))
				}
				return drainHost(cmd.Context(), c, host)
			}
			return over(cmd, c, &t, args, all, func(ctx context.Context, cl *client.Client, p registry.Participant) error {
				if p.Machine.Until > 0 {
					return nil // an invitation has nothing to drain
				}
				return cl.Registry.ChangeMachine(ctx, p.ID, !undo, 0)
			})
		},
	}
	t.Flags(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "all machines of the account")
	cmd.Flags().BoolVar(&undo, "undo", false, "let them take work again")
	cmd.Flags().StringVar(&host, "host", "", "folder of a host, all of whose workers drain")
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
			return over(cmd, c, &t, args, all, func(ctx context.Context, cl *client.Client, p registry.Participant) error {
				return cl.Registry.Revoke(ctx, p.ID)
			})
		},
	}
	t.Flags(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "all machines and invitations of the account")
	return cmd
}
