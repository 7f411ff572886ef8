package boundary

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/stages"
	"github.com/starling-network/starling/compute/tensor"
)

// coded runs operators on x.
func coded(t *testing.T, x *tensor.Tensor, with func(c *coder, x program.Value) map[string]program.Value,
) map[string]*tensor.Tensor {
	t.Helper()
	c := &coder{b: program.NewBuilder()}
	for n, v := range with(c, c.b.Input("x", x.Shape)) {
		c.b.Output(n, v)
	}
	if c.err != nil {
		t.Fatal(c.err)
	}
	p, err := c.b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	e, err := cpu.Compile(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	out, err := e.Run(map[string]*tensor.Tensor{"x": x})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func wave(rows, width int) *tensor.Tensor {
	x := tensor.New(tensor.Make(tensor.Float32, rows, width))
	for i := range x.F32() {
		x.F32()[i] = float32(math.Sin(float64(i*i%977))) * float32(1+i%width%5)
	}
	return x
}

// The codes take half a byte an element, and a scale a block; the error of a block is at most half a step of its scale
// for each element, rotated: the norm of the error is at most that of these halves. Zeros stay zeros.
func TestCodes(t *testing.T) {
	const rows = 6
	for _, width := range []int{4, 16, 48, 64, 128} {
		x, each := wave(rows, width), block(width)
		clear(x.F32()[:each])
		out := coded(t, x, func(c *coder, x program.Value) map[string]program.Value {
			codes, scales := c.encode(x, each)
			return map[string]program.Value{"codes": codes, "scales": scales, "again": c.decode(codes, scales,
				[]int{rows, width})}
		})
		forward, back := Scheme{Bits: 4}.Bytes(rows, width)
		if n := out["codes"].Shape.Bytes() + out["scales"].Shape.Bytes(); n != forward || n != back {
			t.Errorf("width %d: %d bytes, the formula says %d and %d", width, n, forward, back)
		}
		for b := range rows * width / each {
			var wrong, norm float64
			for i := b * each; i < (b+1)*each; i++ {
				d := float64(out["again"].F32()[i] - x.F32()[i])
				wrong += d * d
				norm += float64(x.F32()[i]) * float64(x.F32()[i])
			}
			// The largest element of a rotated block is at most its norm, and a step a seventh of that.
			if most := float64(each) * norm / (4 * largestCode * largestCode) * 1.02; wrong > most+1e-20 {
				t.Errorf("width %d, block %d: an error of %g, at most %g", width, b, wrong, most)
			}
		}
	}
}

// The columns with the largest sums of squares are kept, of equals the first, and both sides find the same ones.
func TestColumns(t *testing.T) {
	const rows, width, k = 5, 24, 7
	x := wave(rows, width)
	for r := range rows {
		x.F32()[r*width+9] = x.F32()[r*width+3] // an equal
	}
	out := coded(t, x, func(c *coder, x program.Value) map[string]program.Value {
		mask := c.choose(x, k)
		bits := c.pack(mask)
		chosen, received := c.selection(mask, k), c.selection(c.unpack(bits), k)
		kept := c.gather(x, chosen)
		return map[string]program.Value{"mask": mask, "bits": bits, "kept": kept, "chosen": chosen, "received": received,
			"again": c.spread(kept, received)}
	})
	sums, order := make([]float64, width), make([]int, width)
	for i := range width {
		order[i] = i
		for r := range rows {
			sums[i] += float64(x.F32()[r*width+i]) * float64(x.F32()[r*width+i])
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case sums[a] > sums[b]:
			return -1
		case sums[a] < sums[b]:
			return 1
		}
		return 0
	})
	for i := range width {
		kept := slices.Contains(order[:k], i)
		if kept != (out["mask"].I32()[i] == 1) {
			t.Errorf("column %d is kept: %v", i, !kept)
		}
		for r := range rows {
			got, want := float64(out["again"].F32()[r*width+i]), float64(x.F32()[r*width+i])
			if !kept && got != 0 || kept && math.Abs(got-want) > math.Abs(want)/256 {
				t.Errorf("column %d: %v, wanted %v", i, got, want)
			}
		}
	}
	forward, back := Scheme{Columns: k}.Bytes(rows, width)
	if n := out["kept"].Shape.Bytes(); n != back || n+out["bits"].Shape.Bytes() != forward {
		t.Errorf("%d bytes of columns and %d of a mask, the formula says %d and %d", n, out["bits"].Shape.Bytes(), forward,
			back)
	}
	if out["chosen"].Root() != out["received"].Root() {
		t.Error("the two sides choose other columns")
	}
}

func TestSchemesThatCannotBeApplied(t *testing.T) {
	c, err := architecture.Parse("gpt2", map[string]any{"n_layer": 2, "n_embd": 6, "n_head": 2, "n_positions": 8,
		"vocab_size": 16, "tie_word_embeddings": false})
	if err != nil {
		t.Fatal(err)
	}
	p, err := model.TrainStep(c, optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, MaxGradNorm: 1}, 2, 8)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []Scheme{{Bits: 3}, {Bits: 4, Columns: 2}, {Bits: 4}, {Columns: 4}, {Columns: -1}, {Columns: 9}} {
		if _, err := Compress(p, []int{2}, s); !errors.Is(err, ErrScheme) {
			t.Errorf("%+v of a width of 6: %v", s, err)
		}
	}
	if _, err := Compress(p, []int{9}, Scheme{Bits: 4}); !errors.Is(err, stages.ErrCut) {
		t.Errorf("before a group that there is not: %v", err)
	}
	if same, err := Compress(p, []int{2}, Scheme{}); err != nil || same != p {
		t.Errorf("values that are sent as they are: %v", err)
	}
}
