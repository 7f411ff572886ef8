package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/compute/generate"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/consumer"
	"github.com/starling-network/starling/role/engine"
)

// collector is the consumer's side of a run: it ships the job, and turns the lineage into the files of an output
// folder.
type collector struct {
	out       *OutDir
	b         *Blueprint
	opt       TrainOptions
	chain     *client.Client
	host      *peer.Host
	store     *blob.Disk
	eval      *program.Exec
	log       *slog.Logger
	generator *Generator                     // of samples, made with the first
	moved     func() (sent, received uint64) // bytes of all workers so far
	took      func(dispute.Game) float64     // milliseconds of the referee for the leaf of a dispute, 0 if not known

	lines    []Line // complete lines of the lineage
	last     *train.Checkpoint
	progress Progress
	mark     time.Time // when the round being collected began
	markStep int
	sent     uint64 // at mark
	received uint64
	seen     map[string]bool // events told to the user
	failures int             // actions that failed in a row
}

// newCollector opens the store and the host of a collector that knows its job, its chain and its log.
func newCollector(with collector, h home) (*collector, error) {
	c := &with
	b := c.b
	store, err := blob.OpenDisk(c.out.file(dirBlobs))
	if err != nil {
		return nil, err
	}
	host, err := peer.New(peer.Config{Key: h.peer(), Store: store, Listen: c.opt.Listen})
	if err != nil {
		return nil, err
	}
	c.host, c.store, c.seen = host, store, map[string]bool{}
	if c.eval, err = program.Compile(b.Eval, 1); err != nil {
		return nil, errors.Join(err, host.Close())
	}
	if c.lines, err = c.out.rewind(); err != nil {
		return nil, errors.Join(err, host.Close())
	}
	c.mark, c.markStep = time.Now(), len(c.lines)*int(b.Spec.Steps)
	c.progress = Progress{
		Job: b.JobID(), Step: c.markStep, Steps: int(b.Spec.Rounds * b.Spec.Steps), Round: len(c.lines), Rounds: int(b.Spec.Rounds),
		Loss: math.NaN(), EvalLoss: math.NaN(), LearningRate: math.NaN(), TokensPerSecond: math.NaN(),
		Target: int(b.Spec.Units), BudgetUzen: uint64(c.opt.Job.Budget.MaxCost), Phase: "starting",
	}
	return c, nil
}

func (n *embedded) traffic() (sent, received uint64) {
	for _, p := range n.parties {
		s, r := p.host.Traffic()
		sent, received = sent+s, received+r
	}
	return sent, received
}

// next is the first round that is not collected: 0, the checkpoint before training, when none is.
func (c *collector) next() uint32 {
	if len(c.lines) == 0 {
		return 0
	}
	return uint32(len(c.lines)) + 1
}

// order ships the job and places its order, unless the chain has it from before a restart.
func (c *collector) order(ctx context.Context, o market.Order) error {
	spec, genesis, err := c.b.publish(ctx, c.store, &c.out.Run)
	if err != nil {
		return err
	}
	if err := c.out.writeRun(); err != nil {
		return err
	}
	o.Terms.SpecCID, o.Terms.Genesis = spec, genesis
	if _, err := c.chain.Escrow(ctx, o.ID); !errors.Is(err, client.ErrNotFound) {
		return err
	}
	return c.chain.Order(ctx, o)
}

// run collects rounds until the books are closed.
func (c *collector) run(ctx context.Context, duty *consumer.Consumer) (*Summary, error) {
	blocks, err := c.chain.Blocks(ctx)
	if err != nil {
		return nil, err
	}
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case b, ok := <-blocks:
			if !ok {
				return nil, errors.Join(ctx.Err(), errClosed)
			}
			s, err := c.chain.Run(ctx, c.b.JobID())
			if errors.Is(err, client.ErrNotFound) {
				c.show("matching")
				continue
			}
			if err != nil {
				return nil, err
			}
			c.tell(s)
			for _, a := range duty.Step(role.Block{Height: b.Height, Run: s}) {
				summary, err := c.act(ctx, a, s)
				if err != nil && ctx.Err() == nil && c.again(a, err) {
					duty.Step(role.Failed{Action: a, Err: err})
					continue
				}
				if err != nil || summary != nil {
					return summary, err
				}
				c.failures = 0
				duty.Step(role.Finished{Action: a})
			}
		}
	}
}

// maxFailures is how often in a row an action may fail before the run is given up.
const maxFailures = 10

// again reports whether an action that failed is worth another try: a holder may come back, a halted run does not.
func (c *collector) again(a role.Action, err error) bool {
	if halted := (*HaltedError)(nil); errors.As(err, &halted) {
		return false
	}
	c.failures++
	c.log.Warn("action failed", "action", a.Key(), "err", err, "failures", c.failures)
	return c.failures < maxFailures
}

func (c *collector) act(ctx context.Context, a role.Action, s run.State) (*Summary, error) {
	switch a := a.(type) {
	case consumer.Collect:
		return nil, c.collect(ctx, a.Round)
	case consumer.Conclude:
		summary, err := c.conclude(ctx)
		if err == nil && s.Phase == run.Halted {
			err = &HaltedError{Why: s.Why}
		}
		return summary, err
	}
	return nil, fmt.Errorf("node: no such action: %T", a)
}

// tell reports what the run is doing.
func (c *collector) tell(s run.State) {
	c.progress.Workers = len(s.Active(run.Worker))
	phases := map[run.Phase]string{run.Assign: "assigning", run.Train: "training", run.Exchange: "auditing", run.Attest: "attesting"}
	c.show(phases[s.Phase])
	for _, u := range s.Units {
		if u.Status == run.Disputed {
			c.once(fmt.Sprintf("round %d: verifier %s disputes unit %d of worker %s", s.Round+1, u.Verifier, u.Index, u.Worker))
		}
	}
	for _, m := range s.Members {
		if !m.Active && m.Why != "" {
			c.once(fmt.Sprintf("%s is out of the run: %s", m.ID, m.Why))
		}
	}
}

func (c *collector) once(text string) {
	if !c.seen[text] && c.opt.Say != nil {
		c.opt.Say(text)
	}
	c.seen[text] = true
}

func (c *collector) show(phase string) {
	c.progress.Phase = phase
	if c.opt.Progress != nil {
		c.opt.Progress(c.progress)
	}
}

// collect fetches the checkpoint after a round, measures it, and records both.
func (c *collector) collect(ctx context.Context, round uint32) error {
	if round == 0 {
		return c.measure(ctx, round, c.b.Genesis, nil)
	}
	entry, err := c.chain.Lineage(ctx, c.b.JobID(), round)
	if err != nil {
		return err
	}
	holders, err := c.holders(ctx)
	if err != nil {
		return err
	}
	get := func(ctx context.Context, id blob.CID) ([]byte, error) { return c.host.Fetch(ctx, id, holders) }
	next, err := engine.LoadCheckpoint(ctx, entry.Attestation.Checkpoint, get)
	if err != nil {
		return err
	}
	if err := c.measure(ctx, round, next, c.losses(ctx, entry, holders)); err != nil {
		return err
	}
	line := newLine(entry)
	if err := c.out.append(fileLineage, line.Encode()); err != nil {
		return err
	}
	c.lines = append(c.lines, line)
	return c.prune(ctx)
}

func (c *collector) holders(ctx context.Context) ([]string, error) {
	participants, err := c.chain.Participants(ctx)
	if err != nil {
		return nil, err
	}
	var addrs []string
	for _, p := range participants {
		addrs = append(addrs, p.Addrs...)
	}
	return addrs, nil
}

// losses returns the mean training loss of every inner step of a round, over the units whose log can be had; nil if
// none can. Logs are for people: a missing one does not hold the run up.
func (c *collector) losses(ctx context.Context, e run.Entry, holders []string) []float64 {
	spec := c.b.Spec
	sum := make([]float64, spec.Steps)
	n := 0.0
	for unit, cid := range e.Logs {
		losses, err := c.unitLog(ctx, e.Attestation.Checkpoint.Round-1, uint32(unit), cid, holders)
		if err != nil {
			c.log.Warn("no log of a unit", "round", e.Attestation.Checkpoint.Round, "unit", unit, "err", err)
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

func (c *collector) unitLog(ctx context.Context, round, unit uint32, cid string, holders []string) ([]float32, error) {
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
	if err := c.store.Delete(ctx, id); err != nil {
		return nil, err
	}
	return train.DecodeLog(b, round, unit, c.b.Spec.Steps)
}

// measure evaluates a checkpoint, if one is due, and appends the metrics of its round.
func (c *collector) measure(ctx context.Context, round uint32, ckpt *train.Checkpoint, losses []float64) error {
	spec, now := c.b.Spec, time.Now()
	step := int(round * spec.Steps)
	perStep := uint64(spec.Units * spec.Batch * spec.Length)
	var ms []Metric
	for i, l := range losses {
		at := (round-1)*spec.Steps + uint32(i)
		ms = append(ms, Metric{Kind: "step", Round: round, Step: at + 1, Loss: l, Tokens: uint64(at+1) * perStep,
			LearningRate: float64(spec.Rate.At(at, spec.Rounds*spec.Steps)), Workers: c.progress.Workers})
	}
	m := Metric{Kind: "round", Round: round, Step: uint32(step), Tokens: uint64(step) * perStep, Workers: c.progress.Workers}
	if every := max(1, c.b.Job.Eval.EverySteps); step%every == 0 || round == spec.Rounds {
		loss, err := c.evaluate(ckpt)
		if err != nil {
			return err
		}
		m.EvalLoss = loss
	}
	sent, received := c.moved()
	if round > 0 {
		m.Loss = mean(losses)
		m.Seconds = now.Sub(c.mark).Seconds()
		m.TokensPerSecond = float64(uint64(step-c.markStep)*perStep) / m.Seconds
		m.BytesUp, m.BytesDown = sent-c.sent, received-c.received
		m.LearningRate = float64(spec.Rate.At(uint32(step)-1, spec.Rounds*spec.Steps))
	}
	if escrow, err := c.chain.Escrow(ctx, c.b.JobID()); err == nil {
		m.PaidUzen = escrow.Paid + escrow.Fee
	}
	c.mark, c.markStep, c.sent, c.received, c.last = now, step, sent, received, ckpt
	c.advanceProgress(m)
	if m.EvalLoss != nil && round > 0 {
		if err := c.sample(ctx, m, ckpt); err != nil {
			return err
		}
	}
	return appendRecords(c.out, fileMetrics, append(ms, m))
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
		perStep := float64(c.b.Spec.Units*c.b.Spec.Batch*c.b.Spec.Length) / m.TokensPerSecond
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
func (c *collector) evaluate(ckpt *train.Checkpoint) (*float64, error) {
	if c.b.Corpus.Val.Len() == 0 {
		return nil, nil
	}
	in := c.b.evalInputs(ckpt)
	batches := c.b.Corpus.ValBatches(c.b.EvalBatch, int(c.b.Spec.Length), evalSequences/c.b.EvalBatch)
	var sum float64
	for _, batch := range batches {
		in["tokens"] = tensor.FromI32(batch, c.b.EvalBatch, int(c.b.Spec.Length)+1)
		out, err := c.eval.Run(in)
		if err != nil {
			return nil, err
		}
		sum += float64(out["loss"].F32()[0])
	}
	loss := sum / float64(len(batches))
	return &loss, nil
}

// Sample is one line of samples.jsonl: how the model of a round continues a prompt.
type Sample struct {
	Round  uint32 `json:"round"`
	Step   uint32 `json:"step"`
	Prompt string `json:"prompt"`
	Text   string `json:"text"`
}

const sampleTokens = 40

// sample continues the prompts of the job.
func (c *collector) sample(ctx context.Context, m Metric, ckpt *train.Checkpoint) error {
	prompts := c.b.Job.Eval.Prompts
	if len(prompts) == 0 {
		return nil
	}
	if c.generator == nil {
		c.generator = newGenerator(c.b.Model, c.b.Tokenizer)
	}
	weights, err := c.b.weights(ckpt)
	if err != nil {
		return err
	}
	if err := c.generator.reader.SetWeights(weights); err != nil {
		return err
	}
	var samples []Sample
	for _, p := range prompts {
		s := Sample{Round: m.Round, Step: m.Step, Prompt: p}
		sampling := generate.Sampling{Temperature: 0.8, Seed: c.b.Spec.Seed}
		_, err := c.generator.Generate(ctx, GenerateOptions{Prompt: p, Tokens: sampleTokens, Sampling: sampling}, func(text string) error {
			s.Text += text
			return nil
		})
		if err != nil {
			return err
		}
		samples = append(samples, s)
	}
	return appendRecords(c.out, fileSamples, samples)
}

// prune deletes the checkpoints that checkpoint.keep_last does not keep.
func (c *collector) prune(ctx context.Context) error {
	keep := max(1, c.b.Job.Checkpoint.KeepLast)
	if len(c.lines) <= keep {
		return nil
	}
	var kept []run.Checkpoint
	for _, l := range c.lines[len(c.lines)-keep:] {
		kept = append(kept, l.checkpoint())
	}
	return dropCheckpoint(ctx, c.store, c.lines[len(c.lines)-keep-1].checkpoint(), kept)
}
