package node

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
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/node/disk"
	"github.com/starling-network/starling/node/home"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/engine"
)

const (
	embeddedChain = "starling-embedded-1"
	embeddedBlock = 200 * time.Millisecond
	embeddedFunds = 1_000_000_000_000 // uzen of every account at genesis, beside what the job asks of it
	embeddedStake = 100_000_000       // uzen that every worker and verifier stakes, unless the job asks for more
	embeddedDisk  = 90                // percent of the free disk for the blobs of all parties
)

// embedded is a network in one process, on the loopback interface: a validator, workers, verifiers and the consumer.
// They talk through the chain and the wire alone, so that moving one to another process changes this file only.
type embedded struct {
	out       *OutDir
	log       *slog.Logger
	logFile   *os.File
	validator *chain.Validator
	consumer  *collector
	parties   []*process
	leaves    leafTimes
	watch     *watch
	share     disk.Share // of every party

	cancel  context.CancelFunc
	running sync.WaitGroup
	failed  chan error // of a party
}

// startEmbedded brings the network of an output folder up, for the first time or again.
func startEmbedded(ctx context.Context, out *OutDir, b *Blueprint, opt TrainOptions, w *watch) (*embedded, error) {
	log, logFile, err := openLog(out.file(fileLog))
	if err != nil {
		return nil, err
	}
	n := &embedded{out: out, logFile: logFile, log: log, watch: w, failed: make(chan error, 1)}
	if err := n.start(ctx, b, opt); err != nil {
		return nil, errors.Join(err, n.stop())
	}
	return n, nil
}

func (n *embedded) start(ctx context.Context, b *Blueprint, opt TrainOptions) error {
	homes := map[string]home.Home{}
	names := []string{"consumer"}
	for i := range b.Spec.Units {
		names = append(names, fmt.Sprintf("worker-%d", i))
	}
	order, err := b.embeddedOrder()
	if err != nil {
		return err
	}
	for i := range order.Verifiers {
		names = append(names, fmt.Sprintf("verifier-%d", i))
	}
	if n.share = opt.disk; n.share == (disk.Share{}) {
		n.share.Percent = max(1, embeddedDisk/len(names))
	}
	stake := func(r run.Role) uint64 {
		return max(embeddedStake, order.Stake(r, embeddedAsk(order), registry.DefaultParams()))
	}
	var accounts []chain.Funded
	for i, name := range names {
		h, _, err := home.Open(n.out.file(filepath.Join(dirNetwork, name)))
		if err != nil {
			return err
		}
		homes[name] = h
		locked := order.Budget // by the consumer
		if i > 0 {
			locked = stake(partyRole(i-1, b))
		}
		accounts = append(accounts, chain.Funded{Address: h.Account().Address(), Amount: embeddedFunds + locked})
	}
	// The validator outlives the context: it goes last, when nobody asks it any more.
	n.validator, err = chain.Start(context.WithoutCancel(ctx), chain.Config{
		Home: n.out.file(filepath.Join(dirNetwork, "validator")), ChainID: embeddedChain, Accounts: accounts, BlockTime: embeddedBlock, Log: n.logFile,
		Referee: n.leaves.referee,
	})
	if err != nil {
		return err
	}
	n.consumer, err = newCollector(collector{
		out: n.out, b: b, opt: opt, chain: client.New(n.validator.Client(), homes["consumer"].Account()), log: n.log.With("party", "consumer"),
		moved: n.traffic, links: n.links, took: n.leaves.of, updates: n.stored,
	}, homes["consumer"])
	if err != nil {
		return err
	}
	for i, name := range names[1:] {
		p, err := n.newParty(ctx, name, homes[name], b.JobID())
		if err != nil {
			return err
		}
		if err := p.room.promise(b.JobID(), engine.Footprint(b.Spec, b.Step, b.Manifest, order.Terms, p.last)); err != nil {
			return err
		}
		step, header := roleOf(homes[name], partyRole(i, b), false, p.id, b.JobID(), opt.Version)
		p.step, p.minutes = step, takeMinutes(homes[name].Dir, header, p.log)
		if partyRole(i, b) == run.Worker {
			p.torch, p.say = &opt.Torch, opt.Say
			if i < opt.Dishonest {
				p.act = adversary.Skips{}
			}
		}
		n.parties = append(n.parties, p)
	}
	for i, p := range n.parties {
		r := partyRole(i, b)
		if err := p.enlist(ctx, r, stake(r), embeddedAsk(order)); err != nil {
			return err
		}
	}
	return nil
}

// partyRole is the role of the i-th party after the consumer.
func partyRole(i int, b *Blueprint) run.Role {
	if i < int(b.Spec.Units) {
		return run.Worker
	}
	return run.Verifier
}

func (n *embedded) newParty(ctx context.Context, name string, h home.Home, job string) (*process, error) {
	store, err := openStore(ctx, filepath.Join(h.Dir, dirBlobs), n.share)
	if err != nil {
		return nil, err
	}
	host, err := peer.New(peer.Config{Key: h.Peer(), Store: store})
	if err != nil {
		return nil, err
	}
	key := h.Account()
	log := n.log.With("party", name)
	return &process{
		id: key.Address(), threads: 1, host: host, store: store, room: newRoom(store.Usage().Quota), memory: newMemory(math.MaxInt64 >> 20), last: DefaultKeep, log: log, watch: n.watch,
		chain:  client.Member{Client: client.New(n.validator.Client(), key), Job: job, Bootstrap: n.consumer.host.Addrs()},
		drafts: newDrafts(h.Dir, job, log),
	}, nil
}

// enlist registers a party with its stake and its price, or, after a restart, tells where it is now.
func (p *process) enlist(ctx context.Context, r run.Role, stake, price uint64) error {
	return p.chain.Enlist(ctx, registry.Participant{
		Roles: []run.Role{r}, PeerID: p.host.ID().String(), Addrs: p.host.Addrs(), Device: device(), Stake: stake,
	}, market.Offer{Role: r, Price: price, Slots: 1})
}

// runJob places the order, unless that was done before a restart, and lets everybody work until the books are closed.
func (n *embedded) runJob(outer context.Context, order market.Order) (*Summary, error) {
	ctx, cancel := context.WithCancel(outer)
	n.cancel = cancel
	defer n.cancel()
	if err := n.consumer.order(ctx, order); err != nil {
		return nil, err
	}
	fail := func(err error) {
		select {
		case n.failed <- err:
		default:
		}
		n.cancel()
	}
	for _, p := range n.parties {
		n.running.Go(func() {
			if err := p.run(ctx); err != nil && ctx.Err() == nil {
				fail(fmt.Errorf("node: %s: %w", p.id, err))
			}
		})
	}
	summary, err := n.consumer.run(ctx)
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
	return summary, n.consumer.abandon(outer, err)
}

func (n *embedded) client() *client.Client { return n.consumer.chain }

// stop takes everything down, in the order that lets the last messages out.
func (n *embedded) stop() error {
	if n.cancel != nil {
		n.cancel()
	}
	n.running.Wait()
	var errs []error
	for _, p := range n.parties {
		errs = append(errs, p.host.Close())
	}
	if n.consumer != nil {
		errs = append(errs, n.consumer.host.Close())
	}
	if n.validator != nil {
		n.validator.Stop()
	}
	return errors.Join(append(errs, n.logFile.Close())...)
}
