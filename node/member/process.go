package member

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/blob/quota"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/network/peer/wire"
	"github.com/starling-network/starling/network/weights"
	"github.com/starling-network/starling/node/accelerator/shared"
	"github.com/starling-network/starling/node/busy"
	"github.com/starling-network/starling/node/instrument"
	"github.com/starling-network/starling/node/journal"
	"github.com/starling-network/starling/node/member/circle"
	"github.com/starling-network/starling/node/member/draft"
	"github.com/starling-network/starling/node/member/laid"
	"github.com/starling-network/starling/node/member/patches"
	"github.com/starling-network/starling/node/memory"
	"github.com/starling-network/starling/node/pause"
	"github.com/starling-network/starling/node/release/keyring"
	"github.com/starling-network/starling/node/shards"
	"github.com/starling-network/starling/node/torch"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/role/engine"
	"github.com/starling-network/starling/role/party"
	"github.com/starling-network/starling/role/staged"
)

// Process is one worker or verifier: its role, fed with blocks, and the party that performs what the role asks for. It
// shares nothing with other processes but the chain and the wire.
type Process struct {
	ID          string
	Threads     int
	Chain       client.Member
	Host        *peer.Host
	Store       *quota.Store
	Disk        *Budget   // that the store has for runs
	Memory      *Budget   // that the machine has for runs
	tried       time.Time // when the job could not be opened for the first time
	KeepLast    int       // checkpoints of the lineage to keep
	Replicas    int       // holders of each blob that must outlive a member; 0: replica.Factor
	Log         *slog.Logger
	Step        func(role.Event) []role.Action
	Adversary   adversary.Attack // how it breaks the rules; nil: it keeps them
	Circle      string           // folder of its accomplices; "": it has none
	Instruments *instrument.Instruments
	Class       busy.Class      // of its work
	Drain       <-chan struct{} // closed when it shall take on nothing new, and leave; may be nil
	Journal     *journal.Writer
	Drafts      *draft.Store
	Folder      string            // of the party: the keys of encrypted shards are in it while it is a member
	Torch       *torch.Options    // nil: it has no PyTorch
	Device      *shared.Device    // computes its units; nil: the processor does
	Notify      func(string)      // to the owner; may be nil
	Holding     engine.Holding    // of the tensors that it computes with
	Pause       *pause.Pauser     // says when it sets its work aside; nil: never
	Near        *blob.Disk        // of a party of this process, whose files are linked and not fetched; nil: none
	Weights     *weights.Exchange // of the host: checkpoints come as patches where that is fewer bytes; nil: whole

	party       *party.Executor            // once the job is here
	engine      *engine.Engine             // the same
	told        pause.State                // that the role knows
	paused      role.Pause                 // the same
	unfit       error                      // why no member can compute a unit of the job; nil: not known
	Replicator  atomic.Pointer[replicator] // from then on
	State       atomic.Pointer[run.State]  // of the run after the latest block that was seen; nil: none yet
	steps       *torch.Executor            // nil: the kernels take all steps
	stopServing func()                     // patches; nil: none are served
}

// reply is what came of an action.
type reply struct {
	action role.Action
	event  role.Event
}

// Run follows the chain until nothing is left to do in the run, or the context ends.
func (p *Process) Run(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	blocks, err := p.Chain.Blocks(ctx)
	if err != nil {
		end()
		return err
	}
	defer p.Journal.Close()
	defer p.closeExecutor()
	defer func() {
		if p.stopServing != nil {
			p.stopServing()
		}
	}()
	ended := make(chan reply)
	var working sync.WaitGroup
	var keeping sync.Once
	defer working.Wait()
	defer end()
	stops, drain := map[string]context.CancelCauseFunc{}, p.Drain
	state, turned := p.Pause.State()
	rested, wake := false, func() {}
	defer func() { wake() }()
	for {
		var actions []role.Action
		select {
		case <-turned:
			state, turned = p.Pause.State()
			actions = p.turn(state)
		case <-ctx.Done():
			return nil
		case <-drain:
			drain, actions = nil, p.tell(role.Drain{})
		case o := <-ended:
			delete(stops, o.action.Key())
			p.judge(o.event)
			actions = p.tell(o.event)
		case b, ok := <-blocks:
			if !ok && ctx.Err() != nil {
				return nil
			}
			if !ok {
				return ErrClosed
			}
			p.Instruments.Block(b.Height, b.Time)
			block, err := p.observe(ctx, b.Height)
			if block != nil && err == nil && p.party == nil { // see waits
				if p.staysOut(ctx, block.Run) {
					return nil
				}
				continue
			}
			if block != nil && p.cannotOpen(err, b.Time) && p.leaveRun(ctx, block) {
				if !UnacceptableError(err) {
					err = fmt.Errorf("%w: %w", ErrUnopened, err)
				}
				return err
			}
			if block != nil && err == nil && p.unfit != nil && p.leaveRun(ctx, block) {
				return p.unfit
			}
			if err != nil {
				p.Log.Warn("cannot follow the chain", "height", b.Height, "err", err)
				continue
			}
			if block != nil {
				k := p.Replicator.Load()
				keeping.Do(func() { working.Go(func() { k.run(ctx) }) })
				k.tell(*block)
				actions = append(p.turn(state), p.tell(*block)...)
			}
		}
		if p.begin(ctx, actions, stops, func(e reply) {
			select {
			case ended <- e:
			case <-ctx.Done():
			}
		}, &working) {
			return keyring.Forget(p.Folder, p.Chain.Job)
		}
		if rests := state.Paused && p.party != nil && len(stops) == 0; rests != rested {
			if wake(); rests {
				wake = memory.Rest()
				working.Go(p.giveBack)
			}
			rested = rests
		}
	}
}

// begin begins the actions that the role asks for, and stops those that it does not want any more. end gets what comes
// of each. true: nothing is left to do in the run.
func (p *Process) begin(ctx context.Context, actions []role.Action, stops map[string]context.CancelCauseFunc,
	end func(reply), working *sync.WaitGroup) (departs bool) {
	for _, a := range actions {
		switch a := a.(type) {
		case role.Depart:
			return true
		case role.Stop:
			if stop := stops[a.Of]; stop != nil {
				stop(map[bool]error{true: role.ErrPaused}[a.Keep])
			}
			continue
		}
		acting, stop := context.WithCancelCause(ctx)
		stops[a.Key()] = stop
		working.Go(func() {
			e := p.perform(acting, a)
			stop(nil)
			end(reply{a, e})
		})
	}
	return false
}

var (
	ErrClosed   = errors.New("member: the chain's block stream ended")
	ErrUnopened = errors.New("member: the job could not be fetched, or is not what was ordered")
)

// observe reads the state of the run after a block; nil before the order is matched.
func (p *Process) observe(ctx context.Context, height int64) (*role.Block, error) {
	b, err := p.Chain.Observe(ctx, height)
	if err != nil || b == nil {
		return nil, err
	}
	p.State.Store(&b.Run)
	if p.party == nil && !p.waits(b.Run) {
		err = p.open(ctx, b.Run)
	}
	if err == nil && p.party != nil {
		p.party.Follow(b.Run)
	}
	return b, err
}

// cannotOpen reports whether the job cannot be opened here: it is unfit, or it could not be fetched for half of the
// time of a unit, and for fetchTimeout at least. The limit keeps a consumer or a faulty link from holding the member
// for ever.
func (p *Process) cannotOpen(err error, now time.Time) bool {
	if err == nil || p.party != nil {
		return false
	}
	if p.tried.IsZero() {
		p.tried = now
	}
	return UnacceptableError(err) || now.Sub(p.tried) >= max(FetchTimeout, p.deadline(*p.State.Load())/2)
}

// deadline is the time that a worker has for its first unit, at the rate of the blocks so far.
func (p *Process) deadline(s run.State) time.Duration {
	if p.Instruments == nil {
		return 0
	}
	_, interval := p.Instruments.Pace()
	return interval * time.Duration(s.Terms.Deadlines.Train)
}

// UnacceptableError reports whether a job cannot be worked on here: there is too little room on the disk or in memory,
// it or its data is not what was ordered, its version of the numerics is not known, a dispute about it could not be
// decided, or its data is encrypted for others.
func UnacceptableError(err error) bool {
	short := (*ShortageError)(nil)
	return errors.As(err, &short) || errors.Is(err, program.ErrLimit) || errors.Is(err, blob.ErrTooLarge) ||
		errors.Is(err, kernel.ErrVersion) || errors.Is(err, bundle.ErrTerms) || errors.Is(err, bundle.ErrUndecidable) ||
		errors.Is(err, data.ErrShard) || errors.Is(err, keyring.ErrOutsider)
}

// judge takes note of an action that failed because a shard of the data is not what the manifest says: no member can
// compute the units that read it.
func (p *Process) judge(e role.Event) {
	if f, failed := e.(role.Failed); failed && errors.Is(f.Err, data.ErrShard) {
		p.unfit = f.Err
	}
}

// leaveRun leaves a run whose job cannot be opened here, or is unfit, and reports whether that is done. The last worker
// or verifier of a run in which others have worked stays, in case that there is room later.
func (p *Process) leaveRun(ctx context.Context, b *role.Block) (left bool) {
	switch s := b.Run; {
	case s.MayDecline(p.ID):
		if err := p.Chain.Work.Decline(ctx, p.Chain.Job); err != nil {
			p.Log.Warn("cannot leave", "err", err)
		}
	case s.Removed(p.ID):
		return true
	}
	return false
}

// open fetches the job and makes ready to compute: a *RoomError if there is too little room on the disk or in memory.
func (p *Process) open(ctx context.Context, s run.State) error {
	within, cancel := context.WithTimeout(ctx, max(openTimeout, lastTries*p.deadline(s)))
	defer cancel()
	holders, err := p.Chain.Holders(ctx)
	if err != nil {
		return err
	}
	get := func(ctx context.Context, cid string, most int64) ([]byte, error) {
		c, err := blob.Parse(cid)
		if err != nil {
			return nil, err
		}
		return p.Host.FetchWithin(ctx, c, holders, most)
	}
	j, err := bundle.ReadJob(within, s.Terms, get)
	if err != nil {
		return err
	}
	room := laid.Room{Job: p.Chain.Job, Disk: p.Disk, Memory: p.Memory, Store: p.Store, Keep: p.KeepLast}
	m, _ := s.Member(p.ID)
	before := p.Holding
	var giveBack func()
	if p.Holding, giveBack, err = room.Take(ctx, j, m, p.Threads, before); err != nil {
		p.Holding = before
		return err
	}
	defer func() {
		if p.party == nil { // the next block tries again
			giveBack()
			p.Holding = before
		}
	}()
	blobs := Served{p.Store, p.Host, j.Largest(), p.patience, 1}
	read, err := keyring.Holder{Folder: p.Folder, Job: p.Chain.Job, Chain: p.Chain, Host: p.Host}.
		Reader(j, s, p.fetchShard(j, blobs))
	if err != nil {
		return err
	}
	corpus := shards.New(ctx, j.Data, read)
	task, err := j.Task(within, p.Threads, corpus, get, p.Holding.Shared, p.Holding.Aside)
	if err != nil {
		return err
	}
	e, err := engine.NewHolding(p.Holding, s.Terms, task, p.Store, blobs)
	if err != nil {
		return err
	}
	e.KeepDrafts(p.Drafts)
	if p.Weights != nil {
		x := patches.Exchange{Exchange: p.Weights, Log: p.Log, Members: p.members}
		p.stopServing = e.Exchange(x, p.Store, p.Chain.Job)
	}
	p.engine = e
	p.Replicator.Store(newReplicator(p, j, e, p.roomForShards(j)))
	units := p.units(ctx, j, e, blobs)
	compute := shards.Ahead{Compute: units, Corpus: corpus, Spec: j.Spec}
	p.party = &party.Executor{ID: p.ID, Job: p.Chain.Job, Compute: compute, Lineage: e, Chain: p.Chain, Blobs: blobs}
	var honest adversary.Honest = e
	if of, staged := units.(*staged.Engine); staged {
		p.party.Lineage, honest = of, of
	}
	if p.Adversary != nil {
		state := func(ctx context.Context) (run.State, error) { return p.Chain.Training.Run(ctx, p.Chain.Job) }
		cast := adversary.Setup{Party: p.party, Honest: honest, Step: p.Step, State: state}
		if p.Circle != "" {
			cast.Circle = circle.Folder(p.Circle)
		}
		p.Step = p.Adversary.Install(cast)
	}
	if j.Cipher != "" {
		p.tell(role.Encrypted{})
	}
	p.Log.Info("job opened", "rounds", task.Spec.Rounds, "units", task.Spec.Units, "data_bytes", j.Data.Bytes())
	return nil
}

// perform does one action and returns what came of it.
func (p *Process) perform(ctx context.Context, a role.Action) role.Event {
	begin, ended := time.Now(), p.Instruments.Begin(p.ID, p.Chain.Job, p.Class, a)
	e := p.party.Perform(ctx, a)
	failed, _ := e.(role.Failed)
	ended(failed.Err)
	switch instrument.Outcome(failed.Err) {
	case "done":
		p.Log.Debug("action done", "action", a.Key(), "seconds", time.Since(begin).Seconds())
	case "overtaken":
		p.Log.Debug("action overtaken by others", "action", a.Key(), "err", failed.Err)
	case "failed":
		p.Log.Warn("action failed", "action", a.Key(), "err", failed.Err)
	}
	return e
}

// Served is a store that a host serves to its peers. It implements party.Blobs.
type Served struct {
	blob.Store
	host     *peer.Host
	most     int64                // bytes of a blob that it fetches
	patience func() time.Duration // how long a busy holder is asked again; may be nil
	part     time.Duration        // by which that is divided
}

// Timeouts of fetching a job. A member that has not begun after some deadlines of a unit is out of the run.
const (
	openTimeout = time.Minute
	lastTries   = 3
)

// members are the addresses of the members of the run.
func (p *Process) members(ctx context.Context) ([]string, error) {
	s := p.State.Load()
	if s == nil {
		return nil, nil
	}
	return patches.Members(ctx, p.Chain.Registry, s.Members)
}

// FetchTimeout is how long a blob that its holder has not published yet is asked for again.
const FetchTimeout = 20 * time.Second

// Await implements party.Blobs. A holder that is busy is asked again, too, ever less often.
func (s Served) Await(ctx context.Context, c blob.CID, holders []string) ([]byte, error) {
	patience := FetchTimeout
	if s.patience != nil {
		patience = max(patience, s.patience()/s.part)
	}
	return Insist(ctx, patience, func(ctx context.Context) ([]byte, error) { return s.Fetch(ctx, c, holders) })
}

// Relay implements party.Blobs. It waits a quarter of the patience of Await, so that there is time to ask the worker.
func (s Served) Relay(ctx context.Context, c blob.CID, holders []string) ([]byte, error) {
	return Served{s.Store, s.host, s.most, s.patience, 4}.Await(ctx, c, holders)
}

// Insist fetches until there is a blob, or an error that does not pass: of a blob that is not there it waits for
// fetchTimeout, of holders that are busy for the patience told.
func Insist(ctx context.Context, patience time.Duration, fetch func(context.Context) ([]byte, error)) ([]byte, error) {
	const again = 100 * time.Millisecond
	begin, pause := time.Now(), again
	for {
		limit, wait := FetchTimeout, again
		within, cancel := context.WithTimeout(ctx, max(patience, FetchTimeout))
		b, err := fetch(within)
		cancel()
		busy := errors.Is(err, wire.ErrBusy)
		if busy {
			limit, wait = patience, pause
			pause = min(2*pause, 2*time.Second)
		}
		if err == nil || !busy && !errors.Is(err, blob.ErrNotFound) || time.Since(begin)+wait >= limit {
			return b, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(wait):
		}
	}
}

// patience is how long a busy holder is asked again: half of the time that is left to attest, at the rate of the blocks
// so far, so that there is time to look for the blob elsewhere and to say that it is missing.
func (p *Process) patience() time.Duration {
	s := p.State.Load()
	if s == nil || p.Instruments == nil {
		return 0
	}
	height, interval := p.Instruments.Pace()
	return interval * time.Duration(max(0, s.Since+s.Terms.Deadlines.Attest-height)) / 2
}

// Fetch implements party.Blobs.
func (s Served) Fetch(ctx context.Context, c blob.CID, holders []string) ([]byte, error) {
	return s.host.FetchWithin(ctx, c, holders, s.most)
}

// atOnce is how many blobs are fetched at the same time for one action. Each of them comes from several peers.
const atOnce = 4

// Each implements party.Blobs.
func (s Served) Each(n int, do func(i int)) {
	var working errgroup.Group
	working.SetLimit(atOnce)
	for i := range n {
		working.Go(func() error { do(i); return nil })
	}
	_ = working.Wait() // its functions return no error
}

// Enlist registers a party with its stake and the price of a class of work, or, after a restart, tells where it is now.
func (p *Process) Enlist(ctx context.Context, class crew.Role, stake, price uint64) error {
	words, _ := p.Device.Declare(registry.Hardware{})
	return p.Chain.Registry.Enlist(ctx, registry.Participant{
		Roles: []crew.Role{class.Registered()}, PeerID: p.Host.ID().String(), Addrs: p.Host.Addrs(), Device: words,
		Stake: stake,
	}, market.Offer{Role: class, Price: price, Slots: 1})
}

// tell passes an event to the role, and writes down what comes of it.
func (p *Process) tell(e role.Event) []role.Action {
	actions := p.Step(e)
	p.Journal.Note(e, actions)
	return actions
}

var _ party.Blobs = Served{}
