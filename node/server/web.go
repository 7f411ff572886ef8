package server

import (
	"context"
	"errors"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/node/dashboard"
	"github.com/starling-network/starling/node/disk"
	"github.com/starling-network/starling/node/runs"
	"github.com/starling-network/starling/node/serve"
	"github.com/starling-network/starling/node/tuning"
	"github.com/starling-network/starling/web"
)

// Serve shows the runs of a folder, or the run in it, until the context ends. Into a folder of runs it trains what is
// submitted to it, if the options say where the data of that is.
func Serve(ctx context.Context, dir string, o dashboard.WebOptions) error {
	lib, err := runs.Open(dir)
	if err != nil {
		return err
	}
	c := web.Config{Runs: lib, Room: func() (int64, bool) { return disk.Free(dir) }}
	if o.Network != "" {
		chain, err := client.Connect(o.Network, wallet.KeyFromSeed([32]byte{})) // it signs nothing
		if err != nil {
			return err
		}
		defer chain.Close()
		c.Network = &dashboard.ChainView{Address: o.Network, Chain: chain}
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
	jobs, err := newJobQueue(ctx, lib, dir, o)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	shelf := tuning.NewExampleStore(jobs.data)
	tuner := tuning.NewTuner(shelf, jobs.root)
	models := serve.NewSeveral(tuner, serve.Options{Threads: kernel.Cores, Texts: 4})
	defer models.Close()
	c.Launcher, c.Files, c.Tuner, c.Models = jobs, shelf, tuner, models
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
