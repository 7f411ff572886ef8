package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/control"
	"github.com/starling-network/starling/node/pause"
)

const pauseShape = `With -o json: {"paused":BOOL,"since":TIME,"until":TIME,"why"};
without "until" the end is not known.`

func pauseCommand(c *terminal.Console) *cobra.Command {
	var home string
	var span time.Duration
	cmd := &cobra.Command{
		Use:   "pause --home DIR [--for DURATION]",
		Short: "Let a worker or verifier set its work aside",
		Long: `Tell the process that runs over a folder to set its work aside: for a time, or until starling worker resume.
It stops computing within two seconds, gives memory back, and takes no new work. The state of its unit is kept on the
disk, and it continues from there. If the pause takes so long that the unit would be late, it leaves the run first,
which costs nothing, and joins again when there is a place.

It keeps answering for the work that it did: it serves blobs and updates, moves in disputes and opens seals, for which
it may have to execute a unit again. A restart does not end the pause.

starling worker up --help names conditions under which a worker pauses by itself. Its owner cannot end a pause for
such a condition, which lasts until the condition has failed for a minute.

` + pauseShape,
		Example: `  starling worker pause --home net/worker-0
  starling worker pause --home net/worker-0 --for 2h`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if span < 0 || span > pause.MaxFor || cmd.Flags().Changed("for") && span < time.Second {
				return usage.Error(cmd, fmt.Errorf("--for is at least 1s and at most %d days: leave it out for a pause "+
					"without an end", pause.MaxFor/(24*time.Hour)))
			}
			return turn(cmd, c, home, func(ctx context.Context) (pause.State, error) {
				return control.Pause(ctx, home, span)
			})
		},
	}
	cmd.Flags().StringVar(&home, "home", "", "folder of the worker or verifier")
	cmd.Flags().DurationVar(&span, "for", 0, "length of the pause, such as 2h or 90m (default: until starling worker "+
		"resume)")
	return cmd
}

func resumeCommand(c *terminal.Console) *cobra.Command {
	var home string
	cmd := &cobra.Command{
		Use:   "resume --home DIR",
		Short: "Let a paused worker or verifier continue",
		Long: `End the pause of the process that runs over a folder, which starling worker pause began. If a condition of
starling worker up holds, the process stays paused for it.

` + pauseShape,
		Example: `  starling worker resume --home net/worker-0`,
		Args:    usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return turn(cmd, c, home, func(ctx context.Context) (pause.State, error) { return control.Resume(ctx, home) })
		},
	}
	cmd.Flags().StringVar(&home, "home", "", "folder of the worker or verifier")
	return cmd
}

// turn asks the process over a folder to pause or to resume, and prints its answer.
func turn(cmd *cobra.Command, c *terminal.Console, home string,
	ask func(context.Context) (pause.State, error)) error {
	if home == "" {
		return usage.Error(cmd, errors.New("--home is needed"))
	}
	s, err := ask(cmd.Context())
	switch {
	case errors.Is(err, control.ErrNotRunning):
		return terminal.WithExit(&terminal.Problem{Code: "NOT_RUNNING", What: "no process runs over " + home,
			Why: err.Error(), Fix: "start it with starling worker up"}, terminal.ExitUnreachable)
	case err != nil:
		return err
	case c.Form.Machine():
		return c.Form.Print(os.Stdout, terminal.One(s, home))
	}
	_, err = fmt.Println(s)
	return err
}

// pauseFlags are the conditions under which a worker pauses by itself.
func pauseFlags(f *pflag.FlagSet, c *pause.Conditions) {
	f.Var(&c.BusyCPU, pause.KeyBusyCPU, "pause when other processes use more than this part of all processors, such as "+
		"50%, and until they have used less than three quarters of it for a minute (Linux)")
	f.BoolVar(&c.Battery, pause.KeyBattery, false, "pause while the machine runs on its battery (Linux)")
	f.Var(&c.Hours, pause.KeyHours, "pause within these hours of the local clock, such as 08:00-18:00; several are "+
		"separated by commas")
	f.Var(&c.Work, pause.KeyWork, "pause outside of these hours of the local clock, such as 22:00-07:00")
	f.StringSliceVar(&c.Apps, pause.KeyApps, nil, "pause while a process with one of these names runs, as ps -e -o comm "+
		"shows it (Linux)")
}

// checkPause refuses conditions that cannot hold on this system.
func checkPause(cmd *cobra.Command, c pause.Conditions) error {
	err := c.Check(runtime.GOOS)
	if e, ok := errors.AsType[*pause.UnsupportedError](err); ok {
		return terminal.WithExit(&terminal.Problem{Code: "PAUSE_UNSUPPORTED", What: e.Key + " cannot be observed here",
			Why: e.Error(), Fix: "remove it; pause-hours and work-hours work everywhere, and so does starling worker pause"},
			terminal.ExitUsage)
	}
	if err != nil {
		return usage.Error(cmd, err)
	}
	return nil
}
