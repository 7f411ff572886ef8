package node

import (
	"context"
	"errors"
	"os"

	chainmarket "github.com/starling-network/starling/chain/x/market"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/node/account"
	"github.com/starling-network/starling/node/coins"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/home"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/prepare/demand"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/market"
)

// remote is the consumer of a job on a network that others run.
type remote struct {
	consumer *consumer.Consumer
	logFile  *os.File
	account  *account.Account
	own      bool // the account is of this job alone
}

// startRemote connects to the network that the options name, unless they have an account that is connected, and says
// there where the job's blobs are to be had.
func startRemote(ctx context.Context, out *rundir.OutDir, b *prepare.CompiledJob,
	opt consumer.Options) (_ *remote, err error) {
	n := &remote{account: opt.Account}
	if opt.Account == nil {
		h, _, err := home.Open(opt.Home)
		if err != nil {
			return nil, err
		}
		if n.account, err = account.Open(h, opt.Network, opt.Listen); err != nil {
			return nil, err
		}
		n.own, opt.Account = true, n.account
	}
	log, logFile, err := folder.OpenLog(out.File(rundir.FileLog))
	if err != nil {
		return nil, errors.Join(err, n.Stop())
	}
	n.logFile = logFile
	n.consumer, err = consumer.New(consumer.Consumer{
		Dir: out, Job: b, Options: opt, Chain: n.account.Chain, Log: log,
		RefereeTime: func(dispute.Dispute) float64 { return 0 }, Links: n.Links,
	}, n.account.Home)
	if err == nil {
		err = n.enlist(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, n.Stop())
	}
	return n, nil
}

// enlist says where the job's blobs are to be had. A job whose order is placed continues though that fails: members
// have most of them.
func (n *remote) enlist(ctx context.Context) error {
	err := n.account.Enlist(ctx)
	if err == nil {
		return nil
	}
	if placed, _ := consumer.Placed(ctx, n.account.Chain, n.consumer.Job.JobID()); !placed {
		return err
	}
	n.consumer.Log.Warn("the network does not learn where the job is to be had", "err", err)
	return nil
}

// RunJob places the order, unless that was done before a restart, and collects what comes of it.
func (n *remote) RunJob(ctx context.Context, order market.Order) (*rundir.Summary, error) {
	if err := n.order(ctx, order); err != nil {
		return nil, err
	}
	summary, err := n.consumer.Run(ctx)
	return summary, n.consumer.EndWith(ctx, err)
}

func (n *remote) order(ctx context.Context, order market.Order) error {
	o := n.consumer.Options
	placed, err := consumer.Placed(ctx, n.account.Chain, n.consumer.Job.JobID())
	if err != nil && !errors.Is(err, chainmarket.ErrTaken) {
		return err
	}
	if !placed {
		h, err := n.account.Chain.Ledger.Head(ctx)
		if err != nil {
			return err
		}
		order = demand.Conditioned(n.consumer.Job.Job, order, h.Height)
		order, err = coins.Order(ctx, n.account.Chain.Market, n.consumer.Job.Job.Budget.Coin, order)
		if err != nil {
			return err
		}
		if err := n.affordable(ctx, order); err != nil {
			return err
		}
		if o.Ordering != nil {
			if err := o.Ordering(); err != nil {
				return err
			}
		}
	}
	if err := n.consumer.Order(ctx, order); err != nil {
		return err
	}
	if o.Ordered == nil {
		return nil
	}
	return o.Ordered(n.consumer.Job.JobID())
}

// affordable compares the budget with the prices that the network asks now. An order that would wait for offers is
// not refused.
func (n *remote) affordable(ctx context.Context, o market.Order) error {
	e, err := n.account.Chain.Market.Estimate(ctx, demand.AsIf(o))
	if err != nil || e.Why != market.Matched || o.Budget >= e.Whole {
		return err
	}
	return &demand.BudgetError{Budget: o.Budget, Most: e.Whole, Coin: o.Coin}
}

func (n *remote) Links(ctx context.Context) ([]api.Link, error) {
	return inspect.ReportedLinks(ctx, n.account.Chain, n.consumer.Job.JobID())
}

func (n *remote) Client() *client.Client { return n.account.Chain }

func (n *remote) Stop() error {
	var errs []error
	if n.consumer != nil {
		errs = append(errs, n.consumer.Close())
	}
	if n.own {
		errs = append(errs, n.account.Close())
	}
	if n.logFile != nil {
		errs = append(errs, n.logFile.Close())
	}
	return errors.Join(errs...)
}
