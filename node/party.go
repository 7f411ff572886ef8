package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/role"
)

// party is one worker or verifier: a role, and everything it acts with. It shares nothing with other parties but the
// chain and the wire.
type party struct {
	id        string
	job       string
	threads   int
	bootstrap []string // addresses of peers to ask besides the members
	chain     *client.Client
	host      *peer.Host
	store     *blob.Disk
	log       *slog.Logger
	step      func(role.Event) []role.Action
	liar      bool // skips its training and fabricates what it commits to

	engine *engine // once the job's bundle is here
	mu     sync.Mutex
	hidden map[role.Work]*work // computed units whose update others may not read yet
}

// fetchPatience is how long a blob that its holder has not published yet is asked for again.
const fetchPatience = 20 * time.Second

// run follows the chain until the context ends.
func (p *party) run(ctx context.Context) error {
	blocks, err := p.chain.Blocks(ctx)
	if err != nil {
		return err
	}
	events := make(chan role.Event)
	var working sync.WaitGroup
	defer working.Wait()
	for {
		var actions []role.Action
		select {
		case <-ctx.Done():
			return nil
		case e := <-events:
			actions = p.step(e)
		case b, ok := <-blocks:
			if !ok {
				return errors.Join(ctx.Err(), errClosed)
			}
			block, err := p.observe(ctx, b.Height)
			if err != nil {
				p.log.Warn("cannot follow the chain", "height", b.Height, "err", err)
				continue
			}
			if block != nil {
				actions = p.step(*block)
			}
		}
		for _, a := range actions {
			working.Go(func() {
				e := p.perform(ctx, a)
				select {
				case events <- e:
				case <-ctx.Done():
				}
			})
		}
	}
}

var errClosed = errors.New("node: the chain's block stream ended")

// observe reads the state of the run after a block; nil before the order is matched.
func (p *party) observe(ctx context.Context, height int64) (*role.Block, error) {
	s, err := p.chain.Run(ctx, p.job)
	if errors.Is(err, client.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if p.engine == nil {
		if err := p.open(ctx, s); err != nil {
			return nil, err
		}
	}
	b := &role.Block{Height: height, Run: s}
	for _, u := range s.Units {
		if u.Status == run.Disputed {
			b.Disputes, err = p.chain.Disputes(ctx, p.job)
			break
		}
	}
	return b, err
}

// open fetches the job and makes ready to compute.
func (p *party) open(ctx context.Context, s run.State) error {
	task, err := openBundle(ctx, s.Terms, p.threads, func(ctx context.Context, cid string) ([]byte, error) { return p.fetch(ctx, cid, p.bootstrap) })
	if err != nil {
		return err
	}
	p.engine = &engine{jobID: p.job, task: task, store: p.store, fetch: func(ctx context.Context, c blob.CID, holders []string) ([]byte, error) {
		return p.host.Fetch(ctx, c, holders)
	}}
	p.log.Info("job opened", "job", p.job, "rounds", task.Spec.Rounds, "units", task.Spec.Units)
	return nil
}

func (p *party) fetch(ctx context.Context, cid string, holders []string) ([]byte, error) {
	c, err := blob.Parse(cid)
	if err != nil {
		return nil, err
	}
	return p.host.Fetch(ctx, c, holders)
}

// perform does one action and returns what came of it.
func (p *party) perform(ctx context.Context, a role.Action) role.Event {
	begin := time.Now()
	e, err := p.act(ctx, a)
	if err != nil {
		switch {
		case errors.Is(err, run.ErrStale) || errors.Is(err, run.ErrWrongPhase):
			p.log.Debug("action overtaken by others", "action", a.Key(), "err", err)
		case ctx.Err() == nil:
			p.log.Warn("action failed", "action", a.Key(), "err", err)
		}
		return role.Failed{Action: a, Err: err}
	}
	p.log.Debug("action done", "action", a.Key(), "seconds", time.Since(begin).Seconds())
	if e == nil {
		return role.Finished{Action: a}
	}
	return e
}

func (p *party) act(ctx context.Context, a role.Action) (role.Event, error) {
	switch a := a.(type) {
	case role.Load:
		holders, err := p.members(ctx)
		if err != nil {
			return nil, err
		}
		return role.Loaded{Action: a}, p.engine.load(ctx, a.Checkpoint, holders)
	case role.Train:
		w, err := p.train(ctx, a.Base, a.Work)
		if err != nil {
			return nil, err
		}
		return role.Trained{Action: a, Commit: w.commit}, nil
	case role.Check:
		right, differ, seal, err := p.engine.check(ctx, a.Base, a.Work.Unit, p.id, a.Commit)
		return role.Checked{Action: a, Right: right, Differ: differ, Seal: seal}, err
	case role.Reveal:
		return nil, p.reveal(ctx, a)
	case role.Advance:
		next, err := p.advance(ctx, a)
		return role.Advanced{Action: a, Next: next}, err
	case role.Move:
		return nil, p.move(ctx, a)
	case role.Commit:
		return nil, p.chain.Commit(ctx, p.job, a.Work.Round, a.Work.Unit, a.Work.Attempt, a.Commit)
	case role.Pass:
		return nil, p.chain.Pass(ctx, p.job, a.Work.Round, a.Work.Unit, a.Seal)
	case role.Challenge:
		return nil, p.chain.Challenge(ctx, p.job, a.Work.Round, a.Work.Unit, a.Segment, p.engine.opening())
	case role.Attest:
		return nil, p.chain.Attest(ctx, run.Attestation{Job: p.job, Checkpoint: a.Next, Updates: a.Updates})
	case role.Missing:
		return nil, p.chain.Missing(ctx, p.job, a.Work.Round, a.Work.Unit)
	}
	return nil, fmt.Errorf("node: no such action: %T", a)
}

// members returns the addresses of everybody who may hold a checkpoint.
func (p *party) members(ctx context.Context) ([]string, error) {
	participants, err := p.chain.Participants(ctx)
	if err != nil {
		return nil, err
	}
	holders := append([]string(nil), p.bootstrap...)
	for _, m := range participants {
		if m.ID != p.id {
			holders = append(holders, m.Addrs...)
		}
	}
	return holders, nil
}

func (p *party) train(ctx context.Context, base run.Checkpoint, w role.Work) (*work, error) {
	compute := p.engine.train
	if p.liar {
		compute = p.engine.fabricate
	}
	done, err := compute(ctx, base, w.Unit)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hidden == nil {
		p.hidden = map[role.Work]*work{}
	}
	for k := range p.hidden {
		if k.Round < w.Round {
			delete(p.hidden, k)
		}
	}
	p.hidden[w] = done
	return done, nil
}

// reveal puts an update where others can fetch it. One that a restart lost is computed again: it has the same bits.
func (p *party) reveal(ctx context.Context, a role.Reveal) error {
	id, err := blob.Parse(a.CID)
	if err != nil {
		return err
	}
	if ok, err := p.store.Has(ctx, id); err != nil || ok {
		return err
	}
	p.mu.Lock()
	w, ok := p.hidden[a.Work]
	p.mu.Unlock()
	if !ok {
		if w, err = p.train(ctx, a.Base, a.Work); err != nil {
			return err
		}
	}
	if _, err := p.store.Put(ctx, w.log); err != nil {
		return err
	}
	got, err := p.store.Put(ctx, w.update)
	if err == nil && got != id {
		err = fmt.Errorf("node: computed the update %s again, committed was %s", got, id)
	}
	return err
}

// advance combines the updates of a round. One that cannot be had, or is not what was committed, is reported.
func (p *party) advance(ctx context.Context, a role.Advance) (run.Checkpoint, error) {
	next, err := p.engine.advance(ctx, a.Base, a.Units, func(u run.Unit) ([]byte, error) {
		worker, err := p.chain.Participant(ctx, u.Worker)
		if err != nil {
			return nil, err
		}
		b, err := p.await(ctx, u.Commit.UpdateCID, worker.Addrs)
		if err != nil && ctx.Err() == nil {
			return nil, &badUpdate{u.Index, err}
		}
		return b, err
	})
	if bad := (*badUpdate)(nil); errors.As(err, &bad) {
		report := p.chain.Missing(ctx, p.job, a.Base.Round, bad.unit)
		return next, errors.Join(err, report)
	}
	return next, err
}

// await fetches a blob that its holder may still be about to publish.
func (p *party) await(ctx context.Context, cid string, holders []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchPatience)
	defer cancel()
	for {
		b, err := p.fetch(ctx, cid, holders)
		if err == nil || !errors.Is(err, blob.ErrNotFound) {
			return b, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// move makes this party's next move in a dispute.
func (p *party) move(ctx context.Context, a role.Move) error {
	g := a.Game
	oracle, err := p.engine.oracle(a.Base, g, p.liar)
	if err != nil {
		return err
	}
	next := dispute.Answer
	if g.Config.Challenger == p.id {
		next = dispute.Press
	}
	m, err := next(g, oracle)
	if err != nil {
		return err
	}
	return p.chain.Move(ctx, p.job, g.Config.Round, g.Config.Unit, m)
}

// device describes this machine in the registry.
func device() string {
	return fmt.Sprintf("%s/%s, %d threads, %s kernels", runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), kernel.Active())
}
