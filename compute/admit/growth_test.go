package admit

import (
	"testing"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/program/programtest"
	"github.com/starling-network/starling/compute/tensor"
)

// TestAdmissionIsBounded admits programs whose fresh form would have twice the operators with each operator: a stranger
// adds codes to themselves. Admission ends, and the programs run.
func TestAdmissionIsBounded(t *testing.T) {
	for _, output := range []bool{true, false} {
		b := program.NewBuilder()
		must := programtest.Must(t)
		codes := b.Input("codes", tensor.Shape{DType: tensor.Int8, Dims: []int{4}})
		w := must(b.Convert(codes, tensor.Float32))
		for range 40 {
			w = must(b.Apply(program.Add, w, w))
		}
		if !output {
			w = must(b.Apply(program.Mul, w, b.Input("x", tensor.Shape{DType: tensor.Float32, Dims: []int{4}})))
		}
		b.Output("sum", w)
		p, err := b.Finish()
		if err != nil {
			t.Fatal(err)
		}
		if err := Verify(p, program.DefaultLimits); err != nil {
			t.Fatal(err)
		}
		runHarmlessly(t, p)
	}
}
