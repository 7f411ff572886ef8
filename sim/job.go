package sim

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/aggregate"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/checkpoint"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/role/engine"
	"github.com/starling-network/starling/role/hold"
)

// Job is what a simulated network trains: a real job, whose mathematics is done once, however many parties ask for it.
type Job struct {
	Task    *train.Task
	Genesis *train.Checkpoint

	id     string
	shared *hold.Shared             // what all parties hold
	known  map[unitKey]*engine.Work // units computed before, by anybody honest
	// roots of checkpoints that updates have led to, by whoever combined them as the rules say
	right   map[canon.Digest]bool
	bases   []canon.Digest // that they start from, in the order in which they were first asked for
	lineage []canon.Digest // roots of honest checkpoints, from genesis
	last    *train.Checkpoint
	from    []work.HandedState // what the units after it start from
	handed  []hold.Blob        // blobs of that
	sent    []sent             // units whose updates are in no checkpoint yet
}

// sent is what there is of a unit.
type sent struct {
	unit   *work.Unit
	update []byte
}

// shelf is a store without peers.
type shelf struct{ blob.Store }

// Fetch implements engine.Peers.
func (s shelf) Fetch(ctx context.Context, c blob.CID, _ []string) ([]byte, error) {
	return s.Get(ctx, c)
}

// Each implements engine.Peers.
func (shelf) Each(n int, do func(i int)) { checkpoint.InTurn(n, do) }

// remembered is from how many checkpoints the units are known. Who asks for older ones waits for them again.
const remembered = 3

// unitKey names a unit by all that its result depends on.
type unitKey struct {
	base    canon.Digest
	unit    uint32
	segment uint32       // to the end of which it is computed; 0: all of it
	slices  uint32       // of the update
	from    canon.Digest // root of what is handed on to the unit
}

// Size of a job.
type Size struct {
	Rounds, Units, Steps, Segment uint32
	Rate                          float64  // learning rate; 0: one that learns
	Carry                         uint32   // rounds through which units hand on what updates left out; 0: nothing is
	Replicas                      bool     // units begin from that, and have sent one of eight elements
	Overlap                       bool     // rounds overlap: units begin from their own progress, which is sent meanwhile
	Moments                       bool     // the moments of the inner optimizer are handed on, too
	Fragments                     uint32   // of which rounds that overlap send one; 0: all
	Sizes                         []uint32 // segments of every unit; nil: all are whole
}

// NewJob makes a language model of some thousand parameters and a text for it to read.
func NewJob(z Size) (*Job, error) {
	const batch, length, seed = 1, 8, 3
	size := map[string]any{"n_layer": 1, "n_embd": 8, "n_head": 1, "n_positions": length, "vocab_size": 256}
	config, err := model.Parse(model.GPT2, size)
	if err != nil {
		return nil, err
	}
	o := optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, MaxGradNorm: 1}
	step, err := model.TrainStep(config, o, batch, length)
	if err != nil {
		return nil, err
	}
	text := []byte(strings.Repeat("the quick brown fox jumps over the lazy dog. ", 60))
	corpus, err := data.Build([]data.Source{{Format: "text", Name: "fox", Data: text}}, tokenizer.Bytes(), 0)
	if err != nil {
		return nil, err
	}
	exchange := train.Exchange{Codec: codec.Int8, Rule: aggregate.Mean, Outer: outer.Nesterov, Rate: 0.7, Momentum: 0.9}
	switch {
	case z.Overlap:
		exchange.Overlap, exchange.Carry, exchange.Fragments = 1, z.Carry, z.Fragments
	case z.Replicas:
		exchange.Pick, exchange.Carry = 8, z.Carry
	case z.Carry > 0:
		exchange = train.Exchange{Codec: codec.TopKName(82, 2), Rule: aggregate.Contributors, Outer: outer.SGD, Rate: 1,
			Feedback: 0.95, Carry: z.Carry}
	}
	exchange.Moments = z.Moments
	genesis, err := outer.Genesis(exchange, train.Params(step), config.Init(seed))
	if err != nil {
		return nil, err
	}
	spec := &train.Spec{
		Version: 1, Numerics: kernel.Version, Name: "sim", Seed: seed, Program: step.Digest(),
		Data:    corpus.Manifest(bundle.ShardTokens).Digest(),
		Genesis: genesis.Root(), Rounds: z.Rounds, Steps: z.Steps, Segment: z.Segment, Units: z.Units, Batch: batch,
		Length: length,
		Rate:   train.Rate{Kind: train.Cosine, Peak: cmp.Or(z.Rate, 1e-2), Warmup: 2, Floor: 0.1}, Beta1: 0.9, Beta2: 0.95,
		Exchange: exchange, Sizes: z.Sizes,
	}
	if err := spec.Check(); err != nil {
		return nil, err
	}
	exec, err := cpu.Compile(step, 1)
	if err != nil {
		return nil, err
	}
	return Of("job-"+spec.Digest().Short(), &train.Task{Spec: spec, Step: step, Exec: exec, Corpus: corpus}, genesis), nil
}

// Of returns the job of a task, with its identifier.
func Of(id string, task *train.Task, genesis *train.Checkpoint) *Job {
	return &Job{Task: task, Genesis: genesis, id: id, known: map[unitKey]*engine.Work{}, right: map[canon.Digest]bool{},
		lineage: []canon.Digest{genesis.Root()}, last: genesis, shared: hold.NewShared(0)}
}

// ID of the job.
func (j *Job) ID() string { return j.id }

// Terms of the order: those of a job on a network, but for deadlines that a test sets.
func (c Config) Terms() terms.Terms {
	j := c.Job
	t := bundle.Terms(j.ID(), j.Task.Spec, j.Task.Step.Flops(), bundle.Checks{
		AuditPPM: c.AuditPPM, Drawn: c.Drawn, Screen: terms.ScreenUpdates, Tolerance: c.Tolerance, Slices: c.Slices,
	})
	if d := c.Deadline; d > 0 {
		t.Deadlines = terms.Deadlines{Train: d, Audit: d, Attest: d, Challenge: 30}
	}
	return t
}

// Root is the state root after some rounds of honest work. It does not depend on who works.
func (j *Job) Root(rounds uint32) (canon.Digest, error) {
	for uint32(len(j.lineage)) <= rounds {
		s := j.Task.Spec
		name := terms.Checkpoint{Round: j.last.Round, Root: j.lineage[j.last.Round]}
		store := blob.NewMemory()
		e, err := engine.New(terms.Terms{Job: j.ID()}, j.Task, store, shelf{store})
		if err != nil {
			return canon.Digest{}, err
		}
		e.Hold(name, j.last)
		var at run.State
		at.Round, at.Base, at.From = name.Round, name, j.from
		e.Follow(at)
		for _, h := range j.handed {
			b, err := h.Get()
			if _, failed := store.Put(context.Background(), b); cmp.Or(err, failed) != nil {
				return canon.Digest{}, cmp.Or(err, failed)
			}
		}
		j.from, j.handed = nil, nil
		for i := range s.Units {
			if err := e.Start(context.Background(), name, i, nil); err != nil {
				return canon.Digest{}, err
			}
			w, err := memo{e, j, 0}.Train(context.Background(), name, i)
			if err != nil {
				return canon.Digest{}, err
			}
			if s.Carries(name.Round) {
				j.from, j.handed = append(j.from, w.Commit.HandedState), append(j.handed, w.Handed...)
			}
			j.sent = append(j.sent, sent{&work.Unit{Index: i, Commit: w.Commit}, w.Update})
		}
		used := j.sent[:len(s.Applied(name.Round))*int(s.Units)]
		j.sent = j.sent[len(used):]
		units := make(work.Units, len(used))
		for i := range used {
			units[i] = used[i].unit
		}
		a, err := e.Advance(context.Background(), name, units, func(i int) ([]byte, error) { return used[i].update, nil })
		if err != nil {
			return canon.Digest{}, err
		}
		if j.last, err = e.Base(a.Next); err != nil {
			return canon.Digest{}, err
		}
		j.lineage = append(j.lineage, a.Next.Root)
	}
	return j.lineage[rounds], nil
}

// memo is an engine that looks a unit up before it computes it: a unit is a pure function, whoever asks.
type memo struct {
	*engine.Engine
	job    *Job
	slices uint32
}

// Train implements party.Compute.
func (m memo) Train(ctx context.Context, name terms.Checkpoint, unit uint32) (*engine.Work, error) {
	return m.trainTo(ctx, name, unit, 0)
}

func (m memo) trainTo(ctx context.Context, name terms.Checkpoint, unit, segment uint32) (*engine.Work, error) {
	var from work.HandedState
	if m.Needs(segment) {
		var err error
		if from, err = m.From(name, unit); err != nil {
			return nil, err
		}
	}
	key := unitKey{name.Root, unit, segment, m.slices, from.Root}
	if w, ok := m.job.known[key]; ok {
		return w, nil
	}
	w, err := m.TrainTo(ctx, name, unit, segment)
	if err == nil {
		m.job.remember(key, w)
	}
	return w, err
}

func (j *Job) remember(key unitKey, w *engine.Work) {
	j.known[key] = w
	if slices.Contains(j.bases, key.base) {
		return
	}
	if j.bases = append(j.bases, key.base); len(j.bases) > remembered {
		maps.DeleteFunc(j.known, func(k unitKey, _ *engine.Work) bool { return k.base == j.bases[0] })
		j.bases = j.bases[1:]
	}
}

// Advance implements party.Lineage.
func (m memo) Advance(ctx context.Context, base terms.Checkpoint, units work.Units,
	get func(i int) ([]byte, error)) (engine.Advanced, error) {
	a, err := m.Engine.Advance(ctx, base, units, get)
	if err == nil {
		m.job.right[a.Next.Root] = true
	}
	return a, err
}

// Check implements party.Compute.
func (m memo) Check(ctx context.Context, name terms.Checkpoint, s audit.Subject,
	c work.Commitment) (engine.Comparison, error) {
	mine, err := m.trainTo(ctx, name, s.Unit, s.Segment)
	if err != nil {
		return engine.Comparison{}, err
	}
	return m.Compare(mine, s, c), nil
}

// Measure implements party.Compute.
func (m memo) Measure(ctx context.Context, name terms.Checkpoint, unit uint32, c work.Commitment,
	update []byte) (audit.Finding, error) {
	mine, err := m.Train(ctx, name, unit)
	if err != nil {
		return audit.Finding{}, err
	}
	return m.Find(mine, name, unit, c, update)
}

// Unseal implements party.Compute.
func (m memo) Unseal(ctx context.Context, name terms.Checkpoint, s audit.Subject,
	question canon.Digest) (audit.Opening, error) {
	mine, err := m.trainTo(ctx, name, s.Unit, s.Segment)
	if err != nil {
		return audit.Opening{}, err
	}
	return m.Answer(mine, s, question)
}
