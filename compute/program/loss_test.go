package program

import (
	"errors"
	"testing"

	"github.com/starling-network/starling/compute/detmath"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/tensor"
)

func (w *writer) crossEntropy(k Kind) Value {
	rows, classes := 1+w.r.IntN(5), 1+w.r.IntN(9)
	logits := w.like(tensor.Make(tensor.Float32, rows, classes))
	targets := tensor.New(tensor.Make([]tensor.DType{tensor.Int32, tensor.Int64}[w.r.IntN(2)], rows))
	size := targets.Shape.DType.Size()
	for i := range rows {
		targets.Bytes()[i*size] = byte(w.r.IntN(classes + 1)) // one of them is none
	}
	at := w.keep(w.b.Constant(targets), nil)
	if k == CrossEntropy {
		return w.keep(w.b.CrossEntropy(logits, at))
	}
	return w.keep(w.b.CrossEntropyGrad(logits, at, w.like(tensor.Make(tensor.Float32, rows))))
}

// evalCrossEntropy is the oracle: a softmax row by row.
func evalCrossEntropy(op *Operator, in []naive) naive {
	out, n := naiveOf(op.Out), in[0].shape.Dims[1]
	for i, target := range in[1].i {
		row, e := in[0].f[i*n:(i+1)*n], make([]float32, n)
		top := row[0]
		for _, x := range row {
			top = max(top, x)
		}
		for j, x := range row {
			e[j] = detmath.Exp(x - top)
		}
		sum := kernel.Portable.Sum(e)
		if op.Kind == CrossEntropy {
			out.f[i] = detmath.Log(sum)
			if target >= 0 && target < int64(n) {
				out.f[i] -= row[target] - top
			}
			continue
		}
		for j := range e {
			out.f[i*n+j] = float32(e[j] * (in[2].f[i] / sum))
			if int64(j) == target {
				out.f[i*n+j] -= in[2].f[i]
			}
		}
	}
	return out
}

// TestGradientTakesTheMemoryOfTheLogits: they are the largest values of a language model.
func TestGradientTakesTheMemoryOfTheLogits(t *testing.T) {
	b := NewBuilder()
	must := func(v Value, err error) Value {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	const rows, classes = 8, 1 << 16
	x := b.Input("x", tensor.Make(tensor.Float32, rows, 4))
	w := b.Input("w", tensor.Make(tensor.Float32, 4, classes))
	targets, d := b.Input("y", tensor.Make(tensor.Int32, rows)), b.Input("d", tensor.Make(tensor.Float32, rows))
	logits := must(b.Dot(x, []int{1}, nil, w, []int{0}, nil))
	b.Output("loss", must(b.CrossEntropy(logits, targets)))
	grad := must(b.CrossEntropyGrad(logits, targets, d))
	b.Output("dx", must(b.Dot(grad, []int{1}, nil, w, []int{1}, nil)))
	p, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if got, one := lower(p, 0).arena, 4*rows*classes; got != one {
		t.Errorf("the arena has %d bytes, the logits have %d", got, one)
	}
}

func TestCrossEntropyRefuses(t *testing.T) {
	b := NewBuilder()
	f := func(name string, dims ...int) Value { return b.Input(name, tensor.Make(tensor.Float32, dims...)) }
	logits, cube, short, d := f("logits", 4, 5), f("cube", 4, 5, 1), f("short", 3), f("d", 4)
	targets := b.Input("targets", tensor.Make(tensor.Int32, 4))
	for what, err := range map[string]error{
		"rank 3":             func() error { _, err := b.CrossEntropy(cube, targets); return err }(),
		"targets of float32": func() error { _, err := b.CrossEntropy(logits, d); return err }(),
		"too few factors":    func() error { _, err := b.CrossEntropyGrad(logits, targets, short); return err }(),
	} {
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestGradientSparesLogitsThatOthersRead takes the factors from the logits themselves.
func TestGradientSparesLogitsThatOthersRead(t *testing.T) {
	w := &writer{t: t, b: NewBuilder()}
	logits := w.keep(w.b.Unary(Neg, w.b.Input("x", tensor.Make(tensor.Float32, 4, 4))))
	row := w.keep(w.b.Slice(logits, []int{0, 0}, []int{1, 4}, []int{1, 1}))
	d := w.keep(w.b.Reshape(row, 4))
	w.b.Output("grad", w.keep(w.b.CrossEntropyGrad(logits, w.b.Input("y", tensor.Make(tensor.Int32, 4)), d)))
	p, err := w.b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	x := []float32{1, 2, 3, 4, 5, 6, 7, 8, 1, 3, 5, 7, 2, 4, 6, 8}
	checkProgram(t, p, map[string]*tensor.Tensor{"x": tensor.FromF32(x, 4, 4),
		"y": tensor.FromI32([]int32{0, 1, 2, 3}, 4)})
}
