// Package measured makes the metrics of a round: from the logs of its units, and from the measurements of a
// checkpoint on the held-out examples.
package measured

import (
	"fmt"
	"math"
	"slices"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/unitlog"
	"github.com/starling-network/starling/node/heldout"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/protocol/run/progress"
)

// UnitLogs is what the units of a round say of it, as means over those that say it. All of it is for people: what is
// missing does not hold the run up.
type UnitLogs struct {
	losses    []float64 // training loss of every inner step; nil if there is no log
	norms     []float64 // norm of the gradient of every inner step, NaN where no unit tells; nil if there is no log
	Agreement *float64  // nil unless every update is at hand
}

// MeanLogs reads the logs of the units of a round, and tells missing of those that cannot be read.
func MeanLogs(spec *train.Spec, e progress.Entry, get func(cid string) ([]byte, error),
	missing func(unit int, err error)) (h UnitLogs) {
	type sum struct{ value, n float64 }
	losses, norms := make([]sum, spec.Steps), make([]sum, spec.Steps)
	found := false
	for unit, cid := range e.Logs {
		if n := spec.Pipeline.Stages(); uint32(unit)%n != n-1 { // the last stage of a replica has the loss
			continue
		}
		var l, g []float32
		text, err := get(cid)
		if err == nil {
			l, g, err = unitlog.Decode(text, e.Attestation.Checkpoint.Round-1, uint32(unit), spec.StepsOf(uint32(unit)))
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

// Evaluate returns the mean loss over the held-out examples, and the means of the other measurements of the task; nil
// when nothing is held out. Those of a swarm are of its best model: see Best.
func Evaluate(b *prepare.CompiledJob, eval *cpu.Exec, ckpt *train.Checkpoint) (*float64, map[string]float64, error) {
	if b.Spec.Exchange.Policies > 0 {
		return evaluateEach(b, eval, ckpt)
	}
	return evaluate(b, eval, ckpt)
}

// evaluate is Evaluate of a checkpoint that is one model.
func evaluate(b *prepare.CompiledJob, eval *cpu.Exec, ckpt *train.Checkpoint) (*float64, map[string]float64, error) {
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
