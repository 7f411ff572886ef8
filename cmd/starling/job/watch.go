package job

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/rest"
	"github.com/starling-network/starling/cmd/starling/source"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
)

func watchCommand(c *terminal.Console) *cobra.Command {
	var p source.Place
	cmd := &cobra.Command{
		Use:   "watch JOB",
		Short: "Follow a job until it is over",
		Long: `Follow a job until it is over: a line on a terminal that is drawn again and again, else a line of key=value now
and then, on standard error; at the end the job as starling job get prints it, on standard output. Ctrl-C detaches: the
job continues. A connection that is lost is made again, and nothing is missed. A job that ends otherwise than done gives
exit code 11.

` + source.JobNames + `

With -o jsonl or json: one object a line for each change, {"job":JOB,"metrics":[...],"checkpoints":[...],` +
			`"samples":[...],
"receipts","disputes"}.`,
		Example: `  starling job watch quickstart
  starling job watch quickstart --api http://127.0.0.1:7300
  starling job watch job-7f3a --network http://127.0.0.1:26601 -o jsonl`,
		Args: usage.Exactly("JOB"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, j, err := p.Find(cmd, args[0])
			if err != nil {
				return err
			}
			defer a.Close()
			j, err = showUntilOver(c, cmd, a, j.ID)
			switch {
			case cmd.Context().Err() != nil:
				return terminal.WithExit(&terminal.Problem{Code: "DETACHED", What: "detached",
					Why: "you asked for it; the job continues", Fix: "come back with " + cmd.CommandPath() + " " + args[0]},
					terminal.ExitInterrupted)
			case err != nil:
				return source.Explain(err)
			}
			if !c.Form.Machine() {
				if err := printJob(j); err != nil {
					return err
				}
			}
			if j.State != "done" {
				e := &terminal.Problem{Code: "JOB_" + strings.ToUpper(j.State),
					What: fmt.Sprintf("the job %s is %s", j.ID, j.State)}
				if j.Reason != nil {
					e.Why, e.Fix = j.Reason.Text, j.Reason.Next
				}
				return terminal.WithExit(e, terminal.ExitJobFailed)
			}
			return nil
		},
	}
	p.Flags(cmd)
	return cmd
}

// showUntilOver shows a job until it is over, and returns it as it is then.
func showUntilOver(c *terminal.Console, cmd *cobra.Command, a *source.Client, id string) (last api.Job, err error) {
	show := terminal.NewProgress(os.Stderr, terminal.ModeFor(os.Stderr, c.Quiet || c.Form.Machine()),
		terminal.Width(os.Stderr))
	defer show.Done()
	rate, measured := math.NaN(), map[string]float64(nil)
	err = a.Follow(cmd.Context(), id, "", func(n rest.RunEvent) error {
		last = n.Job
		for _, m := range n.Metrics {
			if m.LearningRate > 0 {
				rate = m.LearningRate
			}
			if m.Measured != nil {
				measured = m.Measured
			}
		}
		if c.Form.Machine() {
			if err := c.PrintLine(n.Update); err != nil {
				return err
			}
		}
		u := progressOf(last)
		u.LearningRate, u.Measured = rate, measured
		show.Show(time.Now(), u)
		if rest.Over(last) {
			return rest.ErrEnough
		}
		return nil
	})
	return last, err
}

// progressOf is a job as one line.
func progressOf(j api.Job) terminal.Update {
	known := func(x *float64) float64 {
		if x == nil {
			return math.NaN()
		}
		return *x
	}
	u := terminal.Update{
		Job: j.ID, Step: j.Step, MaxSteps: j.Steps, Round: j.Round, Rounds: j.Rounds, Loss: known(j.Loss),
		EvalLoss: known(j.EvalLoss), LearningRate: math.NaN(), GradNorm: math.NaN(),
		TokensPerSecond: j.TokensPerSecond, Workers: j.Workers, WorkersTarget: j.Workers, Coin: api.CoinOf(j.Coin),
		Cost: j.PaidUzen + j.FeeUzen, Budget: j.BudgetUzen,
		Left: time.Duration(j.SecondsLeft * float64(time.Second)), HasLeft: j.SecondsLeft > 0, Phase: j.Phase,
	}
	if j.Steps == 0 { // the chain counts rounds only
		u.Step, u.MaxSteps = j.Round, j.Rounds
	}
	if j.TokensPerSecond == 0 {
		u.TokensPerSecond = math.NaN()
	}
	return u
}

func logsCommand(c *terminal.Console) *cobra.Command {
	var p source.Place
	var follow bool
	var tail int64
	cmd := &cobra.Command{
		Use:   "logs JOB",
		Short: "Print the log of a job",
		Long: `Print the end of the log of a job, or, with --follow, also what is added until it is over.

` + source.JobNames + `

With -o json: {"lines":[TEXT],"from","to","size"}, offsets in bytes; with -o jsonl, or --follow, {"line"} for each.`,
		Example: `  starling job logs quickstart
  starling job logs quickstart --follow
  starling job logs quickstart --api http://127.0.0.1:7300 --bytes 65536`,
		Args: usage.Exactly("JOB"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if tail < 1 {
				return usage.Error(cmd, errors.New("--bytes is at least 1"))
			}
			a, j, err := p.Find(cmd, args[0])
			if err != nil {
				return err
			}
			defer a.Close()
			if !follow {
				l, err := a.Log(cmd.Context(), j.ID, -tail)
				if err != nil {
					return source.Explain(err)
				}
				return c.PrintLog(l, l.Lines)
			}
			err = a.FollowLog(cmd.Context(), j.ID, -tail, c.PrintLines)
			if cmd.Context().Err() != nil {
				return nil // enough was seen
			}
			return source.Explain(err)
		},
	}
	p.Flags(cmd)
	f := cmd.Flags()
	f.BoolVarP(&follow, "follow", "f", false, "print what is added, until the job is over")
	f.Int64Var(&tail, "bytes", 16<<10, "how much of the end of the log is printed")
	return cmd
}
