package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/node/account"
	"github.com/starling-network/starling/node/dashboard"
	"github.com/starling-network/starling/node/disk"
	"github.com/starling-network/starling/node/push"
	"github.com/starling-network/starling/node/runs"
	"github.com/starling-network/starling/node/serve"
	"github.com/starling-network/starling/node/server/spending"
	"github.com/starling-network/starling/node/tuning"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/web"
	"github.com/starling-network/starling/web/access"
	"github.com/starling-network/starling/web/tinker"
)

// Serve shows the runs of a folder, or the run in it, until the context ends. Into a folder of runs it trains what is
// submitted to it, if the options say where the data of that is: here, or, if they name the folder of an account, on
// the network.
func Serve(ctx context.Context, dir string, o dashboard.WebOptions) error {
	lib, err := runs.Open(dir)
	if err != nil {
		return err
	}
	c := web.Config{Runs: lib, Room: func() (int64, bool) { return disk.Free(dir) }}
	var payer *account.Account
	if o.Home != "" {
		var leave func() error
		if payer, leave, err = account.Alone(o.Home, o.Network, o.Blobs); err != nil {
			return err
		}
		defer leave()
		c.Network = &dashboard.ChainView{Address: o.Network, Chain: payer.Chain}
	} else if o.Network != "" {
		chain, err := client.Connect(o.Network, wallet.KeyFromSeed([32]byte{})) // it signs nothing
		if err != nil {
			return err
		}
		defer chain.Close()
		c.Network = &dashboard.ChainView{Address: o.Network, Chain: chain}
	}
	if payer != nil {
		if err := reportPayer(ctx, payer, o); err != nil {
			return err
		}
	}
	l, err := o.OpenListener(ctx)
	if err != nil {
		return err
	}
	if o.Data == "" || lib.Single() {
		return o.Serve(ctx, l, c)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	jobs, err := newJobQueue(ctx, lib, dir, o, payer)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	if o.Push != "" {
		if jobs.copies, err = push.NewKeeper(ctx, push.Options{Dir: dir, Say: o.Say}, o.Push); err != nil {
			return errors.Join(err, l.Close())
		}
		defer jobs.copies.Close()
	}
	shelf := tuning.NewExampleStore(jobs.words.Data)
	tuner := tuning.NewTuner(shelf, jobs.words.Root)
	models := serve.NewSeveral(tuner, serve.Options{Threads: kernel.Cores, Texts: 4})
	defer models.Close()
	c.Launcher, c.Files, c.Tuner, c.Models = jobs, shelf, tuner, models
	if o.Loops != nil {
		if o.Tokens != "" {
			if c.Tokens, err = access.ReadTokens(o.Tokens); err != nil {
				return errors.Join(err, l.Close())
			}
		}
		o.Loops.Orders.Ledger = spending.Shared{Lock: &jobs.mu, By: jobs.spent}
		if c.Loops, _, err = o.Loops.Open(ctx, payer, tinker.Config{Log: o.Log, Tokens: c.Tokens}); err != nil {
			return errors.Join(err, l.Close())
		}
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		jobs.run()
	}()
	err = o.Serve(ctx, l, c)
	cancel() // also when the server ended by itself
	<-stopped
	return err
}

// reportPayer prints the account that pays for the jobs of the server, and its coins.
func reportPayer(ctx context.Context, a *account.Account, o dashboard.WebOptions) error {
	if o.Say == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, spending.AskTimeout)
	defer cancel()
	has, err := a.Chain.Coins.Balance(ctx, a.Chain.Address())
	if err != nil && !errors.Is(err, client.ErrNotFound) {
		return err
	}
	o.Say(fmt.Sprintf("jobs are ordered on %s and paid by %s, which has %s", o.Network, a.Chain.Address(),
		coin.Coin{}.Text(has)))
	return nil
}
