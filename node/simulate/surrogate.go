package simulate

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/role/engine"
	"github.com/starling-network/starling/sim"
)

// plays reports why a job cannot be played.
func plays(b *prepare.CompiledJob, modelled bool) error {
	switch {
	case modelled && b.Spec.Pipeline != nil:
		return fmt.Errorf("%w: parallel is given, and a model of a job has no stages", ErrSurrogate)
	case modelled && b.Spec.Rollout != nil:
		return fmt.Errorf("%w: it draws answers apart, and a model of a job trains alone", ErrSurrogate)
	}
	return nil
}

// ErrSurrogate is returned for a job that nothing small can stand in for.
var ErrSurrogate = errors.New("nothing small can stand in for the job")

// surrogate is what a simulation trains in place of a job whose mathematics takes too long: a model of some thousand
// parameters, in as many rounds of as many units of as many segments, exchanged in the same way. Only who does what,
// when, and how many bytes it takes are then those of the job.
type surrogate struct {
	*prepare.CompiledJob
	Bulk  sim.ByteScale
	Price uint64 // at which its units cost what those of the job cost, in uzen per 10^15 operations
}

// Of the model and the steps of a stand-in.
const (
	standInBatch, standInLength = 2, 16
	standInSteps                = 5 // of a segment, at most: in its parts machines crash and are stopped
	standInText                 = "the quick brown fox jumps over the lazy dog. "
)

// standInLayers are tried in turn: a model must have as many parts as a round of the job has slices.
var standInLayers = []int{1, 2, 4, 8, 16, 32, 64}

// newSurrogate makes what stands in for a job.
func newSurrogate(ctx context.Context, b *prepare.CompiledJob) (*surrogate, error) {
	corpus, err := data.Build([]source.File{{Format: "text", Name: "fox", Data: []byte(strings.Repeat(standInText, 60))}},
		tokenizer.Bytes(), 0)
	if err != nil {
		return nil, err
	}
	s := &surrogate{CompiledJob: &prepare.CompiledJob{Job: b.Job, Corpus: corpus,
		Manifest: corpus.Manifest(bundle.ShardTokens), Slices: b.Slices}}
	for _, layers := range standInLayers {
		if err := s.build(b.Spec, max(layers, int(b.Spec.Exchange.Fragments))); err != nil {
			return nil, err
		}
		if s.Slices == 0 {
			break
		}
		if most, err := engine.MostSlices(b.Spec.Exchange, s.Step); err != nil || most >= int(s.Slices) {
			break
		}
	}
	if s.Price = priceFor(s.UnitFlops(), b.UnitFlops()); s.Price == 0 {
		return nil, fmt.Errorf("%w: a unit of it has %.3g operations, and no price is high enough for as many", ErrSurrogate,
			float64(b.UnitFlops()))
	}
	return s, s.weigh(ctx, b)
}

// build makes a model of some layers, and the specification of its training after that of the job.
func (s *surrogate) build(of *train.Spec, layers int) (err error) {
	config, err := architecture.Parse(architecture.GPT2, map[string]any{
		"n_layer": layers, "n_embd": 8, "n_head": 1, "n_positions": standInLength, "vocab_size": 256,
	})
	if err != nil {
		return err
	}
	inner := optimizer.AdamW{Beta1: of.Beta1, Beta2: of.Beta2, Eps: 1e-8, MaxGradNorm: 1}
	if of.Exchange.Gradients {
		inner = optimizer.Descent
	}
	if s.Step, err = model.TrainStep(config, inner, standInBatch, standInLength); err != nil {
		return err
	}
	s.Step = s.Step.In(of.Numerics)
	if s.Genesis, err = outer.Genesis(of.Exchange, train.Params(s.Step), config.Init(of.Seed)); err != nil {
		return err
	}
	segments, steps := of.Segments(), min(of.Segment, standInSteps)
	if of.Sizes != nil {
		segments = slices.Max(of.Sizes)
	}
	s.Spec = &train.Spec{
		Version: of.Version, Numerics: of.Numerics, Name: of.Name, Seed: of.Seed, Program: s.Step.Digest(),
		Data: s.Manifest.Digest(), Genesis: s.Genesis.Root(),
		Rounds: of.Rounds, Steps: segments * steps, Segment: steps, Units: of.Units, Sizes: of.Sizes, Batch: standInBatch,
		Length: standInLength,
		Rate:   train.Rate{Kind: train.Constant, Peak: 1e-4}, Beta1: of.Beta1, Beta2: of.Beta2, Exchange: of.Exchange,
	}
	return s.Spec.Check()
}

// priceFor is the price at which the given operations cost as much as the others do at the default price, rounded down;
// 0 if no price is high enough.
func priceFor(operations, others uint64) uint64 {
	high, low := bits.Mul64(market.DefaultPrice, others)
	if high >= operations {
		return 0
	}
	price, _ := bits.Div64(high, low, operations) // a budget may be just enough
	return price
}

// weigh says how many times its bytes the job has.
func (s *surrogate) weigh(ctx context.Context, b *prepare.CompiledJob) error {
	var job, weights, updates [2]int64 // of the job, and of its surrogate
	for i, x := range []*prepare.CompiledJob{b, s.CompiledJob} {
		shipped, err := bundle.ShippedBytes(ctx, x.JobID(), prepare.TaskOf(x, nil), x.Genesis)
		if err != nil {
			return err
		}
		if weights[i], err = bundle.CheckpointBytes(ctx, x.JobID(), x.Genesis); err != nil {
			return err
		}
		job[i] = shipped - weights[i]
		if updates[i], err = x.Size().Update(); x.Slices > 0 && err == nil {
			updates[i], err = x.Size().Traffic()
		}
		if err != nil {
			return err
		}
	}
	times := func(x [2]int64) float64 { return float64(x[0]) / float64(x[1]) }
	s.Bulk = sim.ByteScale{Job: times(job), Weights: times(weights), Updates: times(updates)}
	return nil
}
