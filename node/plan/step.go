package plan

import (
	"time"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/kernel/matmul"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/parts"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/memory"
	"github.com/starling-network/starling/node/prepare"
)

// A step is taken to measure it if it has no more than these operations and weights. Of a larger one the time follows
// from its operations.
const (
	triedFlops = 20e9
	triedBytes = 64 << 20
)

// MeasureStep says what memory and time an inner step takes. A small one is taken; what does not fit into the memory is
// not timed.
func (p *Plan) MeasureStep(b *prepare.CompiledJob) error {
	exec, err := b.Spec.Compile(b.Step, kernel.Cores)
	if err != nil {
		return err
	}
	least := prepare.UnitMemory(b, exec)
	if p.Memory, err = prepare.Memory(b, exec, 1); err != nil {
		return err
	}
	if p.all, err = prepare.Memory(b, exec, p.parties); err != nil {
		return err
	}
	if available, _, ok := memory.Available(); ok && available < least {
		return nil
	}
	flops := parts.Flops(b.Step) + parts.DrawFlops(b.Step) // another unit draws what a step learns from
	if flops > triedFlops || b.Size().Parameters()+b.Size().Frozen() > triedBytes {
		rate := productRate(int(b.Spec.Batch) * int(b.Spec.Length))
		p.StepTime = float64(flops)/rate + optimizerTime(b)
		p.evalTime = float64(b.Eval.Flops()) / productRate(b.EvalBatch*int(b.Spec.Length))
		return nil
	}
	if err := b.Begin(); err != nil {
		return err
	}
	if err := p.tryStep(b, exec); err != nil {
		return err
	}
	return p.tryEvaluation(b)
}

// tryStep takes inner steps, those after the last of a unit as the first of another.
func (p *Plan) tryStep(b *prepare.CompiledJob, exec *cpu.Exec) (err error) {
	task := prepare.TaskOf(b, exec)
	task.Spec = task.Spec.Unsplit() // all stages of a replica
	if err := task.Divide(); err != nil {
		return err
	}
	var session *train.Session
	left := uint32(0)
	p.StepTime, err = shortest(kernel.Cores, func() (err error) {
		_, err = session.Advance()
		return err
	}, func() (err error) {
		if left == 0 {
			left = b.Spec.StepsOf(0)
			session, err = task.Begin(b.Genesis, 0, parts.NoAnswers(task.Step))
		}
		left--
		return err
	})
	if err != nil || b.Spec.Rollout == nil {
		return err
	}
	drawn, err := shortest(kernel.Cores, func() error { // which another unit draws for each step
		_, err := task.Draw(b.Genesis, b.Spec.Units, func(train.Progress) error { return nil })
		return err
	}, func() error { return nil })
	p.StepTime += drawn
	return err
}

// Tries of a measurement, and after how much time there is no further one.
const (
	mostTries = 12
	tryTime   = time.Second
)

// shortest is how many seconds do takes with a number of threads on a machine that does nothing else: the shortest of
// several tries, of which the first does not count, because it makes parts that later ones use again. Where other
// processes have the processors, too, the processor time says it. ready is called before each try; it may be nil.
func shortest(threads int, do, ready func() error) (seconds float64, err error) {
	begin := time.Now()
	for try := range mostTries {
		if ready != nil {
			if err := ready(); err != nil {
				return 0, err
			}
		}
		began := time.Now()
		before, _ := benchmark.Usage()
		if err := do(); err != nil {
			return 0, err
		}
		after, _ := benchmark.Usage()
		took := time.Since(began).Seconds()
		if used := (after - before).Seconds() / float64(threads); used > 0 {
			took = min(took, used)
		}
		if try == 1 || try > 1 && took < seconds {
			seconds = took
		}
		if try > 0 && time.Since(begin) > tryTime {
			break
		}
	}
	return seconds, nil
}

// productRate is how many operations a second this machine does in products of so few rows as a step has tokens, which
// are most of a large step.
func productRate(tokens int) float64 {
	const n = 1024
	rows := max(1, min(n, tokens))
	m := func(rows int) []float32 { return tensor.New(tensor.Make(tensor.Float32, rows, n)).F32() }
	g := matmul.Gemm{M: rows, N: n, K: n, A: m(rows), ARow: n, ACol: 1, B: m(n), BRow: n, BCol: 1, C: m(rows), CRow: n}
	took, _ := shortest(kernel.Cores, func() error { g.Run(kernel.Cores); return nil }, nil)
	return 2 * float64(rows) * n * n / took
}

// optimizerTime is how long the update of the weights takes, which reads and writes them, their gradients and their
// moments: the more of a step the fewer its tokens.
func optimizerTime(b *prepare.CompiledJob) float64 {
	const n = 1 << 20
	x := func() []float32 { return tensor.New(tensor.Make(tensor.Float32, n)).F32() }
	w, m, v, d := x(), x(), x(), x()
	took, _ := shortest(kernel.Cores, func() error {
		kernel.Parallel(kernel.Cores, n, func(lo, hi int) {
			kernel.AdamM(m[lo:hi], m[lo:hi], d[lo:hi], 1, 0.9)
			kernel.AdamV(v[lo:hi], v[lo:hi], d[lo:hi], 1, 0.95)
			kernel.AdamP(w[lo:hi], w[lo:hi], m[lo:hi], v[lo:hi], 1e-4, 1, 1, 1e-8, 0)
		})
		return nil
	}, nil)
	return took / n * float64(b.Size().Parameters()/prepare.BytesOfWeight)
}
