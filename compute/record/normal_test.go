package record

import (
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// Noise and whole numbers are those of the words of the streams, and are distributed as they should be.
func TestNormal(t *testing.T) {
	const n, below = 4000, 10
	b := program.NewBuilder()
	values, err := Record(b, func(g *graph.Graph) []*node {
		key := graph.Parameter(g, "dice", shapes.Make(dtypes.Int64, 3))
		x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, n))
		return []*node{Normal(x, key, 7), Whole(x, key, 9, below)}
	})
	if err != nil {
		t.Fatal(err)
	}
	b.Output("normal", values[0])
	b.Output("whole", values[1])
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
	var words [3][n]uint32
	for i := range words {
		philox.BlocksTo(words[i][:], 5, uint64(47+i), 1<<32)
	}
	of := func(word uint32) float64 { return (float64(word) + 0.5) / (1 << 32) }
	var sum, square float64
	counts := map[float32]int{}
	for i, got := range out["normal"].F32() {
		want := math.Sqrt(-2*math.Log(of(words[0][i]))) * math.Cos(2*math.Pi*of(words[1][i]))
		if math.Abs(float64(got)-want) > 1e-5 {
			t.Fatalf("element %d is %v, want %v", i, got, want)
		}
		sum, square = sum+want, square+want*want
		whole := out["whole"].F32()[i]
		if want := math.Floor(of(words[2][i]) * below); float64(whole) != want {
			t.Fatalf("whole number %d is %v, want %v", i, whole, want)
		}
		counts[whole]++
	}
	if math.Abs(sum/n) > 0.05 || math.Abs(square/n-1) > 0.1 || len(counts) != below {
		t.Errorf("mean %v, mean square %v, counts %v", sum/n, square/n, counts)
	}
}
