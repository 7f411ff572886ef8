package consumer

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/generate"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/node/heldout"
	"github.com/starling-network/starling/node/member"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/prepare/demand"
	"github.com/starling-network/starling/node/pretrained"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/textgen"
	"github.com/starling-network/starling/node/tracking"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/role/bundle"
)

// UnitLogs is what the units of a round say of it, as means over those that say it. All of it is for people: what is
// missing does not hold the run up.
type UnitLogs struct {
	losses    []float64 // training loss of every inner step; nil if there is no log
	norms     []float64 // norm of the gradient of every inner step, NaN where no unit tells; nil if there is no log
	Agreement *float64  // nil unless every update is at hand
}

// hear reads the logs of the units of an attested round, and their updates as far as they are at hand.
func (c *Consumer) hear(ctx context.Context, e progress.Entry, holders []string) UnitLogs {
	h := MeanLogs(c.Job.Spec, e, func(cid string) ([]byte, error) { return c.unitLog(ctx, cid, holders) },
		func(unit int, err error) {
			c.Log.Warn("no log of a unit", "round", e.Attestation.Checkpoint.Round, "unit", unit, "err", err)
		})
	h.Agreement = bundle.Agreement(c.Job.Spec, c.Job.Genesis, e,
		func(id blob.CID) ([]byte, error) { return c.Updates(ctx, id) })
	return h
}

func MeanLogs(spec *train.Spec, e progress.Entry, get func(cid string) ([]byte, error),
	missing func(unit int, err error)) (h UnitLogs) {
	type sum struct{ value, n float64 }
	losses, norms := make([]sum, spec.Steps), make([]sum, spec.Steps)
	found := false
	for unit, cid := range e.Logs {
		var l, g []float32
		text, err := get(cid)
		if err == nil {
			l, g, err = train.DecodeLog(text, e.Attestation.Checkpoint.Round-1, uint32(unit), spec.StepsOf(uint32(unit)))
		}
		if err != nil {
			missing(unit, err)
			continue
		}
		found = true
		for i, x := range l {
			losses[i] = sum{losses[i].value + float64(x), losses[i].n + 1}
		}
		for i, x := range g {
			if x >= 0 && x <= math.MaxFloat32 {
				norms[i] = sum{norms[i].value + float64(x), norms[i].n + 1}
			}
		}
	}
	if !found {
		return UnitLogs{}
	}
	for i := range losses {
		if losses[i].n == 0 { // the longest units have no log
			break
		}
		h.losses, h.norms = append(h.losses, losses[i].value/losses[i].n), append(h.norms, norms[i].value/norms[i].n)
	}
	return h
}

func (c *Consumer) unitLog(ctx context.Context, cid string, holders []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, member.FetchTimeout)
	defer cancel()
	id, err := blob.Parse(cid)
	if err != nil {
		return nil, err
	}
	b, err := c.fetch(ctx, id, holders)
	if err != nil {
		return nil, err
	}
	return b, c.Store.Delete(ctx, id)
}

// measure evaluates a checkpoint, if one is due, and returns the metrics of its round, the one of the whole round last,
// and what the next round is measured from.
func (c *Consumer) measure(ctx context.Context, round uint32, ckpt *train.Checkpoint,
	units UnitLogs) ([]rundir.Metric, roundStart, error) {
	after := roundStart{at: time.Now(), step: int(round * c.Job.Spec.Steps)}
	ms, err := Metrics(c.Job, c.eval, round, ckpt, units, c.progress.Workers)
	if err != nil {
		return nil, after, err
	}
	m := &ms[len(ms)-1]
	m.Time = after.at.UTC().Truncate(time.Millisecond)
	after.sent, after.received = c.Traffic()
	if round > 0 {
		m.Seconds = after.at.Sub(c.mark.at).Seconds()
		m.TokensPerSecond = float64(m.Tokens-c.Job.Tokens(c.mark.step)) / m.Seconds
		m.BytesUp, m.BytesDown = after.sent-c.mark.sent, after.received-c.mark.received
	}
	if escrow, err := c.Chain.Market.Escrow(ctx, c.Job.JobID()); err == nil {
		m.PaidUzen = escrow.Paid + escrow.Fee
	}
	return ms, after, nil
}

// Metrics of the inner steps of a round and, last, of the round, as far as they follow from the job and what was
// computed. A checkpoint that is nil is not evaluated.
func Metrics(b *prepare.CompiledJob, eval *cpu.Exec, round uint32, ckpt *train.Checkpoint, units UnitLogs,
	workers int) (ms []rundir.Metric, err error) {
	spec := b.Spec
	total := spec.Rounds * spec.Steps
	for i, l := range units.losses {
		at := (round-1)*spec.Steps + uint32(i)
		ms = append(ms, rundir.Metric{Kind: "step", Round: round, Step: at + 1, Loss: l, Tokens: b.Tokens(int(at) + 1),
			LearningRate: float64(spec.Rate.At(at, total)), Workers: workers, GradNorm: meanOf(units.norms[i])})
	}
	step := round * spec.Steps
	m := rundir.Metric{Kind: "round", Round: round, Step: step, Tokens: b.Tokens(int(step)), Workers: workers}
	if every := max(1, b.Job.Eval.EverySteps); ckpt != nil && (int(step)%every == 0 || round == spec.Rounds) {
		if m.EvalLoss, m.Measured, err = Evaluate(b, eval, ckpt); err != nil {
			return nil, err
		}
		if x := m.EvalLoss; x != nil && (math.IsNaN(*x) || math.IsInf(*x, 0)) {
			return nil, &train.DivergedError{Round: max(round, 1) - 1,
				What: fmt.Sprintf("the eval loss after step %d is %v", step, *x)}
		}
		m.BitsPerByte = heldout.BitsPerByte(b, m.EvalLoss)
	}
	if round > 0 {
		m.Loss, m.LearningRate = mean(units.losses), float64(spec.Rate.At(step-1, total))
		m.GradNorm, m.Agreement = meanOf(units.norms...), units.Agreement
	}
	return append(ms, m), nil
}

func (c *Consumer) advanceProgress(m rundir.Metric) {
	p := &c.progress
	p.Step, p.Round, p.PaidUzen = int(m.Step), int(m.Round), m.PaidUzen
	p.Latest = tracking.Latest(p.Latest, m)
	if m.Round > 0 {
		p.Loss, p.LearningRate, p.GradNorm, p.TokensPerSecond = m.Loss, m.LearningRate, math.NaN(), m.TokensPerSecond
		if m.GradNorm != nil {
			p.GradNorm = *m.GradNorm
		}
	}
	if m.EvalLoss != nil {
		p.EvalLoss = *m.EvalLoss
	}
	if m.TokensPerSecond > 0 {
		p.Left = time.Duration(float64(c.Job.Tokens(p.Steps)-c.Job.Tokens(p.Step)) / m.TokensPerSecond * float64(time.Second))
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

// meanOf is the mean of the values that are not NaN; nil if there are none.
func meanOf(x ...float64) *float64 {
	x = slices.DeleteFunc(slices.Clone(x), math.IsNaN)
	if len(x) == 0 {
		return nil
	}
	m := mean(x)
	return &m
}

// Evaluate returns the mean loss over the held-out examples, and the means of the other measurements of the task; nil
// when nothing is held out.
func Evaluate(b *prepare.CompiledJob, eval *cpu.Exec, ckpt *train.Checkpoint) (*float64, map[string]float64, error) {
	if b.Corpus.Val.Len() == 0 {
		return nil, nil, nil
	}
	defer eval.Release()
	defer ckpt.Rest()
	in := b.EvalInputs(ckpt)
	batches := heldout.Batches(b)
	sums := map[string]float64{}
	for _, batch := range batches {
		in["tokens"] = tensor.FromI32(batch, b.EvalBatch, int(b.Spec.Length)+1)
		out, err := eval.Run(in)
		if err != nil {
			return nil, nil, err
		}
		for name, x := range out {
			sums[name] += float64(x.F32()[0])
		}
	}
	for name := range sums {
		sums[name] /= float64(len(batches))
	}
	loss := sums["loss"]
	if delete(sums, "loss"); len(sums) == 0 {
		sums = nil
	}
	return &loss, sums, nil
}

// Sample is one line of samples.jsonl.
type Sample = api.Sample

const sampleTokens = 40

// sample continues the prompts of the job after every measured loss but the first.
func (c *Consumer) sample(ctx context.Context, m rundir.Metric, ckpt *train.Checkpoint) (samples []Sample, _ error) {
	prompts := c.Job.Job.Eval.Prompts
	if len(prompts) == 0 || m.EvalLoss == nil || m.Round == 0 {
		return nil, nil
	}
	if c.generator == nil {
		model := *c.Job.Language
		c.generator = textgen.NewGenerator(model, c.Job.Tokenizer, pretrained.Ends(model, c.Job.Tokenizer))
	}
	weights, err := c.Job.Weights(ckpt)
	if err != nil {
		return nil, err
	}
	if err := c.generator.Reader.SetWeights(weights); err != nil {
		return nil, err
	}
	defer runtime.KeepAlive(ckpt) // the reader has slices of its weights
	for _, p := range prompts {
		s := Sample{Round: m.Round, Step: m.Step, Prompt: p}
		sampling := generate.Sampling{Temperature: 0.8, Seed: c.Job.Spec.Seed}
		_, err := c.generator.Generate(ctx, textgen.Options{Prompt: p, Tokens: sampleTokens, Sampling: sampling},
			func(text string) error {
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

// writeLinks records who fetched from whom.
func (c *Consumer) writeLinks(ctx context.Context) error {
	links, err := c.Links(ctx)
	if err != nil {
		return err
	}
	return rundir.WriteLines(c.Dir, rundir.FileLinks, links)
}

// keepUpdates stores the updates of a round of a tolerant run.
func (c *Consumer) keepUpdates(ctx context.Context, e progress.Entry, holders []string) error {
	if demand.Tolerance(c.Options.Job).DistancePPM == 0 {
		return nil
	}
	for _, cid := range e.Attestation.Updates {
		id, err := blob.Parse(cid)
		if err != nil {
			return err
		}
		if _, err := c.fetch(ctx, id, holders); err != nil {
			return err
		}
	}
	return nil
}
