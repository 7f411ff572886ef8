package model

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/record"
	"github.com/starling-network/starling/compute/tensor"
)

// float32Batch is a float32 input of a batch.
func float32Batch(name string, dims ...int) Named {
	return Named{Name: name, Shape: tensor.Make(tensor.Float32, dims...)}
}

// masked is a task on sequences of which some tokens count. Batch: "tokens" int32 [rows, seqLen+1], "mask" float32
// [rows, seqLen], then more.
func (c Config) masked(rows, seqLen int, more ...Named) (Task, error) {
	batch := []Named{tokenBatch(rows, seqLen+1), float32Batch("mask", rows, seqLen)}
	return c.task(append(batch, more...)...), c.check(rows, seqLen)
}

// logProbs is the logarithm of the probability of each of tokens [rows, seqLen+1] but the first: [rows, seqLen].
func (c Config) logProbs(w weights, tokens *graph.Node) *graph.Node {
	seen, next := shift(tokens)
	return graph.Reshape(graph.Neg(record.CrossEntropy(c.logits(w, seen), flat(next))), dims(next)...)
}

// MaskedLanguage is Language on sequences with padding, or with prompts that are not to be learnt. Batch: "tokens" int32
// [batch, seqLen+1], all of them ids of the vocabulary; "mask" float32 [batch, seqLen], 1 where token t+1 counts and 0
// where it does not. The loss is the mean cross-entropy over the tokens that count, 0 if none does.
func MaskedLanguage(c Config, batch, seqLen int) (Task, error) {
	t, err := c.masked(batch, seqLen)
	t.loss = func(w weights, in, _ []*graph.Node) []*graph.Node {
		seen, next := shift(in[0])
		return []*graph.Node{mean(record.CrossEntropy(c.logits(w, seen), flat(next)), flat(in[1]))}
	}
	return t, err
}

// LogProbs returns the program of the log-probabilities of given tokens. Inputs: "tokens" and "mask" as those of
// MaskedLanguage, and the tensors "p/<name>"; outputs: "logprobs" [batch, seqLen] of each token but the first, and
// "total" [batch], their sums over the tokens that count. They are what DPO takes of the reference model, and GRPO of
// the model that sampled, to the bit.
func LogProbs(c Config, batch, seqLen int) (*program.Program, error) {
	t, err := c.masked(batch, seqLen)
	if err != nil {
		return nil, err
	}
	b := program.NewBuilder()
	values, err := record.Record(b, func(g *graph.Graph) []*graph.Node {
		in := parameters(g, "", t.Batch)
		w, _ := t.inputs(g)
		each := c.logProbs(w, in[0])
		return []*graph.Node{each, graph.ReduceSum(graph.Mul(each, in[1]), -1)}
	})
	if err != nil {
		return nil, err
	}
	b.Output("logprobs", values[0])
	b.Output("total", values[1])
	return finish(b)
}

// DPO is direct preference optimisation (Rafailov et al. 2023, equation 7) with the strength beta, above 0. Batch:
// "tokens" int32 [2*pairs, seqLen+1], the preferred answers, then the others in the same order; "mask" float32
// [2*pairs, seqLen], 1 for the tokens of the answers; "reference" float32 [2*pairs], the "total" that LogProbs of the
// reference model gives them. With the gain of an answer its log-probability less the reference, the margin of a pair is
// beta times the difference of the gains, and the loss the mean of -log sigmoid(margin): ln 2 where both models agree.
// Metrics: "accuracy", the share of pairs with a margin above 0, and "margin", the mean.
func DPO(c Config, beta float64, pairs, seqLen int) (Task, error) {
	if !(beta > 0 && beta <= 1e3) {
		return Task{}, fmt.Errorf("%w: DPO with beta %g; it must be above 0 and at most 1000", ErrStep, beta)
	}
	if pairs < 1 || pairs > 1<<15 {
		return Task{}, fmt.Errorf("%w: DPO on %d pairs; there must be 1 to 32768", ErrStep, pairs)
	}
	t, err := c.masked(2*pairs, seqLen, float32Batch("reference", 2*pairs))
	t.Metrics = []string{"accuracy", "margin"}
	t.loss = func(w weights, in, _ []*graph.Node) []*graph.Node {
		total := graph.ReduceSum(graph.Mul(c.logProbs(w, in[0]), in[1]), -1)
		gain := graph.Sub(total, in[2])
		preferred, other := graph.Slice(gain, graph.AxisRange(0, pairs)), graph.Slice(gain, graph.AxisRange(pairs))
		margin := graph.MulScalar(graph.Sub(preferred, other), beta)
		all := graph.OnesLike(margin)
		won := graph.ConvertDType(graph.GreaterThan(margin, graph.ZerosLike(margin)), dtypes.Float32)
		return []*graph.Node{mean(softplus(graph.Neg(margin)), all), mean(won, all), mean(margin, all)}
	}
	return t, err
}

// softplus is log(1+exp(x)) = -log sigmoid(-x), in a form that overflows nowhere and whose gradient is the sigmoid at 0
// too.
func softplus(x *graph.Node) *graph.Node {
	top := graph.StopGradient(graph.Max(x, graph.ZerosLike(x)))
	return graph.Add(top, graph.Log(graph.Add(graph.Exp(graph.Neg(top)), graph.Exp(graph.Sub(x, top)))))
}

// Clip bounds the ratio of probabilities of GRPO.
type Clip struct {
	Low, High float64 // ratios below 1-Low and above 1+High give no further gain
	Limit     float64 // no ratio counts for more, also where it is a loss: bounds the step away from a bad answer
}

// GRPO is policy optimisation on groups of sampled answers (Shao et al. 2024) with the two-sided clip of INTELLECT-2
// (2505.07291, section 3.4). Batch: "tokens" int32 [batch, seqLen+1]; "mask" float32 [batch, seqLen], 1 for sampled
// tokens; "behaviour" float32 [batch, seqLen], the "logprobs" of the model that sampled them; "advantage" float32
// [batch] of the answers. With the ratio r = exp(logprob - behaviour) the loss is the mean over the sampled tokens of
// -min(min(r, Limit)*advantage, clip(r, 1-Low, 1+High)*advantage). Metrics over the same tokens: "divergence", the mean
// of r-1-log r, and "clipped", the share without gradient.
func GRPO(c Config, clip Clip, batch, seqLen int) (Task, error) {
	if !(clip.Low > 0 && clip.Low < 1 && clip.High > 0 && clip.Limit >= 1+clip.High && clip.Limit <= 1e6) {
		return Task{}, fmt.Errorf("%w: GRPO with clip %+v; Low must be in 0..1, High above 0, Limit in 1+High..1e6", ErrStep, clip)
	}
	t, err := c.masked(batch, seqLen, float32Batch("behaviour", batch, seqLen), float32Batch("advantage", batch))
	t.Metrics = []string{"divergence", "clipped"}
	t.loss = func(w weights, in, _ []*graph.Node) []*graph.Node {
		mask := in[1]
		change := graph.Mul(graph.Sub(c.logProbs(w, in[0]), in[2]), mask) // 0 where nothing counts, whatever was given
		ratio := graph.Exp(change)
		gain, free := clip.gain(ratio, across(in[3], ratio))
		divergence := graph.Sub(graph.AddScalar(ratio, -1), change)
		held := graph.Sub(graph.OnesLike(free), free)
		return []*graph.Node{graph.Neg(mean(gain, mask)), mean(graph.StopGradient(divergence), mask), mean(held, mask)}
	}
	return t, err
}

// gain is what GRPO maximises, and 1 where it has a gradient, else 0. Each minimum passes its gradient to one side.
func (clip Clip) gain(ratio, advantage *graph.Node) (gain, free *graph.Node) {
	below := func(x *graph.Node, bound float64) (*graph.Node, *graph.Node) {
		limit := graph.MulScalar(graph.OnesLike(x), bound)
		return graph.LessThan(x, limit), limit
	}
	under, limit := below(ratio, clip.Limit)
	short, low := below(ratio, 1-clip.Low)
	near, high := below(ratio, 1+clip.High)
	bounded := graph.Mul(graph.Where(under, ratio, limit), advantage)
	clipped := graph.Mul(graph.Where(short, low, graph.Where(near, ratio, high)), advantage)
	first := graph.LessOrEqual(bounded, clipped)
	inside := graph.LogicalAnd(near, graph.LogicalNot(short))
	moves := graph.Where(first, under, inside)
	return graph.Where(first, bounded, clipped), graph.ConvertDType(moves, dtypes.Float32)
}
