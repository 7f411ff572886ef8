package node

import (
	"context"
	"errors"
	"os"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/node/accelerator/shared"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/home"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/node/keystore"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
)

// remote is the consumer of a job on a network that others run.
type remote struct {
	consumer *consumer.Consumer
	logFile  *os.File
	chain    *client.Client
}

// startRemote connects to the network that the options name and says there where the job's blobs are to be had.
func startRemote(ctx context.Context, out *rundir.OutDir, b *prepare.CompiledJob,
	opt consumer.Options) (_ *remote, err error) {
	h, _, err := home.Open(opt.Home)
	if err != nil {
		return nil, err
	}
	c, err := client.Connect(opt.Network, h.Account())
	if err != nil {
		return nil, err
	}
	log, logFile, err := keystore.OpenLog(out.File(rundir.FileLog))
	if err != nil {
		c.Close()
		return nil, err
	}
	n := &remote{logFile: logFile, chain: c}
	n.consumer, err = consumer.New(consumer.Consumer{
		Dir: out, Job: b, Options: opt, Chain: c, Log: log,
		RefereeTime: func(dispute.Dispute) float64 { return 0 }, Links: n.Links,
	}, h)
	if err != nil {
		return nil, errors.Join(err, n.Stop())
	}
	n.consumer.Traffic = n.consumer.Host.Traffic
	host := n.consumer.Host
	if err = c.Ready(ctx); err == nil {
		err = c.Registry.Enlist(ctx, registry.Participant{PeerID: host.ID().String(), Addrs: host.Addrs(),
			Device: shared.Processor()})
	}
	if err != nil {
		return nil, errors.Join(err, n.Stop())
	}
	return n, nil
}

// RunJob places the order, unless that was done before a restart, and collects what comes of it.
func (n *remote) RunJob(ctx context.Context, order market.Order) (*rundir.Summary, error) {
	h, err := n.chain.Ledger.Head(ctx)
	if err != nil {
		return nil, err
	}
	order = n.consumer.Job.Conditioned(order, h.Height)
	if err := n.affordable(ctx, order); err != nil {
		return nil, err
	}
	if err := n.consumer.Order(ctx, order); err != nil {
		return nil, err
	}
	summary, err := n.consumer.Run(ctx)
	return summary, n.consumer.EndWith(ctx, err)
}

// affordable compares the budget with the prices that the network asks now. An order that would wait for offers is
// not refused.
func (n *remote) affordable(ctx context.Context, o market.Order) error {
	e, err := n.chain.Market.Estimate(ctx, prepare.AsIf(o))
	if err != nil || e.Why != market.Matched || o.Budget >= e.Whole {
		return err
	}
	return &prepare.BudgetError{Budget: o.Budget, Most: e.Whole}
}

func (n *remote) Links(ctx context.Context) ([]api.Link, error) {
	return inspect.ReportedLinks(ctx, n.chain, n.consumer.Job.JobID())
}

func (n *remote) Client() *client.Client { return n.chain }

func (n *remote) Stop() error {
	var err error
	if n.consumer != nil {
		err = n.consumer.Host.Close()
	}
	n.chain.Close()
	return errors.Join(err, n.logFile.Close())
}
