// Package arena measures the errors of duels between models in contests: how often equal models have a verdict, and how
// often a better model has none. It is the engine of starling bench arena. No model is computed.
package arena

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/protocol/arena"
	"github.com/starling-network/starling/protocol/arena/duel"
)

// Options say what is measured.
type Options struct {
	Null     int // duels of equal models
	Duels    int // of models that differ, for each number of examples and difference
	Progress func(string)
}

// Row is the outcome of duels of one kind.
type Row struct {
	Examples   int     `json:"examples"`
	Difference float64 `json:"difference"` // of the true mean losses, nats
	Duels      int     `json:"duels"`
	Right      float64 `json:"right"` // part of the duels that the better model wins
	Wrong      float64 `json:"wrong"` // part that the worse one wins; of equal models either
}

// Report is the outcome.
type Report struct {
	Rows []Row           `json:"duels"`
	Bars []benchmark.Bar `json:"bars"`
}

// The noise of losses: the loss of an example of some hundred tokens is the difficulty of its text, which both models
// have in common and which is skewed (log-normal, a mean of 3 and a deviation of 0.6 nats), and what a model makes of
// it. The difference of two models has heavy tails (Student's t with 5 degrees of freedom) and a deviation of 0.12
// nats, which grows with the difficulty.
const (
	meanLoss   = 3
	skew       = 0.2
	deviation  = 0.12
	freedom    = 5
	inContests = 2000 // examples
	small      = 0.01 // nats
)

// Measure plays duels.
func Measure(ctx context.Context, o Options) (*Report, error) {
	r, random := &Report{}, rand.New(rand.NewPCG(1, 192))
	for _, kind := range []Row{{Examples: inContests, Duels: o.Null}, {Examples: inContests, Difference: small,
		Duels: o.Duels}, {Examples: inContests / 4, Difference: 2 * small, Duels: o.Duels}} {
		o.Progress(fmt.Sprintf("%d duels on %d examples, %g nats apart", kind.Duels, kind.Examples, kind.Difference))
		row, err := play(ctx, random, kind)
		if err != nil {
			return nil, err
		}
		r.Rows = append(r.Rows, row)
	}
	r.Bars = []benchmark.Bar{
		benchmark.AtLeast("duels of equal models with a verdict, at least", r.Rows[0].Wrong, 0.03),
		benchmark.AtMost("duels of equal models with a verdict, at most", r.Rows[0].Wrong, 0.07),
		benchmark.AtLeast(fmt.Sprintf("duels that a model wins which is %g nats better, on %d examples", small, inContests),
			r.Rows[1].Right, 0.9),
		benchmark.AtMost("duels that it loses", r.Rows[1].Wrong, 0.01),
	}
	return r, nil
}

// play plays the duels of a kind, each both ways.
func play(ctx context.Context, random *rand.Rand, kind Row) (Row, error) {
	right, wrong := 0, 0
	for n := range kind.Duels {
		if err := ctx.Err(); err != nil {
			return kind, err
		}
		better, worse := losses(random, kind.Examples, kind.Difference)
		seed := canon.Sum("benchmark/duel", binary.BigEndian.AppendUint64(nil, uint64(n)),
			binary.BigEndian.AppendUint64(nil, uint64(kind.Examples)))
		first, err := duel.Better(better, worse, duel.Seed(seed, 1, 2))
		if err != nil {
			return kind, err
		}
		second, err := duel.Better(worse, better, duel.Seed(seed, 2, 1))
		switch {
		case err != nil:
			return kind, err
		case first && kind.Difference > 0:
			right++
		case first || second:
			wrong++
		}
	}
	kind.Right = benchmark.Rounded(float64(right)/float64(max(1, kind.Duels)), 4)
	kind.Wrong = benchmark.Rounded(float64(wrong)/float64(max(1, kind.Duels)), 4)
	return kind, nil
}

// losses draws the losses of two models on examples, in the units of contests.
func losses(random *rand.Rand, examples int, difference float64) (better, worse []uint32) {
	student := func() float64 {
		squares := 0.0
		for range freedom {
			x := random.NormFloat64()
			squares += x * x
		}
		return random.NormFloat64() / math.Sqrt(squares/freedom)
	}
	// of each of two models, so that their difference has the deviation
	size := deviation / math.Sqrt(freedom/(freedom-2.)) / math.Sqrt2 / meanLoss
	for range examples {
		difficulty := meanLoss * math.Exp(skew*random.NormFloat64()-skew*skew/2)
		better = append(better, uint32(max(0, difficulty*(1+size*student())-difference)*arena.Unit))
		worse = append(worse, uint32(max(0, difficulty*(1+size*student()))*arena.Unit))
	}
	return better, worse
}
