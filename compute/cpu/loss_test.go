package cpu

import (
	"testing"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/program/programtest"
	"github.com/starling-network/starling/compute/tensor"
)

// TestGradientSparesLogitsThatOthersRead takes the factors from the logits themselves.
func TestGradientSparesLogitsThatOthersRead(t *testing.T) {
	b, keep := program.NewBuilder(), programtest.Must(t)
	logits := keep(b.Apply(program.Neg, b.Input("x", tensor.Make(tensor.Float32, 4, 4))))
	row := keep(b.Slice(logits, []int{0, 0}, []int{1, 4}, []int{1, 1}))
	d := keep(b.Reshape(row, 4))
	b.Output("grad", keep(b.Apply(program.CrossEntropyGrad, logits, b.Input("y", tensor.Make(tensor.Int32, 4)), d)))
	p, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	x := []float32{1, 2, 3, 4, 5, 6, 7, 8, 1, 3, 5, 7, 2, 4, 6, 8}
	checkProgram(t, p, map[string]*tensor.Tensor{"x": tensor.FromF32(x, 4, 4),
		"y": tensor.FromI32([]int32{0, 1, 2, 3}, 4)})
}
