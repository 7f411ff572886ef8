package worker

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/journal"
	"github.com/starling-network/starling/node/validator"
)

func replayCommand(c *terminal.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "replay FILE",
		Short: "Play a journal back, and compare",
		Long: `Play back a journal that a worker, verifier or consumer wrote in the folder events of its home: the same events
are given to the same role, and its actions are compared with those in the journal. Roles have no clock, no randomness
and no I/O, so a difference is a bug, or another version of the program; it gives exit code 10.

With -o json: {"header":{"format","time","role","id","job","version","plants","watches","next","continues"},
"from","to","events","actions","unjudged","torn","different","differences":[{"line","height",` +
			`"event","logged","asked"}]}.`,
		Example: `  starling worker replay net/worker-0/events/20300102T030405.000000000-job-0123456789abcdef.jsonl`,
		Args:    usage.Exactly("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			r, err := validator.ReplayJournal(args[0])
			switch {
			case errors.Is(err, journal.ErrFormat):
				return terminal.WithExit(&terminal.Problem{Code: "JOURNAL_UNREADABLE", What: err.Error(),
					Fix: "give a file of the folder events in the home of a worker, verifier or consumer"}, terminal.ExitVerification)
			case errors.Is(err, os.ErrNotExist):
				return terminal.WithExit(&terminal.Problem{Code: "JOURNAL_NOT_FOUND", What: err.Error(),
					Fix: "give a file of the folder events in the home of a worker, verifier or consumer"}, terminal.ExitNotFound)
			case err != nil:
				return cause.Home(err)
			}
			if c.Form.Machine() {
				err = c.Form.Print(os.Stdout, terminal.One(r, args[0]))
			} else {
				printReplay(r)
			}
			if r.Different > 0 {
				err = errors.Join(err, terminal.WithExit(&terminal.Problem{
					Code: "REPLAY_DIFFERS", What: fmt.Sprintf("after %d of %d events the role asks for something else than it did "+
						"then", r.Different, r.Events),
					Fix: "compare the version of the journal with starling version; with the same version it is a bug worth a report",
				}, terminal.ExitVerification))
			}
			return err
		},
	}
}

func printReplay(r *journal.Report) {
	h := r.Header
	fmt.Printf("%s %s in %s, written by starling %s\n", h.Role, h.ID, h.Job, h.Version)
	fmt.Printf("heights %d to %d: %d events, %d actions, %d differences\n", r.From, r.To, r.Events, r.Actions, r.Different)
	if r.Unjudged > 0 {
		fmt.Printf("the file begins in the middle of the run: %d differences at its beginning say nothing\n", r.Unjudged)
	}
	if r.Torn {
		fmt.Println("the last line was cut off")
	}
	for _, d := range r.Differences {
		fmt.Printf("line %d, height %d, %s:\n  then %q\n  now  %q\n", d.Line, d.Height, d.Event, d.Logged, d.Asked)
	}
}
