package slice_test

import (
	"testing"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/slice"
)

// gpt2 has the shapes of a GPT-2 with this number of layers.
func gpt2(layers, width, vocabulary, positions int) (shapes []tensor.Shape) {
	add := func(dims ...int) { shapes = append(shapes, tensor.Make(tensor.Float32, dims...)) }
	add(vocabulary, width)
	add(positions, width)
	for range layers {
		add(width)
		add(width)
		add(width, 3*width)
		add(3 * width)
		add(width, width)
		add(width)
		add(width)
		add(width)
		add(width, 4*width)
		add(4 * width)
		add(4*width, width)
		add(width)
	}
	add(width)
	add(width)
	return shapes
}

// The bytes that a worker receives grow with the number of workers if all combine whole updates, and not if slices are
// reduced.
func TestTrafficIsBounded(t *testing.T) {
	shapes := gpt2(6, 384, 256, 256) // gpt2-10m
	var least, most int64
	t.Log("workers, slices: MB received by each in a round, whole and in slices (pieces, index, checkpoint)")
	for _, workers := range []int{4, 16, 64, 256} {
		limit, err := slice.Most(codec.Int8, shapes)
		if err != nil {
			t.Fatal(err)
		}
		n := min(workers/2, limit)
		whole, err := slice.TrafficOf(codec.Int8, shapes, workers, 0)
		if err != nil {
			t.Fatal(err)
		}
		cut, err := slice.TrafficOf(codec.Int8, shapes, workers, n)
		if err != nil {
			t.Fatal(err)
		}
		mb := func(n int64) float64 { return float64(n) / 1e6 }
		t.Logf("%3d, %3d: %7.1f %6.1f (%.1f, %.2f, %.1f)", workers, n, mb(whole.Total()), mb(cut.Total()), mb(cut.Updates),
			mb(cut.Index), mb(cut.Checkpoint))
		if most = max(most, cut.Total()); least == 0 {
			least = cut.Total()
		}
		if per := whole.Total() / int64(workers-1); cut.Updates > 2*per+2*per/4 {
			t.Errorf("%d workers: pieces of %d bytes, whole updates have %d", workers, cut.Updates, per)
		}
	}
	if most > 3*least {
		t.Errorf("from %d to %d bytes", least, most)
	}
}
