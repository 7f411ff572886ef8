package machine

import (
	"context"
	"fmt"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/aggregate"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/role/engine"
)

// AuditReport is the cost of the audit of a work unit in relation to its training.
type AuditReport struct {
	Preset  string `json:"preset"`
	Steps   int    `json:"steps"` // of the unit
	Threads int    `json:"threads"`
	// processor time of all threads, the least of the repetitions; 0 if unknown
	TrainCPU     float64         `json:"train_cpu_seconds"`
	AuditCPU     float64         `json:"audit_cpu_seconds"`
	TrainSeconds float64         `json:"train_seconds"` // of the clock, likewise
	AuditSeconds float64         `json:"audit_seconds"`
	Bars         []benchmark.Bar `json:"bars"`
}

// replayBar is how much more processor time an audit may take than training.
const replayBar = 1.1

// Audit measures a work unit as a worker computes it (steps, state roots, update) and as a verifier audits it (the
// same, compared, sealed, and the seal opened), in turn. The data are random tokens.
func Audit(ctx context.Context, p Preset, threads, steps, repeat int) (*AuditReport, error) {
	for name, n := range map[string]int{"threads": threads, "steps": steps, "repeat": repeat} {
		if err := benchmark.Positive(name, n); err != nil {
			return nil, err
		}
	}
	task, genesis, err := UnitTask(p, threads, steps)
	if err != nil {
		return nil, err
	}
	base := terms.Checkpoint{Root: genesis.Root(), CID: "genesis"}
	r := &AuditReport{Preset: p.Name, Steps: steps, Threads: threads}
	var trained *engine.Work
	worker := func(e *engine.Engine) (err error) {
		trained, err = e.Train(ctx, base, 0)
		return err
	}
	verifier := func(e *engine.Engine) error {
		s := audit.Subject{Verifier: "verifier", Job: p.Name}
		f, err := e.Check(ctx, base, s, trained.Commit)
		if err == nil && !f.Right {
			err = fmt.Errorf("benchmark: the audit finds another result at segment %d", f.Differ)
		}
		if err == nil {
			_, err = e.Unseal(ctx, base, s, audit.Question(canon.Sum("beacon"), s))
		}
		return err
	}
	for range repeat {
		for _, side := range []struct {
			do        func(*engine.Engine) error
			cpu, wall *float64
		}{{worker, &r.TrainCPU, &r.TrainSeconds}, {verifier, &r.AuditCPU, &r.AuditSeconds}} {
			e, err := engine.New(terms.Terms{Job: p.Name}, task, blob.NewMemory(), nil)
			if err != nil {
				return nil, err
			}
			e.Hold(base, genesis)
			used, _ := benchmark.Usage()
			begin := time.Now()
			if err := side.do(e); err != nil {
				return nil, err
			}
			after, _ := benchmark.Usage()
			*side.wall = least(*side.wall, time.Since(begin))
			*side.cpu = least(*side.cpu, after-used)
		}
	}
	if r.TrainCPU > 0 {
		r.Bars = []benchmark.Bar{benchmark.Below("replay of a unit / its training, processor time", r.AuditCPU/r.TrainCPU,
			replayBar)}
	}
	return r, nil
}

// least is the smaller of the time measured before, if there is one, and a new time.
func least(before float64, t time.Duration) float64 {
	if now := benchmark.Rounded(t.Seconds(), 3); before == 0 || now < before {
		return now
	}
	return before
}

// UnitTask is a job of one unit of a preset, on random text, and its first checkpoint.
func UnitTask(p Preset, threads, steps int) (*train.Task, *train.Checkpoint, error) {
	c, err := architecture.Parse(p.Architecture, p.Config)
	if err != nil {
		return nil, nil, err
	}
	step, err := model.TrainStep(c, AdamW(0.1, 1), p.Batch, p.Length)
	if err != nil {
		return nil, nil, err
	}
	random, text := philox.New(0, 0), make([]byte, p.Batch*p.Length*4+1)
	for i := range text {
		text[i] = byte('a' + random.Uint64n(26))
	}
	corpus, err := data.Build([]source.File{{Format: "text", Name: "random", Data: text}}, tokenizer.Bytes(), 0)
	if err != nil {
		return nil, nil, err
	}
	exchange := train.Exchange{Codec: codec.Int8, Rule: aggregate.Mean, Outer: outer.SGD, Rate: 1}
	genesis, err := outer.Genesis(exchange, train.Params(step), c.Init(0))
	if err != nil {
		return nil, nil, err
	}
	exec, err := cpu.Compile(step, threads)
	if err != nil {
		return nil, nil, err
	}
	spec := &train.Spec{
		Version: 1, Numerics: step.Numerics, Name: p.Name, Program: step.Digest(),
		Data:    corpus.Manifest(bundle.ShardTokens).Digest(),
		Genesis: genesis.Root(), Rounds: 1, Steps: uint32(steps), Segment: uint32((steps + 3) / 4), Units: 1,
		Batch: uint32(p.Batch), Length: uint32(p.Length), Rate: train.Rate{Kind: train.Constant, Peak: 3e-4}, Beta1: 0.9,
		Beta2:    0.95,
		Exchange: exchange,
	}
	return &train.Task{Spec: spec, Step: step, Exec: exec, Corpus: corpus}, genesis, spec.Check()
}
