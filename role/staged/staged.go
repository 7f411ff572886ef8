// Package staged computes units that are stages of replicas: at the same time as the holders of the other stages of the
// replica, with which it exchanges signed values (package pipeline). It executes those of others alone, from the values
// that they have received, and by all stages where these cannot be had.
//
// It decides nothing: the roles do. Frames travel through the Wires that it is given.
package staged

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/account"
	"github.com/starling-network/starling/chain/referee/link"
	"github.com/starling-network/starling/compute/stages"
	"github.com/starling-network/starling/compute/stages/order"
	"github.com/starling-network/starling/compute/stages/pass"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/handover"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role/engine"
	"github.com/starling-network/starling/role/hold"
	"github.com/starling-network/starling/role/pipeline"
)

// Attempt names a stage of a replica that is computed.
type Attempt struct {
	Job     string
	Round   uint32
	Replica uint32
	Number  uint32 // of the attempt
	Stage   int
	Holders []string // accounts of the workers of all stages
	Plan    *stages.Plan

	// Done reports whether all frames of the links with a stage are exchanged, so that its word about the last of
	// them alone is missing. Called where messages are received.
	Done func(stage int) bool
	// Word is that word, if the stage has committed to the same, and false otherwise.
	Word func(stage int) (pipeline.Message, bool)
}

// Unit is the number of the unit that a stage of the replica is.
func (a Attempt) Unit(stage int) uint32 { return a.Replica*uint32(len(a.Holders)) + uint32(stage) }

// Channel names the messages from one stage to another.
func (a Attempt) Channel(from, to int) string {
	return fmt.Sprintf("%s/%d/%d/%d/%d-%d", a.Job, a.Round, a.Replica, a.Number, from, to)
}

// Wires takes messages to and from the workers of a replica.
type Wires interface {
	// Sign signs for the account of the party. The signature follows the public key.
	Sign(statement []byte) ([]byte, error)
	// Open returns the end of a stage, which fails when the context ends.
	Open(ctx context.Context, a Attempt) (Wire, error)
}

// Wire is the end of a stage of a replica.
type Wire interface {
	pipeline.Transport
	Close()
}

// Engine is an engine of a job whose units are stages of replicas.
type Engine struct {
	*engine.Engine
	Job     string
	Peers   engine.Peers
	Wires   Wires
	Aside   hold.Aside
	Threads int

	plan   *stages.Plan
	orders [][]order.Task
	under  atomic.Int32 // units that are computed together with other stages
	turn   sync.Mutex   // of the one of these that computes

	mu       sync.Mutex
	run      run.State
	has      hold.Recent[place, *values]
	tries    map[place]int
	wrong    map[execution]bool // whose values can be had from no member, and right stages send others
	executed hold.Recent[execution, *engine.Work]
}

// place names a unit.
type place struct{ round, unit uint32 }

// execution names a unit that was executed again, to the end of a segment or (0) all of it.
type execution struct {
	base          terms.Checkpoint
	root          canon.Digest // of the values that it has exchanged
	unit, segment uint32
}

// Limits of the data that are held of units: the values that they have exchanged, and executions.
const (
	maxValues   = 4
	maxExecuted = 2
	// maxTries is how often values are asked for before they are computed by all stages.
	maxTries = 3
)

// New makes an engine compute stages. The plan is that of its task.
func New(x *Engine) *Engine {
	x.plan = x.Task().Plan()
	x.orders = x.plan.Orders()
	x.tries, x.wrong = map[place]int{}, map[execution]bool{}
	x.has.Most, x.executed.Most = maxValues, maxExecuted
	x.Task().Received = x.received
	return x
}

// Follow implements party.Lineage.
func (x *Engine) Follow(s run.State) {
	x.mu.Lock()
	x.run = s
	for at := range x.tries {
		if at.round < s.Oldest() {
			delete(x.tries, at)
		}
	}
	maps.DeleteFunc(x.wrong, func(e execution, _ bool) bool { return e.base.Round < s.Oldest() })
	x.mu.Unlock()
	x.Engine.Follow(s)
}

// round is the round that starts from a checkpoint.
func (x *Engine) round(base terms.Checkpoint) (work.RoundState, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, l := range x.run.All() {
		if l.Base == base && len(l.Units) > 0 {
			return l, nil
		}
	}
	return work.RoundState{}, fmt.Errorf("staged: no units of the round after checkpoint %d are known", base.Round)
}

// stage is the stage that a unit is, and the number of its replica.
func (x *Engine) stage(unit uint32) (stage int, replica uint32) {
	replica, s := x.Task().Spec.Pipeline.Of(unit)
	return int(s), replica
}

// received gives an execution what its stage has received, which Start has brought to memory.
func (x *Engine) received(round, unit, step uint32) (map[string]*tensor.Tensor, error) {
	v, err := held(x, round, unit)
	if err != nil {
		return nil, err
	}
	stage, _ := x.stage(unit)
	return v.inputs(x.plan, stage, step)
}

// held are the values that a unit has exchanged, which are in memory.
func held(x *Engine, round, unit uint32) (*values, error) {
	v, ok := x.has.Get(place{round, unit})
	if !ok {
		return nil, fmt.Errorf("staged: what unit %d of round %d has received is not held", unit, round)
	}
	return v, nil
}

// Train implements party.Compute. A unit that is committed, and whose result is lost, is computed by all stages here.
func (x *Engine) Train(ctx context.Context, name terms.Checkpoint, unit uint32) (*engine.Work, error) {
	return x.TrainBy(ctx, x.plan, name, unit)
}

// TrainBy is Train by a plan with the names and shapes of that of the job: its own, unless it breaks the rules.
func (x *Engine) TrainBy(ctx context.Context, plan *stages.Plan, name terms.Checkpoint,
	unit uint32) (*engine.Work, error) {
	l, err := x.round(name)
	if err != nil {
		return nil, err
	}
	replica := l.Replica(x.terms(), unit)
	if replica == nil {
		return nil, fmt.Errorf("staged: the round has no unit %d", unit)
	}
	stage, number := x.stage(unit)
	u := replica[stage]
	if u.Status != work.Assigned {
		return x.alone(ctx, name, unit)
	}
	base, err := x.Base(name)
	if err != nil {
		return nil, err
	}
	a := Attempt{Job: x.Job, Round: name.Round, Replica: number, Number: u.Attempt, Stage: stage, Plan: plan}
	for _, o := range replica {
		a.Holders = append(a.Holders, o.Worker)
	}
	left := x.left(a)
	a.Done = func(stage int) bool { return left[stage] == 0 }
	a.Word = func(stage int) (pipeline.Message, bool) {
		if !a.Done(stage) {
			return pipeline.Message{}, false
		}
		return x.word(a, stage)
	}
	wire, err := x.Wires.Open(ctx, a)
	if err != nil {
		return nil, err
	}
	defer wire.Close()
	w, err := x.exchange(name, base, a, wire, left)
	return w, errors.Join(ctx.Err(), err)
}

func (x *Engine) terms() terms.Terms {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.run.Terms
}

// unit is the unit of a stage, as it is computed together with the others.
func (x *Engine) unit(a Attempt, moves pipeline.Transport) *pipeline.Unit {
	r := &pipeline.Replica{Job: handover.Of(a.Job, a.Number), Round: a.Round, Number: a.Replica, Plan: a.Plan,
		Orders: x.orders}
	for _, id := range a.Holders {
		stage := len(r.Holders)
		r.Holders = append(r.Holders, pipeline.Holder{Account: id, Verify: func(statement, signature []byte) bool {
			if len(signature) == 0 {
				return x.hasCommitted(r, a, stage, statement)
			}
			return account.VerifyJoined(id, signature, canon.Digest(statement)) == nil
		}})
	}
	return &pipeline.Unit{Replica: r, Stage: a.Stage, Spec: x.Task().Spec.Unsplit(), Corpus: x.Task().Corpus,
		Threads: x.Threads, Sign: func(b []byte) []byte {
			signature, err := x.Wires.Sign(b)
			if err != nil {
				return nil // no neighbour takes it
			}
			return signature
		}, Moves: moves}
}

// sending keeps what a stage sends.
type sending struct {
	pipeline.Transport
	plan *stages.Plan
	from int
	kept *values
	left map[int]int
}

// Send implements pipeline.Transport.
func (s sending) Send(to int, m pipeline.Message) error {
	if m.Frame != nil {
		s.kept.frame(s.plan, s.from, to, *m.Frame)
		s.left[to]--
	}
	return s.Transport.Send(to, m)
}

// weights are those of a checkpoint and the frozen ones, by name.
func weights(x *Engine, base *train.Checkpoint) map[string]*tensor.Tensor {
	all, t := map[string]*tensor.Tensor{}, x.Task()
	for i, n := range base.Names {
		all[n] = base.Params[i]
	}
	for i, n := range train.Frozen(t.Step) {
		all[n] = t.Frozen[i]
	}
	return all
}

// together computes the steps of a unit. Of its last state it keeps the parameters alone, in the order of the job.
func together(x *Engine, u *pipeline.Unit, a Attempt, base *train.Checkpoint) (*train.Result, error) {
	done, err := u.Run(weights(x, base))
	if err != nil {
		return nil, err
	}
	r, size := &train.Result{Segments: done.Segments, Losses: done.Losses, Norms: done.Norms}, 0
	for _, n := range train.ModelOf(x.Task().Spec, base, a.Unit(a.Stage)).Names {
		for i, held := range a.Plan.Stages[a.Stage].State {
			if held == train.Param+n {
				r.End = append(r.End, done.End[i])
				size += done.End[i].Shape.Bytes()
			}
		}
	}
	done = nil
	tensor.Dropped(size) // moments and values go before the update is made
	return r, nil
}

// exchange computes a unit together with the other stages.
func (x *Engine) exchange(name terms.Checkpoint, base *train.Checkpoint, a Attempt, wire Wire,
	left map[int]int) (*engine.Work, error) {
	kept := newValues()
	u := x.unit(a, alternating{sending{wire, a.Plan, a.Stage, kept, left}, &x.turn})
	u.Keep = func(from int, f pass.Frame) error {
		left[from]--
		kept.frame(a.Plan, from, a.Stage, f)
		return nil
	}
	var last []pipeline.Exchange
	u.Exchanged = func(all []pipeline.Exchange) { last = all }
	unit := a.Unit(a.Stage)
	others := x.under.Add(1) - 1
	defer x.under.Add(-1)
	if others > 0 { // the memory is that of one stage
		if s := scratch(x, a.Stage); s != nil {
			u.Room, u.Moves = s.New, resting{u.Moves, s}
		}
	}
	x.turn.Lock()
	r, err := together(x, u, a, base)
	x.turn.Unlock()
	if err != nil {
		return nil, err
	}
	own := train.ModelOf(x.Task().Of(unit).Spec, base, unit)
	r.Conclude(own.Params, own, unit)
	r.End = nil
	w, err := x.NewWork(name, unit, r)
	if err != nil {
		return nil, err
	}
	for _, l := range link.OfStage(a.Plan, a.Stage) {
		for _, e := range last {
			if uint32(e.From) != l.From || uint32(e.To) != l.To {
				continue
			}
			h, signature := e.Head(), e.Sent.Signature
			if e.From == a.Stage {
				signature = e.Taken.Signature
			}
			w.Commit.Links = append(w.Commit.Links, work.Exchanged{Frames: h.Frames, Chain: h.Chain, Signature: signature})
		}
	}
	return w, x.record(w, unit, kept)
}

// record adds what a stage has exchanged to its work, and names it in the commitment.
func (x *Engine) record(w *engine.Work, unit uint32, kept *values) error {
	stage, _ := x.stage(unit)
	var r Record
	for _, l := range link.OfStage(x.plan, stage) {
		var cids [][]byte
		for step := range x.Task().Spec.StepsOf(unit) {
			b, err := kept.bytes(x.plan, l, step)
			if err != nil {
				return err
			}
			w.Handed = append(w.Handed, hold.PutBlob(x.Aside, b))
			cids = append(cids, blob.Of(b).Bytes())
		}
		r.Links = append(r.Links, cids)
	}
	b := canon.MustMarshal(r)
	w.Handed = append(w.Handed, hold.PutBlob(x.Aside, b))
	w.Commit.HandedState = work.HandedState{Root: work.LinksRoot(w.Commit.Links), CID: blob.Of(b).String()}
	return nil
}

// Check implements party.Compute.
func (x *Engine) Check(ctx context.Context, base terms.Checkpoint, s audit.Subject,
	c work.Commitment) (engine.Comparison, error) {
	mine, err := x.again(ctx, base, s.Unit, s.Segment)
	if err != nil {
		return engine.Comparison{}, err
	}
	return x.Compare(mine, s, c), nil
}

// Unseal implements party.Compute.
func (x *Engine) Unseal(ctx context.Context, base terms.Checkpoint, s audit.Subject,
	question canon.Digest) (audit.Opening, error) {
	mine, err := x.again(ctx, base, s.Unit, s.Segment)
	if err != nil {
		return audit.Opening{}, err
	}
	return x.Answer(mine, s, question)
}
