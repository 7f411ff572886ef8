package hosted

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/cmd/starling/apply"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/node/checked"
	"github.com/starling-network/starling/node/checked/signer"
	"github.com/starling-network/starling/node/home"
	nodehosting "github.com/starling-network/starling/node/hosting"
	"github.com/starling-network/starling/node/hosting/listing"
	"github.com/starling-network/starling/node/pretrained"
	"github.com/starling-network/starling/node/serve"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/hosting"
	"github.com/starling-network/starling/web/openai"
)

// farewell is how long a provider takes to redeem what is left when it is interrupted.
const farewell = 20 * time.Second

// host is what a provider asks for.
type host struct {
	target.Target
	serve         serve.Options
	model         uint64
	name, job     string
	licence       string
	part          float64 // percent
	input, output string
	bond, redeem  string
	listen, url   string
	memory        int
	leave         bool
	checked       *checked.Model
	place         hosting.Place
	coin          coin.Registered
	height        atomic.Int64
	engine        *serve.Engine
	key           home.Home
	wanted        hosting.Model
	least         uint64 // grains of a redemption
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

AMOUNT is the price of a million tokens, of prompts and of answers, in ZEN or in another coin, such as 0.4usdc; both are
in one coin. --leave takes no new channels, redeems and closes those that are open, and ends; the bond returns after the
blocks of unbonding.

With -o json, at the end: {"model","provider","coin","earned","shares","fee"}.`,
		Example: `  starling model host out/quickstart --price-in 0.1 --price-out 0.5 --home net/consumer
  starling model host out/tuned --price-in 0.1usdc --price-out 0.5usdc --job job-7f3a --part 30 --licence Apache-2.0 \
    --listen 0.0.0.0:7500 --url http://203.0.113.8:7500 --home net/consumer
  starling model host models/bought --model 3 --price-in 0.1 --price-out 0.4 --home net/provider`,
		Args: usage.Exactly("FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			return explain(o.run(cmd, c, args[0]))
		},
	}
	o.Flags(cmd)
	f := cmd.Flags()
	f.Uint64Var(&o.model, "model", 0, "number of the model on the network, whose files these are (default: it is "+
		"registered)")
	f.StringVar(&o.name, "name", "", "name of the model (default: that of the folder)")
	f.StringVar(&o.job, "job", "", "job whose share holders have the part of the revenue (default: the account)")
	f.Float64Var(&o.part, "part", 0, "percent of the revenue, after the fee, for the share holders")
	f.StringVar(&o.licence, "licence", "", "SPDX identifier of the licence, such as Apache-2.0")
	f.StringVar(&o.input, "price-in", "", "price of a million tokens of prompts, such as 0.1 or 0.1usdc")
	f.StringVar(&o.output, "price-out", "", "price of a million tokens of answers, in the same coin")
	f.StringVar(&o.bond, "bond", "10", "ZEN that are locked while the account hosts the model")
	f.StringVar(&o.redeem, "redeem", "0.1", "coins for which a voucher is redeemed while its channel is open")
	f.StringVar(&o.listen, "listen", "127.0.0.1:7500", "host:port at which requests are answered")
	f.StringVar(&o.url, "url", "", "where clients reach it (default: http:// and --listen)")
	f.BoolVar(&o.leave, "leave", false, "leave: close all channels, and end")
	f.IntVar(&o.serve.Threads, "threads", kernel.Cores, "number of threads")
	f.IntVar(&o.serve.Texts, "texts", 16, "texts that are written at once")
	f.IntVar(&o.serve.Waiting, "waiting", 64, "texts that may wait in addition")
	f.IntVar(&o.memory, "kv-memory", 1024, "MiB that the keys and values of all texts may take")
	return cmd
}

func (o *host) check(cmd *cobra.Command) error {
	switch {
	case o.Home == "":
		return usage.Error(cmd, errors.New("--home is needed: the folder of the account that hosts"))
	case !o.leave && (o.input == "" || o.output == ""):
		return usage.Error(cmd, errors.New("--price-in and --price-out are needed: the prices of a million tokens"))
	case o.leave && o.model == 0:
		return usage.Error(cmd, errors.New("--leave needs --model: the number of the model"))
	case o.part < 0 || o.part > 100:
		return usage.Error(cmd, errors.New("--part is a percentage, from 0 to 100"))
	case o.url != "" && !strings.HasPrefix(o.url, "http://") && !strings.HasPrefix(o.url, "https://"):
		return usage.Error(cmd, fmt.Errorf("--url %s: it begins with http:// or https://", o.url))
	case o.memory < 1 || o.serve.Texts < 1 || o.serve.Waiting < 1 || o.serve.Threads < 1:
		return usage.Error(cmd, errors.New("--kv-memory, --texts, --waiting and --threads must be at least 1"))
	}
	return nil
}

func (o *host) run(cmd *cobra.Command, c *terminal.Console, folder string) error {
	key, err := home.Read(o.Home)
	if err != nil {
		return err
	}
	o.key = key
	if o.leave {
		return o.Act(cmd, "the folder of the account that hosts", func(ctx context.Context, cl *client.Client) error {
			return o.depart(ctx, c, cl)
		})
	}
	if err := o.load(cmd.Context(), folder); err != nil {
		return err
	}
	return o.Act(cmd, "the folder of the account that hosts", func(ctx context.Context, cl *client.Client) error {
		if err := o.list(ctx, cl); err != nil {
			return err
		}
		o.serve.Name, o.serve.Checked, o.serve.Memory = o.wanted.Name, true, int64(o.memory)<<20
		if o.engine, err = serve.Open(folder, o.serve); err != nil {
			return terminal.UnreadableModel("host", folder, err, terminal.AnyModel)
		}
		defer o.engine.Close()
		return o.answer(ctx, c, cl)
	})
}

// load reads the model, whose digests are those on the network.
func (o *host) load(ctx context.Context, folder string) error {
	path, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	o.wanted = hosting.Model{Name: cmp.Or(o.name, filepath.Base(path)), Job: o.job, Licence: o.licence,
		PartPPM: uint32(o.part * 10_000)}
	if o.wanted.Files, err = listing.Files(ctx, path); err != nil {
		return err
	}
	m, err := pretrained.Load(path)
	if err != nil {
		return terminal.UnreadableModel("host", folder, err, "a model without adapters")
	}
	if o.checked, err = checked.New(m); err != nil {
		return terminal.UnreadableModel("host", folder, err, "a model without adapters")
	}
	o.wanted.Weights = o.checked.Weights
	return nil
}

// list brings the model and the place onto the network.
func (o *host) list(ctx context.Context, cl *client.Client) error {
	in, input, err := price(ctx, cl.Market, o.input)
	if err != nil {
		return err
	}
	out, output, err := price(ctx, cl.Market, o.output)
	if err == nil && out.Denom != in.Denom {
		err = terminal.WithExit(&terminal.Problem{Code: "TWO_COINS", What: "the prices are in " + in.Name() + " and in " +
			out.Name(), Fix: "give both in one coin"}, terminal.ExitUsage)
	}
	if err != nil {
		return err
	}
	bond, err := coin.Coin{}.Parse(o.bond)
	if err != nil {
		return err
	}
	if o.least, err = in.Parse(o.redeem); err != nil {
		return err
	}
	if o.wanted, err = listing.Ensure(ctx, cl.Hosting, o.model, o.wanted); err != nil {
		return err
	}
	o.coin = in
	o.place = hosting.Place{Model: o.wanted.ID, Provider: cl.Address(), URL: cmp.Or(o.url, "http://"+o.listen), Bond: bond,
		Prices: hosting.Prices{Denom: in.Denom, Input: input, Output: output}}
	return nil
}

// answer serves the model until the context ends.
func (o *host) answer(ctx context.Context, c *terminal.Console, cl *client.Client) (err error) {
	head, err := cl.Ledger.Head(ctx)
	if err != nil {
		return err
	}
	o.height.Store(head.Height)
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	r, err := o.redeemer(cl, head.ChainID, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Vouchers.Close()) }()
	l, err := terminal.Listen(ctx, o.listen)
	if err != nil {
		return err
	}
	if o.url == "" {
		o.place.URL = "http://" + l.Addr().String() // the port may have been 0
	}
	if err := listing.Offer(ctx, cl.Hosting, o.place); err != nil {
		return errors.Join(err, l.Close())
	}
	p := nodehosting.New(o.engine, nodehosting.Terms{Chain: head.ChainID, Place: o.place, Coin: o.coin.Coin,
		Receipt: o.receipt(head.ChainID)}, r.Vouchers, r.Look)
	handler := p.Handler(openai.New(p, openai.Config{Public: true, Watch: true, Health: o.engine.Health}))
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() {
		served <- openai.Serve(inner, l, handler)
		cancel()
	}()
	go func() {
		err := apply.Defence(inner, cl, o.checked, o.serve.Threads, func(id uint64, err error) {
			log.Error("an accusation is not answered", "accusation", id, "error", err)
		})
		if inner.Err() == nil {
			log.Error("no accusations are answered any more: the model is hosted no more", "error", err)
			cancel() // silence costs the bond
		}
	}()
	fmt.Fprintf(os.Stderr, "model %d, %s, is hosted at %s\n", o.wanted.ID, o.wanted.Name, o.place.URL)
	next, err := target.Blocks(ctx, cl)
	if err == nil {
		err = r.Run(inner, func(ctx context.Context) (int64, error) {
			height, err := next(ctx)
			o.height.Store(max(height, o.height.Load()))
			return height, err
		})
	}
	cancel()
	err = errors.Join(err, <-served)
	last, done := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer done()
	r.Finish(last)
	return errors.Join(err, o.print(c, r))
}

func (o *host) redeemer(cl *client.Client, chain string, log *slog.Logger) (*nodehosting.Redeemer, error) {
	v, err := nodehosting.OpenVouchers(filepath.Join(o.Home, "hosting", fmt.Sprint(o.place.Model)), chain)
	return &nodehosting.Redeemer{Network: cl.Hosting, Provider: cl.Address(), Model: o.place.Model, Vouchers: v,
		Least: o.least, Log: log}, err
}

// receipt signs answers.
func (o *host) receipt(chain string) func(openai.Result) ([]byte, error) {
	s := signer.Signer{Model: o.checked, Chain: chain, Number: o.wanted.ID, Key: o.key.Account()}
	return func(made openai.Result) ([]byte, error) {
		signed, err := s.Sign(made.Drawn, o.height.Load())
		if err != nil {
			return nil, err
		}
		return signed.Encode(), nil
	}
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

func (o *host) print(c *terminal.Console, r *nodehosting.Redeemer) error {
	s, in := r.Earned(), o.coin
	e := Earned{Model: o.place.Model, Provider: r.Provider, Coin: in.Name(), Earned: in.Amount(s.Provider),
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
	places, err := cl.Hosting.Places(ctx, o.model)
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
			fmt.Sprint(o.model), Fix: "look at starling model hosted"}, terminal.ExitNotFound)
	}
	if o.coin, err = cl.Market.Coin(ctx, o.place.Prices.Denom); err != nil {
		return err
	}
	if o.place.Open() {
		if err := cl.Hosting.Leave(ctx, o.model); err != nil {
			return err
		}
	}
	r, err := o.redeemer(cl, head.ChainID, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Vouchers.Close()) }()
	r.Finish(ctx)
	channels, err := cl.Hosting.Channels(ctx, cl.Address(), true)
	for _, h := range channels {
		if h.Model == o.model {
			err = errors.Join(err, cl.Hosting.Close(ctx, h.ID))
		}
	}
	return errors.Join(err, o.print(c, r))
}
