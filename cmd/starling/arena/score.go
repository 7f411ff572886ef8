package arena

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/compute/kernel"
	nodearena "github.com/starling-network/starling/node/arena"
)

// Scored is a score for programs.
type Scored struct {
	Loss    float64 `json:"loss"`
	Best    bool    `json:"best"`
	Queries uint64  `json:"queries"`
}

func scoreCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	var threads int
	cmd := &cobra.Command{
		Use:   "score CONTEST FOLDER --home DIR",
		Short: "Score a model on the hidden set of a contest, for a leaderboard",
		Long: `Compute the loss of the model in a folder on the hidden set of a contest that the account hosts, and say
what the host may show about it while models are entered. A model has a score of its own only if it is better than the
best one before by a standard error of their difference, rounded to about 0.01 nats; any other has the score of the
best. So 1,000 questions disclose little of the set (docs/security.md). The score decides nothing: evaluators do.

With -o json: {"loss","best","queries"}.`,
		Example: `  starling market arena score 3 models/first --home net/consumer`,
		Args:    usage.Exactly("CONTEST", "FOLDER"), Annotations: terminal.FiguresOnly,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := wantContest(cmd, args[0])
			if err != nil {
				return err
			}
			if t.Home == "" || threads < 1 {
				return usage.Error(cmd, errors.New("--home is needed: the folder of the host; --threads is at least 1"))
			}
			return explain(score(cmd, c, &t, id, args[1], threads))
		},
	}
	t.Flags(cmd)
	cmd.Flags().IntVar(&threads, "threads", kernel.Cores, "number of threads")
	return cmd
}

func score(cmd *cobra.Command, c *terminal.Console, t *target.Target, id uint64, folder string, threads int) error {
	o := revealing{Target: *t}
	if err := t.Act(cmd, "the folder of the host", func(ctx context.Context, cl *client.Client) error {
		s, err := cl.Arena.Contest(ctx, id)
		if err == nil {
			err = o.find(cl, s)
		}
		if err == nil && o.set == "" {
			err = &nodearena.Error{Code: nodearena.Unknown, What: fmt.Sprintf("%s does not host contest %d", o.Home, id),
				Fix: "give the folder of the host: " + s.Host}
		}
		return err
	}); err != nil {
		return err
	}
	say, last := c.Note, 0
	s, err := nodearena.ScoreModel(cmd.Context(), o.set, folder, threads, func(done int) {
		if done-last >= 500 {
			say(fmt.Sprintf("%d examples", done))
			last = done
		}
	})
	if err != nil {
		return terminal.IfInterrupted(cmd.Context(), err, "")
	}
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.Figures(Scored(s)))
	}
	text := "no better than the best model before"
	if s.Best {
		text = fmt.Sprintf("the best model of %d", s.Queries)
	}
	_, err = fmt.Printf("%.4f nats a token: %s\n", s.Loss, text)
	return err
}
