package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/fleet"
	"github.com/starling-network/starling/node/supervise"
)

// upgraded is a process of this host with its program.
type upgraded struct {
	Home string `json:"home"`
	supervise.Status
}

func upgradeCommand(c *terminal.Console) *cobra.Command {
	var to string
	var dry bool
	cmd := &cobra.Command{
		Use:   "upgrade DIR... [--to VERSION] [--dry-run]",
		Short: "Switch processes of this host to another release, one after another",
		Long: `Switch the processes of folders to the latest release, or to that of --to, which may be an earlier one. A
starling supervise runs over each folder; the folder of a host stands for those of its workers. The next process
switches when the one before it is ready and has stayed so for a tenth of --ready-within; the command ends at the first
that goes back to its old program (UPGRADE_REFUSED). No run is left and no stake is lost: work is set aside, and the new
program continues with it.

Processes switch by themselves as a release asks: with this command at once. --dry-run says what runs and what there
is.

With -o json: {"processes":[{"home","running","latest","available","refused"}]}.`,
		Example: `  starling fleet upgrade my-worker --dry-run
  starling fleet upgrade fleet
  starling fleet upgrade my-worker --to v1.2.3`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage.Error(cmd, errors.New("the folders of the processes are needed"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var all []upgraded
			homes, err := expand(args)
			if err != nil {
				return err
			}
			for _, home := range homes {
				now, err := upgrade(cmd.Context(), c, home, to, dry)
				if err != nil {
					return err
				}
				all = append(all, upgraded{home, now})
			}
			return terminal.PrintList(c.Form, "processes", all, func(u upgraded) string { return u.Home },
				[]string{"FOLDER", "RUNS", "LATEST", "REFUSED"}, func(u upgraded) []any {
					refused := make([]string, 0, len(u.Refused))
					for v := range u.Refused {
						refused = append(refused, v)
					}
					slices.Sort(refused)
					return []any{u.Home, u.Running, cmp.Or(u.Latest, "-"), fmt.Sprint(len(refused), refused)}
				})
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "version to switch to, such as v1.2.3 (default: the latest)")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "switch nothing")
	return cmd
}

// expand puts the folders of the workers of a host in the place of its own.
func expand(dirs []string) (homes []string, err error) {
	for _, dir := range dirs {
		of, err := fleet.Homes(dir)
		if err != nil {
			return nil, err
		}
		homes = append(homes, of...)
	}
	return homes, nil
}

// upgrade switches a process, unless the run is dry.
func upgrade(ctx context.Context, c *terminal.Console, home, to string, dry bool) (now supervise.Status, err error) {
	if dry {
		now, err = supervise.Ask(ctx, home)
	} else {
		now, err = supervise.Upgrade(ctx, home, to)
	}
	switch {
	case errors.Is(err, supervise.ErrNotRunning):
		return now, terminal.WithExit(&terminal.Problem{Code: "NOT_SUPERVISED", What: "no supervisor runs over " + home,
			Fix: "run its process by starling supervise"}, terminal.ExitNotFound)
	case err != nil:
		return now, err
	case now.Failed != "":
		return now, &terminal.Problem{Code: "UPGRADE_REFUSED", What: home + " was not switched", Why: now.Failed,
			Fix: now.Running + " runs; its own messages say more"}
	case !dry:
		c.Say(home + " runs " + now.Running)
	}
	return now, nil
}
