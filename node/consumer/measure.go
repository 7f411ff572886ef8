package consumer

import (
	"context"
	"maps"
	"math"
	"runtime"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/compute/generate"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/node/answers"
	"github.com/starling-network/starling/node/coins"
	"github.com/starling-network/starling/node/measured"
	"github.com/starling-network/starling/node/member"
	"github.com/starling-network/starling/node/prepare/demand"
	"github.com/starling-network/starling/node/pretrained"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/textgen"
	"github.com/starling-network/starling/node/tracking"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/role/bundle"
)

// hear reads the logs of the units of an attested round, and their updates as far as they are at hand.
func (c *Consumer) hear(ctx context.Context, e progress.Entry, holders []string) measured.UnitLogs {
	h := measured.MeanLogs(c.Job.Spec, e, func(cid string) ([]byte, error) { return c.unitLog(ctx, cid, holders) },
		func(unit int, err error) {
			c.Log.Warn("no log of a unit", "round", e.Attestation.Checkpoint.Round, "unit", unit, "err", err)
		})
	h.Agreement = bundle.Agreement(c.Job.Spec, c.Job.Genesis, e,
		func(id blob.CID) ([]byte, error) { return c.Updates(ctx, id) })
	return h
}

func (c *Consumer) unitLog(ctx context.Context, cid string, holders []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, member.FetchTimeout)
	defer cancel()
	id, err := blob.Parse(cid)
	if err != nil {
		return nil, err
	}
	b, err := c.fetcher.Fetch(ctx, id, holders)
	if err != nil {
		return nil, err
	}
	return b, c.Store.Delete(ctx, id)
}

// measure evaluates a checkpoint, if one is due, and returns the metrics of its round, the one of the whole round last,
// and what the next round is measured from.
func (c *Consumer) measure(ctx context.Context, round uint32, ckpt *train.Checkpoint,
	units measured.UnitLogs) ([]rundir.Metric, roundStart, error) {
	after := roundStart{at: time.Now(), step: int(round * c.Job.Spec.Steps)}
	ms, err := measured.Metrics(c.Job, c.eval, round, ckpt, units, c.progress.Workers)
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
		m.PaidUzen, m.Coin, c.progress.BudgetUzen = escrow.Paid+escrow.Fee, coins.Shown(c.progress.Coin), escrow.Budget
	}
	return ms, after, nil
}

// price notes the coin and the budget of the order, in the progress and in the folder.
func price(ctx context.Context, c *Consumer) error {
	o, err := c.Chain.Market.PlacedOrder(ctx, c.Job.JobID())
	if err != nil {
		return err
	}
	c.progress.Coin, c.progress.BudgetUzen = o.Coin, o.Budget
	if c.Dir.Run.Coin == o.Coin {
		return nil
	}
	c.Dir.Run.Coin = o.Coin
	return c.Dir.WriteRun()
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
		c.writes = generate.NewBatch(model, kernel.Cores)
		c.generator = textgen.NewGenerator(c.writes, c.Job.Tokenizer, pretrained.Ends(model, c.Job.Tokenizer))
	}
	weights, err := c.Job.Weights(train.Model(c.Job.Spec, ckpt, int(m.Measured[measured.BestNode])))
	if err != nil {
		return nil, err
	}
	if err := c.writes.SetWeights(weights); err != nil {
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

// shownAnswers is of how many groups an answer is a sample.
const shownAnswers = 8

// drawAnswers draws those of the first step after a checkpoint that is measured, as the training does. It adds the
// measurements of answers to the metrics, and returns the best answer of each of the first groups, of the first stage
// of a game.
func drawAnswers(c *Consumer, m *rundir.Metric, ckpt *train.Checkpoint) (samples []Sample, _ error) {
	if m.EvalLoss == nil || m.Round >= c.Job.Spec.Rounds || c.Job.Job.Task != spec.TaskGRPO {
		return nil, nil
	}
	a, err := answers.Of(c.Job, ckpt, m.Round, c.eval.Threads())
	if err != nil {
		return nil, err
	}
	maps.Copy(m.Measured, a.Measured(c.Job, m.Round))
	shown := a.Stages()[0]
	for _, g := range shown[:min(shownAnswers, len(shown))] {
		best := 0
		for i, r := range g.Rewards {
			if r > g.Rewards[best] {
				best = i
			}
		}
		samples = append(samples, Sample{Round: m.Round, Step: m.Step, Prompt: g.Prompt, Text: g.Texts[best],
			Reward: &g.Rewards[best]})
	}
	return samples, nil
}

// tracked are metrics as package tracking writes them.
func tracked(metrics []rundir.Metric) []api.Metric {
	out := make([]api.Metric, len(metrics))
	for i, m := range metrics {
		out[i] = api.Metric(m)
	}
	return out
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
		if _, err := c.fetcher.Fetch(ctx, id, holders); err != nil {
			return err
		}
	}
	return nil
}
