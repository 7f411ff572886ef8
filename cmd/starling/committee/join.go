package committee

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/coins"
	node "github.com/starling-network/starling/node/committee"
	"github.com/starling-network/starling/node/federated/owner"
	"github.com/starling-network/starling/node/untrusted"
	"github.com/starling-network/starling/protocol/arena"
	"github.com/starling-network/starling/protocol/coin"
)

// joining is what a member asks for.
type joining struct {
	target.Target
	node.MemberOptions
	listen, stake string
	train         owner.Options
}

func joinCommand(c *terminal.Console) *cobra.Command {
	var o joining
	cmd := &cobra.Command{
		Use:   "join COMMITTEE --data DIR --home DIR [--stake ZEN]",
		Short: "Train on data of your own in the rounds of a committee, for pay",
		Long: `Join a committee with a stake, and train the model of each round that the account is drawn for on the data of
a folder. The patterns of the job file are looked up below --data, and a pattern that leaves this folder is refused. The
data stay in this process. The models that it makes do not: they are public at --listen for all rounds of the committee,
and a reader may find examples of the data in them. A job with masks is for starling job federated join.

A member that is drawn and enters no model, or does not publish it, loses a tenth of its stake. The process joins again
with the next block, and ends when the committee is over; then the stake comes back.

The ledger of the owner in --home lists the job. --home is the folder of an account of the network.

With -o json: the committee, as starling market committee show prints it.`,
		Example: `  starling market committee join 2 --data texts --home net/owner --stake 10
  starling market committee join 2 --data texts --home net/owner --stake 10 \
    --listen 0.0.0.0:7601 --url http://203.0.113.9:7601`,
		Args: usage.Exactly("COMMITTEE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := wantCommittee(cmd, args[0])
			if err != nil {
				return err
			}
			o.ID = id
			if err := o.check(cmd); err != nil {
				return err
			}
			return explain(o.join(cmd, c))
		},
	}
	o.Flags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.train.Data, "data", "", "folder of the data")
	f.StringVar(&o.train.Base, "base", "", "folder of the base model (default: that of the job file, below --data)")
	f.StringVar(&o.stake, "stake", "", "ZEN that the stake has at least (default: the least of the committee)")
	f.StringVar(&o.listen, "listen", "127.0.0.1:7601", "host:port at which the models of the member are served")
	f.StringVar(&o.URL, "url", "", "where they are reached (default: http:// and the address of --listen)")
	f.BoolVar(&o.Private, "private", false, "also get models from private addresses, as those of a network on this "+
		"machine have")
	f.DurationVar(&o.train.Retry, "retry", 10*time.Minute, "how long a host that does not answer is asked again")
	usage.ThreadsFlag(cmd, &o.train.Threads)
	_ = cmd.MarkFlagRequired("data") // it is a flag of the command
	return cmd
}

func (o *joining) check(cmd *cobra.Command) error {
	if o.stake != "" {
		if err := target.WantCoins(cmd, o.stake); err != nil {
			return err
		}
	}
	switch {
	case o.Home == "":
		return usage.Error(cmd, errors.New("--home is needed: the folder of the account of the owner"))
	case !arena.URL(o.URL):
		return usage.Error(cmd, fmt.Errorf("--url %s: it begins with http:// or https://", o.URL))
	}
	return terminal.CheckListen("--listen", o.listen, "127.0.0.1:7601")
}

func (o *joining) join(cmd *cobra.Command, c *terminal.Console) error {
	o.Say = c.Note
	var v Shown
	err := o.Act(cmd, "the folder of the account of the owner", func(ctx context.Context, cl *client.Client) error {
		if err := o.take(ctx, cl); err != nil {
			return err
		}
		var err error
		v, err = ask(ctx, cl, o.ID, 0)
		return err
	})
	if err != nil {
		return terminal.IfInterrupted(cmd.Context(), err, "run the same command again: a member that is drawn and "+
			"silent loses a tenth of its stake")
	}
	return show(c, v)
}

// take takes part until the committee is over.
func (o *joining) take(ctx context.Context, cl *client.Client) (err error) {
	a, err := cl.Arena.Committee(ctx, o.ID)
	if err != nil {
		return err
	}
	if o.stake != "" {
		stake, err := coins.Parse(ctx, cl.Market, o.stake)
		if err == nil && !stake.Own() {
			err = fmt.Errorf("%w: a stake is in %s, not in %s", coins.ErrText, coin.Coin{}.Name(), stake.Name())
		}
		if err != nil {
			return err
		}
		o.Stake = stake.Grains
	}
	o.Dir, o.MemberOptions.Account = filepath.Join(o.Home, "committee", fmt.Sprint(o.ID)), cl.Address()
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return err
	}
	home, err := owner.OpenHome(filepath.Join(o.Home, "owner"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, home.Close()) }()
	o.train.URL, o.train.Home, o.train.Say = a.Terms.Round.About, home, o.Say
	o.train.HTTP = &http.Client{Transport: untrusted.NewTransport(o.Private), Timeout: time.Minute}
	t, offer, err := owner.Public(ctx, o.train)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	o.Job = offer.Job()
	l, err := terminal.Listen(ctx, o.listen)
	if err != nil {
		return err
	}
	o.URL = cmp.Or(o.URL, "http://"+l.Addr().String())
	m := node.NewMember(t, o.MemberOptions)
	o.Say(fmt.Sprintf("committee %d: %d examples here, the models are served at %s", o.ID, t.Examples(), o.URL))
	defer terminal.Serve(l, m.Handler())()
	return follow(ctx, cl, o.Say, func() (bool, error) { return m.Block(ctx, cl.Arena) })
}
