package lower

import (
	"strconv"
	"testing"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/program/programtest"
	"github.com/starling-network/starling/compute/tensor"
)

// TestRecomputeIsBounded plans programs of a stranger that cost a search in proportion to the square of their length: a
// long pass whose values all live to its end, and one with many losses.
func TestRecomputeIsBounded(t *testing.T) {
	for name, c := range map[string]struct{ values, losses int }{
		"values": {30000, 1}, "losses": {10, 20000},
	} {
		b := program.NewBuilder()
		must := programtest.Must(t)
		x := b.Input("x", tensor.Shape{DType: tensor.Float32, Dims: []int{2, 2}})
		labels := b.Input("labels", tensor.Shape{DType: tensor.Int32, Dims: []int{2}})
		made := []program.Value{must(b.Dot(x, []int{1}, nil, x, []int{0}, nil))}
		for range c.values {
			made = append(made, must(b.Apply(program.Tanh, x)))
		}
		sum := made[0]
		for _, v := range made[1:] {
			sum = must(b.Apply(program.Add, sum, v))
		}
		for k := range c.losses {
			b.Output(strconv.Itoa(k), must(b.Apply(program.CrossEntropy, sum, labels)))
		}
		p, err := b.Finish()
		if err != nil {
			t.Fatal(err)
		}
		if q := Recompute(p); len(q.Outputs) != c.losses {
			t.Errorf("many %s: %d outputs, want %d", name, len(q.Outputs), c.losses)
		}
	}
}
