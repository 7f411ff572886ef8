package plan

import (
	"time"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/kernel/matmul"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
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
	p.Memory, p.all = prepare.Memory(b, exec, 1), prepare.Memory(b, exec, p.parties)
	if available, _, ok := memory.Available(); ok && available < least {
		return nil
	}
	if b.Step.Flops() > triedFlops || b.ParameterBytes() > triedBytes {
		p.StepTime = float64(b.Step.Flops()) / productRate()
		return nil
	}
	if err := b.Begin(); err != nil {
		return err
	}
	return p.tryStep(b, exec)
}

// tryStep takes two inner steps, of which the second counts: the first makes what later ones use again. Where a unit
// has one, that is the first of another.
func (p *Plan) tryStep(b *prepare.CompiledJob, exec *cpu.Exec) (err error) {
	task := &train.Task{Spec: b.Spec, Step: b.Step, Exec: exec, Corpus: b.Corpus, Frozen: b.Frozen}
	var session *train.Session
	for try := range 2 {
		if try == 0 || b.Spec.Steps == 1 {
			if session, err = task.Begin(b.Genesis, 0, nil); err != nil {
				return err
			}
		}
		began := time.Now()
		if _, err := session.Advance(); err != nil {
			return err
		}
		p.StepTime = time.Since(began).Seconds()
	}
	return nil
}

// productRate is how many operations a second this machine does in products of matrices, which are most of a large
// step.
func productRate() float64 {
	const n = 1024
	m := func() []float32 { return tensor.New(tensor.Make(tensor.Float32, n, n)).F32() }
	g := matmul.Gemm{M: n, N: n, K: n, A: m(), ARow: n, ACol: 1, B: m(), BRow: n, BCol: 1, C: m(), CRow: n}
	g.Run(kernel.Cores)
	began := time.Now()
	g.Run(kernel.Cores)
	return 2 * n * n * n / time.Since(began).Seconds()
}
