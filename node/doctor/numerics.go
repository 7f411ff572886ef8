package doctor

import (
	"context"
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// numericsDigests are the digests of runSample, by the version of the numerics.
var numericsDigests = map[uint32]string{
	kernel.Version1: "8b54e91eaadb7cf1d9203eb3855bb7175cdd1a17ea8d8d9927d6473fb686def1",
	kernel.Version2: "092e28217d1db0aa5c2d6258a588e93d77b8b0c6a848f4f4ecd677f4ca5438e8",
}

// numerics runs a fixed program on every path of kernels. A machine that computes other bits would lose every dispute.
func numerics(context.Context, Options) Finding {
	active := kernel.Active()
	defer kernel.Select(active.String())
	for _, path := range kernel.Paths() {
		if err := kernel.Select(path.String()); err != nil {
			return Finding{Level: Fail, Text: err.Error()}
		}
		for version := kernel.Version1; version <= kernel.Newest; version++ {
			digest, err := runSample(version)
			if err != nil {
				return Finding{Level: Fail, Text: fmt.Sprintf("kernels %s: %v", path, err), Fix: "reinstall starling"}
			}
			if want := numericsDigests[version]; digest.String() != want {
				return Finding{Level: Fail, Text: fmt.Sprintf("kernels %s compute %s, version %d of the numerics is %s", path,
					digest, version, want),
					Fix: "do not work with this machine: its processor or this build is broken; STARLING_KERNELS=portable may " +
						"still be right"}
			}
		}
	}
	return Finding{Level: OK, Text: fmt.Sprintf("the kernels %v compute the bits of versions %d to %d", kernel.Paths(),
		kernel.Version1, kernel.Newest)}
}

// runSample computes a program of products, functions, sums and an optimizer step on random numbers in a version of the
// numerics, and digests the results.
func runSample(version uint32) (canon.Digest, error) {
	t := sampleProgram{b: program.NewBuilder()}
	x, y := t.random(1, 70, 600), t.random(2, 600, 50)
	t.keep("product", t.must(t.b.Dot(x, []int{1}, nil, y, []int{0}, nil)))
	for k := program.Exp; k <= program.Cos; k++ {
		t.keep(k.String(), t.must(t.b.Apply(k, x)))
	}
	z := t.random(3, 70, 600)
	for _, k := range []program.Kind{program.Div, program.Max, program.Pow} {
		t.keep(k.String(), t.must(t.b.Apply(k, x, z)))
	}
	t.keep("rows", t.must(t.b.Reduce(program.ReduceSum, x, 1)))
	t.keep("columns", t.must(t.b.Reduce(program.ReduceSum, x, 0)))
	t.keep("squares", t.must(t.b.Apply(program.SumSquares, x)))
	one := t.b.Constant(tensor.Scalar(0.75))
	m, v := t.must(t.b.Moment(program.AdamM, x, z, one, 0.9)), t.must(t.b.Moment(program.AdamV, x, z, one, 0.95))
	t.keep("step", t.must(t.b.AdamP(x, m, v, one, one, one, 1e-8, 0.1)))
	if t.err != nil {
		return canon.Digest{}, t.err
	}
	p, err := t.b.Finish()
	if err != nil {
		return canon.Digest{}, err
	}
	exec, err := cpu.Compile(p.In(version), 2)
	if err != nil {
		return canon.Digest{}, err
	}
	out, err := exec.Run(nil)
	if err != nil {
		return canon.Digest{}, err
	}
	var parts [][]byte
	for _, o := range p.Outputs {
		parts = append(parts, []byte(o.Name), out[o.Name].Bytes())
	}
	return canon.Sum("starling/doctor/numerics", parts...), nil
}

// sampleProgram builds a program and keeps the first error.
type sampleProgram struct {
	b   *program.Builder
	err error
}

func (t *sampleProgram) must(v program.Value, err error) program.Value {
	if err != nil && t.err == nil {
		t.err = err
	}
	return v
}

func (t *sampleProgram) keep(name string, v program.Value) { t.b.Output(name, v) }

// random is numbers from 0 to 8, of a stream of their own.
func (t *sampleProgram) random(stream int64, dims ...int) program.Value {
	words := t.must(t.b.Random(t.b.Constant(tensor.FromI64([]int64{1, stream, 0}, 3)), dims...))
	x := t.must(t.b.Convert(words, tensor.Float32))
	scale := t.must(t.b.Broadcast(t.b.Constant(tensor.Scalar(0x1p-29)), dims, nil))
	return t.must(t.b.Apply(program.Mul, x, scale))
}
