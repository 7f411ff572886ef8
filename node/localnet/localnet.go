package localnet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/blob/quota"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/node/busy"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/home"
	"github.com/starling-network/starling/node/instrument"
	"github.com/starling-network/starling/node/journal"
	"github.com/starling-network/starling/node/member"
	"github.com/starling-network/starling/node/member/draft"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/prepare/demand"
	"github.com/starling-network/starling/node/prepare/storage"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/validator"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/adversary/stages"
	"github.com/starling-network/starling/role/engine"
	"github.com/starling-network/starling/role/hold"
)

const (
	chainID   = "starling-embedded-1"
	blockTime = 200 * time.Millisecond
)

// Network is a network in one process, on the loopback interface: a validator, workers, verifiers and the consumer.
// They talk through the chain and the wire alone, so that moving one to another process changes this file only.
type Network struct {
	out       *rundir.OutDir
	log       *slog.Logger
	logFile   *os.File
	validator *chain.Validator
	consumer  *consumer.Consumer
	Parties   []*member.Process // none is to be changed
	leaves    refereeTimings
	watch     *instrument.Instruments
	shared    *hold.Shared
	threads   int       // of a unit
	pool      blob.Pool // of all parties
	room      Room
	draft     int64 // bytes of a draft

	cancel  context.CancelFunc
	running sync.WaitGroup
	failed  chan error // of a party
}

// Start brings the network of an output folder up, for the first time or again.
func Start(ctx context.Context, out *rundir.OutDir, b *prepare.CompiledJob, opt consumer.Options,
	w *instrument.Instruments) (*Network, error) {
	log, logFile, err := folder.OpenLog(out.File(rundir.FileLog))
	if err != nil {
		return nil, err
	}
	turns, threads := prepare.Turns(b)
	n := &Network{out: out, logFile: logFile, log: log, watch: w, failed: make(chan error, 1),
		shared: hold.NewShared(turns), threads: threads}
	if err := n.start(ctx, b, opt); err != nil {
		return nil, errors.Join(err, n.Stop())
	}
	return n, nil
}

func (n *Network) start(ctx context.Context, b *prepare.CompiledJob, opt consumer.Options) error {
	homes := map[string]home.Home{}
	names := []string{"consumer"}
	for i := range prepare.Workers(b) {
		names = append(names, fmt.Sprintf("worker-%d", i))
	}
	order, err := b.LocalOrder()
	if err != nil {
		return err
	}
	for i := range order.Verifiers {
		names = append(names, fmt.Sprintf("verifier-%d", i))
	}
	need, err := storage.Here(b, order.Terms, member.DefaultKeep, len(names)-1)
	if err != nil {
		return err
	}
	n.draft = b.Size().State()
	if n.room, err = Divide(n.out.Path, b.JobID(), need, opt.Disk, len(names)-1); err != nil {
		return err
	}
	stake := func(r crew.Role) uint64 {
		return max(registry.DefaultStake, order.Stake(r, demand.LocalPrice(order), registry.DefaultParams()))
	}
	var accounts []chain.Funded
	for i, name := range names {
		h, _, err := home.Open(n.out.File(filepath.Join(rundir.DirNetwork, name)))
		if err != nil {
			return err
		}
		homes[name] = h
		locked := order.Budget // by the consumer
		if i > 0 {
			locked = stake(partyClass(i-1, b))
		}
		accounts = append(accounts, chain.Funded{Address: h.Account().Address(), Amount: validator.GenesisFunds + locked})
	}
	// The validator outlives the context: it ends last, when no other part of the network needs it.
	n.validator, err = chain.Start(context.WithoutCancel(ctx), chain.Config{
		Home: n.out.File(filepath.Join(rundir.DirNetwork, "validator")), ChainID: chainID, Accounts: accounts,
		BlockTime: blockTime, Log: n.logFile,
		Referee: n.leaves.referee,
	})
	if err != nil {
		return err
	}
	n.consumer, err = consumer.New(consumer.Consumer{
		Dir: n.out, Job: b, Options: opt, Chain: client.New(n.validator.Client(), homes["consumer"].Account()),
		Log:    n.log.With("party", "consumer"),
		Shared: n.shared, Reserve: n.room.reserve(), Traffic: n.traffic, Links: n.Links, RefereeTime: n.leaves.of,
		Updates: n.stored,
	}, homes["consumer"])
	if err != nil {
		return err
	}
	n.pool.Join(n.consumer.Store)
	for i, name := range names[1:] {
		p, err := n.newParty(ctx, name, homes[name], b.JobID())
		if err != nil {
			return err
		}
		step, header := member.RoleOf(homes[name], partyClass(i, b).Registered(), false, p.ID, b.JobID(), opt.Version)
		p.Class = busy.Of(partyClass(i, b).Registered(), partyClass(i, b))
		p.Step, p.Journal = step, journal.OpenWriter(homes[name].Dir, header, p.Log)
		if partyClass(i, b) != crew.Verifier {
			p.Torch, p.Device, p.Notify = &opt.Torch, opt.Device, opt.Say
			if i < opt.Dishonest {
				p.Adversary = adversary.Skips{}
				if b.Spec.Pipeline != nil {
					p.Adversary = stages.InTurn(i)
				}
			}
		}
		n.Parties = append(n.Parties, p)
	}
	for i, p := range n.Parties {
		r := partyClass(i, b)
		if err := p.Enlist(ctx, r, stake(r), demand.LocalPrice(order)); err != nil {
			return err
		}
	}
	return nil
}

// partyClass is the class of work of the i-th party after the consumer: first are the workers that learn.
func partyClass(i int, b *prepare.CompiledJob) crew.Role {
	switch workers := prepare.Workers(b); {
	case i < workers-b.Job.Rollout.Generators:
		return crew.Worker
	case i < workers:
		return crew.Generator
	}
	return crew.Verifier
}

func (n *Network) newParty(ctx context.Context, name string, h home.Home, job string) (*member.Process, error) {
	files, err := blob.OpenDisk(filepath.Join(h.Dir, rundir.DirBlobs))
	if err != nil {
		return nil, err
	}
	n.pool.Join(files)
	store, err := quota.New(ctx, files, n.room.Member)
	if err != nil {
		return nil, err
	}
	host, err := peer.New(peer.Config{Key: h.Peer(), Store: store})
	if err != nil {
		return nil, err
	}
	key, own := h.Account(), member.NewDiskBudget(n.room.Member, n.room.words)
	log, aside := n.log.With("party", name), n.room.Aside(h.Dir, store, own)
	drafts := draft.NewStore(h.Dir, job, log)
	drafts.Reserve, drafts.Bytes = aside.Reserve, n.draft
	return &member.Process{
		ID: key.Address(), Threads: n.threads, Host: host, Store: store,
		Disk:   own,
		Memory: member.NewMemoryBudget(math.MaxInt64 >> 20), KeepLast: member.DefaultKeep, Log: log, Instruments: n.watch,
		Chain:  client.Member{Client: client.New(n.validator.Client(), key), Job: job, Bootstrap: n.consumer.Host.Addrs()},
		Drafts: drafts, Folder: h.Dir,
		Holding: engine.Holding{Shared: n.shared, Aside: aside}, Near: n.consumer.Store,
	}, nil
}

// RunJob places the order, unless that was done before a restart, and lets everybody work until the books are closed.
func (n *Network) RunJob(outer context.Context, order market.Order) (*rundir.Summary, error) {
	ctx, cancel := context.WithCancel(outer)
	n.cancel = cancel
	defer n.cancel()
	if err := n.consumer.Order(ctx, order); err != nil {
		return nil, err
	}
	fail := func(err error) {
		select {
		case n.failed <- err:
		default:
		}
		n.cancel()
	}
	for _, p := range n.Parties {
		n.running.Go(func() {
			if err := p.Run(ctx); err != nil && ctx.Err() == nil {
				fail(fmt.Errorf("%s: %w", p.ID, err))
			}
		})
	}
	summary, err := n.consumer.Run(ctx)
	n.cancel()
	n.running.Wait()
	select {
	case failure := <-n.failed:
		if err == nil || errors.Is(err, context.Canceled) {
			err = failure
		} else {
			err = errors.Join(failure, err)
		}
	default:
	}
	return summary, n.consumer.EndWith(outer, err)
}

func (n *Network) Client() *client.Client { return n.consumer.Chain }

// Stop takes everything down, in the order that lets the last messages out.
func (n *Network) Stop() error {
	if n.cancel != nil {
		n.cancel()
	}
	n.running.Wait()
	var errs []error
	for _, p := range n.Parties {
		errs = append(errs, p.Host.Close())
	}
	if n.consumer != nil {
		errs = append(errs, n.consumer.Close())
	}
	if n.validator != nil {
		n.validator.Stop()
	}
	return errors.Join(append(errs, n.logFile.Close())...)
}
