// Package federated is the coordinator of federated training: it holds the model, announces rounds to owners of data,
// adds what they send under masks, and lets the outer optimizer move the model by the mean. It never sees the update of
// one owner (docs/federated.md). Its wire carries the messages, and owner is the other side; the rules of a round are
// in exchange/federated.
package federated

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/client/job/owners"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/federated"
	"github.com/starling-network/starling/exchange/fixedpoint"
	"github.com/starling-network/starling/exchange/homomorphic"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/exchange/scaffold"
	"github.com/starling-network/starling/node/federated/wire"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/measured"
	"github.com/starling-network/starling/node/prepare"
)

// Options of a coordinator.
type Options struct {
	Dir     string              // of the run
	Allowed []ed25519.PublicKey // owners that may join; nil: any, up to federated.owners of the job
	Phase   time.Duration       // how long a phase of a secure sum waits for an owner
	Threads int                 // of evaluations
	Say     func(text string)
	Clock   wire.Clock // nil: that of the machine
}

// Coordinator is one job. Its methods may be called at the same time.
type Coordinator struct {
	opt   Options
	b     *prepare.CompiledJob
	eval  *cpu.Exec
	id    canon.Digest
	offer []byte

	mu      sync.Mutex
	changed chan struct{} // closed at each change
	state   state
	model   *train.Checkpoint
	weights []byte // EncodeWeights of model, and of the mean of variates
	variates
	tally tally
	now   federated.Announcement
	round *federated.Round
	seen  map[string]bool // owners that have got the announcement
	told  map[string]bool // owners that know that the job is over
}

// New begins a compiled job in a folder, or continues it. The caller has locked the folder.
func New(b *prepare.CompiledJob, opt Options) (c *Coordinator, err error) {
	switch b.Job.Federated.Updates {
	case owners.Public:
		return nil, ErrPublic
	case owners.Encrypted:
		if err := homomorphic.Fits(Most(b.Genesis) + 1); err != nil {
			return nil, err
		}
	}
	if opt.Clock == nil {
		opt.Clock = wire.Wall{}
	}
	offer := Offer(b)
	c = &Coordinator{opt: opt, b: b, id: offer.Job(), offer: canon.MustMarshal(offer), changed: make(chan struct{}),
		told: map[string]bool{}}
	if _, err := federated.DecodeOffer(c.offer); err != nil { // as an owner would
		return nil, err
	}
	if c.state, err = readState(opt.Dir, c.id); err != nil {
		return nil, err
	}
	scaffold := b.Job.Federated.Method == owners.Scaffold
	if c.model, c.variates, err = readCheckpoint(opt.Dir, b.Genesis, scaffold); err != nil {
		return nil, err
	}
	if err := readRounds(opt.Dir, c.model.Round, func(r Record) { count(c, r) }); err != nil {
		return nil, err
	}
	for c.state.Begun >= int64(c.model.Round) { // it was cut off, and owners answer a round once
		r := Record{Round: c.model.Round, Sent: slices.Clone(c.state.Owners), // as far as is known
			Void: "the coordinator ended while it was under way"}
		if err := appendRound(opt.Dir, r); err != nil {
			return nil, err
		}
		count(c, r)
		c.model = unmoved(c.model)
	}
	if c.eval, err = cpu.Compile(b.Eval, opt.Threads); err != nil {
		return nil, err
	}
	return c, c.save()
}

// ErrPublic is returned for a job whose updates are public: a committee trains it.
var ErrPublic = errors.New("the updates of the job are public, and here none is seen")

// Offer is what owners get of a job.
func Offer(b *prepare.CompiledJob) *federated.Offer {
	set := slices.Clone(b.Job.Overrides)
	if !b.Job.Given("name") { // it is that of the file here
		set = append(set, "name="+b.Job.Name)
	}
	return &federated.Offer{File: b.Job.Source, Overrides: set, Program: b.Step.Digest(),
		Numerics: b.Step.Numerics, Entries: int(b.Size().Parameters() / 4), Base: Base(b)}
}

// Job names the job.
func (c *Coordinator) Job() canon.Digest { return c.id }

// save keeps the state. The caller holds the lock, or is alone.
func (c *Coordinator) save() error {
	return folder.WriteJSON(filepath.Join(c.opt.Dir, FileState), c.state)
}

// count counts the record of a round. The caller holds the lock, or is alone.
func count(c *Coordinator, r Record) {
	c.tally.add(r)
	c.variates.count(r)
}

// change wakes all that wait. The caller holds the lock.
func (c *Coordinator) change() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// until waits until a condition holds, with the lock held while it is checked. It returns with the lock held, unless
// there is an error.
func (c *Coordinator) until(ctx context.Context, holds func() bool) error {
	c.mu.Lock()
	for !holds() {
		changed := c.changed
		c.mu.Unlock()
		if err := c.opt.Clock.Wait(ctx, changed); err != nil {
			return err
		}
		c.mu.Lock()
	}
	return nil
}

// Run plays the rounds of the job, and returns its report.
func (c *Coordinator) Run(ctx context.Context) (*Report, error) {
	if err := c.evaluateFirst(); err != nil {
		return nil, err
	}
	for c.model.Round < c.b.Spec.Rounds {
		r, err := c.play(ctx)
		if err != nil {
			return nil, err
		}
		c.opt.Say(r.String())
	}
	c.mu.Lock()
	c.now, c.round = federated.Announcement{Round: c.b.Spec.Rounds, Over: true}, nil
	c.change()
	c.mu.Unlock()
	r := c.report()
	if err := folder.WriteJSON(filepath.Join(c.opt.Dir, FileReport), r); err != nil {
		return nil, err
	}
	return r, c.export()
}

// Lingers is how long the coordinator of a job that is over answers owners that do not know it.
const Lingers = 10 * time.Second

// Linger waits until all owners know that the job is over, or a time.
func (c *Coordinator) Linger(ctx context.Context, most time.Duration) {
	ctx, cancel := c.opt.Clock.Within(ctx, most)
	defer cancel()
	if c.until(ctx, func() bool { return len(c.told) >= len(c.state.Owners) }) == nil {
		c.mu.Unlock()
	}
}

// open announces the round that follows the model. The caller does not hold the lock.
func (c *Coordinator) open() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(c.model.Round, idleSums(c.b.Job.Federated.Sample))
	c.weights = EncodeWeights(slices.Concat(c.model.Params, c.mean()))
	c.now = federated.Announcement{Round: c.model.Round, Model: WeightsDigest(c.weights), Since: c.since}
	var err error
	f := c.b.Job.Federated
	c.round, err = federated.NewRound(c.id, c.now, federated.Conditions{Cohort: f.MinCohort,
		Encrypted: f.Updates == owners.Encrypted}, Entries(c.model, c.model.Round))
	c.seen = map[string]bool{}
	c.change()
	return err
}

// play plays one round, and moves the model.
func (c *Coordinator) play(ctx context.Context) (Record, error) {
	if err := c.open(); err != nil {
		return Record{}, err
	}
	void, err := c.collect(ctx)
	if err != nil {
		return Record{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.record(void)
	next, variates := unmoved(c.model), c.variates
	if void == "" {
		moved, steered, err := c.advance()
		if err != nil {
			r.Void = err.Error()
		} else {
			next, variates = moved, steered
		}
	}
	every := uint32(c.b.Job.Eval.EverySteps / c.b.Job.Strategy.SyncSteps)
	if r.Void == "" && (next.Round%every == 0 || next.Round == c.b.Spec.Rounds) {
		if r.Loss, r.Measured, err = measured.Evaluate(c.b, c.eval, next); err != nil {
			return r, err
		}
	}
	c.model, c.variates, c.round = next, variates, nil
	count(c, r)
	c.change()
	if err := appendRound(c.opt.Dir, r); err != nil {
		return r, err
	}
	return r, writeCheckpoint(c.opt.Dir, c.model, c.variates)
}

// unmoved is the checkpoint after a round without a sum.
func unmoved(c *train.Checkpoint) *train.Checkpoint {
	return &train.Checkpoint{Round: c.Round + 1, Names: c.Names, Params: c.Params, Outer: c.Outer}
}

// advance moves the model by the mean of the updates of a round that is over, and the variates with it.
func (c *Coordinator) advance() (*train.Checkpoint, variates, error) {
	base, turn := c.model, federated.Turn(c.model.Names, c.model.Round)
	part := &train.Checkpoint{Round: base.Round, Outer: make([][]*tensor.Tensor, len(base.Outer))}
	var shapes []tensor.Shape
	for _, i := range turn {
		part.Names, part.Params = append(part.Names, base.Names[i]), append(part.Params, base.Params[i])
		shapes = append(shapes, base.Params[i].Shape)
		for k, list := range base.Outer {
			part.Outer[k] = append(part.Outer[k], list[i])
		}
	}
	f := c.b.Job.Federated
	if err := c.round.Plausible(f.Noise.Multiplier, f.Weights == owners.Equal); err != nil {
		return nil, c.variates, err
	}
	mean, err := fixedpoint.Mean(c.round.Sum(), f.Clip, shapes)
	if err != nil {
		return nil, c.variates, err
	}
	moved, err := outer.Advance(c.b.Spec, part, [][]*tensor.Tensor{mean})
	if err != nil {
		return nil, c.variates, err
	}
	next := unmoved(base)
	next.Params, next.Outer = slices.Clone(base.Params), slices.Clone(base.Outer)
	for k := range next.Outer {
		next.Outer[k] = slices.Clone(next.Outer[k])
	}
	for at, i := range turn {
		if next.Params[i] = moved.Params[at]; slices.ContainsFunc(next.Params[i].F32(), infinite) {
			return nil, c.variates, fmt.Errorf("the mean makes weights that are not finite")
		}
		for k := range next.Outer {
			next.Outer[k][i] = moved.Outer[k][at]
		}
	}
	return next, c.variates.after(c.mean(), mean, c.round.Cohort(), scaffold.Rates(c.b.Spec, base.Round)), nil
}

// collect gathers the messages of a round, and says why it has no sum, if it has none. The error is that of the context
// or of the disk.
func (c *Coordinator) collect(ctx context.Context) (void string, err error) {
	if void, err = c.gather(ctx); void != "" || err != nil {
		return void, err
	}
	for _, p := range federated.Phases {
		if p != federated.Keys {
			limited, cancel := c.opt.Clock.Within(ctx, c.opt.Phase)
			err := c.until(limited, func() bool { return c.round.Missing() == 0 })
			cancel()
			if err == nil {
				c.mu.Unlock()
			} else if !errors.Is(err, context.DeadlineExceeded) {
				return "", err
			}
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		c.mu.Lock()
		if p == federated.Keys {
			c.state.Begun = int64(c.now.Round)
			err = c.save()
		}
		closed := c.round.Close()
		c.change()
		c.mu.Unlock()
		if err != nil {
			return "", err
		}
		if closed != nil {
			return closed.Error(), nil
		}
	}
	return "", nil
}

// settled is how long a round with enough owners waits for others to ask for it.
const settled = 3 * time.Second

// gather waits for the keys of owners that have an update. Those that got the announcement and are drawn are waited for
// up to the time of a round; in the first round, all owners of the job.
func (c *Coordinator) gather(ctx context.Context) (void string, err error) {
	f := c.b.Job.Federated
	most := time.Duration(c.b.Job.Strategy.RoundTimeout)
	begun := c.opt.Clock.Now()
	for {
		if err := wire.Pause(ctx, c.opt.Clock, 100*time.Millisecond); err != nil {
			return "", err
		}
		c.mu.Lock()
		drawn, have := 0, c.round.Answers(federated.Keys)
		for name := range c.seen {
			if c.drawn(ed25519.PublicKey(name)) {
				drawn++
			}
		}
		all := len(c.seen) >= f.Owners
		first := c.model.Round == 0
		c.mu.Unlock()
		waited := c.opt.Clock.Now().Sub(begun)
		switch {
		case all && drawn < f.MinCohort:
			return fmt.Sprintf("%d owners are drawn, wanted %d", drawn, f.MinCohort), nil
		case have < f.MinCohort && f.Sample < 1 && waited > most:
			return fmt.Sprintf("%d owners answered, wanted %d", have, f.MinCohort), nil
		case have < f.MinCohort:
		case waited > most, have >= drawn && (all || !first && waited > settled):
			return "", nil
		}
	}
}

func (c *Coordinator) drawn(name ed25519.PublicKey) bool {
	return federated.Drawn(c.id, c.now, name, c.b.Job.Federated.Sample)
}
