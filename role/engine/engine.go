// Package engine is what a party computes: it trains work units, re-executes those of others, combines updates into the
// next checkpoint, and knows what to say in a dispute. It holds checkpoints in memory and reaches storage and peers
// through the store and the peers that it is given.
//
// When to compute what is decided by the roles; how the results reach the chain is package party.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/witness"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/unitlog"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/exchange/slice"
	"github.com/starling-network/starling/exchange/update"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/role/engine/held"
	"github.com/starling-network/starling/role/engine/screener"
	"github.com/starling-network/starling/role/hold"
)

// Engine is what one party computes with: the job's task, and the checkpoints it holds in memory. Its methods may be
// called from several goroutines; units are computed one at a time.
type Engine struct {
	terms terms.Terms
	task  *train.Task
	plan  *slice.Plan // nil: rounds are not reduced in slices
	store blob.Store
	peers Peers

	drafts    Drafts     // of the unit that is computed
	aside     hold.Aside // nil: all stays in memory
	computing hold.Turn  // guards task.Exec, the screener, and what is in drafts

	*held.Checkpoints
	*states
	screener  screener.Screener
	witnesses witnesses
	executed  hold.Recent[execution, *Work] // for others' commitments
}

// Peers is how an engine gets the blobs of others.
type Peers = held.Peers

// Holding is how an engine holds what it computes with. The zero value holds all of it in memory, by itself.
type Holding struct {
	Shared *hold.Shared
	Aside  hold.Aside
}

// New returns the engine of a job with the given terms, of which it reads the job's identifier, how far to look at
// updates, and in how many slices rounds are reduced. It keeps checkpoints in store, and gets those of others from
// peers. A job that cannot be cut into as many slices is refused: strangers write terms.
func New(terms terms.Terms, task *train.Task, store blob.Store, peers Peers) (*Engine, error) {
	return NewHolding(Holding{}, terms, task, store, peers)
}

// NewHolding is New for an engine that holds what it has as told.
func NewHolding(h Holding, terms terms.Terms, task *train.Task, store blob.Store, peers Peers) (*Engine, error) {
	e := &Engine{terms: terms, task: task, store: store, peers: peers, drafts: noDrafts{}, aside: h.Aside,
		Checkpoints: &held.Checkpoints{Task: task, Peers: peers, Shared: h.Shared, Aside: h.Aside},
		states:      &states{task: task, peers: peers, job: terms.Job, shared: h.Shared, aside: h.Aside}}
	e.Recent.Most, e.states.held.Most, e.executed.Most = bundle.MaxHeld, maxStates, maxExecuted
	if task.Spec.Rollout != nil {
		e.states.held.Most = heldAnswers(task.Spec)
	}
	e.computing.Shared = h.Shared
	e.screener = screener.Screener{Screen: terms.Screen, Task: task, Turn: &e.computing}
	h.Shared.Task(task)
	if !terms.Sliced() {
		return e, nil
	}
	var err error
	e.plan, err = planOf(task.Spec, task.Step, int(terms.Slices))
	return e, err
}

// Task is what the engine computes units of.
func (e *Engine) Task() *train.Task { return e.task }

// Work is a computed unit: what is committed, and the bytes behind it.
type Work struct {
	Commit work.Commitment  // as it is right; what it hides is up to the role
	Update []byte           // compressed, as it is served; of a job with slices, the index of the pieces
	Pieces [][]byte         // of the update, one for each slice
	Log    []byte           // losses and norms of gradients, for people
	Handed []hold.Blob      // blobs of the state that it carries
	End    []*tensor.Tensor // the state at the end; three times the size of the model. nil: it was put aside

	end hold.Sealed // the same, for the seal, once it was made
}

// Train computes a unit, from its draft if one was kept.
func (e *Engine) Train(ctx context.Context, name terms.Checkpoint, unit uint32) (*Work, error) {
	base, err := e.Base(name)
	if err != nil {
		return nil, err
	}
	e.computing.Lock()
	defer e.computing.Unlock()
	r, err := execute(ctx, e, name, base, unit)
	if err != nil {
		return nil, err
	}
	return e.NewWork(name, unit, r)
}

// NewWork is the commitment to the result of a unit of the round after a checkpoint, whose carried state Start has
// brought to memory. A unit that diverged has no update.
func (e *Engine) NewWork(name terms.Checkpoint, unit uint32, r *train.Result) (*Work, error) {
	if s := e.task.Spec; s.Rollout != nil && unit >= s.Units {
		return newDrawing(e, name.Round, unit, r)
	}
	var from []*tensor.Tensor
	if e.task.Spec.Exchange.CarriesResidual() { // else the carried state is moments, which the unit has taken
		var err error
		if from, err = e.residual(name, unit); err != nil {
			return nil, err
		}
	}
	base := name
	log := unitlog.Encode(base.Round, unit, r.Losses, r.Norms)
	w := &Work{Commit: work.Commitment{Segments: r.Segments, Log: blob.Of(log).String()}, Log: log, End: r.End}
	if r.Diverged != nil {
		return w, nil
	}
	var sum float64
	for _, l := range r.Losses {
		sum += float64(l)
	}
	if mean := sum / float64(len(r.Losses)) * 1e6; mean-mean == 0 && mean < 1<<62 {
		w.Commit.Loss = int64(mean)
	}
	u, on, err := outer.Commit(e.task.Spec, train.Params(e.task.Of(unit).Step), base.Round, unit, r, from)
	switch {
	case errors.Is(err, codec.ErrPayload) && from != nil: // what was left out before is too large
		return w, nil
	case err != nil:
		return nil, err
	}
	if on != nil {
		if w.Commit.HandedState, w.Handed, err = e.handOn(base.Round, unit, on); err != nil {
			return nil, err
		}
	}
	w.Commit.Update = u.Root()
	if w.Update, w.Pieces, err = pack(e.plan, u); err != nil {
		return nil, err
	}
	w.Commit.UpdateCID, w.Commit.Bytes = blob.Of(w.Update).String(), uint64(len(w.Update))
	for _, p := range w.Pieces {
		w.Commit.Bytes += uint64(len(p))
	}
	return w, nil
}

// Advanced is what comes of the updates of a round.
type Advanced struct {
	Next terms.Checkpoint
	Odd  []uint32 // places of the units whose update is an outlier in its round: a reason to audit, and no more
}

// Advance combines the committed updates that make the checkpoint after one, and keeps that: see Combine and Keep.
func (e *Engine) Advance(ctx context.Context, name terms.Checkpoint, units work.Units,
	get func(i int) ([]byte, error)) (Advanced, error) {
	next, odd, err := e.Combine(ctx, name, units, get)
	if err != nil {
		return Advanced{}, err
	}
	a := Advanced{Odd: odd}
	a.Next, err = e.Keep(ctx, next)
	return a, err
}

// Combine combines the committed updates that make the checkpoint after one: of every round of train.Spec.Applied in
// order, and of each in unit order. get returns the bytes of the update of the unit at a place; one that is not what
// its worker committed to is a *BadUpdate. The places of odd updates are those of Advanced.Odd.
func (e *Engine) Combine(ctx context.Context, name terms.Checkpoint, units work.Units,
	get func(i int) ([]byte, error)) (next *train.Checkpoint, odd []uint32, err error) {
	base, err := e.Base(name)
	if err != nil {
		return nil, nil, err
	}
	if e.terms.Screen < terms.ScreenLosses { // those wait for the unit that is computed
		defer e.computing.Combine()()
	}
	next, err = combine(ctx, e, base, units, get, func(deltas [][]*tensor.Tensor) error {
		rounds := e.task.Spec.Applied(base.Round)
		for k, round := range rounds {
			from, to := k*len(units)/len(rounds), (k+1)*len(units)/len(rounds)
			among, err := e.screener.Odd(ctx, base, round, units[from:to], deltas[from:to])
			if err != nil {
				return err
			}
			for _, i := range among {
				odd = append(odd, uint32(from)+i)
			}
		}
		return nil
	})
	return next, odd, err
}

// combine is Combine that gives all updates to screen before it combines them, but where units are stages: their
// updates are not screened, and those of one stage at a time are in memory.
func combine(ctx context.Context, e *Engine, base *train.Checkpoint, units work.Units,
	get func(i int) ([]byte, error), screen func(deltas [][]*tensor.Tensor) error) (*train.Checkpoint, error) {
	rounds := e.task.Spec.Applied(base.Round)
	delta := func(i int) ([]*tensor.Tensor, error) {
		b, err := get(i)
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return nil, err
		}
		return e.unpack(base, rounds[i*len(rounds)/len(units)], units[i].Index, units[i].Commit, b)
	}
	if s := e.task.Spec; s.Pipeline != nil && len(units) == int(s.Units) {
		return outer.ByUnits(s, base, func(unit uint32) ([]*tensor.Tensor, error) { return delta(int(unit)) }, e.Room())
	}
	deltas, err := make([][]*tensor.Tensor, len(units)), error(nil)
	for i := range units {
		if deltas[i], err = delta(i); err != nil {
			return nil, err
		}
	}
	if err := screen(deltas); err != nil {
		return nil, err
	}
	return outer.Consume(e.task.Spec, base, deltas, e.Room())
}

// Keep saves and holds a checkpoint that updates were combined to.
func (e *Engine) Keep(ctx context.Context, next *train.Checkpoint) (terms.Checkpoint, error) {
	name, err := bundle.SaveCheckpoint(ctx, e.store, e.terms.Job, next)
	if err == nil {
		e.Hold(name, next)
	}
	return name, err
}

// Refute returns what shows that a checkpoint which is attested is not the one that a base and the updates of the units
// of its round lead to. Both are in memory; get returns the bytes of the update of the unit at a place.
func (e *Engine) Refute(ctx context.Context, name, attested terms.Checkpoint, units work.Units,
	get func(i int) ([]byte, error)) ([]byte, error) {
	base, err := e.Base(name)
	if err != nil {
		return nil, err
	}
	wrong, err := e.Base(attested)
	if err != nil {
		return nil, err
	}
	right, err := combine(ctx, e, base, units, get, func([][]*tensor.Tensor) error { return nil })
	if err != nil {
		return nil, err
	}
	return witness.Refutation(e.task.Spec, base, right, wrong, len(units), func(i int) (*update.Update, error) {
		b, err := get(i)
		if err != nil {
			return nil, err
		}
		u := new(update.Update)
		if err := canon.Unmarshal(b, u); err != nil {
			return nil, &BadUpdate{base.Round, units[i].Index, err}
		}
		return u, nil
	})
}

// BadUpdate says that the update of a unit is not what its worker committed to, or cannot be had.
type BadUpdate struct {
	Round, Unit uint32
	Err         error
}

func (b *BadUpdate) Error() string {
	return fmt.Sprintf("engine: update of unit %d of round %d: %v", b.Unit, b.Round, b.Err)
}

// Unwrap returns why.
func (b *BadUpdate) Unwrap() error { return b.Err }
