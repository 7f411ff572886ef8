// Package workload is what a simulated network trains: a real job, whose mathematics is done once, however many parties
// ask for it. It takes no time and knows no network.
package workload

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/aggregate"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/checkpoint"
	"github.com/starling-network/starling/protocol/market"
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
	Shared  *hold.Shared // what all parties hold

	id       string
	known    map[unitKey]*engine.Work // units computed before, by anybody honest
	bytes    int                      // of known
	combined []combined               // the latest by any honest party, as many as bases
	// roots of checkpoints that updates have led to, combined as the rules say
	right   map[canon.Digest]bool
	bases   []canon.Digest // that they start from, in the order in which they were first asked for
	lineage []canon.Digest // roots of honest checkpoints, from genesis
	last    *train.Checkpoint
	from    []work.HandedState // what the units after it start from
	handed  []hold.Blob        // blobs of that
	sent    []sent             // units whose updates are in no checkpoint yet

	whole *Job // the same job whose units are replicas, where they are stages of these; nil: they are not

	answers map[uint32][][]*tensor.Tensor // by round, what each unit of it that draws has passed on
}

// sent is what there is of a unit.
type sent struct {
	unit   *work.Unit
	update []byte
}

// sharedStore is a store without peers.
type sharedStore struct{ blob.Store }

// Fetch implements engine.Peers.
func (s sharedStore) Fetch(ctx context.Context, c blob.CID, _ []string) ([]byte, error) {
	return s.Get(ctx, c)
}

// Each implements engine.Peers.
func (sharedStore) Each(n int, do func(i int)) { checkpoint.InTurn(n, do) }

// A job keeps the units that start from its latest checkpoints. While it has more checkpoints than remembered, and the
// units take more bytes than maxRemembered, it drops the units of the oldest, which are computed again if asked for.
const (
	remembered    = 3
	maxRemembered = 64 << 20
)

// unitKey names a unit by all that its result depends on.
type unitKey struct {
	base    canon.Digest
	unit    uint32
	segment uint32       // to the end of which it is computed; 0: all of it
	slices  uint32       // of the update
	from    canon.Digest // root of the state that the unit begins from
}

// Size of a job.
type Size struct {
	Rounds, Units, Steps, Segment uint32
	Rate                          float64        // learning rate; 0: one that learns
	Carry                         uint32         // rounds through which units carry what updates left out; 0: none is
	Replicas                      bool           // units begin from that, and have sent one of eight elements
	Overlap                       bool           // units begin from their own progress, which is sent meanwhile
	Moments                       bool           // the moments of the inner optimizer are carried, too
	Fragments                     uint32         // of which rounds that overlap send one; 0: all
	Sizes                         []uint32       // segments of every unit; nil: all are whole
	Rollout                       *train.Rollout // units learn from answers that others draw; nil: they continue text
	Game                          bool           // these answers are those of three stages
	Across                        bool           // of which the later ones read answers of other units
	Numerics                      uint32         // version of the numerics; 0: that of a new network
}

// Sizes of small jobs, of five rounds of which the first three and the last two carry a state.
var (
	Plain = Size{Rounds: 3, Units: 4, Steps: 6, Segment: 3}
	// what their updates leave out
	Carrying = Size{Rounds: 5, Units: 4, Steps: 6, Segment: 3, Carry: 3}
	// their own parameters, which they begin from
	Replicating = Size{Rounds: 5, Units: 4, Steps: 6, Segment: 3, Carry: 3, Replicas: true}
	// what they have sent, while that is exchanged
	Overlapping = Size{Rounds: 5, Units: 4, Steps: 6, Segment: 3, Carry: 3, Overlap: true}
	Streaming   = Size{Rounds: 5, Units: 4, Steps: 6, Segment: 3, Carry: 3, Overlap: true, Fragments: 2} // of fragments
)

// New makes a language model of some thousand parameters and a text for it to read.
func New(z Size) (*Job, error) {
	const batch, length, seed = 1, 8, 3
	if z.Rollout != nil {
		return newApart(z)
	}
	size := map[string]any{"n_layer": 1, "n_embd": 8, "n_head": 1, "n_positions": length, "vocab_size": 256}
	config, err := architecture.Parse(architecture.GPT2, size)
	if err != nil {
		return nil, err
	}
	o := optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, MaxGradNorm: 1}
	step, err := model.TrainStep(config, o, batch, length)
	if err != nil {
		return nil, err
	}
	step = step.In(cmp.Or(z.Numerics, market.DefaultParams().NumericsAt(1)))
	text := []byte(strings.Repeat("the quick brown fox jumps over the lazy dog. ", 60))
	corpus, err := data.Build([]source.File{{Format: "text", Name: "fox", Data: text}}, tokenizer.Bytes(), 0)
	if err != nil {
		return nil, err
	}
	exchange := train.Exchange{Codec: codec.Int8, Rule: aggregate.Mean, Outer: outer.Nesterov, Rate: 0.7, Momentum: 0.9}
	switch {
	case z.Overlap:
		exchange.Overlap, exchange.Carry, exchange.Fragments = 1, z.Carry, z.Fragments
	case z.Replicas:
		exchange.SampleEvery, exchange.Carry = 8, z.Carry
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
		Version: 1, Numerics: step.Numerics, Name: "sim", Seed: seed, Program: step.Digest(),
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
	j := &Job{Task: task, Genesis: genesis, id: id, known: map[unitKey]*engine.Work{}, right: map[canon.Digest]bool{},
		lineage: []canon.Digest{genesis.Root()}, last: genesis, Shared: hold.NewShared(0)}
	if task.Spec.Pipeline != nil {
		j.whole = Of(id, &train.Task{Spec: task.Spec.Unsplit(), Step: task.Step, Exec: task.Exec, Corpus: task.Corpus,
			Frozen: task.Frozen, FrozenRoots: task.FrozenRoots}, genesis)
	}
	return j
}

// ID of the job.
func (j *Job) ID() string { return j.id }

// Led notes that updates have led to a checkpoint with a root.
func (j *Job) Led(root canon.Digest) { j.right[root] = true }

// Right reports whether updates have led to a checkpoint with a root, as some party combined them by the rules.
func (j *Job) Right(root canon.Digest) bool { return j.right[root] }

// After is the checkpoint after some rounds of honest work. It does not depend on the workers. The job does not say
// those before the last that was asked for.
func (j *Job) After(rounds uint32) (*train.Checkpoint, error) {
	if j.whole != nil {
		return j.whole.After(rounds)
	}
	if _, err := j.Root(rounds); err != nil {
		return nil, err
	}
	if j.last.Round != rounds {
		return nil, fmt.Errorf("workload: round %d is over", rounds)
	}
	return j.last, nil
}

// Root is the state root after some rounds of honest work. It does not depend on the workers.
func (j *Job) Root(rounds uint32) (canon.Digest, error) {
	if j.whole != nil {
		return j.whole.Root(rounds)
	}
	for uint32(len(j.lineage)) <= rounds {
		s := j.Task.Spec
		if s.Rollout != nil {
			if err := j.learn(); err != nil {
				return canon.Digest{}, err
			}
			continue
		}
		name := terms.Checkpoint{Round: j.last.Round, Root: j.lineage[j.last.Round]}
		store := blob.NewMemory()
		e, err := engine.New(terms.Terms{Job: j.ID()}, j.Task, store, sharedStore{store})
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
			w, err := j.Memo(e, 0).Train(context.Background(), name, i)
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
