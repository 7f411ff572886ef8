package record

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// TestDropout holds what is dropped, and its gradient, against the words of the streams.
func TestDropout(t *testing.T) {
	const n, rate = 1000, 0.3
	b := program.NewBuilder()
	values, err := Record(b, func(g *graph.Graph) []*node {
		key := graph.Parameter(g, "dice", shapes.Make(dtypes.Int64, 3))
		x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, n))
		y, z := Dropout(x, key, 1, rate), Dropout(x, key, 2, 0.5)
		return append([]*node{y, z}, graph.Gradient(graph.ReduceAllSum(graph.Mul(y, y)), x)...)
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"y", "z", "dx"} {
		b.Output(name, values[i])
	}
	p, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	x, err := cpu.Compile(p.Simplify(), 1)
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]*tensor.Tensor{"dice": key3(40), "x": wave(tensor.Make(tensor.Float32, n), 1)}
	key := tensor.As[int64](in["dice"].Bytes())
	key[0], key[2] = 5, 1<<32
	out, err := x.Run(in)
	if err != nil {
		t.Fatal(err)
	}
	words := make([]uint32, n)
	philox.BlocksTo(words, 5, 41, 1<<32)
	scale, dropped, apart := float32(1/(1-rate)), 0, 0
	for i, v := range in["x"].F32() {
		want := float32(v * scale)
		if words[i] < 1288490189 { // 0.3*2^32
			want = 0
			dropped++
		}
		if got := out["y"].F32()[i]; got != want {
			t.Fatalf("element %d is %v, want %v", i, got, want)
		}
		if got, want := out["dx"].F32()[i], float32(float32(want+want)*scale); got != want {
			t.Fatalf("its gradient is %v, want %v", got, want)
		}
		if (out["z"].F32()[i] == 0) != (want == 0) {
			apart++
		}
	}
	if dropped < 250 || dropped > 350 || apart < 300 {
		t.Errorf("%d of %d are dropped, and %d elsewhere", dropped, n, apart)
	}
}
