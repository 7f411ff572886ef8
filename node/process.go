package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/node/torch"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/engine"
	"github.com/starling-network/starling/role/party"
)

// process is one worker or verifier: its role, fed with blocks, and the party that performs what the role asks for. It
// shares nothing with other processes but the chain and the wire.
type process struct {
	id       string
	threads  int
	chain    client.Member
	host     *peer.Host
	store    *blob.Bounded
	room     *room // that the store has for runs
	memory   *room // that the machine has for runs
	last     int   // checkpoints of the lineage to keep
	replicas int   // holders of what must outlive a member; 0: replica.Factor
	log      *slog.Logger
	step     func(role.Event) []role.Action
	act      adversary.Act // how it breaks the rules; nil: it keeps them
	watch    *watch
	drain    <-chan struct{} // closed when it shall take on nothing new, and leave; may be nil
	minutes  *minutes
	drafts   *drafts
	torch    *torch.Options // nil: it has no PyTorch
	say      func(string)   // to the owner; may be nil

	party  *party.Party              // once the job is here
	keeper atomic.Pointer[keeper]    // from then on
	state  atomic.Pointer[run.State] // of the run after the latest block that was seen; nil: none yet
	steps  *torch.Executor           // nil: the kernels take all steps
}

// reply is what came of an action.
type reply struct {
	action role.Action
	event  role.Event
}

// run follows the chain until nothing is left to do in the run, or the context ends.
func (p *process) run(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	blocks, err := p.chain.Blocks(ctx)
	if err != nil {
		end()
		return err
	}
	defer p.minutes.close()
	defer p.closeExecutor()
	ended := make(chan reply)
	var working sync.WaitGroup
	var keeping sync.Once
	defer working.Wait()
	defer end()
	stops, drain := map[string]context.CancelFunc{}, p.drain
	for {
		var actions []role.Action
		select {
		case <-ctx.Done():
			return nil
		case <-drain:
			drain, actions = nil, p.tell(role.Drain{})
		case o := <-ended:
			delete(stops, o.action.Key())
			actions = p.tell(o.event)
		case b, ok := <-blocks:
			if !ok && ctx.Err() != nil {
				return nil
			}
			if !ok {
				return errClosed
			}
			p.watch.block(b.Height, b.Time)
			block, err := p.observe(ctx, b.Height)
			if unfit(err) && p.decline(ctx, block) {
				return err
			}
			if err != nil {
				p.log.Warn("cannot follow the chain", "height", b.Height, "err", err)
				continue
			}
			if block != nil {
				k := p.keeper.Load()
				keeping.Do(func() { working.Go(func() { k.run(ctx) }) })
				k.tell(*block)
				actions = p.tell(*block)
			}
		}
		for _, a := range actions {
			switch a := a.(type) {
			case role.Depart:
				return nil
			case role.Stop:
				if stop := stops[a.Of]; stop != nil {
					stop()
				}
				continue
			}
			acting, stop := context.WithCancel(ctx)
			stops[a.Key()] = stop
			working.Go(func() {
				e := p.perform(acting, a)
				stop()
				select {
				case ended <- reply{a, e}:
				case <-ctx.Done():
				}
			})
		}
	}
}

var errClosed = errors.New("node: the chain's block stream ended")

// observe reads the state of the run after a block; nil before the order is matched.
func (p *process) observe(ctx context.Context, height int64) (*role.Block, error) {
	b, err := p.chain.Observe(ctx, height)
	if err != nil || b == nil {
		return nil, err
	}
	p.state.Store(&b.Run)
	if p.party == nil {
		err = p.open(ctx, b.Run)
	}
	if err == nil {
		p.party.Follow(b.Run)
	}
	return b, err
}

// unfit reports whether a job cannot be worked on here: there is too little room on the disk or in memory, it is not what was ordered,
// or a dispute about it could not be decided.
func unfit(err error) bool {
	short := (*RoomError)(nil)
	return errors.As(err, &short) || errors.Is(err, program.ErrLimit) || errors.Is(err, blob.ErrTooLarge) || errors.Is(err, engine.ErrTerms) || errors.Is(err, engine.ErrUndecidable)
}

// decline leaves a run whose job is unfit, and reports whether that is done. The last worker or verifier stays, in case that
// there is room later.
func (p *process) decline(ctx context.Context, b *role.Block) (left bool) {
	switch s := b.Run; {
	case s.Gone(p.id):
		return true
	case s.MayLeave(p.id):
		if err := p.chain.Leave(ctx, p.chain.Job); err != nil {
			p.log.Warn("cannot leave", "err", err)
		}
	}
	return false
}

// open fetches the job and makes ready to compute: a *RoomError if there is too little room on the disk or in memory.
func (p *process) open(ctx context.Context, s run.State) error {
	holders, err := p.chain.Holders(ctx)
	if err != nil {
		return err
	}
	get := func(ctx context.Context, cid string, most int64) ([]byte, error) {
		c, err := blob.Parse(cid)
		if err != nil {
			return nil, err
		}
		return p.host.FetchWithin(ctx, c, holders, most)
	}
	j, err := engine.ReadJob(ctx, s.Terms, get)
	if err != nil {
		return err
	}
	if err := p.room.promise(p.chain.Job, j.Footprint(p.last)); err != nil {
		return err
	}
	if err := p.memory.promise(p.chain.Job, j.Memory(p.threads)); err != nil {
		return err
	}
	task, err := j.Task(ctx, p.threads, get)
	if err != nil {
		return err
	}
	blobs := served{p.store, p.host, j.Largest(), p.patience}
	e, err := engine.New(s.Terms, task, p.store, blobs)
	if err != nil {
		return err
	}
	e.KeepDrafts(p.drafts)
	p.keeper.Store(newKeeper(p, j, e))
	p.party = &party.Party{ID: p.id, Job: p.chain.Job, Compute: p.compute(ctx, j, e), Lineage: e, Chain: p.chain, Blobs: blobs}
	if p.act != nil {
		p.step = p.act.Play(adversary.Cast{Party: p.party, Honest: e, Step: p.step, State: func(ctx context.Context) (run.State, error) {
			return p.chain.Run(ctx, p.chain.Job)
		}})
	}
	p.log.Info("job opened", "rounds", task.Spec.Rounds, "units", task.Spec.Units)
	return nil
}

// perform does one action and returns what came of it.
func (p *process) perform(ctx context.Context, a role.Action) role.Event {
	begin, ended := time.Now(), p.watch.begin(p.id, p.chain.Job, a)
	e := p.party.Perform(ctx, a)
	failed, _ := e.(role.Failed)
	ended(failed.Err)
	switch outcome(failed.Err) {
	case "done":
		p.log.Debug("action done", "action", a.Key(), "seconds", time.Since(begin).Seconds())
	case "overtaken":
		p.log.Debug("action overtaken by others", "action", a.Key(), "err", failed.Err)
	case "failed":
		p.log.Warn("action failed", "action", a.Key(), "err", failed.Err)
	}
	return e
}

// served is a store that a host serves to its peers. It implements party.Blobs.
type served struct {
	blob.Store
	host     *peer.Host
	most     int64                // bytes of a blob that it fetches
	patience func() time.Duration // with who is busy; may be nil
}

var _ party.Blobs = served{}

// fetchPatience is how long a blob that its holder has not published yet is asked for again.
const fetchPatience = 20 * time.Second

// Await implements party.Blobs. A holder that is busy is asked again, too, ever less often.
func (s served) Await(ctx context.Context, c blob.CID, holders []string) ([]byte, error) {
	patience := fetchPatience
	if s.patience != nil {
		patience = max(patience, s.patience())
	}
	return insist(ctx, patience, func(ctx context.Context) ([]byte, error) { return s.host.FetchWithin(ctx, c, holders, s.most) })
}

// insist fetches until there is a blob, or an error that does not pass: of a blob that is not there it waits for fetchPatience, of
// holders that are busy for the patience told.
func insist(ctx context.Context, patience time.Duration, fetch func(context.Context) ([]byte, error)) ([]byte, error) {
	const again = 100 * time.Millisecond
	begin, pause := time.Now(), again
	for {
		limit, wait := fetchPatience, again
		within, cancel := context.WithTimeout(ctx, max(patience, fetchPatience))
		b, err := fetch(within)
		cancel()
		busy := errors.Is(err, peer.ErrBusy)
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

// patience is how long a busy holder is asked again: half of the time that is left to attest, at the rate of the blocks so far, so
// that there is time to look for the blob elsewhere and to say that it is missing.
func (p *process) patience() time.Duration {
	s := p.state.Load()
	if s == nil || p.watch == nil {
		return 0
	}
	height, interval := p.watch.pace()
	return interval * time.Duration(max(0, s.Since+s.Terms.Deadlines.Attest-height)) / 2
}

// Fetch implements party.Blobs.
func (s served) Fetch(ctx context.Context, c blob.CID, holders []string) ([]byte, error) {
	return s.host.FetchWithin(ctx, c, holders, s.most)
}

// atOnce is how many blobs are fetched at the same time for one action. Each of them comes from several peers.
const atOnce = 4

// Each implements party.Blobs.
func (s served) Each(n int, do func(i int)) {
	var working errgroup.Group
	working.SetLimit(atOnce)
	for i := range n {
		working.Go(func() error { do(i); return nil })
	}
	_ = working.Wait() // nobody returns one
}

// device describes this machine in the registry.
func device() string {
	return fmt.Sprintf("%s/%s, %d threads, %s kernels", runtime.GOOS, runtime.GOARCH, kernel.Cores, kernel.Active())
}
