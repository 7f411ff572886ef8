package node

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/node/home"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
)

// remote is the consumer of a job on a network that others run.
type remote struct {
	consumer *collector
	logFile  *os.File
	chain    *client.Client
}

// startRemote connects to the network that the options name and says there where the job's blobs are to be had.
func startRemote(ctx context.Context, out *OutDir, b *Blueprint, opt TrainOptions) (_ *remote, err error) {
	h, _, err := home.Open(opt.Home)
	if err != nil {
		return nil, err
	}
	c, err := client.Connect(opt.Network, h.Account())
	if err != nil {
		return nil, err
	}
	log, logFile, err := openLog(out.file(fileLog))
	if err != nil {
		c.Close()
		return nil, err
	}
	n := &remote{logFile: logFile, chain: c}
	n.consumer, err = newCollector(collector{
		out: out, b: b, opt: opt, chain: c, log: log,
		took: func(dispute.Game) float64 { return 0 }, links: n.links,
	}, h)
	if err != nil {
		return nil, errors.Join(err, n.stop())
	}
	n.consumer.moved = n.consumer.host.Traffic
	host := n.consumer.host
	if err = c.Ready(ctx); err == nil {
		err = c.Enlist(ctx, registry.Participant{PeerID: host.ID().String(), Addrs: host.Addrs(), Device: device()})
	}
	if err != nil {
		return nil, errors.Join(err, n.stop())
	}
	return n, nil
}

// runJob places the order, unless that was done before a restart, and collects what comes of it.
func (n *remote) runJob(ctx context.Context, order market.Order) (*Summary, error) {
	h, err := n.chain.Head(ctx)
	if err != nil {
		return nil, err
	}
	order = n.consumer.b.conditioned(order, h.Height)
	if err := n.affordable(ctx, order); err != nil {
		return nil, err
	}
	if err := n.consumer.order(ctx, order); err != nil {
		return nil, err
	}
	summary, err := n.consumer.run(ctx)
	return summary, n.consumer.abandon(ctx, err)
}

// affordable holds the budget against what the network asks for now. An order that would wait for offers is not held against any.
func (n *remote) affordable(ctx context.Context, o market.Order) error {
	e, err := n.chain.Estimate(ctx, asIf(o))
	if err != nil || e.Why != market.Matched || o.Budget >= e.Whole {
		return err
	}
	return fmt.Errorf("%w: %d uzen, and the job may cost up to %d at the prices that the network asks for now", ErrBudget, o.Budget, e.Whole)
}

func (n *remote) links(ctx context.Context) ([]api.Link, error) {
	return reported(ctx, n.chain, n.consumer.b.JobID())
}

func (n *remote) client() *client.Client { return n.chain }

func (n *remote) stop() error {
	var err error
	if n.consumer != nil {
		err = n.consumer.host.Close()
	}
	n.chain.Close()
	return errors.Join(err, n.logFile.Close())
}
