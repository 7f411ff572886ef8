package committee

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/coins"
	node "github.com/starling-network/starling/node/committee"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/protocol/arena"
	rules "github.com/starling-network/starling/protocol/committee"
)

// hosting is what a host asks for.
type hosting struct {
	target.Target
	node.HostOptions
	listen, text          string
	pay, bond, fee, stake string
	set                   []string
}

func hostCommand(c *terminal.Console) *cobra.Command {
	var o hosting
	cmd := &cobra.Command{
		Use:   "host JOB.yaml --text FILE --pay AMOUNT --home DIR",
		Short: "Begin a committee for a job, and lead its rounds",
		Long: `Begin a committee for a job file of kind FederatedJob with federated: {updates: public}, lock the pay and the
fees of all its rounds, and lead them until the last one is over. The job and the model of each round are served at
--listen, and --url is where members and evaluators reach it. The process must run as long as the committee does: if it
begins no round for 5,000 blocks, the committee ends, and what is left comes back.

--text is text that no member has: each round has a set of examples of its own, which is published once the models of
the round are entered. A host whose set or model evaluators cannot get loses --bond to the members of the round. After a
round the model moves by the mean of the models that are better than that of the round, by the outer optimizer of the
job. If there are none, it stays as it was, and the pay of the round comes back at the end.

--dir holds the checkpoint, the sets, the models of all rounds, and in the end the model. Run the same command again
after an interruption. Amounts are in ZEN, or in another coin with its symbol, such as 25usdc: the same in all but
--stake.

With -o json: the committee, as starling market committee show prints it.`,
		Example: `  starling market committee host examples/committee.yaml --text held.txt --pay 10 --home net/consumer
  starling market committee host examples/committee.yaml --text held.txt --pay 10 --home net/consumer \
    --listen 0.0.0.0:7600 --url http://203.0.113.8:7600`,
		Args: usage.Exactly("JOB.yaml"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			return explain(o.host(cmd, c, args[0]))
		},
	}
	o.Flags(cmd)
	f, t := cmd.Flags(), &o.Terms
	f.StringVar(&o.text, "text", "", "file of text of which the sets of the rounds are made")
	f.StringVar(&o.pay, "pay", "", "what the members of a round share, such as 10 or 10usdc")
	f.StringVar(&o.fee, "fee", "", "of each evaluator of a round (default: a hundredth of the pay)")
	f.StringVar(&o.bond, "bond", "", "what the host loses if it hides a set (default: the pay of one round)")
	f.StringVar(&o.stake, "stake", "10", "least stake of a member, in ZEN")
	f.Uint32Var(&t.Drawn, "drawn", rules.UsualDrawn, "members that are drawn for a round, at most")
	f.IntVar(&o.Least, "least", 3, "members that a round waits for before it begins")
	f.Uint32Var(&t.Window, "median", rules.UsualWindow, "last rounds of a member whose median is "+
		"its rating: an odd number up to 15")
	f.Uint32Var(&t.Round.Panel, "evaluators", rules.UsualPanel, "evaluators of a round, an odd number of 3 to 15")
	f.IntVar(&o.Window, "window", 64, "tokens of an example")
	f.IntVar(&o.Most, "examples", rules.UsualExamples, "most examples of the set of a round")
	f.Uint32Var(&t.Round.Entering, "train-blocks", 2_000, "most blocks in which members train and enter")
	f.Uint32Var(&t.Round.Revealing, "reveal-blocks", 200, "most blocks in which the set and the models are published")
	f.Uint32Var(&t.Round.Judging, "judge-blocks", 1_000, "most blocks in which evaluators evaluate, and in which they "+
		"open their reports")
	f.StringVar(&o.listen, "listen", "127.0.0.1:7600", "host:port at which the job and the models are served")
	f.StringVar(&o.URL, "url", "", "where they are reached (default: http:// and the address of --listen)")
	f.StringVar(&o.Dir, "dir", "", "folder of the run (default: output.dir of the job)")
	f.StringArrayVar(&o.set, "set", nil, "change a key of the job file, such as training.max_steps=100")
	f.BoolVar(&o.Private, "private", false, "also get models from private addresses, as those of a network on this "+
		"machine have")
	return cmd
}

// check reads the flags that need no network.
func (o *hosting) check(cmd *cobra.Command) error {
	for _, text := range []string{o.pay, o.fee, o.bond, o.stake} {
		if text == "" {
			continue
		}
		if err := target.WantCoins(cmd, text); err != nil {
			return err
		}
	}
	switch {
	case o.Home == "":
		return usage.Error(cmd, errors.New("--home is needed: the folder of the account that hosts"))
	case o.pay == "" || o.text == "":
		return usage.Error(cmd, errors.New("--pay and --text are needed"))
	case o.Window < 2 || o.Window > arena.MaxLength || o.Most < arena.MinExamples || o.Most > arena.MaxExamples:
		return usage.Error(cmd, fmt.Errorf("--window is from 2 to %d, and --examples from %d to %d", arena.MaxLength,
			arena.MinExamples, arena.MaxExamples))
	case o.Least < 1 || o.Least > rules.MaxMembers:
		return usage.Error(cmd, fmt.Errorf("--least is from 1 to %d", rules.MaxMembers))
	case !arena.URL(o.URL):
		return usage.Error(cmd, fmt.Errorf("--url %s: it begins with http:// or https://", o.URL))
	}
	return terminal.CheckListen("--listen", o.listen, "127.0.0.1:7600")
}

func (o *hosting) host(cmd *cobra.Command, c *terminal.Console, path string) (err error) {
	o.Say = c.Note
	text, err := os.ReadFile(o.text)
	if err != nil {
		return terminal.WithExit(&terminal.Problem{Code: "FILE_UNUSABLE", What: "cannot read the text", Why: err.Error(),
			Fix: "give a file of text"}, terminal.ExitNotFound)
	}
	o.Text = string(text)
	j, err := job.ReadFederated(path, o.set...)
	if err == nil {
		err = errors.Join(j.Confine(""), j.CheckFiles())
	}
	if err != nil {
		return err
	}
	o.Dir = cmp.Or(o.Dir, j.Output.Dir)
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return err
	}
	unlock, err := folder.Lock(o.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	b, err := prepare.New(j)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	var v Shown
	err = o.Act(cmd, "the folder of the account that hosts", func(ctx context.Context, cl *client.Client) error {
		id, err := o.lead(ctx, cl, b)
		if err == nil {
			v, err = ask(ctx, cl, id, 0)
		}
		return err
	})
	if err != nil {
		return terminal.IfInterrupted(cmd.Context(), err, "run the same command again: what is published must stay there "+
			"until the committee is over")
	}
	return show(c, v)
}

// lead begins the committee, and leads its rounds.
func (o *hosting) lead(ctx context.Context, cl *client.Client, b *prepare.CompiledJob) (id uint64, err error) {
	if err := o.amounts(ctx, cl); err != nil {
		return 0, err
	}
	l, err := terminal.Listen(ctx, o.listen)
	if err != nil {
		return 0, err
	}
	o.URL = cmp.Or(o.URL, "http://"+l.Addr().String())
	h, err := node.NewHost(b, o.HostOptions)
	if err != nil {
		return 0, errors.Join(err, l.Close())
	}
	defer terminal.Serve(l, h.Handler())()
	if id, err = h.Begin(ctx, cl.Arena); err != nil {
		return id, err
	}
	return id, follow(ctx, cl, o.Say, func() (bool, error) { return h.Block(ctx, cl.Arena) })
}

// amounts reads the amounts.
func (o *hosting) amounts(ctx context.Context, cl *client.Client) error {
	pay, err := coins.Parse(ctx, cl.Market, o.pay)
	if err != nil {
		return err
	}
	t := &o.Terms
	t.Pay, t.Round.Denom = pay.Grains, pay.Denom
	t.Round.Fee, t.Round.Bond = pay.Grains/100, pay.Grains
	for _, amount := range []struct {
		text  string
		in    string
		grain *uint64
	}{{o.fee, pay.Denom, &t.Round.Fee}, {o.bond, pay.Denom, &t.Round.Bond}, {o.stake, "", &t.Stake}} {
		if amount.text == "" {
			continue
		}
		a, err := coins.Parse(ctx, cl.Market, amount.text)
		if err == nil && a.Denom != amount.in {
			err = fmt.Errorf("%w: %s with a pay of %s: one coin is wanted, and ZEN for --stake", coins.ErrText, a, pay)
		}
		if err != nil {
			return err
		}
		*amount.grain = a.Grains
	}
	return nil
}
