package hosted

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/cmd/starling/layered"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/node/home"
	"github.com/starling-network/starling/node/hosting/provider"
	"github.com/starling-network/starling/node/serve"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/hosting"
)

// host is what a provider asks for.
type host struct {
	target.Target
	Offer
	part          float64 // percent
	front         layered.Front
	adapters      []string
	adapterMemory int // MiB
	leave         bool
	place         hosting.Place
	coin          coin.Registered
}

func hostCommand(c *terminal.Console) *cobra.Command {
	o := &host{}
	cmd := &cobra.Command{
		Use:   "host FOLDER --price-in AMOUNT --price-out AMOUNT --home DIR",
		Short: "Host the model in a folder on a network, and be paid for answers",
		Long: `Host the model in a folder: register it on a network unless --model names it, lock a bond, and answer paid
requests at --listen until interrupted. Clients pay through channels: starling model ask and gateway do. A request
without a payment gets status 402 with the terms, in the form of x402 (docs/serving.md). Run the same command again to
continue; vouchers are in hosting/ in --home, and what was earned is redeemed when it is worth its transaction, when a
channel closes, and at the end.

Each answer has a signed receipt, by which a wrong answer is found: starling model check --receipts. The command answers
accusations of wrong answers; after it has ended, starling model defend does. The network has a
fee of each redeemed amount, and --part percent of the rest go to the holders of shares of --job, or to the owner of the
model.

FOLDER may be the front of a model in stages, which starling model split makes: its layers are computed by the holders
that --holder names, as starling model serve describes. Receipts name the weights of the whole model. Accusations are
answered by starling model defend, on a machine that has it.

--adapter hosts an adapter over the same weights in memory, as a model of its own with the prices and the bond of the
command: NAME=DIR, and after commas model=NUMBER of an adapter that is on the network, or job=JOB and part=PERCENT of
one that is registered. DIR is as PEFT writes it, or the folder adapter of a run. An adapter is read when it is asked
for; --adapter-memory bounds those in memory.

AMOUNT is the price of a million tokens, of prompts and of answers, in ZEN or in another coin, such as 0.4usdc; both are
in one coin. --leave takes no new channels, redeems and closes those that are open, and ends; the bond returns after the
blocks of unbonding.

With -o json, at the end: {"model","provider","coin","earned","shares","fee"}.`,
		Example: `  starling model host out/quickstart --price-in 0.1 --price-out 0.5 --home net/consumer
  starling model host out/tuned --price-in 0.1usdc --price-out 0.5usdc --job job-7f3a --part 30 --licence Apache-2.0 \
    --listen 0.0.0.0:7500 --url http://203.0.113.8:7500 --home net/consumer
  starling model host out/base --adapter tuned=out/tuned/adapter,job=job-7f3a,part=30 --price-in 0.1 --price-out 0.5 \
    --home net/provider
  starling model host models/bought --model 3 --price-in 0.1 --price-out 0.4 --home net/provider`,
		Args: usage.Exactly("FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			return explain(o.run(cmd, c, args[0]))
		},
	}
	o.Target.Flags(cmd)
	f := cmd.Flags()
	o.Offer.Flags(f, "")
	f.StringVar(&o.Name, "name", "", "name of the model (default: that of the folder)")
	f.StringVar(&o.Job, "job", "", "job whose share holders have the part of the revenue (default: the account)")
	f.Float64Var(&o.part, "part", 0, "percent of the revenue, after the fee, for the share holders")
	f.StringVar(&o.Licence, "licence", "", "SPDX identifier of the licence, such as Apache-2.0")
	f.StringArrayVar(&o.adapters, "adapter", nil, "NAME=DIR of an adapter to host, and after commas model=NUMBER, "+
		"job=JOB or part=PERCENT; repeatable")
	f.IntVar(&o.adapterMemory, "adapter-memory", 1024, "MiB that the adapters in memory may take; at least one is")
	o.front.Flags(f)
	f.BoolVar(&o.leave, "leave", false, "leave: close all channels, and end")
	f.IntVar(&o.Serve.Threads, "threads", kernel.Cores, "number of threads")
	f.IntVar(&o.Serve.Texts, "texts", 16, "texts that are written at once")
	f.IntVar(&o.Serve.Waiting, "waiting", 64, "texts that may wait in addition")
	return cmd
}

func (o *host) check(cmd *cobra.Command) error {
	unreachable := o.Reachable("")
	switch {
	case o.Home == "":
		return usage.Error(cmd, errors.New("--home is needed: the folder of the account that hosts"))
	case !o.leave && (o.Input == "" || o.Output == ""):
		return usage.Error(cmd, errors.New("--price-in and --price-out are needed: the prices of a million tokens"))
	case o.leave && o.Model == 0:
		return usage.Error(cmd, errors.New("--leave needs --model: the number of the model"))
	case o.part < 0 || o.part > 100:
		return usage.Error(cmd, errors.New("--part is a percentage, from 0 to 100"))
	case unreachable != nil:
		return usage.Error(cmd, unreachable)
	case o.adapterMemory < 1 || o.Memory < 1 || o.Serve.Texts < 1 || o.Serve.Waiting < 1 || o.Serve.Threads < 1:
		return usage.Error(cmd, errors.New("--kv-memory, --adapter-memory, --texts, --waiting and --threads must be at "+
			"least 1"))
	}
	for _, v := range o.adapters {
		a, err := provider.ParseAdapter(v)
		if err != nil {
			return usage.Error(cmd, err)
		}
		o.Adapters = append(o.Adapters, a)
	}
	return nil
}

func (o *host) run(cmd *cobra.Command, c *terminal.Console, folder string) error {
	key, err := home.Read(o.Home)
	if err != nil {
		return err
	}
	if o.leave {
		return o.Act(cmd, "the folder of the account that hosts", func(ctx context.Context, cl *client.Client) error {
			return o.depart(ctx, c, cl)
		})
	}
	o.Folder, o.PartPPM, o.Serve.Memory = folder, uint32(o.part*10_000), int64(o.Memory)<<20
	o.Serve.AdapterMemory = int64(o.adapterMemory) << 20
	p := &provider.Provider{Options: o.Options, Home: o.Home, Key: key.Account(),
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	linked, err := o.front.Open(cmd, folder, o.Home)
	if err != nil {
		return err
	}
	if linked != nil {
		defer func() { _ = linked.Close() }()
		p.Serve.Stages = linked.Stages(cmd.Context())
	}
	if err := p.Load(cmd.Context()); err != nil {
		return unhosted(folder, err)
	}
	return o.Act(cmd, "the folder of the account that hosts", func(ctx context.Context, cl *client.Client) error {
		l, err := terminal.Listen(ctx, o.Listen)
		if err != nil {
			return err
		}
		err = p.Run(ctx, cl, l, func(m hosting.Model, at hosting.Place) {
			fmt.Fprintf(os.Stderr, "model %d, %s, is hosted at %s\n", m.ID, m.Name, at.URL)
		})
		if o.place, o.coin = p.Place(); o.place.Model == 0 || layered.Unreached(err) != nil {
			return unhosted(folder, err)
		}
		return errors.Join(err, o.print(c, cl.Address(), p.Earned()))
	})
}

// unhosted explains why the model in a folder cannot be hosted.
func unhosted(folder string, err error) error {
	if missing := layered.Unreached(err); missing != nil {
		return missing
	}
	switch {
	case errors.Is(err, provider.ErrModel):
		return terminal.UnreadableModel("host", folder, err, "a model, and adapters of it")
	case errors.Is(err, serve.ErrFolder):
		return terminal.UnreadableModel("host", folder, err, terminal.AnyModel)
	}
	return err
}

// Earned is the end of a provider for programs.
type Earned struct {
	Model    uint64 `json:"model"`
	Provider string `json:"provider"`
	Coin     string `json:"coin"`
	Earned   string `json:"earned"` // redeemed by this process, for the provider
	Shares   string `json:"shares"` // for the share holders of the model, or its owner
	Fee      string `json:"fee"`
}

func (o *host) print(c *terminal.Console, provider string, s hosting.Split) error {
	in := o.coin
	e := Earned{Model: o.place.Model, Provider: provider, Coin: in.Name(), Earned: in.Amount(s.Provider),
		Shares: in.Amount(s.Part), Fee: in.Amount(s.Fee)}
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.One(e, e.Earned))
	}
	_, err := fmt.Printf("earned    %s\nshares    %s\nfee       %s\n", in.Text(s.Provider), in.Text(s.Part),
		in.Text(s.Fee))
	return err
}

// depart redeems and closes all channels of the model, and leaves.
func (o *host) depart(ctx context.Context, c *terminal.Console, cl *client.Client) (err error) {
	head, err := cl.Ledger.Head(ctx)
	if err != nil {
		return err
	}
	places, err := cl.Hosting.Places(ctx, o.Model)
	if err != nil {
		return err
	}
	for _, p := range places {
		if p.Provider == cl.Address() {
			o.place = p
		}
	}
	if o.place.Model == 0 {
		return terminal.WithExit(&terminal.Problem{Code: "NOT_HOSTED", What: cl.Address() + " does not host model " +
			fmt.Sprint(o.Model), Fix: "look at starling model hosted"}, terminal.ExitNotFound)
	}
	if o.coin, err = cl.Market.Coin(ctx, o.place.Prices.Denom); err != nil {
		return err
	}
	if o.place.Open() {
		if err := cl.Hosting.Leave(ctx, o.Model); err != nil {
			return err
		}
	}
	r, err := provider.Redeemer(cl, o.Home, head.ChainID, o.Model, 1, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Vouchers.Close()) }()
	r.Finish(ctx)
	channels, err := cl.Hosting.Channels(ctx, cl.Address(), true)
	for _, h := range channels {
		if h.Model == o.Model {
			err = errors.Join(err, cl.Hosting.Close(ctx, h.ID))
		}
	}
	return errors.Join(err, o.print(c, cl.Address(), r.Earned()))
}
