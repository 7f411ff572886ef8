package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/gas"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/tally"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/role/engine"
	"github.com/starling-network/starling/role/party"
	"github.com/starling-network/starling/role/registrant"
	"github.com/starling-network/starling/role/reporter"
	"github.com/starling-network/starling/role/staged"
	"github.com/starling-network/starling/role/verifier"
	"github.com/starling-network/starling/role/worker"
	"github.com/starling-network/starling/sim/clock"
	"github.com/starling-network/starling/sim/link"
	"github.com/starling-network/starling/sim/store"
	"github.com/starling-network/starling/sim/wires"
	"github.com/starling-network/starling/sim/workload"
)

// process is a simulated machine with its account, its disk and its link.
type process struct {
	world *Network
	name  string
	role  crew.Role // 0: the consumer
	class crew.Role // of the work that it offers
	key   *wallet.Key
	store *store.Store // survives a crash
	link  link.Link
	unit  time.Duration // that it computes at a unit
	job   *workload.Job // that it works on

	machine Machine          // as it is declared and measured
	earns   bool             // it has no coins, and earns its stake
	act     adversary.Attack // nil: honest
	chain   client.Member
	usage   Usage
	share   float64 // of unit, which one that draws takes; 0: not yet known
	draft   draft   // survives a crash, too
	busy    bool    // computing
	since   time.Duration
	waiting []func()

	sending, receiving time.Duration // when the last blob that it sends, or receives, is over

	up       bool
	account  transaction.Account
	gas      gas.Usage
	synced   bool          // account is what the chain says, and what was sent since
	sent     time.Duration // when the last message arrives; messages do not overtake each other
	step     adversary.Step
	party    *party.Executor // once the job's bundle is here
	opening  bool
	tried    int64 // height at which the job could not be opened for the first time; 0: it could
	departed bool  // nothing was left to do in the run

	registrant *registrant.Registrant             // nil: until the first block after its start
	reporter   *reporter.Reporter                 // since its start
	line       *tally.Line                        // and what came over it since then
	delivered  map[string]*tally.Peer             // by name
	drains     bool                               // it takes on nothing new
	paused     *role.Pause                        // nil: it is not
	stops      map[string]context.CancelCauseFunc // of the actions under way
	routines   []*clock.Routine
	ctx        context.Context // until the next crash
	cancel     context.CancelFunc
}

func newProcess(w *Network, name string, r crew.Role) *process {
	p := &process{world: w, name: name, role: r, key: keyOf(name), store: store.New(&w.pool), up: true}
	p.chain = client.Member{Client: client.NewWithSubmitter(w.ledger.Connection, p.key, p.submit),
		Bootstrap: []string{address("consumer")}}
	p.follow(w.config.Job)
	p.boot()
	return p
}

// follow makes it work on a job, if it is a member of its run.
func (p *process) follow(j *workload.Job) { p.job, p.chain.Job = j, j.ID() }

func address(name string) string { return "/sim/" + name }

// boot forgets all that a process has in memory.
func (p *process) boot() {
	p.synced, p.party, p.opening, p.tried, p.departed, p.stops = false, nil, false, 0, false,
		map[string]context.CancelCauseFunc{}
	p.registrant, p.reporter = nil, reporter.New(p.key.Address(), leastReport)
	p.line, p.delivered = &tally.Line{Any: true}, map[string]*tally.Peer{}
	p.busy, p.waiting = false, nil
	p.ctx, p.cancel = context.WithCancel(context.Background())
	switch p.role {
	case crew.Worker:
		p.step = worker.NewWithPlantedFaults(p.key.Address(), canon.Sum("sim/plant", []byte(p.key.Address()))).Step
	case crew.Verifier:
		p.step = verifier.NewProactive(p.key.Address(), canon.Sum("sim/watch", []byte(p.key.Address()))).Step
	default:
		p.step = func(role.Event) []role.Action { return nil }
	}
	if p.drains {
		p.step(role.Drain{})
	}
	if p.paused != nil {
		p.step(*p.paused)
	}
}

// crash stops the process in the middle of whatever it does.
func (p *process) crash() {
	p.world.trace("crash", p.name)
	p.up = false
	p.cancel()
	running := p.routines
	p.routines = nil
	for _, r := range running {
		r.Kill()
	}
}

func (p *process) restart() {
	p.world.trace("restart", p.name)
	p.up = true
	p.boot()
}

// spawn does something in a routine of its own.
func (p *process) spawn(f func(ctx context.Context)) {
	if !p.up {
		return
	}
	p.routines = slices.DeleteFunc(p.routines, (*clock.Routine).Over)
	if r := p.world.clock.Start(func() { f(p.ctx) }); !r.Over() {
		p.routines = append(p.routines, r)
	}
}

// block tells the process of a block.
func (p *process) block(height int64) {
	if !p.up || p.role == 0 {
		return
	}
	if p.world.config.Registers {
		p.spawn(func(ctx context.Context) { p.world.must(p.register(ctx, height)) })
	}
	b, err := p.world.observe(p.ctx, p.chain, height)
	if err != nil {
		p.world.fail(fmt.Errorf("sim: %s cannot follow the chain: %w", p.name, err))
	}
	if b != nil && p.world.config.Registers {
		p.spawn(func(ctx context.Context) { p.world.must(p.report(ctx, height, b.Run)) })
	}
	if id := p.key.Address(); b != nil && p.departed && !p.drains && !b.Run.Removed(id) {
		p.boot() // it is taken in again
	}
	switch {
	case b == nil || p.departed:
	case p.party != nil:
		p.party.Follow(b.Run)
		p.tell(*b)
	case !p.opening:
		p.opening = true
		p.spawn(func(ctx context.Context) {
			err := p.open(ctx, b.Run.Terms)
			p.opening = false
			p.world.trace("open", p.name, err)
			if err != nil && !errors.Is(err, clock.ErrKilled) {
				p.decline(ctx, height, b.Run)
			}
		})
	}
}

// open fetches the job and makes ready to compute, honestly or not.
func (p *process) open(ctx context.Context, terms terms.Terms) error {
	bulk := p.world.config.ByteScale
	get := func(ctx context.Context, cid string, _ int64) ([]byte, error) {
		id, err := blob.Parse(cid)
		if err != nil {
			return nil, err
		}
		return p.fetch(ctx, id, p.chain.Bootstrap, bulk.Job)
	}
	j, err := readJob(ctx, p.world, terms, get)
	if err != nil {
		return err
	}
	corpus, err := j.Corpus(ctx, get)
	if err != nil {
		return err
	}
	task, err := j.Task(ctx, 1, corpus, get, nil, nil)
	if err != nil {
		return err
	}
	e, err := engine.NewHolding(engine.Holding{Shared: p.job.Shared}, terms, task, p.store, blobs{p, bulk.Weights})
	if err != nil {
		return err
	}
	var honest adversary.Honest = p.job.Memo(e, terms.Slices)
	if task.Spec.Pipeline != nil {
		honest = staged.New(&staged.Engine{Engine: e, Job: terms.Job, Peers: blobs{p, bulk.Weights}, Threads: 1,
			Wires: &wires.Wires{Net: &p.world.wires, Clock: &p.world.clock, Key: p.key, Say: p.chain.Send, Carry: p.carry}})
	}
	p.party = &party.Executor{ID: p.key.Address(), Job: terms.Job, Compute: honest, Lineage: honest, Chain: p.chain,
		Blobs: blobs{p, bulk.Updates}}
	if p.act != nil {
		p.step = p.act.Install(adversary.Setup{Party: p.party, Honest: honest, Step: p.step, Circle: &p.world.circle,
			State: func(ctx context.Context) (run.State, error) {
				return p.chain.Training.Run(ctx, terms.Job)
			}})
	}
	p.party.Compute = slow{p.party.Compute, p}
	p.party.Lineage = combining{p.party.Lineage, p}
	return nil
}

// readJob fetches the bundle of a job. The first party that has it decodes and checks it for all: they get the same
// bytes.
func readJob(ctx context.Context, w *Network, terms terms.Terms, get bundle.Getter) (*bundle.Job, error) {
	f, err := bundle.Fetch(ctx, terms, get)
	if err != nil {
		return nil, err
	}
	if j := w.opened[terms.Job]; j != nil && j.CID == terms.SpecCID {
		return j, nil
	}
	j, err := f.Decode()
	if err == nil {
		w.opened[terms.Job] = j
	}
	return j, err
}

// decline leaves a run whose job could not be opened for half of the time that a unit has, as a process does (package
// node).
func (p *process) decline(ctx context.Context, height int64, s run.State) {
	if p.tried == 0 {
		p.tried = height
	}
	if height-p.tried >= s.Terms.Deadlines.Train/2 && s.MayDecline(p.key.Address()) {
		p.world.must(p.chain.Work.Decline(ctx, p.chain.Job))
	}
}

// drain makes the process take on nothing new, and leave.
func (p *process) drain() {
	p.world.trace("drain", p.name)
	p.drains = true
	p.spawn(func(ctx context.Context) { p.world.must(p.chain.Market.Offer(ctx, p.class, price, 0)) })
	p.tell(role.Drain{})
}

// pause makes the process set its work aside, and take its offer back.
func (p *process) pause(x Pause) {
	p.world.trace("pause", p.name)
	p.paused = &role.Pause{}
	if x.Known {
		p.paused.Until = p.world.ledger.Height + int64(x.For/p.world.config.BlockTime)
	}
	p.turn(0, *p.paused)
}

// resume ends that.
func (p *process) resume() {
	p.world.trace("resume", p.name)
	p.paused = nil
	p.turn(1, role.Resume{})
}

func (p *process) turn(slots uint32, e role.Event) {
	if p.drains {
		slots = 0
	}
	p.spawn(func(ctx context.Context) { p.world.must(p.chain.Market.Offer(ctx, p.class, price, slots)) })
	if p.up {
		p.tell(e)
	}
}

// tell passes an event to the role and performs what it wants.
func (p *process) tell(e role.Event) {
	for _, a := range p.step(e) {
		switch a := a.(type) {
		case role.Depart:
			p.world.trace("departs", p.name)
			p.departed = true
			continue
		case role.Stop:
			p.world.trace("stops", p.name, a.Of)
			if stop := p.stops[a.Of]; stop != nil {
				stop(map[bool]error{true: role.ErrPaused}[a.Keep])
			}
			continue
		}
		p.spawn(func(ctx context.Context) {
			ctx, stop := context.WithCancelCause(ctx)
			defer stop(nil)
			p.stops[a.Key()] = stop
			e := p.party.Perform(ctx, a)
			delete(p.stops, a.Key())
			if f, ok := e.(role.Failed); ok && errors.Is(f.Err, clock.ErrKilled) {
				return
			} else if ok {
				p.world.trace("failed", p.name, a.Key(), f.Err)
			} else {
				p.world.trace("done", p.name, a.Key())
			}
			p.tell(e)
		})
	}
}

// submit implements client.Submitter: it signs, sends, and waits for the block or the refusal. A sequence that is not
// what the chain expects, because transactions were lost in a crash, is read again.
func (p *process) submit(ctx context.Context, msgs ...sdk.Msg) (transaction.Result, error) {
	var fee transaction.Fee
	for {
		r, err := p.try(ctx, fee, msgs)
		if err != nil {
			p.synced = false
		}
		e, ok := errors.AsType[*transaction.Error](err)
		if ok && e.Space == sdkerrors.RootCodespace && e.Code == sdkerrors.ErrInsufficientFee.ABCICode() && fee.Gas == 0 {
			// It is too large to be free.
			if fee, err = transaction.FeeAt(market.GasPrice, msgs...); err != nil {
				return r, err
			}
			continue
		}
		if !ok || e.Space != sdkerrors.RootCodespace || e.Code != sdkerrors.ErrWrongSequence.ABCICode() {
			if ok {
				p.synced = false
			}
			return r, err
		}
		if err := p.world.clock.Sleep(p.world.config.BlockTime); err != nil {
			return r, err
		}
	}
}

func (p *process) try(ctx context.Context, fee transaction.Fee, msgs []sdk.Msg) (r transaction.Result, err error) {
	w := p.world
	if !p.synced {
		number, sequence, err := client.SequenceFor(ctx, p.chain.Client, msgs)
		if err != nil {
			return r, err
		}
		p.account, p.synced = transaction.Account{ChainID: w.ledger.ChainID, Number: number, Sequence: sequence}, true
	}
	account := p.account
	if account.Fee = fee; fee.Gas == 0 {
		account.Fee.Gas = p.gas.Limit(msgs)
	}
	tx, err := transaction.Sign(ctx, p.key, account, uint64(w.ledger.Height+patience), msgs...)
	if err != nil {
		return r, err
	}
	p.account.Sequence++
	p.sent = max(p.sent, w.clock.Now+p.link.Delay(w.random, len(tx)))
	waited := w.clock.Wait(func(wake func()) {
		w.clock.After(p.sent-w.clock.Now, func() {
			w.arrive(p, tx, func(result transaction.Result, failed error) {
				r, err = result, failed
				w.clock.After(p.link.Delay(w.random, 0), wake)
			})
		})
	})
	if r.GasUsed > 0 {
		p.gas.Learn(msgs, account.Fee.Gas, uint64(r.GasUsed), transaction.OutOfGas(err))
	}
	return r, errors.Join(waited, err)
}

// patience is in how many blocks a transaction must be included.
const patience = 100
