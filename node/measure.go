package node

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/compute/generate"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/protocol/run"
)

// losses returns the mean training loss of every inner step of a round, over the units whose log can be had; nil if
// none can. Logs are for people: a missing one does not hold the run up.
func (c *collector) losses(ctx context.Context, e run.Entry, holders []string) []float64 {
	return meanLosses(c.b.Spec, e, func(cid string) ([]byte, error) { return c.unitLog(ctx, cid, holders) }, func(unit int, err error) {
		c.log.Warn("no log of a unit", "round", e.Attestation.Checkpoint.Round, "unit", unit, "err", err)
	})
}

func meanLosses(spec *train.Spec, e run.Entry, get func(cid string) ([]byte, error), missing func(unit int, err error)) []float64 {
	sum := make([]float64, spec.Steps)
	n := 0.0
	for unit, cid := range e.Logs {
		var losses []float32
		text, err := get(cid)
		if err == nil {
			losses, err = train.DecodeLog(text, e.Attestation.Checkpoint.Round-1, uint32(unit), spec.Steps)
		}
		if err != nil {
			missing(unit, err)
			continue
		}
		n++
		for i, l := range losses {
			sum[i] += float64(l)
		}
	}
	if n == 0 {
		return nil
	}
	for i := range sum {
		sum[i] /= n
	}
	return sum
}

func (c *collector) unitLog(ctx context.Context, cid string, holders []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchPatience)
	defer cancel()
	id, err := blob.Parse(cid)
	if err != nil {
		return nil, err
	}
	b, err := c.host.Fetch(ctx, id, holders)
	if err != nil {
		return nil, err
	}
	return b, c.store.Delete(ctx, id)
}

// measure evaluates a checkpoint, if one is due, and returns the metrics of its round, the one of the whole round last, and
// what the next round is measured from.
func (c *collector) measure(ctx context.Context, round uint32, ckpt *train.Checkpoint, losses []float64) ([]Metric, mark, error) {
	after := mark{at: time.Now(), step: int(round * c.b.Spec.Steps)}
	ms, err := c.b.metrics(c.eval, round, ckpt, losses, c.progress.Workers)
	if err != nil {
		return nil, after, err
	}
	m := &ms[len(ms)-1]
	m.Time = after.at.UTC().Truncate(time.Millisecond)
	after.sent, after.received = c.moved()
	if round > 0 {
		m.Seconds = after.at.Sub(c.mark.at).Seconds()
		m.TokensPerSecond = float64(m.Tokens-c.b.tokens(c.mark.step)) / m.Seconds
		m.BytesUp, m.BytesDown = after.sent-c.mark.sent, after.received-c.mark.received
	}
	if escrow, err := c.chain.Escrow(ctx, c.b.JobID()); err == nil {
		m.PaidUzen = escrow.Paid + escrow.Fee
	}
	return ms, after, nil
}

// tokens trained in so many inner steps of all units.
func (b *Blueprint) tokens(steps int) uint64 {
	return uint64(steps) * uint64(b.Spec.Units*b.Spec.Batch*b.Spec.Length)
}

// metrics of the inner steps of a round and, last, of the round, as far as they follow from the job and what was computed. A
// checkpoint that is nil is not evaluated.
func (b *Blueprint) metrics(eval *program.Exec, round uint32, ckpt *train.Checkpoint, losses []float64, workers int) (ms []Metric, err error) {
	spec := b.Spec
	total := spec.Rounds * spec.Steps
	for i, l := range losses {
		at := (round-1)*spec.Steps + uint32(i)
		ms = append(ms, Metric{Kind: "step", Round: round, Step: at + 1, Loss: l, Tokens: b.tokens(int(at) + 1),
			LearningRate: float64(spec.Rate.At(at, total)), Workers: workers})
	}
	step := round * spec.Steps
	m := Metric{Kind: "round", Round: round, Step: step, Tokens: b.tokens(int(step)), Workers: workers}
	if every := max(1, b.Job.Eval.EverySteps); ckpt != nil && (int(step)%every == 0 || round == spec.Rounds) {
		if m.EvalLoss, err = b.evaluate(eval, ckpt); err != nil {
			return nil, err
		}
		if x := m.EvalLoss; x != nil && (math.IsNaN(*x) || math.IsInf(*x, 0)) {
			return nil, &train.DivergedError{Round: max(round, 1) - 1, What: fmt.Sprintf("the eval loss after step %d is %v", step, *x)}
		}
	}
	if round > 0 {
		m.Loss, m.LearningRate = mean(losses), float64(spec.Rate.At(step-1, total))
	}
	return append(ms, m), nil
}

func (c *collector) advanceProgress(m Metric) {
	p := &c.progress
	p.Step, p.Round, p.PaidUzen = int(m.Step), int(m.Round), m.PaidUzen
	if m.Round > 0 {
		p.Loss, p.LearningRate, p.TokensPerSecond = m.Loss, m.LearningRate, m.TokensPerSecond
	}
	if m.EvalLoss != nil {
		p.EvalLoss = *m.EvalLoss
	}
	if m.TokensPerSecond > 0 {
		perStep := float64(c.b.tokens(1)) / m.TokensPerSecond
		p.Left = time.Duration(float64(p.Steps-p.Step) * perStep * float64(time.Second))
	}
	c.show(p.Phase)
}

func mean(x []float64) float64 {
	var sum float64
	for _, v := range x {
		sum += v
	}
	return sum / float64(max(1, len(x)))
}

// evaluate returns the mean loss over the held-out windows; nil when nothing is held out.
func (b *Blueprint) evaluate(eval *program.Exec, ckpt *train.Checkpoint) (*float64, error) {
	if b.Corpus.Val.Len() == 0 {
		return nil, nil
	}
	in := b.evalInputs(ckpt)
	batches := b.Corpus.ValBatches(b.EvalBatch, int(b.Spec.Length), evalSequences/b.EvalBatch)
	var sum float64
	for _, batch := range batches {
		in["tokens"] = tensor.FromI32(batch, b.EvalBatch, int(b.Spec.Length)+1)
		out, err := eval.Run(in)
		if err != nil {
			return nil, err
		}
		sum += float64(out["loss"].F32()[0])
	}
	loss := sum / float64(len(batches))
	return &loss, nil
}

// Sample is one line of samples.jsonl.
type Sample = api.Sample

const sampleTokens = 40

// sample continues the prompts of the job after every measured loss but the first.
func (c *collector) sample(ctx context.Context, m Metric, ckpt *train.Checkpoint) (samples []Sample, _ error) {
	prompts := c.b.Job.Eval.Prompts
	if len(prompts) == 0 || m.EvalLoss == nil || m.Round == 0 {
		return nil, nil
	}
	if c.generator == nil {
		c.generator = newGenerator(c.b.Model, c.b.Tokenizer)
	}
	weights, err := c.b.weights(ckpt)
	if err != nil {
		return nil, err
	}
	if err := c.generator.reader.SetWeights(weights); err != nil {
		return nil, err
	}
	for _, p := range prompts {
		s := Sample{Round: m.Round, Step: m.Step, Prompt: p}
		sampling := generate.Sampling{Temperature: 0.8, Seed: c.b.Spec.Seed}
		_, err := c.generator.Generate(ctx, GenerateOptions{Prompt: p, Tokens: sampleTokens, Sampling: sampling}, func(text string) error {
			s.Text += text
			return nil
		})
		if err != nil {
			return nil, err
		}
		samples = append(samples, s)
	}
	return samples, nil
}
