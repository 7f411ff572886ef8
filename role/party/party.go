// Package party performs the actions of the roles: it computes with an engine, sends messages to the chain, and moves
// blobs. It is the same code in a process of its own, where a call blocks until the network answers, and in the
// simulator, where it blocks until virtual time has passed.
//
// The roles decide which action is due when; the implementations of the interfaces decide where bytes and transactions
// go.
package party

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/train/parts"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/engine"
)

// Compute computes work units: an engine.Engine, or an adversary around one.
type Compute interface {
	Train(ctx context.Context, base terms.Checkpoint, unit uint32) (*engine.Work, error)
	Check(ctx context.Context, base terms.Checkpoint, s audit.Subject, c work.Commitment) (engine.Comparison, error)
	Unseal(ctx context.Context, base terms.Checkpoint, s audit.Subject, question canon.Digest) (audit.Opening, error)
	Measure(ctx context.Context, base terms.Checkpoint, unit uint32, c work.Commitment,
		update []byte) (audit.Finding, error)
	Oracle(base terms.Checkpoint, g dispute.Dispute) (dispute.Oracle, error)
}

// Lineage is how a party gets from one checkpoint to the next; an engine.Engine, too.
type Lineage interface {
	Follow(s run.State)
	Start(ctx context.Context, base terms.Checkpoint, unit uint32, holders []string) error
	Load(ctx context.Context, c terms.Checkpoint, holders []string) error
	Needs(segment uint32) bool
	Advance(ctx context.Context, base terms.Checkpoint, units work.Units,
		get func(i int) ([]byte, error)) (engine.Advanced,
		error)
	Refute(ctx context.Context, base, wrong terms.Checkpoint, units work.Units,
		get func(i int) ([]byte, error)) ([]byte, error)
	Slicing
	Drawing
}

// Chain is how a party speaks on the chain.
type Chain interface {
	// Send signs a message and returns when it is in a block, or with the reason why it was refused. It is one of
	// role.Commit, role.Pass, role.Attest, role.Missing, role.LacksData, role.Unmask, role.Confess, role.Suspect,
	// role.Report, role.SealSlice, role.ShowReport, role.ShowSlice, role.Prove, role.Leave, role.Return, role.Challenge,
	// Unseal, Refutation and Move.
	Send(ctx context.Context, m role.Action) error
	// Addresses returns the addresses of a participant.
	Addresses(ctx context.Context, id string) ([]string, error)
	// Place tells where a participant is: the region that it declares, or else its measured cluster; "" if neither is
	// known.
	Place(ctx context.Context, id string) (string, error)
	// Holders returns the addresses of all other members that may hold a checkpoint.
	Holders(ctx context.Context) ([]string, error)
}

// Blobs is how a party gets and serves blobs.
type Blobs interface {
	// Await fetches a blob that one of its holders may still be about to publish.
	Await(ctx context.Context, c blob.CID, holders []string) ([]byte, error)
	// Relay fetches a blob that a member nearby is about to have. It gives up before Await does.
	Relay(ctx context.Context, c blob.CID, holders []string) ([]byte, error)
	// Fetch fetches a blob that one of the holders has.
	Fetch(ctx context.Context, c blob.CID, holders []string) ([]byte, error)
	// Each calls do for 0 to n-1, some of them at the same time, and returns when all calls have returned.
	Each(n int, do func(i int))
	// Has reports whether the party serves a blob.
	Has(ctx context.Context, c blob.CID) (bool, error)
	// Put serves a blob from now on.
	Put(ctx context.Context, data []byte) (blob.CID, error)
}

// Refutation is a role.Refute with the bytes that it shows.
type Refutation struct {
	role.Refute
	Shown []byte
}

// Unseal is a role.Unseal with the opening that it shows.
type Unseal struct {
	role.Unseal
	Opening audit.Opening
}

// Move is a role.Move with the move to make.
type Move struct {
	role.Move
	Made dispute.Move
}

// Executor performs the actions of one worker or verifier in one run. It may perform several at a time.
type Executor struct {
	ID      string // account address
	Job     string
	Compute Compute
	Lineage Lineage
	Chain   Chain
	Blobs   Blobs

	neighbours neighbours
	waits      waits

	mu     sync.Mutex
	hidden map[work.UnitID]*engine.Work // computed units whose update others may not read yet
}

// Perform does one action and returns what came of it.
func (p *Executor) Perform(ctx context.Context, a role.Action) role.Event {
	e, err := p.act(ctx, a)
	switch {
	case err != nil:
		return role.Failed{Action: a, Err: err}
	case e == nil:
		return role.Finished{Action: a}
	}
	return e
}

func (p *Executor) act(ctx context.Context, a role.Action) (role.Event, error) {
	switch a := a.(type) {
	case role.Load:
		return role.Loaded{Action: a}, p.load(ctx, a.Checkpoint)
	case role.Train:
		w, err := p.train(ctx, a.Base, a.Work)
		if wrong, ok := errors.AsType[*engine.BadCarriedState](err); ok {
			return role.Misled{Action: a, Round: wrong.Round, Unit: wrong.Unit}, nil
		}
		if err != nil {
			return nil, lacks(ctx, p, a.Work, err)
		}
		return role.Trained{Action: a, Commit: w.Commit}, nil
	case role.Check:
		return p.check(ctx, a)
	case role.Measure:
		return p.measure(ctx, a)
	case role.Reveal:
		return nil, p.reveal(ctx, a)
	case role.Advance:
		next, err := p.advance(ctx, a)
		return role.Advanced{Action: a, Next: next.Next, Odd: next.Odd}, err
	case role.Reduce:
		cid, err := p.reduce(ctx, a)
		return role.Reduced{Action: a, CID: cid}, err
	case role.Probe:
		return nil, p.probe(ctx, a)
	case role.Unseal:
		return nil, p.unseal(ctx, a)
	case role.Move:
		return nil, p.move(ctx, a)
	case role.Refute:
		return nil, p.refute(ctx, a)
	case role.Commit, role.Pass, role.Attest, role.Missing, role.LacksData, role.Unmask, role.Confess, role.Suspect,
		role.Report, role.ShowReport, role.SealSlice, role.ShowSlice,
		role.Challenge, role.Prove, role.Leave, role.Return:
		return nil, p.Chain.Send(ctx, a)
	}
	return nil, fmt.Errorf("party: no such action: %T", a)
}

// load makes sure that a checkpoint is in memory: of the current round, or of an earlier one that is not final. It
// comes from those of others only if this party does not have it.
func (p *Executor) load(ctx context.Context, c terms.Checkpoint) error {
	if p.Lineage.Load(ctx, c, nil) == nil {
		return nil
	}
	holders, err := p.Chain.Holders(ctx)
	if err != nil {
		return err
	}
	return p.Lineage.Load(ctx, c, holders)
}

// Follow tells the party how the run stands.
func (p *Executor) Follow(s run.State) {
	p.neighbours.follow(s)
	p.waits.follow(s)
	p.Lineage.Follow(s)
}

// begin makes sure that what a unit is computed from is in memory: what others have first. With waits, it waits for
// answers.
func (p *Executor) begin(ctx context.Context, base terms.Checkpoint, unit uint32, waits bool) error {
	if p.Lineage.Start(ctx, base, unit, nil) != nil {
		if err := answers(ctx, p, base, unit, waits); err != nil {
			return err
		}
		holders, err := p.Chain.Holders(ctx)
		if err != nil {
			return err
		}
		if err := p.Lineage.Start(ctx, base, unit, append([]string{}, holders...)); err != nil {
			return err
		}
	}
	return p.load(ctx, base)
}

// ready loads the data from which a unit is executed to the end of a segment, or (0) to its update.
func (p *Executor) ready(ctx context.Context, base terms.Checkpoint, unit, segment uint32) error {
	if !p.Lineage.Needs(segment) {
		return p.load(ctx, base)
	}
	return p.begin(ctx, base, unit, false)
}

// check executes a unit again. If its carried state is wrong, the event names the round in which that began.
func (p *Executor) check(ctx context.Context, a role.Check) (role.Event, error) {
	err := p.ready(ctx, a.Base, a.Work.Unit, a.Segment)
	if wrong, ok := errors.AsType[*engine.BadCarriedState](err); ok {
		return role.Checked{Action: a, Wrong: &wrong.Round, Source: wrong.Unit}, nil
	}
	if err != nil {
		return nil, lacks(ctx, p, a.Work, lacksLink(ctx, p, a.Work, err))
	}
	f, err := p.Compute.Check(ctx, a.Base, a.Work.Subject(p.ID, p.Job, a.Segment), a.Commit)
	return role.Checked{Action: a, Right: f.Right, Differ: f.Differ, Seal: f.Seal}, err
}

func (p *Executor) train(ctx context.Context, base terms.Checkpoint, w work.UnitID) (*engine.Work, error) {
	if err := p.begin(ctx, base, w.Unit, true); err != nil {
		return nil, err
	}
	done, err := p.Compute.Train(ctx, base, w.Unit)
	if err != nil {
		return nil, err
	}
	// without the state
	done = &engine.Work{Commit: done.Commit, Update: done.Update, Pieces: done.Pieces, Log: done.Log, Handed: done.Handed}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hidden == nil {
		p.hidden = map[work.UnitID]*engine.Work{}
	}
	for k := range p.hidden { // units that draw are computed while those of later rounds are
		far := k.Round+parts.MaxStaleness < w.Round || w.Round+parts.MaxStaleness < k.Round
		if far || k.Round < w.Round && p.hidden[k].Update != nil {
			delete(p.hidden, k)
		}
	}
	p.hidden[w] = done
	return done, nil
}

// reveal puts an update where others can fetch it. One that a restart lost is computed again: it has the same bits.
func (p *Executor) reveal(ctx context.Context, a role.Reveal) error {
	id, err := blob.Parse(a.CID)
	if err != nil {
		return err
	}
	if done, err := p.revealed(ctx, id); err != nil || done {
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
	for _, h := range w.Handed {
		b, err := h.Get()
		if err != nil {
			return err
		}
		if _, err := p.Blobs.Put(ctx, b); err != nil {
			return err
		}
	}
	for _, b := range slices.Concat(w.Pieces, [][]byte{w.Log}) {
		if _, err := p.Blobs.Put(ctx, b); err != nil {
			return err
		}
	}
	got := w.Commit.HandedState.CID // of a unit that draws, or of a stage that diverged
	if w.Update != nil {
		var put blob.CID
		if put, err = p.Blobs.Put(ctx, w.Update); err != nil {
			return err
		}
		got = put.String()
	}
	if got != a.CID {
		err = fmt.Errorf("party: computed %s again, committed was %s", got, a.CID)
	}
	if err == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.hidden, a.Work) // the store has it
	}
	return err
}

// unseal opens a seal. A state that a restart lost is computed again.
func (p *Executor) unseal(ctx context.Context, a role.Unseal) error {
	if err := p.ready(ctx, a.Base, a.Work.Unit, a.Segment); err != nil {
		return err
	}
	o, err := p.Compute.Unseal(ctx, a.Base, a.Work.Subject(p.ID, p.Job, a.Segment), a.Question)
	if err != nil {
		return err
	}
	return p.Chain.Send(ctx, Unseal{a, o})
}

// advance combines the updates of a round. One that cannot be had, or is not what was committed, is reported.
func (p *Executor) advance(ctx context.Context, a role.Advance) (engine.Advanced, error) {
	if err := p.load(ctx, a.Base); err != nil {
		return engine.Advanced{}, err
	}
	if err := possess(ctx, p, a); err != nil {
		return engine.Advanced{}, err
	}
	if len(a.Slices) > 0 {
		return p.join(ctx, a)
	}
	if a.Executes {
		if err := (unserved{p, a.Base}).execute(ctx, a.Units); err != nil {
			return engine.Advanced{}, err
		}
		if err := p.load(ctx, a.Base); err != nil { // it may have been dropped meanwhile
			return engine.Advanced{}, err
		}
	}
	wait, done := p.waits.begin(ctx, a.Base.Round)
	defer done()
	updates := p.updates(ctx, wait, a.Units, relays(ctx, p, a.Units))
	next, err := p.Lineage.Advance(ctx, a.Base, a.Units, func(i int) ([]byte, error) {
		b, err := updates(i)
		if err != nil && ctx.Err() == nil {
			w := a.Work(i)
			return nil, &engine.BadUpdate{Round: w.Round, Unit: w.Unit, Err: err}
		}
		return b, err
	})
	return next, p.missing(ctx, a, 0, err)
}

// refute shows that an attested checkpoint is wrong.
func (p *Executor) refute(ctx context.Context, a role.Refute) error {
	if err := errors.Join(p.load(ctx, a.Base), p.load(ctx, a.Wrong)); err != nil {
		return err
	}
	updates := p.updates(ctx, ctx, a.Units, make([]string, len(a.Units))) // at once: a member nearby may delay it
	shown, err := p.Lineage.Refute(ctx, a.Base, a.Wrong, a.Units, updates)
	if err != nil {
		return err
	}
	return p.Chain.Send(ctx, Refutation{a, shown})
}

// found is the result of the search for a blob.
type found struct {
	bytes []byte
	err   error
}

// gather finds several blobs at once, in an order of their numbers. Every member begins with another one (around):
// otherwise all would ask the first worker, and then the second, and wait in one queue while the links of the others
// are idle.
func (p *Executor) gather(order []int, find func(i int) ([]byte, error)) []found {
	all := make([]found, len(order))
	p.Blobs.Each(len(order), func(k int) {
		i := order[k]
		all[i].bytes, all[i].err = find(i)
	})
	return all
}

// around are the numbers below n, from one of them on.
func around(n, from int) []int {
	order := make([]int, n)
	for k := range order {
		order[k] = (from + k) % n
	}
	return order
}

// own is the place of the party among units: that of its own, or any that another member hardly has.
func (p *Executor) own(units work.Units) int {
	if i := slices.IndexFunc(units, func(u *work.Unit) bool { return u.Worker == p.ID }); i >= 0 {
		return i
	}
	return p.startIndex()
}

// startIndex is a number from the name of the party.
func (p *Executor) startIndex() int {
	d := canon.Sum("starling/party/1", []byte(p.ID))
	return int(binary.LittleEndian.Uint16(d[:]))
}

// missing reports the update that an error is about, if it is about one of those that are combined.
func (p *Executor) missing(ctx context.Context, a role.Advance, slice uint32, err error) error {
	bad, ok := errors.AsType[*engine.BadUpdate](err)
	if !ok || ctx.Err() != nil {
		return err
	}
	for i := range a.Units {
		if w := a.Work(i); w.Round == bad.Round && w.Unit == bad.Unit {
			return errors.Join(err, p.Chain.Send(ctx, role.Missing{Work: w, Slice: slice}))
		}
	}
	return err
}

// update fetches the update of a commitment: from the worker, which may still be about to publish it, or, if the
// worker is gone, from any member that has fetched it before. Otherwise, if a worker disappeared after some members
// have its update and others do not, no quorum could attest the round.
func (p *Executor) update(ctx context.Context, worker string, c work.Commitment) ([]byte, error) {
	return p.find(ctx, ctx, c.UpdateCID, worker)
}

// find fetches a blob from the members that should have it, which may still be about to publish it, or else from any
// peer. It waits for the members until one of the contexts is done.
func (p *Executor) find(ctx, wait context.Context, cid string, members ...string) ([]byte, error) {
	id, err := blob.Parse(cid)
	if err != nil {
		return nil, err
	}
	var holders []string
	for _, m := range members {
		at, err := p.Chain.Addresses(ctx, m)
		if err != nil {
			return nil, err
		}
		holders = append(holders, at...)
	}
	b, err := p.Blobs.Await(wait, id, holders)
	if err == nil || ctx.Err() != nil {
		return b, err
	}
	others, failed := p.Chain.Holders(ctx)
	if failed == nil {
		b, failed = p.Blobs.Fetch(ctx, id, others)
	}
	if failed != nil {
		return nil, errors.Join(err, failed)
	}
	return b, nil
}

// measure compares the update of a unit with that of its exact execution.
func (p *Executor) measure(ctx context.Context, a role.Measure) (role.Event, error) {
	if err := p.load(ctx, a.Base); err != nil {
		return nil, err
	}
	b, err := p.update(ctx, a.Worker, a.Commit)
	if err != nil {
		return nil, err
	}
	f, err := p.Compute.Measure(ctx, a.Base, a.Work.Unit, a.Commit, b)
	return role.Measured{Action: a, Finding: f}, err
}

// move makes this party's next move in a dispute.
func (p *Executor) move(ctx context.Context, a role.Move) error {
	g := a.Game
	if err := p.begin(ctx, a.Base, g.Config.Unit, false); err != nil {
		return err
	}
	oracle, err := p.Compute.Oracle(a.Base, g)
	if err != nil {
		return err
	}
	next := dispute.NextAsserterMove
	if g.Config.Challenger == p.ID {
		next = dispute.NextChallengerMove
	}
	m, err := next(g, oracle)
	if err != nil {
		return err
	}
	return p.Chain.Send(ctx, Move{a, m})
}
